#include "remote/registry-i.h"

#include <errno.h>

#include "remote/reference.h"

int registry_has_blob(struct depot *d, const struct digest *blob, uint64_t *ret_size,
		      struct err *err)
{
	struct registry *g = registry_of(d);
	CLEANUP(http_answer_done) struct http_answer a = { 0 };
	char text[DIGEST_TEXT_SIZE];
	AUTO_FREE char *url = registry_url(g, "/blobs/%s", digest_text(blob, text));
	struct http_request q = { .method = "HEAD", .url = url };
	int r;

	if (!url)
		return err_nomem(err);
	r = registry_send(g, &q, &a, err);
	if (r < 0)
		return r;
	if (a.status == 404)
		return 0;
	if (a.status != 200)
		return registry_explain(g, &a, "looking for a blob", err);
	if (a.length == UINT64_MAX)
		return err_set(err, -EPROTO, "'%s' does not say how large blob %s is", d->url,
			       text);
	if (ret_size)
		*ret_size = a.length;
	return 1;
}

int registry_get_blob(struct depot *d, const struct digest *blob, uint64_t off, uint64_t len,
		      depot_sink_fn sink, void *ctx, const struct depot_watch *watch,
		      struct err *err)
{
	struct registry *g = registry_of(d);
	CLEANUP(http_answer_done) struct http_answer a = { 0 };
	char text[DIGEST_TEXT_SIZE];
	AUTO_FREE char *url = registry_url(g, "/blobs/%s", digest_text(blob, text));
	struct http_blob b;
	int r;

	if (!url)
		return err_nomem(err);
	if (len == 0)
		return 0;
	http_blob_init(&b, url, off, len, sink, ctx, watch);
	r = registry_send(g, &b.request, &a, err);
	if (r < 0)
		return r;
	if (a.status != 200 && a.status != 206)
		return registry_explain(g, &a, "reading a blob", err);
	return http_blob_check(&b, len, d, blob, err);
}

int registry_mount_blob(struct depot *d, const struct digest *blob, const char *from_repository,
			struct err *err)
{
	struct registry *g = registry_of(d);
	CLEANUP(http_answer_done) struct http_answer a = { 0 };
	char text[DIGEST_TEXT_SIZE];
	AUTO_FREE char *url = NULL;
	struct http_request q = { .method = "POST" };
	int r;

	if (!reference_repository_valid(from_repository))
		return err_set(err, -EINVAL, "'%s' is no name of a repository", from_repository);
	url = registry_url(g, "/blobs/uploads/?mount=%s&from=%s", digest_text(blob, text),
			   from_repository);
	if (!url)
		return err_nomem(err);
	q.url = url;
	r = registry_send(g, &q, &a, err);
	if (r < 0)
		return r == -EACCES ? 0 : r; /* we may not read there: it must be sent */
	if (a.status == 201)
		return 1;
	/* 202: an upload has begun instead, which the registry drops by itself. */
	if (a.status == 202 || (a.status >= 400 && a.status < 500 && a.status != 429))
		return 0;
	return registry_explain(g, &a, "taking a blob over", err);
}
