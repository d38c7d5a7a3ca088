/*
 * pristine.h - a small store known by heart, to be damaged one place at a time.
 */
#pragma once

#include "base/buf.h"
#include "cowfs/store/object.h"
#include "tests/lib/test.h"

#define PRISTINE_FILES   2
#define PRISTINE_OBJECTS 16 /* at most */

extern const char *const pristine_file[PRISTINE_FILES]; /* "meta.db", "chunks.db" */

struct known_object {
	enum object_kind kind;
	struct object_id id;
	struct buf bytes;
};

struct pristine {
	const char *path;                /* of the store, which is closed */
	struct buf file[PRISTINE_FILES]; /* what stands in its files */
	struct known_object object[PRISTINE_OBJECTS];
	size_t n_objects;
	struct object_id root; /* of snapshot "s" */
};

/* stock_fill_small() in a store of its own. */
struct pristine pristine_new(const char *name);
void pristine_done(struct pristine *p);

/*
 * Does the store refuse to open, or does check report something?  If not, everything
 * must be there.  Either way the test fails if anything but what was put is handed out.
 */
bool pristine_is_damaged(const struct pristine *p);

void pristine_restore(const struct pristine *p, size_t file);
