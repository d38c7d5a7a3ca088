/*
 * An upload of a blob into a registry.
 *
 * A small one is one PUT. A large one goes in pieces, each of which the registry acknowledges:
 * after a lost connection it says how far it came, and the rest follows. If a registry cannot say,
 * the upload begins anew (docker's 2.x refuses its own upload once a piece broke off). The blob
 * exists only when the last request has named the digest, and the registry has found it right.
 */
#include "remote/registry-i.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fdio.h"
#include "base/size.h"
#include "base/text.h"
#include "remote/url.h"

#define PIECE_SIZE ((uint64_t)16 << 20)
#define LOOK_SIZE \
	((uint64_t)256 << 10) /* from there on a question costs less than sending it in vain */
#define FAILS_MAX 6           /* in a row, without a byte that stayed there */

struct upload {
	struct registry *g;
	const struct digest *blob;
	const struct depot_bytes *from;
	const struct depot_watch *watch;
	char *url;      /* owned: where the upload goes on; NULL: it has not begun */
	uint64_t at;    /* bytes that the registry has */
	uint64_t base;  /* of the request under way: what its first byte is of the blob */
	bool resumed;   /* it goes on from where the registry said after a break */
	uint64_t piece; /* how large a piece is */
	struct err *err;
};

static int read_from(uint64_t at, void *to, size_t len, void *ctx)
{
	const struct upload *u = ctx;
	ssize_t n;

	at += u->base;
	if (u->from->fd < 0) {
		memcpy(to, (const char *)u->from->data + at, len);
		return 0;
	}
	n = fdio_pread(u->from->fd, to, len, (off_t)at);
	if (n < 0)
		return err_set(u->err, (int)n, "reading the file to send: %s", strerror((int)-n));
	if ((size_t)n < len)
		return err_set(u->err, -ESTALE, "the file to send became shorter meanwhile");
	return 0;
}

/* Where the answer says that the upload goes on. */
static int go_on_at(struct upload *u, const struct http_answer *a)
{
	const struct registry *g = u->g;
	char *url = a->location ? url_resolve(u->url ? u->url : g->origin, a->location) : NULL;

	if (!url)
		return err_set(u->err, -EPROTO, "'%s' does not say where an upload goes",
			       g->depot.url);
	/* What is sent is the user's: to the registry, or encrypted. */
	if (!url_same_origin(url, g->origin) && !url_is_https(url)) {
		free(url);
		return err_set(u->err, -EXDEV, "'%s' sends an upload to another host without https",
			       g->depot.url);
	}
	free(u->url);
	u->url = url;
	return 0;
}

/* "0-99" says that a hundred bytes are there; "0-0" is what docker's says of none. */
static bool read_range(const struct http_answer *a, uint64_t *ret)
{
	uint64_t last;
	int end = 0;

	if (!a->range || sscanf(a->range, "0-%" SCNu64 "%n", &last, &end) != 1 ||
	    a->range[end] != '\0' || last == UINT64_MAX)
		return false;
	*ret = last > 0 ? last + 1 : 0;
	return true;
}

static struct http_request request(const struct upload *u, const char *method, const char *url)
{
	return (struct http_request){
		.method = method,
		.url = url,
		.moved = u->watch ? u->watch->moved : NULL,
		.moved_ctx = u->watch ? u->watch->ctx : NULL,
	};
}

static int begin(struct upload *u)
{
	CLEANUP(http_answer_done) struct http_answer a = { 0 };
	AUTO_FREE char *url = registry_url(u->g, "/blobs/uploads/");
	struct http_request q = request(u, "POST", url);
	uint64_t least;
	int r;

	if (!url)
		return err_nomem(u->err);
	u->at = 0;
	u->resumed = false;
	r = registry_send(u->g, &q, &a, u->err);
	if (r < 0)
		return r;
	if (a.status == 404)
		return err_set(u->err, -EACCES, "'%s': the registry has no such repository",
			       u->g->depot.url);
	if (a.status != 202)
		return registry_explain(u->g, &a, "beginning an upload", u->err);
	if (a.chunk_min && size_parse_u64(a.chunk_min, &least) == 0 && least > u->piece)
		u->piece = least;
	return go_on_at(u, &a);
}

/* What a try came to; a negative errno beside them. */
enum { GOES_ON, DONE, BROKEN };

/* A lost connection or a registry that has no time: it may go on from where it is. */
static int judge(struct upload *u, int r, const struct http_answer *a, const char *what)
{
	if (r < 0)
		return http_is_lost(r) ? BROKEN : r;
	if (http_is_busy(a) || a->status == 404 || a->status == 416) {
		r = registry_explain(u->g, a, what, u->err);
		if (r == -ENOENT)
			r = err_set(u->err, -EPROTO, "'%s' forgot an upload", u->g->depot.url);
		return r == -ENOSPC ? r : BROKEN;
	}
	return registry_explain(u->g, a, what, u->err);
}

static int send_piece(struct upload *u, struct http_answer *a)
{
	CLEANUP(strlist_done) struct strlist headers = { 0 };
	const uint64_t left = u->from->size - u->at;
	const struct http_source source = {
		.read = read_from,
		.ctx = u,
		.len = left < u->piece ? left : u->piece,
	};
	struct http_request q = request(u, "PATCH", u->url);
	char range[80];
	uint64_t there;
	int r;

	snprintf(range, sizeof(range), "Content-Range: %" PRIu64 "-%" PRIu64, u->at,
		 u->at + source.len - 1);
	if (strlist_add(&headers, "Content-Type: application/octet-stream") < 0 ||
	    strlist_add(&headers, range) < 0)
		return err_nomem(u->err);
	q.headers = &headers;
	q.source = &source;
	q.once = true;
	u->base = u->at;
	r = registry_send(u->g, &q, a, u->err);
	if (r < 0 || a->status != 202)
		return judge(u, r, a, "sending a blob");
	if (!read_range(a, &there) || there > u->at + source.len || there < u->at)
		return err_set(u->err, -EPROTO, "'%s' does not say how much of a blob it has",
			       u->g->depot.url);
	u->at = there;
	r = go_on_at(u, a);
	return r < 0 ? r : GOES_ON;
}

/* The last request, with the whole if it is small. */
static int finish(struct upload *u, struct http_answer *a)
{
	CLEANUP(strlist_done) struct strlist headers = { 0 };
	AUTO_FREE char *url = NULL;
	const struct http_source source = {
		.read = read_from,
		.ctx = u,
		.len = u->from->size - u->at,
	};
	char text[DIGEST_TEXT_SIZE];
	struct http_request q;
	int r;

	digest_text(u->blob, text);
	r = text_set(&url, u->err, "%s%cdigest=sha256%%3A%s", u->url,
		     strchr(u->url, '?') ? '&' : '?', text + strlen("sha256:"));
	if (r < 0)
		return r;
	if (strlist_add(&headers, "Content-Type: application/octet-stream") < 0)
		return err_nomem(u->err);
	q = request(u, "PUT", url);
	q.headers = &headers;
	q.source = source.len > 0 ? &source : NULL;
	q.once = true;
	u->base = u->at;
	r = registry_send(u->g, &q, a, u->err);
	if (r < 0 || (a->status != 201 && a->status != 204))
		return judge(u, r, a, "finishing a blob");
	if (!registry_confirms(a, u->blob))
		return err_set(u->err, -EBADMSG, "'%s' stored another blob than %s",
			       u->g->depot.url, text);
	return DONE;
}

/* After a break: how far did it come?  The upload begins anew where that cannot be told. */
static int look_again(struct upload *u)
{
	CLEANUP(http_answer_done) struct http_answer a = { 0 };
	AUTO_FREE char *url = TAKE_PTR(u->url);
	struct http_request q;
	uint64_t there = 0;
	int r;

	if (!url)
		return 0;
	q = request(u, "GET", url);
	q.once = true;
	r = registry_send(u->g, &q, &a, NULL);
	if (r < 0 && !http_is_lost(r))
		return r;
	if (r < 0 || a.status != 204 || !read_range(&a, &there) || there > u->from->size)
		return 0;
	u->url = TAKE_PTR(url);
	u->at = there;
	u->resumed = there > 0;
	return a.location ? go_on_at(u, &a) : 0;
}

static int step(struct upload *u, struct http_answer *a)
{
	int r;

	if (!u->url) {
		r = begin(u);
		if (r < 0)
			return r;
	}
	/* At most one piece is left: it goes with the end. */
	return u->from->size - u->at > u->piece ? send_piece(u, a) : finish(u, a);
}

static int run(struct upload *u)
{
	unsigned fails = 0;
	uint64_t best = 0;
	int r;

	for (;;) {
		CLEANUP(http_answer_done) struct http_answer a = { 0 };
		const struct http_request q = request(u, "PUT", "");

		r = step(u, &a);
		/* What the registry said of a broken piece was wrong: from the start, then. */
		if (r == -EBADMSG && u->resumed) {
			free(TAKE_PTR(u->url));
			r = BROKEN;
		}
		if (r < 0 || r == DONE)
			return r;
		if (r == GOES_ON) {
			fails = u->at > best ? 0 : fails;
			best = u->at > best ? u->at : best;
			continue;
		}
		if (++fails == FAILS_MAX)
			return u->err && u->err->code < 0 ? u->err->code : -EAGAIN;
		r = http_pause(&q, a.status ? &a : NULL, fails - 1);
		if (r < 0)
			return r;
		/* The answer to the last request may be all that was lost. */
		r = registry_has_blob(&u->g->depot, u->blob, NULL, u->err);
		if (r != 0)
			return r;
		r = look_again(u);
		if (r < 0)
			return r;
	}
}

int registry_put_blob(struct depot *d, const struct digest *blob, const struct depot_bytes *from,
		      const struct depot_watch *watch, struct err *err)
{
	struct err own = { 0 };
	struct upload u = {
		.g = registry_of(d),
		.blob = blob,
		.from = from,
		.watch = watch,
		.piece = PIECE_SIZE,
		.err = err ? err : &own,
	};
	int r;

	if (from->size >= LOOK_SIZE) {
		r = registry_has_blob(d, blob, NULL, err);
		if (r != 0)
			return r < 0 ? r : 0;
	}
	r = run(&u);
	free(u.url);
	return r < 0 ? r : 0;
}
