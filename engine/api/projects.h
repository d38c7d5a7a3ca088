/*
 * projects.h - the projects that a store knows, and the one that it does not know yet.
 *
 * Read from the store as it lies: no daemon is asked or started.
 */
#pragma once

#include <stddef.h>

#include "engine/api/engine.h"

struct engine_project {
	char id[ENGINE_ID_SIZE];
	char *path;      /* owned */
	int64_t created; /* nanoseconds since 1970 */
	bool missing;    /* there is no such directory now */
	uint64_t snapshots, clones;
};

struct engine_projects {
	struct engine_project *list; /* owned; by path */
	size_t n;
};

void engine_projects_done(struct engine_projects *p);

/* Where there is no store there are none. */
NODISCARD int engine_projects(struct engine *e, struct engine_projects *ret, struct err *err);

/*
 * The directory that would be the project if a snapshot were taken now; the caller owns it.  -ECANCELED with
 * a sentence if that had to be named.
 */
NODISCARD int engine_project_to_be(struct engine *e, char **ret, struct err *err);
