/*
 * touched-i.h - which paths may differ between a snapshot and the one before it.
 *
 * A file is followed through thousands of snapshots, and nearly all of them changed something else.
 * For each step from one root to the next a small Bloom filter holds the names that differ, so a
 * walk need not read the trees of a step that did not touch its file. The filter says "no" only
 * where that is certain.
 *
 * The filters of a project are in the file trails/PROJECT of the store. They depend on the two
 * roots alone and can be computed again, so the file may be removed at any time, and invalid parts
 * of it are ignored. cowfsd adds the step of each snapshot that it takes, a reader the steps that
 * it computed.
 */
#pragma once

#include "base/buf.h"
#include "base/map.h"
#include "cowfs/store/catalog-id.h"
#include "cowfs/store/store.h"

#define TOUCHED_DIR      "trails"
#define TOUCHED_NAME_MAX 400 /* names that differ; of a step with more nothing is kept but that */

/* A path, prepared for being asked about: the path itself and each directory above it. */
struct touched_path {
	uint64_t *sums; /* owned */
	size_t n, cap;
};

NODISCARD int touched_path_set(struct touched_path *p, const char *path, struct err *err);
void touched_path_done(struct touched_path *p);

struct touched {
	struct store *store;
	struct catalog_id project;
	struct buf records;         /* as they were read, then those that were found out */
	size_t saved;               /* bytes of them that the file has */
	struct touched_step **list; /* owned; where each record is */
	size_t n, cap;
	struct map steps; /* the same by their roots */
	bool damaged;     /* the file ends in something that is no record */
};

/* Never fails but for want of memory: without a file every step is found out again. */
NODISCARD int touched_open(struct store *s, const struct catalog_id *project, struct touched *ret,
			   struct err *err);

/* Was anything found out that is not kept yet? */
bool touched_has_news(const struct touched *t);

/* Is the root one of those that the project's snapshots have? */
typedef bool (*touched_lives)(const struct object_id *root, const void *ctx);

/* Keep what was found out; without those that no snapshot needs any more, if they are many. */
void touched_save(struct touched *t, touched_lives lives, const void *ctx);
void touched_done(struct touched *t);

/* 0: the path is the same in both roots.  1: it may differ. */
NODISCARD int touched_ask(struct touched *t, const struct object_id *from,
			  const struct object_id *to, const struct touched_path *path,
			  struct err *err);

/* Add one step; failure costs time later, and nothing else. */
void touched_note(struct store *s, const struct catalog_id *project, const struct object_id *from,
		  const struct object_id *to);

/* The project is forgotten. */
void touched_forget(struct store *s, const struct catalog_id *project);
