/*
 * known-i.h - what a project has of a name: a note for each name of a remote and each project.
 *
 * What the store fetched (struct seen) is not in the project yet.  A push that compared with that would
 * take others' work away, and a merge from there would drop it.
 */
#pragma once

#include "cowfs/store/record.h"
#include "engine/transfer/transfer-i.h"

struct known {
	struct digest manifest; /* of which all is in the project */
	/* The project's state that both sides have in common; "": none is known, or it is gone. */
	char snapshot[ENGINE_ID_SIZE];
	/* States of the project from then on have in them what others pushed; nanoseconds since 1970. */
	int64_t from;
};

/* 1 if the project has something of that name, else 0. */
NODISCARD int known_load(struct engine *e, const struct target *t, const struct catalog_id *project,
			 struct known *ret, struct err *err);

/* The same for the project that the command works on; one that is not registered has nothing. */
NODISCARD int known_load_here(struct engine *e, const struct target *t, struct known *ret,
			      struct err *err);

/* A note that cannot be written is a warning. */
void known_save(struct engine *e, const struct target *t, const struct catalog_id *project,
		const struct known *known);

/* This state of a project, or of a clone of it, was pushed. */
NODISCARD int known_push(struct engine *e, const struct target *t, const struct snapshot *state,
			 const struct digest *manifest, struct err *err);

/* Has the state all that is in the manifest that the name means now?  1, else 0. */
NODISCARD int known_covers(struct engine *e, const struct target *t, const struct snapshot *state,
			   const struct digest *manifest, struct err *err);

/*
 * All changes of a clone that started as this snapshot are in its project now.  If that was fetched, so is
 * what others pushed.  `after`: the project's state since; "": it had them before.
 */
void known_merge(struct engine *e, const struct catalog_id *project, const struct catalog_id *start,
		 const char *after);
