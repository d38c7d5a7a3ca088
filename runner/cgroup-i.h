/*
 * cgroup-i.h - the two kinds of cgroups behind one small interface.
 *
 * A manager works on directories that its caller passes in, so tests can use any directory with
 * files of the same names.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runner/cgroup.h"

#define CGROUP_DIRS_MAX 4
#define CGROUP_NAME_MAX 96
#define CGROUP_SUFFIX   ".scope" /* of a group that is systemd's */

/* A group of ours in one hierarchy. */
struct cgroup_dir {
	int parent; /* the group above; owned, as the next two */
	int fd;
	int entry; /* what a process writes "0" to, to be in it; -1 if it is cloned into it */
	unsigned int serves; /* bits of CGROUP_, those of its controllers that a run needs */
};

struct cgroup_manager {
	const char *entry; /* the file of a group for that, or NULL */
	/* Which controllers a child of this group would have: CGROUP_ bits.  Looks only. */
	unsigned int (*offers)(int parent, const char *controllers);
	/* Can a process be started in this new group? */
	int (*check)(int group, struct err *why);
	/* Write the limits that this directory serves. */
	int (*apply)(const struct cgroup_dir *dir, const struct cgroup_limits *limits,
		     struct err *err);
	void (*use)(const struct cgroup_dir *dir, struct cgroup_use *ret); /* adds what it knows */
	void (*kill)(const struct cgroup_dir *dir);
};

extern const struct cgroup_manager cgroup_v1, cgroup_v2;

struct scope;

struct cgroup {
	const struct cgroup_manager *manager;
	enum cgroup_kind kind;
	char name[CGROUP_NAME_MAX];
	struct cgroup_limits limits;
	unsigned int wanted, held;
	struct cgroup_dir dirs[CGROUP_DIRS_MAX];
	size_t n_dirs;
	struct scope *scope; /* owned; while systemd is asked */
	uint64_t asked;      /* when that was, us */
	uint64_t spent;      /* us that went into asking and waiting, and into nothing else */
	pid_t pid;           /* that is to be in it */
	struct err why;      /* what has gone wrong so far */
};

/* CGROUP_ bits of a list of controllers, between commas or blanks. */
unsigned int cgroup_controllers(const char *list);
unsigned int cgroup_wanted(const struct cgroup_limits *limits);

/* A name that nobody else uses and that says which process made it. */
void cgroup_make_name(char name[CGROUP_NAME_MAX]);

/* A group of ours below `parent`, which is taken, with its limits: adds a directory, and what it holds. */
NODISCARD int cgroup_add(struct cgroup *g, int parent, unsigned int serves, struct err *why);

/* Groups below this one whose makers are gone. */
void cgroup_each_orphan(int parent, void (*visit)(int parent, const char *name, void *ctx),
			void *ctx);
void cgroup_sweep(int parent); /* removes them; one with processes in it stays */

/* One file of a group.  Reading gives 0 for what is missing or no number. */
NODISCARD int cgroup_write(int dir, const char *file, const char *text, struct err *err);
NODISCARD int cgroup_write_u64(int dir, const char *file, uint64_t v, struct err *err);
uint64_t cgroup_read(int dir, const char *file);
uint64_t cgroup_read_key(int dir, const char *file, const char *key); /* of lines "key value" */

/* --- cgroup-find-linux.c ----------------------------------------------------------------- */

/*
 * Have systemd stop empty scopes below this group whose makers are gone.  A scope ends by itself with
 * its last process, but one that dies while it is moved, as its caller was killed, never gets there.
 */
void cgroup_sweep_scopes(int parent, struct scope *manager);

/* --- cgroup-v2-linux.c ------------------------------------------------------------------- */

#define CGROUP_LEAF "snap-leaf" /* for the processes of a container whose root group is ours */

/* Those of `wanted` that the limits in this group's files are: somebody else wrote them. */
unsigned int cgroup_v2_holds(int group, const struct cgroup_limits *limits, unsigned int wanted,
			     struct err *why);

void cgroup_v2_lacks(const char *controller, struct err *why); /* systemd does; and the fix */

unsigned int cgroup_v2_has(int group); /* controllers that it has itself */
bool cgroup_v2_is_root(int group);     /* of the hierarchy, which is the host's */
bool cgroup_v2_has_processes(int group);

/*
 * The root group of a container that is ours: process 1 is in it, we see all that are, and may
 * write it.  Look, and then move them all into a leaf and have it pass its controllers on.
 */
NODISCARD int cgroup_v2_is_ours(int group, struct err *why);
NODISCARD int cgroup_v2_clear(int group, struct err *why);
