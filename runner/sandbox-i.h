/*
 * sandbox-i.h - the steps of a run, for the files of runner/ only.
 *
 * Three processes. The caller stays outside and watches. It clones the init, process 1 of the new
 * namespaces, which builds the root and then only reaps and forwards. The init forks the child,
 * which builds the last walls and becomes the command. They speak through one socket, the line; its
 * end tells each that the other is dead.
 *
 * Every step returns 0 or a negative errno with a sentence, and is called from sandbox-linux.c,
 * init-linux.c or child-linux.c in an order that docs/design/sandbox.md explains.
 */
#pragma once

#include "runner/cgroup.h"
#include "runner/clerk.h"
#include "runner/sandbox.h"

/* --- the line: line-linux.c --------------------------------------------------------------- */

enum line_kind {
	LINE_IDS, /* to the init: they are mapped */
	LINE_GO,  /* to the init: all is known; with the trees that only the caller could make, and
		      * in `value` the CGROUP_ bits that hold */
	LINE_SIGNAL,  /* to the init: pass `value` on to the command's session */
	LINE_END,     /* to the init: pass `value` on to every process */
	LINE_COUNTED, /* to the init: what the run used has been read, and it may end */
	LINE_ROOT,    /* to the caller: the root of the run, as a connection and a mount */
	LINE_TTY,     /* to the caller: the master of the terminal */
	LINE_WALLS,   /* to the caller: exec is next, and these stand; `value`: level of Landlock */
	LINE_FAILED,  /* to the caller: `err`; `value` is 1 if it was exec itself */
	LINE_ENDED,   /* to the caller: `value` is what wait(2) said of the command */
};

struct line_msg {
	enum line_kind kind;
	int value;
	uint32_t walls;
	struct err err;
};

#define LINE_FDS_MAX 64

NODISCARD int line_send(int line, const struct line_msg *msg, const int *fds, size_t n_fds);

/* 1 and a message, 0 at the end of the line, or a negative errno.  The caller owns the fds. */
NODISCARD int line_receive(int line, struct line_msg *ret, int *fds, size_t *n_fds);

/* _exit() behind a filter of somebody else's, which may forbid even that; libc would try for ever. */
NORETURN void line_leave(int status);

/* Tell the caller why, and end this process. */
NORETURN void line_give_up(int line, const struct err *err, bool at_exec);

/* --- a run in the making ------------------------------------------------------------------ */

struct room;

/* The clerk of a run with a root of its own (clerk-linux.c); none: `line` is -1. */
struct clerk {
	int line; /* owned */
	pid_t pid;
	bool waits;           /* a call is out, and no other may be asked about */
	uint64_t id;          /* of that call, */
	enum clerk_what what; /* and its kind */
	bool lost;            /* some owner was not recorded */
};

struct run {
	const struct sandbox_spec *spec; /* `own`: the caller's, and what its view adds */
	struct sandbox_spec own;
	struct room *room;     /* owned; NULL if there is no view */
	struct cgroup *cgroup; /* owned; NULL if no limit needs one */
	unsigned int held;     /* CGROUP_ bits: what the groups bound and count */
	uint32_t missing;      /* walls that may be missing, and are */
	struct err unbounded;  /* why no group holds a limit, if that is among them */
	uint32_t walls;        /* in force so far */

	bool privileged;      /* the caller may map any ids and make idmapped mounts */
	enum sandbox_ids ids; /* with a root of its own */
	pid_t init;           /* 0 once it is reaped */
	int init_fd;          /* its pidfd; owned, as all the others */
	int line;     /* our end of the line: the caller's, or in the init and child theirs */
	int far_line; /* the other end, until the clone */
	int userns;   /* the init's, to map ids to it; -1 if none are mapped */
	struct clerk clerk;

	int landlock; /* level of the rules that were entered; 0: none */
	int listener; /* the child's: what its list of calls refuses; -1: nobody hears of it */

	/* Ends of pipes: [0] stdin, [1] stdout, [2] stderr.  With a terminal our[0] is its master. */
	int our[3];
	int their[3];

	/* The init's, while it builds: the root, and what masks are made of. */
	int root, empty_dir, empty_file;
	int scratch;      /* the tmpfs: the root itself, unless the run has one of its own, */
	int clone;        /* which is this, made by the caller; -1: none */
	int proc;         /* the same of its /proc */
	size_t n_mounted; /* of the spec's mounts */

	/* Trees with their ids mapped, by place in spec->mounts; -1 where there is none. */
	int trees[SANDBOX_MOUNTS_MAX];
};

/* The init may take its ids, and begin. */
NODISCARD int line_say_ids(struct run *run, struct err *err);

/* Everything is ready for the init: let it go on. */
NODISCARD int line_say_go(struct run *run, struct err *err);

/* --- room-linux.c: what the caller's view adds, for both sides --------------------------- */

NODISCARD int room_new(struct room **ret, struct err *err);
void room_free(struct room *room); /* NULL is fine */
NODISCARD int room_fill(struct room *room, const struct sandbox_spec *spec,
			const struct sandbox_view *view, struct err *err);
void room_show(const struct room *room, struct sandbox_spec *spec); /* once it is filled */

/* --- ns-linux.c: by the caller ------------------------------------------------------------ */

/* The init in all its namespaces: 0 in it, its pid (in run->init, too) outside. */
NODISCARD int ns_clone(struct run *run, struct err *err);
NODISCARD int ns_map_ids(struct run *run, struct err *err);
unsigned int ns_outside(unsigned int id); /* what an id of a run by root is outside */

/* --- ns-linux.c: by the init -------------------------------------------------------------- */

/* The ids of the spec; with a root of its own user 0, if the run has others, and the child's are the spec's. */
NODISCARD int ns_become(struct run *run, struct err *err);
NODISCARD int ns_become_user(const struct run *run, struct err *err); /* by the child, last */
NODISCARD int ns_settle(struct run *run, struct err *err); /* cgroups, host name, loopback */
NODISCARD int ns_hide_cgroups(struct err *err);            /* once it is in them for good */

/* --- ids-linux.c: by the caller ----------------------------------------------------------- */

#define ID_COUNT 65536u
#define ID_BASE  524288u /* where ids of a run by root begin outside; no account is given such */

/* Root, and of a user namespace that has ids to give away; one that has none is as any user. */
bool ids_are_all_mapped(void);
NODISCARD int ids_map_range(const struct run *run, struct err *err);

/* Root of a root of its own, with no other id: what gives files or processes one is answered only. */
bool ids_are_answered(const struct run *run);

/* --- root-linux.c ------------------------------------------------------------------------- */

/* By the caller, once ids are mapped: the root that the spec asks for, served; 0 if it asks for none. */
NODISCARD int root_open(struct run *run, struct err *err);

/* --- clerk-linux.c ------------------------------------------------------------------------ */

/* By the process that made the root, until the caller closes the other end. */
void clerk_serve(int line, int tree);
void clerk_end(struct clerk *c); /* none is fine */

/*
 * Hand a call of a thread of the run to the clerk.  1: once c->line can be read, clerk_hear() is what the call
 * c->id is answered with, 0 or a negative errno; else that at once, since there is no clerk.
 */
NODISCARD int clerk_ask(struct clerk *c, uint64_t id, const struct clerk_call *call);
NODISCARD int clerk_hear(struct clerk *c);

/* --- idmap-linux.c: by the caller --------------------------------------------------------- */

NODISCARD int idmap_open(struct run *run,
			 struct err *err); /* that namespace, while the init lives */

/* Clone each owned mount with the ids of the init's user namespace. */
NODISCARD int idmap_trees(struct run *run, struct err *err);

/* --- target-linux.c: by the init ---------------------------------------------------------- */

/*
 * The directory that `guest` stands in below `root`, made if missing, and its last name in
 * *ret_name.  That is the root itself or *owned, which the caller closes.
 */
NODISCARD int target_parent(int root, const char *guest, int *owned, const char **ret_name,
			    struct err *err);

/* Below `root`, made if missing, as a directory or an empty file; a descriptor to mount on. */
NODISCARD int target_open(int root, const char *guest, bool dir, struct err *err);

/* --- mounts-linux.c, dev-linux.c, proc-linux.c: by the init ------------------------------- */

NODISCARD int mounts_begin(struct run *run, struct err *err); /* the root, as far as it is known */
NODISCARD int mounts_enter(struct run *run, struct err *err); /* the rest, and pivots into it */

/* What `host` is, without following any symlink; -ESTALE if it is not `fd` any more. */
NODISCARD int mounts_open_host(const struct sandbox_mount *m, struct err *err);

NODISCARD int dev_build(int root, struct err *err);
NODISCARD int proc_mount(struct err *err); /* not attached yet */
NODISCARD int proc_mask(int root, int empty_dir, int empty_file, struct err *err);

/* --- caps-linux.c: by the init, for all that it forks ------------------------------------- */

NODISCARD int caps_bound(struct err *err); /* nothing can be gained again; what there is stays */
NODISCARD int caps_drop(struct err *err);

/* With a root of its own: what its user 0 may not have is gone for ever; what there is stays. */
NODISCARD int caps_bound_root(struct err *err);
NODISCARD int caps_keep_root(struct err *err); /* by the child, last of all */

/* --- limits-linux.c: by the init, before the filter keeps it so --------------------------- */

NODISCARD int limits_bar_core(struct err *err); /* no core is written, nor piped to a program */

/* --- by the child, in this order ---------------------------------------------------------- */

NODISCARD int tty_open(struct run *run, struct err *err);
NODISCARD int landlock_enter(struct run *run, struct err *err);
NODISCARD int seccomp_enter(struct run *run, bool heard, struct err *err);
/* `ours`: for a process that runs our own code, not the command. */
NODISCARD int limits_apply(const struct run *run, bool ours, struct err *err);

NORETURN void child_main(struct run *run);
NORETURN void init_main(struct run *run);

/* --- refused-linux.c: by the caller ------------------------------------------------------- */

/* One call; 1 unless it was refused, < 0: there is nothing more to hear. */
NODISCARD int refused_hear(struct run *run, int listener);

/* Answer the call that waits for clerk_hear(). */
NODISCARD int refused_hear_clerk(struct run *run, int listener);

/* --- watch-linux.c: by the caller --------------------------------------------------------- */

/* Let the init go on, until it is gone and everything it wrote has been passed on. */
NODISCARD int watch_run(struct run *run, struct sandbox_result *ret, struct err *err);
