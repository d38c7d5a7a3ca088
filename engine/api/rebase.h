/*
 * rebase.h - move a clone to the project's present state, with its own changes on top.
 *
 * The clone's changes since its base are merged onto the present project (docs/design/rebase.md). A
 * conflict is a result: nothing is changed then. The clone gets the merged tree while programs use
 * it. Its earlier state is kept as a snapshot first, and a rollback to that takes the rebase back,
 * base included.
 */
#pragma once

#include "engine/api/promote.h"

struct engine_rebase_options {
	const char *clone; /* NULL: the one that holds the engine's directory */
	enum merge_on_conflict on_conflict;
	enum merge_style style;
	bool skip_unreadable; /* of the project: what cannot be read stays as the clone has it */
	bool dry_run;
	struct engine_watch watch;
};

struct engine_rebased {
	bool conflicted;            /* both sides changed the same, and nothing was changed */
	char *clone, *project;      /* owned */
	char from[ENGINE_ID_SIZE];  /* the base that it had */
	char onto[ENGINE_ID_SIZE];  /* and has now; the same if the project is as it was */
	char saved[ENGINE_ID_SIZE]; /* the clone as it was; "": nothing was changed */
	bool dry_run;
	uint64_t changed, merged; /* paths in the clone; and texts that came from both sides */
	struct engine_rolled_path *paths; /* owned, as are the others */
	size_t n_paths;
	struct engine_conflict *conflicts; /* ours is the project, theirs the clone */
	size_t n_conflicts;
	struct engine_rolled_path
	    *left; /* git's folders that both sides changed: the clone's stay */
	size_t n_left;
	uint64_t elapsed_ms;
};

void engine_rebased_done(struct engine_rebased *r);

/* Once it returns 0 with `saved` set, it is done, and that survives power loss. */
NODISCARD int engine_rebase(struct engine *e, const struct engine_rebase_options *options,
			    struct engine_rebased *ret, struct err *err);
