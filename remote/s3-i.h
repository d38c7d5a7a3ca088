/*
 * s3-i.h - private to s3-*.c and depot-s3.c: a depot in an S3-compatible store.
 *
 * Below the prefix:
 *
 *   blobs/sha256/HEX      every blob and manifest, as in a directory
 *   tags/NAME             the manifest that NAME means, whole; its digest is in x-amz-meta-digest
 *   pending/NAME/RANDOM   the manifest of a push that is about to move NAME
 *   gc/RANDOM             a gc is removing
 *
 * S3 has no lock.  A push announces its manifest (pending/) and then looks for a gc (gc/); a gc announces
 * itself and then looks for pushes.  So at least one sees the other: the push waits for the gc and looks
 * once more whether its blobs are there, or the gc keeps what the push needs.  It takes a store in which a
 * list shows every object that was put before it; AWS, MinIO, Ceph and others promise that.
 */
#pragma once

#include "base/buf.h"
#include "remote/depot.h"
#include "remote/http-depot.h"
#include "remote/http.h"
#include "remote/s3-config.h"

#define S3_GC_STALE_S      3600 /* a gc whose object is older has died: see S3_GC_RENEW_MS */
#define S3_GC_RENEW_MS     300000
#define S3_GC_LOST_MS      3000000 /* a gc that did not renew its object for so long gives up */
#define S3_PENDING_STALE_S 86400   /* the same of a push */

struct s3_depot {
	struct depot depot;
	struct http *http; /* owned */
	struct s3_config config;
	struct http_keys keys; /* borrowed from config and `scope` */
	char *scope;           /* owned: "aws:amz:eu-west-1:s3" */
	char *base;            /* owned: the bucket's URL, without a slash at its end */
	char *bucket;          /* owned */
	char *prefix;          /* owned: "" or "team/app/" */
	bool plain;            /* it refused a condition of a PUT as unknown */
};

static inline struct s3_depot *s3_of(struct depot *d)
{
	return (struct s3_depot *)d; /* begins with it */
}

/* The URL of the object with the formatted key below the prefix.  Owned; NULL when out of memory. */
NODISCARD char *s3_url(const struct s3_depot *s, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* "blobs/sha256/HEX" as a URL; the same. */
NODISCARD char *s3_blob_url(const struct s3_depot *s, const struct digest *blob);

/*
 * http_send() of a request that is signed.  `body` is the SHA-256 of what the request's source has (NULL: it
 * has none), which the store compares; `headers` (NULL: none) are the request's own.
 */
NODISCARD int s3_send(struct s3_depot *s, struct http_request *q, const struct digest *body,
		      const struct strlist *headers, struct http_answer *ret, struct err *err);
/* One small object, put or removed; 0 for any answer that says so, else as s3_explain(). */
NODISCARD int s3_put_small(struct s3_depot *s, const char *url, const void *bytes, size_t len,
			   struct err *err);
NODISCARD int s3_remove(struct s3_depot *s, const char *url, struct err *err);

/*
 * The code and the sentence for an answer that is not as hoped; `what` failed: "reading tags".  404 is
 * -ENOENT without a sentence, unless it is the bucket that is missing.
 */
NODISCARD int s3_explain(const struct s3_depot *s, const struct http_answer *a, const char *what,
			 struct err *err);

/* --- lists --------------------------------------------------------------------------------- */

struct s3_entry {
	const char *key; /* borrowed; behind what the list is of */
	uint64_t size;
	int64_t modified; /* seconds since 1970 by the store's clock */
	int64_t now;      /* the same, when the list was made */
};

typedef int (*s3_entry_fn)(const struct s3_entry *e, void *ctx);

/* Each object whose key begins with `below` ("tags/") behind the prefix.  A non-zero answer of `fn` ends it. */
NODISCARD int s3_each(struct s3_depot *s, const char *below, s3_entry_fn fn, void *ctx,
		      struct err *err);

/*
 * One page: each entry with its whole key, and the token of the next page, owned; NULL: there is none.
 * -EPROTO, -ENOMEM, or what `fn` returned.
 */
NODISCARD int s3_list_read(const char *body, int64_t now, s3_entry_fn fn, void *ctx,
			   char **ret_next);

/* What is between <name> and </name>, borrowed; NULL: there is no such element. */
const char *s3_xml_element(const char *xml, size_t len, const char *name, size_t *ret_len);
/* The text of the first element of that name, owned; NULL: there is none. */
NODISCARD char *s3_xml_text(const char *xml, size_t len, const char *name);

/* --- what struct depot_ops has ------------------------------------------------------------- */

int s3_has_blob(struct depot *d, const struct digest *blob, uint64_t *ret_size, struct err *err);
int s3_put_blob(struct depot *d, const struct digest *blob, const struct depot_bytes *from,
		const struct depot_watch *watch, struct err *err);
int s3_get_blob(struct depot *d, const struct digest *blob, uint64_t off, uint64_t len,
		depot_sink_fn sink, void *ctx, const struct depot_watch *watch, struct err *err);
int s3_put_manifest(struct depot *d, const char *tag, const struct digest *expect,
		    const char *media_type, const void *bytes, size_t len, struct err *err);
int s3_get_manifest(struct depot *d, const char *reference, struct buf *out, struct err *err);
int s3_list_tags(struct depot *d, depot_tag_fn fn, void *ctx, struct err *err);
int s3_delete_manifest(struct depot *d, const char *reference, struct err *err);
int s3_collect(struct depot *d, const struct depot_retention *what, struct depot_freed *ret,
	       struct err *err);
int s3_probe(struct depot *d, depot_tell_fn tell, void *ctx);
