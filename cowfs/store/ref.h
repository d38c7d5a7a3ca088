/*
 * ref.h - names for things in a store: a kind, a name, a root, and a value.
 *
 * The root is the object that the ref keeps alive with all it reaches, or zero. Each kind defines
 * its values (catalog.h). A row is checked against its checksum when it is read: a damaged ref is
 * -EBADMSG, not a name.
 */
#pragma once

#include "cowfs/store/batch.h"
#include "cowfs/store/object.h"
#include "cowfs/store/store.h"

#define REF_NAME_MAX  4096
#define REF_VALUE_MAX ((size_t)1 << 20)

enum ref_kind {
	REF_PROJECT = 1,
	REF_SNAPSHOT = 2,
	REF_TAG = 3,
	REF_CLONE = 4,
	REF_RECEIPT = 5,
	REF_RESOLUTIONS = 6,
	REF_ARTIFACT = 7,
	REF_ALLOWANCE = 8,
	REF_AUDIT = 9,
	REF_LAZY = 10,
	REF_HIDDEN = 11,
};
#define REF_KINDS 11

struct ref {
	enum ref_kind kind;
	const char *name; /* bytes of any value */
	size_t name_len;
	struct object_id root; /* a tree, or zero */
	const void *value;
	size_t value_len;
};

const char *ref_kind_name(enum ref_kind kind);

enum ref_mode {
	REF_NEW,     /* the commit fails with -EEXIST if the name is taken */
	REF_REPLACE, /* takes the place of what was there, if anything */
};

/*
 * Both take effect with batch_commit(), in the order of the calls; everything is copied.
 * -EINVAL with a sentence for an empty name, or a name or value above its limit.
 */
NODISCARD int ref_put(struct batch *b, const struct ref *ref, enum ref_mode mode, struct err *err);
NODISCARD int ref_delete(struct batch *b, enum ref_kind kind, const char *name, size_t name_len,
			 struct err *err); /* the commit fails with -ENOENT if it is not there */

/* *ret borrows from `hold`.  -ENOENT if there is none. */
NODISCARD int ref_get(struct store *s, enum ref_kind kind, const char *name, size_t name_len,
		      struct ref *ret, struct buf *hold, struct err *err);

/*
 * Call `fn` for each ref of a kind in the order of names, all as of one moment.
 * The ref is borrowed for the call.  A non-zero answer of `fn` ends the walk and
 * is returned.  `fn` may read the store.
 */
typedef int (*ref_fn)(const struct ref *ref, void *ctx, struct err *err);
NODISCARD int ref_each(struct store *s, enum ref_kind kind, const char *prefix, size_t prefix_len,
		       ref_fn fn, void *ctx, struct err *err);
