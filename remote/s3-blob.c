#include <errno.h>
#include <string.h>

#include "base/fdio.h"
#include "remote/s3-i.h"

#define LOOK_SIZE \
	((uint64_t)256 << 10) /* from there on a question costs less than sending it in vain */

int s3_has_blob(struct depot *d, const struct digest *blob, uint64_t *ret_size, struct err *err)
{
	struct s3_depot *s = s3_of(d);
	CLEANUP(http_answer_done) struct http_answer a = { 0 };
	AUTO_FREE char *url = s3_blob_url(s, blob);
	struct http_request q = { .method = "HEAD", .url = url };
	int r;

	if (!url)
		return err_nomem(err);
	r = s3_send(s, &q, NULL, NULL, &a, err);
	if (r < 0)
		return r;
	if (a.status == 404)
		return 0;
	if (a.status != 200)
		return s3_explain(s, &a, "looking for a blob", err);
	if (a.length == UINT64_MAX)
		return err_set(err, -EPROTO, "'%s' does not say how large an object is", d->url);
	if (ret_size)
		*ret_size = a.length;
	return 1;
}

/* --- put ---------------------------------------------------------------------------------- */

/* What is sent, digested on the way: the last piece of wrong bytes never leaves. */
struct outgoing {
	const struct digest *blob;
	const struct depot_bytes *from;
	struct sha256 sha;
	uint64_t at; /* bytes that were digested */
	struct err *err;
};

static int read_piece(const struct outgoing *o, uint64_t at, void *to, size_t len)
{
	ssize_t n;

	if (o->from->fd < 0) {
		memcpy(to, (const char *)o->from->data + at, len);
		return 0;
	}
	n = fdio_pread(o->from->fd, to, len, (off_t)at);
	if (n < 0)
		return err_set(o->err, (int)n, "reading the file to send: %s", strerror((int)-n));
	return (size_t)n < len
		   ? err_set(o->err, -ESTALE, "the file to send became shorter meanwhile")
		   : 0;
}

static int read_from(uint64_t at, void *to, size_t len, void *ctx)
{
	struct outgoing *o = ctx;
	struct digest have;
	int r = read_piece(o, at, to, len);

	if (r < 0)
		return r;
	if (at == 0) {
		sha256_begin(&o->sha);
		o->at = 0;
	}
	/* Sent again from the middle: only the store compares. */
	if (at != o->at)
		return 0;
	sha256_add(&o->sha, to, len);
	o->at += len;
	if (o->at < o->from->size)
		return 0;
	sha256_end(&o->sha, have.b);
	return digest_equal(&have, o->blob)
		   ? 0
		   : err_set(o->err, -EBADMSG, "a blob changed while it was sent");
}

int s3_put_blob(struct depot *d, const struct digest *blob, const struct depot_bytes *from,
		const struct depot_watch *watch, struct err *err)
{
	struct s3_depot *s = s3_of(d);
	CLEANUP(http_answer_done) struct http_answer a = { 0 };
	AUTO_FREE char *url = s3_blob_url(s, blob);
	struct err own = { 0 };
	struct outgoing o = { .blob = blob, .from = from, .err = err ? err : &own };
	const struct http_source source = { .read = read_from, .ctx = &o, .len = from->size };
	struct http_request q = {
		.method = "PUT",
		.url = url,
		.source = &source,
		.moved = watch ? watch->moved : NULL,
		.moved_ctx = watch ? watch->ctx : NULL,
	};
	uint64_t size;
	int r;

	if (!url)
		return err_nomem(err);
	if (from->size >= LOOK_SIZE) {
		r = s3_has_blob(d, blob, &size, err);
		if (r < 0)
			return r;
		if (r > 0 && size == from->size)
			return 0;
	}
	r = s3_send(s, &q, blob, NULL, &a, err);
	return r < 0 || a.status == 200 ? r : s3_explain(s, &a, "putting a blob", err);
}

/* --- get ---------------------------------------------------------------------------------- */

int s3_get_blob(struct depot *d, const struct digest *blob, uint64_t off, uint64_t len,
		depot_sink_fn sink, void *ctx, const struct depot_watch *watch, struct err *err)
{
	struct s3_depot *s = s3_of(d);
	CLEANUP(http_answer_done) struct http_answer a = { 0 };
	AUTO_FREE char *url = s3_blob_url(s, blob);
	struct http_blob b;
	int r;

	if (!url)
		return err_nomem(err);
	if (len == 0)
		return 0;
	http_blob_init(&b, url, off, len, sink, ctx, watch);
	r = s3_send(s, &b.request, NULL, NULL, &a, err);
	if (r < 0)
		return r;
	if (a.status != 200 && a.status != 206)
		return s3_explain(s, &a, "reading a blob", err);
	return http_blob_check(&b, len, d, blob, err);
}
