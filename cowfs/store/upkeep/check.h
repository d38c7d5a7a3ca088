/*
 * check.h - check every byte of a store, and name the files that damage affects.
 *
 * check_store() reads every row of both databases, verifies checksum, packing, id and form, and
 * lets SQLite verify its own structure. Then it walks every ref and names the paths that lead to a
 * damaged or missing object, or to one that does not fit its referrers. Damage is a finding, not a
 * failure: it fails only if it could not look, -EBUSY while a gc runs. Writers of this process may
 * continue beside it. A gc of another process may not: its removals would look like missing
 * objects.
 */
#pragma once

#include "base/cleanup.h"
#include "base/err.h"
#include "cowfs/store/object.h"
#include "cowfs/store/store.h"

/*
 * Paths kept per finding; n_paths counts on.  A directory in which something is wrong is
 * walked at most this often for one ref, so if it has more places there, n_paths is a
 * lower bound.
 */
#define CHECK_PATHS_MAX 64

struct check_finding {
	char what[96]; /* "chunk 0123...", "ref snapshot 'abc'", "meta.db" */
	char why[252]; /* the sentence */
	char **paths;  /* owned; "snapshot NAME:PATH", bytes shown as path_append_shown() does */
	size_t n_kept;
	size_t n_paths;
	struct object_ref
	    object; /* which is damaged or missing; kind 0: it is about something else */
};

/* A row that is not what it should be. */
struct check_row {
	bool is_chunk; /* it stands in chunks.db */
	int64_t seq;
};

struct check_report {
	uint64_t objects; /* rows read, chunks included */
	uint64_t bytes;   /* their unpacked bytes */
	uint64_t refs;
	struct check_finding *findings; /* owned */
	size_t n_findings;
	struct check_row *rows; /* owned; for repair_store(): what some findings are about */
	size_t n_rows;
	bool torn; /* a database itself is damaged, not only what is in it */
};

typedef void (*check_progress_fn)(uint64_t done, uint64_t total, void *ctx);

NODISCARD int check_store(struct store *s, check_progress_fn progress, void *ctx,
			  struct check_report *ret, struct err *err);
void check_report_done(struct check_report *r);
