/*
 * registry-i.h - private to registry-*.c and depot-registry.c: one repository of a registry.
 *
 * The protocol is the OCI distribution specification 1.1; what depot.h promises is kept here.
 */
#pragma once

#include "remote/auth.h"
#include "remote/depot.h"
#include "remote/http-depot.h"
#include "remote/http.h"

struct registry {
	struct depot depot;
	struct http *http; /* owned */
	char *server;      /* owned: "example.org:5000", what credentials are kept under */
	char *origin;      /* owned: "https://example.org:5000" */
	char *repository;  /* owned */
	bool local;        /* the host is this machine */
};

static inline struct registry *registry_of(struct depot *d)
{
	return (struct registry *)d; /* begins with it */
}

/* A URL of the repository: "/v2/REPOSITORY" and the formatted rest.  Owned; NULL when out of memory. */
NODISCARD char *registry_url(const struct registry *g, const char *fmt, ...) PRINTF_LIKE(2, 3);

/*
 * http_send() with the authorization that the registry wants, found out on the way.  The request's
 * `authorization` is set here.
 */
NODISCARD int registry_send(struct registry *g, struct http_request *q, struct http_answer *ret,
			    struct err *err);

/*
 * The code and the sentence for an answer that is not as hoped, with what the registry says about it;
 * `what` failed: "reading tags".  404 is -ENOENT without a sentence.
 */
NODISCARD int registry_explain(const struct registry *g, const struct http_answer *a,
			       const char *what, struct err *err);

/* The first of the errors in a body as "CODE: message", printable, owned; NULL: there is none. */
NODISCARD char *registry_error_text(const char *body, size_t len);

/* Does the answer say, where it says one at all, that it is about this digest? */
bool registry_confirms(const struct http_answer *a, const struct digest *d);

/* --- what struct depot_ops has ------------------------------------------------------------- */

int registry_has_blob(struct depot *d, const struct digest *blob, uint64_t *ret_size,
		      struct err *err);
int registry_put_blob(struct depot *d, const struct digest *blob, const struct depot_bytes *from,
		      const struct depot_watch *watch, struct err *err);
int registry_get_blob(struct depot *d, const struct digest *blob, uint64_t off, uint64_t len,
		      depot_sink_fn sink, void *ctx, const struct depot_watch *watch,
		      struct err *err);
int registry_mount_blob(struct depot *d, const struct digest *blob, const char *from_repository,
			struct err *err);
int registry_put_manifest(struct depot *d, const char *tag, const struct digest *expect,
			  const char *media_type, const void *bytes, size_t len, struct err *err);
int registry_get_manifest(struct depot *d, const char *reference, struct buf *out, struct err *err);
int registry_list_tags(struct depot *d, depot_tag_fn fn, void *ctx, struct err *err);
int registry_delete_manifest(struct depot *d, const char *reference, struct err *err);
int registry_collect(struct depot *d, const struct depot_retention *what, struct depot_freed *ret,
		     struct err *err);
int registry_probe(struct depot *d, depot_tell_fn tell, void *ctx);

/* The tags of one page; -EPROTO if it is none.  A non-zero answer of `fn` ends it and is returned. */
NODISCARD int registry_read_tags(const char *body, size_t len, depot_tag_fn fn, void *ctx);

/* The URL of the next page in a Link header, as it stands there, owned; NULL: there is none. */
NODISCARD char *registry_next_page(const char *link);
