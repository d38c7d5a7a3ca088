/*
 * projects.h - the projects that a store knows, and the one that it does not know yet.
 *
 * They come from the stored state: no daemon is asked or started for that.
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
 * All that is kept of a project goes: snapshots, tags, receipts; the directory itself is not touched.
 * `project` is an id of engine_projects().  -EBUSY if it has clones or artifacts, unless `force` removes
 * those too.
 */
NODISCARD int engine_project_forget(struct engine *e, const char *project, bool force,
				    struct err *err);

/*
 * It is in another directory now, which must be there; *ret_path, owned by the caller, is that without
 * symlinks.  -ECANCELED if the old one is there too and `force` is not set, -EEXIST if the new one is
 * a project already.
 */
NODISCARD int engine_project_move(struct engine *e, const char *project, const char *path,
				  bool force, char **ret_path, struct err *err);

/* The one that a person names by its id or its path, which need not be there; NULL: none. */
struct engine_project *engine_projects_find(const struct engine *e, struct engine_projects *p,
					    const char *word);

/* A project that is no more where it was, and the directory that it is likely to be now. */
struct engine_moved {
	char id[ENGINE_ID_SIZE];
	char *from, *to; /* owned */
	bool certain;    /* it is the same directory; else it may be */
};

void engine_moved_done(struct engine_moved *m);

/* Where a command finds no project: 1 if one moved here.  Nothing is changed. */
NODISCARD int engine_project_moved(struct engine *e, struct engine_moved *ret, struct err *err);

/* How the sentence of -ECANCELED ends where a directory has to be named. */
#define ENGINE_ONLY_IF_NAMED "which is a project only if you name it"

/*
 * The directory that would be the project if a snapshot were taken now; the caller owns it.  -ECANCELED with
 * that sentence if it had to be named.
 */
NODISCARD int engine_project_to_be(struct engine *e, char **ret, struct err *err);
