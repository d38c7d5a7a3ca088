/*
 * promoting-i.h - the state of one promotion or undo.
 */
#pragma once

#include "base/strlist.h"
#include "base/sys.h"
#include "engine/act/land-i.h"
#include "engine/act/promote-i.h"
#include "engine/find/resolve-set-i.h"
#include "engine/find/rules-i.h"
#include "snapshot/merge/merge.h"
#include "snapshot/text/ignore.h"

struct promoting {
	struct task *task;
	const struct promote_options *options;
	struct store *store;
	struct project project;
	struct clone clone;           /* its name NULL: an undo */
	struct receipt undoes;        /* of an undo */
	bool with_git;                /* of a rollback, that is */
	struct snapshot base, theirs; /* `theirs` unless a clone is meant as it is now */
	struct object_id theirs_root;
	/* Of a promotion with `to` and of its undo (deliver-i.h); else all empty: */
	struct project target;          /* the directory that changes */
	struct sys_place place;         /* what it was when it was checked */
	struct strlist sources, names;  /* of the clone; and their last names */
	struct strlist watched;         /* names that are captured of the target */
	struct object_id whole;         /* the clone: checks run on it */
	struct object_id pinned_theirs; /* zero: not yet */
	struct strlist named, allowed; /* with --root: patterns of what takes part; what may pass */
	struct strlist outside; /* with --root: no clone has it, so a link must not lead there */
	struct engine_rules rules;
	struct guard *guard;
	struct ignore *paths, *excludes;
	struct landing landing;
	struct resolve_set decided; /* for conflicts of the clone */
	struct merge_options how;
	struct merge merge;
	struct object_id pinned, pinned_base; /* the merged tree, and base; zero: not yet */
	struct object_id pinned_next;         /* the base that the clone is to have; the same */
	struct snapshot followed;             /* that base if nothing lands; no project: none */
	char *said;                           /* its message; owned */
	struct plan plan;
	int64_t now;
	char *checks;    /* what options->checks says */
	struct err *err; /* of a walk */
	struct engine_promotion result;
};

/* Does this path take part?  `ctx` is the struct promoting. */
bool promoting_takes(const char *path, void *ctx);

/* Of an undo, which is done whole or not at all: refuse if it would change what cannot be read. */
NODISCARD int promoting_check_unread(struct promoting *p, struct err *err);

/*
 * What is meant (promote-find.c): the clone with its project, base and state; the project of an undo;
 * and, only with the project's turn, since landing_open() has ended any interrupted change, what is undone.
 */
NODISCARD int promoting_find_clone(struct promoting *p, struct err *err);
NODISCARD int promoting_find_project(struct promoting *p, struct err *err);
NODISCARD int promoting_find_undone(struct promoting *p, struct err *err);

/* Of a root file system: read which paths were named, and refuse what is none of it (promote-root.c). */
NODISCARD int promoting_read_root(struct promoting *p, struct err *err);

/* The base that the clone is to have once this has landed (promote-base.c); it is pinned by `p`. */
NODISCARD int promoting_next_base(struct promoting *p, struct snapshot *base, char *message,
				  struct err *err);

/* Nothing is to land: what the clone changed and the project has as well is its own no longer. */
NODISCARD int promoting_follow(struct promoting *p, struct err *err);
