/*
 * promote.h - promote a clone's changes to the project, and undo that.
 *
 * The clone's changes since its base are merged with the project as it is now
 * (docs/design/merge.md). A conflict, or a path that the guard holds, is a result: nothing is
 * changed then. A promotion lands completely or not at all (docs/design/apply.md), with a snapshot
 * before and after and a receipt, by which it can be undone.
 */
#pragma once

#include <stddef.h>

#include "base/fields.h"
#include "engine/api/engine.h"
#include "engine/api/rollback.h"
#include "engine/api/run.h"
#include "snapshot/merge/merge.h"

struct engine_promote_options {
	const char *clone;         /* NULL: the one that holds the engine's directory */
	const char *state;         /* a snapshot of that clone, or its first; NULL: as it is now */
	struct engine_list checks; /* commands for a shell, run on exactly the merged tree first */
	struct engine_list
	    paths; /* patterns of .gitignore: only what they name; none: everything */
	struct engine_list excludes; /* and not what these name */
	/*
	 * A directory outside of every project; NULL: the project.  Then `paths` are no patterns,
	 * and each arrives there under its last name; the clone's base stays.
	 */
	const char *to;
	/*
	 * The project is a whole root file system, perhaps this machine: root alone may, `paths` are
	 * paths and no patterns, and the guard knows the files of machines.
	 */
	bool root;
	struct engine_list allow; /* paths that the guard lets pass, with all below them */
	const char *plan;         /* only if it is this, as an earlier answer has it; NULL: any */
	enum merge_on_conflict on_conflict;
	enum merge_style style;
	bool skip_unreadable; /* of the project: leave what cannot be read as it is */
	bool git;             /* commits made in the clone come into branches snap/CLONE/... */
	bool dry_run;
	bool with_hunks; /* the texts of conflicts, too */
	bool again;      /* with the options of the promotion that met conflicts last, and these */
	struct engine_watch watch;
	const char *profile;                    /* of checks; NULL: the profile 'default' */
	const struct engine_run_limits *limits; /* likewise; NULL: the profile's */
	/*
	 * A check is about to run, or has run; NULL: who cares.  Then run->out has the end of what it
	 * wrote, both streams in the order in which that came.
	 */
	void (*checking)(const char *command, const struct engine_run *run, void *ctx);
	void *checking_ctx;
	int *ret_signal; /* that ended a check, with -EINTR; NULL: who cares */
};

/* How a conflict was settled by somebody who looked at it (resolve.h). */
enum engine_take {
	ENGINE_TAKE_NONE,
	ENGINE_TAKE_OURS,   /* the project's; of a text, where it conflicts */
	ENGINE_TAKE_THEIRS, /* the clone's, likewise */
	ENGINE_TAKE_FILE,   /* bytes that were given */
};

#define ENGINE_VERSIONS_SIZE 65

/* One of the three, by which it can be shown: STATE:PATH. */
#define ENGINE_CONFLICT_SIDES 3 /* base, ours (the project), theirs (the clone) */

/* One place of a text that conflicts. */
struct engine_hunk {
	uint64_t line;                     /* of `marked`, from 1 */
	char *text[ENGINE_CONFLICT_SIDES]; /* owned */
};

struct engine_conflict {
	char *path;                          /* owned; where it would stand */
	const char *kind;                    /* merge_kind_name() */
	unsigned hunks;                      /* of a text: places that conflict */
	bool settled;                        /* as on_conflict says, or `take` */
	bool is_marked;                      /* by markers that stand in the text */
	enum engine_take take;               /* what was decided for it */
	bool stale;                          /* that was for other versions, and does not count */
	char versions[ENGINE_VERSIONS_SIZE]; /* of what conflicts at the path, as one word */
	bool file;                           /* one side at least has a regular file there */
	/* If they were asked for, of a text that is not too long; owned; else NULL and none. */
	char *texts[ENGINE_CONFLICT_SIDES]; /* all that each has; NULL: it has no such file */
	char *marked;                       /* merged, with markers in the style diff3 */
	struct engine_hunk *places;
	size_t n_places;
	char *sides[ENGINE_CONFLICT_SIDES]; /* owned; NULL: it is not there */
};

struct engine_checked {
	char *command; /* owned */
	int exit_code;
	char run[ENGINE_RUN_ID_SIZE];
	uint64_t duration_ms;
};

extern const struct fields engine_checked_fields; /* as receipts and JSON have it */

/* Branches that came with git's own means. */
struct engine_commits {
	struct engine_branch {
		char *ref, *commit; /* owned; as the project has it; an object's name */
		char *repository;   /* owned; a submodule's work tree; "": the project's */
	} * list;                   /* owned */
	size_t n;
};

enum engine_promote_end {
	ENGINE_PROMOTED,     /* or nothing was to be done, or dry_run */
	ENGINE_CONFLICTS,    /* both sides changed the same */
	ENGINE_HELD,         /* by the guard */
	ENGINE_CHECK_FAILED, /* the last of `checks` */
	ENGINE_MOVED,        /* somebody changed the project meanwhile: see `meanwhile` */
};

struct engine_promotion {
	enum engine_promote_end end;
	char id[ENGINE_ID_SIZE]; /* of the receipt; "": nothing was changed */
	char *clone, *project;   /* owned; of an undo, `clone` may be NULL */
	char *to; /* owned; the directory that changed if that is not the project, else NULL */
	char undone[ENGINE_ID_SIZE]; /* of an undo: the receipt that it takes back */
	char before[ENGINE_ID_SIZE], after[ENGINE_ID_SIZE];
	char sha256[65]; /* of what changed (docs/design/promote.md); "": none */
	char plan[65];   /* names what would change or did; of use in this store only */
	bool dry_run;
	uint64_t changed, merged;         /* paths; and texts that came from both sides */
	struct engine_rolled_path *paths; /* owned, as are the others */
	size_t n_paths;
	struct engine_conflict *conflicts;
	size_t n_conflicts;
	struct engine_rolled_path *held; /* `why`: the name of the rule */
	size_t n_held;
	struct engine_rolled_path *warned; /* by the guard; likewise, and `detail` */
	size_t n_warned;
	struct engine_rolled_path *meanwhile;
	size_t n_meanwhile;
	struct engine_rolled_path *left; /* git's own, which is never merged; or `why` not */
	size_t n_left;
	struct engine_checked *checks;
	size_t n_checks;
	bool git; /* what follows was asked for */
	struct engine_commits commits;
	uint64_t elapsed_ms;
};

void engine_conflicts_free(struct engine_conflict *list, size_t n);
void engine_commits_done(struct engine_commits *c);
void engine_promotion_done(struct engine_promotion *p);

/* Once it returns 0 with an id, the project has the changes, and that survives power loss. */
NODISCARD int engine_promote(struct engine *e, const struct engine_promote_options *options,
			     struct engine_promotion *ret, struct err *err);

struct engine_undo_options {
	const char *what;       /* a receipt, or the beginning of its id; NULL: the last */
	uint64_t newer_than_ms; /* refuse (-ECANCELED) if it is older; 0: however old */
	bool root;              /* of this machine, `/`, wherever the engine is; only root may */
	enum merge_on_conflict on_conflict;
	enum merge_style style;
	bool skip_unreadable; /* as of a promotion, but not what it is to change */
	bool dry_run;
	struct engine_watch watch;
};

/* Take back a promotion or a rollback of the project; later edits stay, or are conflicts. */
NODISCARD int engine_undo(struct engine *e, const struct engine_undo_options *options,
			  struct engine_promotion *ret, struct err *err);
