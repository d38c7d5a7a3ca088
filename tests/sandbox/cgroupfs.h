/*
 * cgroupfs.h - a directory that stands in for a cgroup v2 file system, with its rules.
 *
 * The test program is linked with --wrap for mkdirat, unlinkat and write, and with it for what
 * reads /proc or looks for systemd.  Below the directory these behave as the kernel does: a new group gets the files
 * of the controllers that its parent passes on; enabling one in a group that has processes fails
 * (memory) or makes it a threaded domain (pids, cpu), below which nothing can start; a group with
 * processes cannot be removed.
 */
#pragma once

#include <sys/types.h>

/* An empty tree, with a hierarchy's root that has memory, pids and cpu. */
void cgroupfs_begin(void);

/* A group of that tree, with all above it, below which nothing is passed on yet. */
void cgroupfs_make(const char *group);
void cgroupfs_remove(const char *group);

/* Pass these controllers ("memory pids cpu") on to the children, as a manager did before. */
void cgroupfs_pass_on(const char *group, const char *controllers);

/* A process is in that group, and in no other. */
void cgroupfs_put(const char *group, pid_t pid);

/* This process, whose group that is; what is mounted is the tree from `root` on. */
void cgroupfs_call_from(const char *root, const char *group);

const char *cgroupfs_read(const char *group, const char *file); /* without the last newline */
void cgroupfs_write(const char *group, const char *file, const char *text);
int cgroupfs_has(const char *group);
int cgroupfs_count_below(const char *group); /* how many groups are right below it */
