/*
 * depot-dir-i.h - private to depot-dir*.c: a depot in a directory.
 */
#pragma once

#include "base/json.h"
#include "remote/depot.h"

struct dir_depot {
	struct depot depot;
	char *path; /* owned */
	int fd;     /* of the directory; -1 until it is needed */
	int blobs;  /* of blobs/sha256 */
};

static inline struct dir_depot *dir_of(struct depot *d)
{
	return (struct dir_depot *)d; /* begins with it */
}

/* Open the directory; -ENOENT without a sentence if there is no depot yet. */
NODISCARD int dir_use(struct dir_depot *dir, struct err *err);

/* -EEXIST with a sentence if the directory holds anything that a depot does not have. */
NODISCARD int dir_check_strange(struct dir_depot *dir, struct err *err);

/* Wait for .snapcow-lock; closing *ret lets go of it. */
NODISCARD int dir_lock(struct dir_depot *dir, int *ret, struct err *err);

/* --- index.json ----------------------------------------------------------------------------- */

/* Parse it; an index with no manifests if there is none yet. */
NODISCARD int dir_index_load(struct dir_depot *dir, struct json_doc *doc, struct json *ret,
			     struct err *err);
/* What a tag names now; -ENOENT, -EBADMSG. */
NODISCARD int dir_index_find(struct json manifests, const char *tag, struct digest *ret);

struct dir_index_change {
	const char *drop_tag;             /* NULL: none */
	const struct digest *drop_digest; /* NULL: none */
	const struct depot_drop *drops;   /* tags that still name what is expected */
	size_t n_drops;
	const char *add_tag; /* NULL: none */
	const struct digest *add_digest;
	const char *media_type;
	size_t size;
};

/* Does the change remove it? */
bool dir_index_drops(struct json entry, const struct dir_index_change *c);
/* Write it anew: all that is there but what is dropped, and one more.  How many were dropped. */
NODISCARD int dir_index_change(struct dir_depot *dir, struct json manifests,
			       const struct dir_index_change *c, struct err *err);

/* --- what struct depot_ops has ------------------------------------------------------------- */

int dir_put_manifest(struct depot *d, const char *tag, const struct digest *expect,
		     const char *media_type, const void *bytes, size_t len, struct err *err);
int dir_get_manifest(struct depot *d, const char *reference, struct buf *out, struct err *err);
int dir_list_tags(struct depot *d, depot_tag_fn fn, void *ctx, struct err *err);
int dir_delete_manifest(struct depot *d, const char *reference, struct err *err);
int dir_collect(struct depot *d, const struct depot_retention *what, struct depot_freed *ret,
		struct err *err);
int dir_probe(struct depot *d, depot_tell_fn tell, void *ctx);
