/*
 * cgroup-i.h - the two kinds of cgroups behind one small interface.
 *
 * A manager works on directories that are given to it, so that what it writes can be tested
 * on any directory with files of the same names.
 */
#pragma once

#include <stddef.h>

#include "runner/cgroup.h"

#define CGROUP_DIRS_MAX 4

/* A group of ours in one hierarchy. */
struct cgroup_dir {
	int parent; /* the caller's group; owned, as the next two */
	int fd;
	int entry; /* what a process writes "0" to, to be in it; -1 if it is cloned into it */
	unsigned int serves; /* bits of CGROUP_, those of its controllers that a run needs */
};

struct cgroup_manager {
	const char *entry; /* the file of a group for that, or NULL */
	/* Which controllers a child of this group could have: CGROUP_ bits, or why none. */
	int (*offers)(int parent, const char *controllers, struct err *why);
	/* Write the limits that this directory serves. */
	int (*apply)(const struct cgroup_dir *dir, const struct cgroup_limits *limits,
		     struct err *err);
	void (*use)(const struct cgroup_dir *dir, struct cgroup_use *ret); /* adds what it knows */
	void (*kill)(const struct cgroup_dir *dir);
};

extern const struct cgroup_manager cgroup_v1, cgroup_v2;

/* CGROUP_ bits of a list of controllers, between commas or blanks. */
unsigned int cgroup_controllers(const char *list);

/* One file of a group.  Reading gives 0 for what is missing or no number. */
NODISCARD int cgroup_write(int dir, const char *file, const char *text, struct err *err);
NODISCARD int cgroup_write_u64(int dir, const char *file, uint64_t v, struct err *err);
uint64_t cgroup_read(int dir, const char *file);
uint64_t cgroup_read_key(int dir, const char *file, const char *key); /* of lines "key value" */
