/*
 * artifact.h - results of a clone that outlive it: some of its files, kept until somebody removes them.
 *
 * An artifact never changes.  It belongs to the clone's project; removing the clone, its snapshots or
 * old runs does not touch it, and the same bytes are stored once.
 */
#pragma once

#include <stddef.h>

#include "engine/api/engine.h"
#include "engine/api/meta.h"
#include "engine/api/run.h"
#include "engine/api/show.h"

#define ENGINE_SHA256_SIZE 65 /* hex digits and a NUL */

struct engine_artifact {
	char id[ENGINE_ID_SIZE];
	char sha256[ENGINE_SHA256_SIZE]; /* of all that is in it (docs/guide/agents.md) */
	char *clone;                     /* owned; that had it */
	char run[ENGINE_RUN_ID_SIZE];    /* that it came from; "": none */
	char **paths;                    /* owned, and each of them; from the top of the project */
	size_t n_paths;
	char *meta;      /* owned; labels (meta.h), or NULL: none */
	int64_t created; /* nanoseconds since 1970 */
	uint64_t files, bytes;
};

void engine_artifact_done(struct engine_artifact *a);

struct engine_artifacts {
	char *project; /* owned; its path */
	struct engine_artifact *list;
	size_t n;
};

void engine_artifacts_done(struct engine_artifacts *a);

struct engine_artifact_options {
	const char *clone; /* NULL: the one that holds the engine's directory */
	char **paths;      /* borrowed; files or directories, from the top of the project */
	size_t n_paths;
	const char *meta; /* labels; NULL: none */
	const char *run;  /* that they came from; NULL: none */
	/*
	 * Of an agent: the session that it belongs to, a label besides the others.  It may keep
	 * ENGINE_SESSION_ARTIFACTS, and ENGINE_SESSION_BYTES in all; then -EDQUOT.  NULL: no limit.
	 */
	const char *session;
};

#define ENGINE_SESSION_KEY       "session" /* of the label */
#define ENGINE_SESSION_ARTIFACTS 100
#define ENGINE_SESSION_BYTES     ((uint64_t)1 << 30)

/*
 * Keep files of a clone as they are now.  Once this returns 0 they survive power loss; on failure
 * there is nothing.  -ENOENT if the clone lacks one of the paths.
 */
NODISCARD int engine_artifact_save(struct engine *e, const struct engine_artifact_options *options,
				   struct engine_artifact *ret, struct err *err);

/* Those of the project that holds the engine's directory, newest first. */
NODISCARD int engine_artifacts(struct engine *e, struct engine_artifacts *ret, struct err *err);

/* By the beginning of its id or its digest.  -ENOENT or -EINVAL with a sentence. */
NODISCARD int engine_artifact_find(struct engine *e, const char *id, struct engine_artifact *ret,
				   struct err *err);

NODISCARD int engine_artifact_remove(struct engine *e, const char *id, struct engine_artifact *ret,
				     struct err *err);

/*
 * Write it to the directory `to`, made if it is not there, with its paths below that.  All of it or
 * nothing: -EEXIST, and nothing changed, if a name that it needs is taken.  No symlink below `to` is
 * followed, and set-id bits are left out.
 */
NODISCARD int engine_artifact_get(struct engine *e, const char *id, const char *to,
				  struct engine_artifact *ret, struct err *err);

/* A file of it to the sink's `found` and `bytes`, or a directory to `found` and `entry`; "": the top. */
NODISCARD int engine_artifact_read(struct engine *e, const char *id, const char *path,
				   const struct engine_show_sink *sink, struct err *err);
