/*
 * rollback.h - roll a clone or the project back to a snapshot.
 *
 * The present state is kept as a snapshot first, so going back loses nothing. A clone goes back
 * while it is in use. A project is a real directory: it changes by the journal of
 * docs/design/apply.md, completely or not at all, and a concurrent edit is a conflict, not a loss.
 * A state that a clone made is not one of the project's own: the guard judges it as in a promotion,
 * and '.git' is left alone.
 */
#pragma once

#include <stddef.h>

#include "engine/api/engine.h"
#include "engine/api/run.h"

struct engine_rollback_options {
	/*
	 * NULL, NULL: the clone that holds the engine's directory, else its project, to the last
	 * snapshot.  One word is a clone if there is one of that name, else a snapshot; two are a clone
	 * and a snapshot.
	 */
	const char *first, *second;
	bool no_git;          /* of a project: leave '.git' as it is */
	bool skip_unreadable; /* of a project: leave what cannot be read as it is */
	bool dry_run;         /* only say what would change */
	bool clone_only;      /* the first word is a clone's name and nothing else */
	bool own_only;        /* of a project: no state that a clone made; -ECANCELED */
	/* Of a project: the id of a snapshot.  Unless the project looks like it, like the wanted one,
	   or has no files, it is `edited`, and nothing changes.  NULL: in any case. */
	const char *since;
	/* Of a project: whatever comes of it, the next look at the project reads only what changes from
	   now on.  An automatic snapshot may be kept for that. */
	bool remember;
	/* Patterns of .gitignore: only what they name goes back; none: everything. */
	struct engine_list paths;
	/* Of a project to a state of a clone: paths that the guard lets pass, with all below them. */
	struct engine_list allow;
	const char *rules; /* for the guard; NULL: the user's own file */
	struct engine_watch watch;
};

struct engine_rolled_path {
	char *path; /* owned; from the top */
	/* 'A', 'D', 'M': it comes, goes, changes.  Of conflicts: '!'. */
	char status;
	char *why; /* owned; of a conflict: what is the matter, of the guard: its rule; else NULL */
	char *detail; /* owned; of a link: its target; of a warning: what is new; else NULL */
};

#define ENGINE_ROLLED_PATHS_MAX 10000 /* that are listed; all are counted */

struct engine_rolled {
	char *clone;                  /* owned; NULL: the project */
	char *project;                /* owned; its path */
	char to[ENGINE_ID_SIZE];      /* snapshot */
	char saved[ENGINE_ID_SIZE];   /* the one that holds what was there; "": nothing changed */
	char receipt[ENGINE_ID_SIZE]; /* of a project that was changed: by which it is undone */
	bool dry_run;
	bool edited;      /* `since` the asker's snapshot; nothing was changed */
	uint64_t changed; /* paths, as a status counts them; times alone do not count */
	struct engine_rolled_path *paths;
	size_t n_paths;
	struct engine_rolled_path *conflicts; /* then nothing was changed */
	size_t n_conflicts;
	struct engine_rolled_path *held; /* by the guard (`why`: its rule); nothing was changed */
	size_t n_held;
	struct engine_rolled_path *warned; /* by the guard; likewise, but it was changed */
	size_t n_warned;
	uint64_t elapsed_ms;
};

void engine_rolled_paths_free(struct engine_rolled_path *list, size_t n);
void engine_rolled_done(struct engine_rolled *r);

/*
 * Once it returns 0 without conflicts, the clone or project is what the snapshot holds, and that
 * survives power loss.  On failure all is as it was.
 */
NODISCARD int engine_rollback(struct engine *e, const struct engine_rollback_options *options,
			      struct engine_rolled *ret, struct err *err);
