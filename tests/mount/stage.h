/*
 * stage.h - a live layer (live.h) at a mount point, every step checked.
 *
 * The test program itself uses the mount, as any other process would: its own requests are
 * answered by the threads of the mount.  Paths count from the top of the mount.  A test that
 * fails leaves no mount behind: what is still there is unmounted at exit.
 */
#pragma once

#include "cowfs/fuse/mount.h"
#include "tests/lib/live.h"

struct stage {
	struct live live;
	struct mounts *mounts;
	struct mount *m;
	const char *path; /* where it is mounted */
};

/* A store, an empty clone and its mount; skips the test where nothing can be mounted. */
void stage_open(struct stage *s, const char *name);
void stage_open_with(struct stage *s, const char *name, const struct mount_options *options);
void stage_close(struct stage *s); /* all of it; the mount must not be in use */

/* The mount alone. */
void stage_mount(struct stage *s, const struct mount_options *options);
void stage_unmount(struct stage *s, bool force);
const char *stage_dir(const char *name); /* an empty directory that is unmounted at exit */

/* "PATH/name", in one of a few buffers that are used in turn. */
const char *stage_at(const struct stage *s, const char *name);

void stage_put(const struct stage *s, const char *name, const char *text);
bool stage_has(const struct stage *s, const char *name, const char *text);
bool stage_there(const struct stage *s, const char *name);
char *stage_names(const struct stage *s, const char *name); /* owned; sorted, each behind a blank */

struct mount_stats stage_stats(const struct stage *s);

/* In a process of its own, as this user and group and no other; what `fn` returned, 0..255. */
int stage_as(uint32_t id, int (*fn)(const struct stage *s), const struct stage *s);

/* Wait, at most some seconds, until it is true. */
bool stage_wait(bool (*is)(const struct stage *s), const struct stage *s);
bool stage_ended(const struct stage *s);
