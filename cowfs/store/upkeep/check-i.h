/*
 * check-i.h - private to check: the findings so far, and the walk that finds their paths.
 */
#pragma once

#include "cowfs/store/ref-row-i.h"
#include "cowfs/store/store-i.h"
#include "cowfs/store/upkeep/check.h"

/* An object found damaged or missing, by id and kind. */
struct bad_object {
	struct object_ref what; /* its key in check.bad */
	size_t finding;         /* index in report.findings */
};

struct check {
	struct store *store;
	bool begun;        /* counted in store->checks */
	struct reader *rd; /* stands in one read transaction per database */
	struct check_report report;
	struct map bad;       /* struct bad_object, owned */
	struct map said;      /* struct said by its text, owned: findings of check_add_once() */
	struct buf chunk_len; /* uint32_t per row of chunks.db; 0, or too short: not known */
	check_progress_fn progress;
	void *progress_ctx;
};

/* --- rows (check-row.c) ----------------------------------------------------------------- */

/* What check_row() wants of a row. */
#define CHECK_ROW_META   "seq, id, sum, data, kind"
#define CHECK_ROW_CHUNKS "seq, id, sum, data, 1"

struct checked_row {
	enum object_kind kind; /* 0: it has none */
	struct object_id id;   /* zero: it has none */
	const void *packed;    /* borrowed from the query; NULL: there is nothing */
	size_t len;
	bool unpacked; /* its bytes are in `raw`, right or wrong */
	bool right;    /* they are those that its id names, whatever the checksum says */
};

/* The row that the query stands on.  -EBADMSG, and why, unless all of it is as it should be. */
NODISCARD int check_row(const struct object_key *key, struct codec *codec, struct db_query *q,
			struct buf *raw, struct checked_row *ret, struct err *why);

/* --- findings (check-findings.c) -------------------------------------------------------- */

/* Note something wrong; its index in *ret. */
NODISCARD int check_add(struct check *c, const char *what, const char *why, size_t *ret,
			struct err *err);

/* The same once for all that say it: the index of the first. */
NODISCARD int check_add_once(struct check *c, const char *what, const char *why, size_t *ret,
			     struct err *err);
NODISCARD int check_add_about(struct check *c, enum object_kind kind, const struct object_id *id,
			      const char *why, size_t *ret, struct err *err);

/* Note something; the object is then bad for everything that names it. */
NODISCARD int check_add_object(struct check *c, enum object_kind kind, const struct object_id *id,
			       const char *why, size_t *ret, struct err *err);

void check_said_done(struct check *c);

/* Another path that leads to a finding. */
NODISCARD int check_add_path(struct check *c, size_t finding, const char *path, size_t len,
			     struct err *err);

struct bad_object *check_bad(const struct check *c, enum object_kind kind,
			     const struct object_id *id);

/* Walk everything the refs reach. */
struct check_walk;
NODISCARD int check_walk_new(struct check *c, struct check_walk **ret, struct err *err);
void check_walk_free(struct check_walk *w); /* NULL is fine */
DEFINE_CLEANUP(struct check_walk *, check_walk_free)
NODISCARD int check_walk_ref(struct check_walk *w, const struct ref *ref, struct err *err);
