/*
 * grove.h - a real directory that is changed at random, captured, and compared with captures.
 */
#pragma once

#include "snapshot/apply/apply.h"
#include "tests/lib/stock.h"
#include "tests/lib/test.h"

struct grove {
	const char *path; /* of the directory */
	int fd;
	struct store *s; /* open for writing, or NULL */
	const char *store_path;
	int64_t as_of; /* of the last capture */
};

struct grove grove_new(const char *name);
void grove_done(struct grove *g);

/* One random change: made, removed, another type, another mode, time, attribute, link, size. */
void grove_change(struct grove *g, struct test_rng *rng);

/* Everything in the directory goes. */
void grove_clear(struct grove *g);

/* One of every kind, by hand; `other` makes each of them different in its way. */
void grove_plant(struct grove *g, bool other);

void grove_text(struct grove *g, const char *path, const char *text);
bool grove_has(struct grove *g, const char *path);
char *grove_read(struct grove *g, const char *path); /* owned; NULL: there is none */

/* What the directory is now; the last four are kept by refs. */
struct object_id grove_capture(struct grove *g);

/* A plan from what it is, just captured, to the root. */
struct plan grove_plan(struct grove *g, const struct object_id *now,
		       const struct object_id *wanted);

/* Is the directory what the root says, times and links included? */
bool grove_is(struct grove *g, const struct object_id *root);
void grove_explain(struct grove *g, const struct object_id *root); /* prints what differs */

/* No journal and no stage is left. */
bool grove_is_tidy(struct grove *g);
