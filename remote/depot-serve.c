#include "remote/depot-serve.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/fdio.h"
#include "remote/depot.h"
#include "remote/stream.h"

#define LIST_MAX 100000 /* of digests and tags that a gc may name */

struct serving {
	struct stream stream;
	struct depot *depot; /* owned; NULL until the client has named it */
	const struct depot_serve_options *options;
	struct err why;
};

static void serving_done(struct serving *v)
{
	stream_done(&v->stream);
	depot_close(v->depot);
}

/* The client said something that cannot be meant. */
static int wrong(struct serving *v)
{
	return err_set(&v->why, -EPROTO, "the client says something that this version cannot read");
}

static int answer_ok(struct serving *v)
{
	stream_begin(&v->stream, STREAM_OK);
	return stream_send(&v->stream);
}

static bool has_dotdot(const char *path)
{
	const char *at = path;

	while ((at = strstr(at, "..")) != NULL) {
		if ((at == path || at[-1] == '/') && (at[2] == '/' || at[2] == '\0'))
			return true;
		at += 2;
	}
	return false;
}

/* Where a path of the client's is here; owned. */
static int make_url(struct serving *v, const char *path, char **ret)
{
	const char *root = v->options->root, *home = getenv("HOME");

	if (path[0] != '/' || (root && has_dotdot(path)))
		return err_set(&v->why, -EINVAL, "'%.200s' cannot be the path of a depot", path);
	if (!root && strncmp(path, "/~/", 3) == 0) {
		if (!home || home[0] != '/')
			return err_set(&v->why, -ENOENT, "there is no home directory");
		root = home;
		path += 2;
	}
	if (asprintf(ret, "dir:%s%s", root ? root : "", path) < 0) {
		*ret = NULL;
		return -ENOMEM;
	}
	return 0;
}

static int serve_open(struct serving *v)
{
	AUTO_FREE char *path = stream_text(&v->stream), *url = NULL;
	int r;

	if (!path)
		return -ENOMEM;
	if (!stream_is_whole(&v->stream) || v->depot)
		return wrong(v);
	r = make_url(v, path, &url);
	return r < 0 ? r : depot_open(url, NULL, &v->depot, &v->why);
}

static int serve_ticket(struct serving *v)
{
	CLEANUP(ticket_question_done) struct ticket_question q = { 0 };
	AUTO_FREE char *url = NULL;
	int r = ticket_question_read(&v->stream, &q);

	if (r == -EPROTO)
		return wrong(v);
	if (r == 0 && !v->options->ticket)
		return err_set(&v->why, -EACCES,
			       "no tickets are taken there: it was started without --tickets");
	if (r == 0 && q.path[0] != '\0')
		r = make_url(v, q.path, &url);
	return r < 0 ? r : v->options->ticket(&v->stream, &q, url, v->options->ctx, &v->why);
}

static int serve_has(struct serving *v)
{
	struct digest blob;
	uint64_t size = 0;
	int r;

	stream_digest(&v->stream, &blob);
	if (!stream_is_whole(&v->stream))
		return wrong(v);
	r = v->depot->ops->has_blob(v->depot, &blob, &size, &v->why);
	if (r < 0)
		return r;
	stream_begin(&v->stream, STREAM_OK);
	stream_add_u32(&v->stream, (uint32_t)r);
	stream_add_u64(&v->stream, size);
	return stream_send(&v->stream) < 0 ? -EPIPE : 1;
}

/* --- a blob comes ------------------------------------------------------------------------- */

struct arriving {
	struct serving *v;
	uint64_t left;     /* that the client still sends */
	bool none;         /* it sends nothing: the blob was there */
	const uint8_t *at; /* of the piece that came last: what nobody has taken */
	size_t n;
};

static int next_piece(struct arriving *a)
{
	const int type = stream_receive(&a->v->stream);

	if (type != STREAM_DATA)
		return type < 0 ? type : -EPROTO;
	a->at = stream_rest(&a->v->stream, &a->n);
	if (a->n == 0 || a->n > a->left)
		return -EPROTO;
	a->left -= a->n;
	return 0;
}

static int read_piece(void *to, size_t len, void *ctx)
{
	struct arriving *a = ctx;

	if (a->none)
		return -EAGAIN; /* somebody removed it since */
	while (len > 0) {
		const size_t n = a->n < len ? a->n : len;

		if (n == 0) {
			const int r = next_piece(a);

			if (r < 0)
				return r;
			continue;
		}
		memcpy(to, a->at, n);
		a->at += n;
		a->n -= n;
		to = (char *)to + n;
		len -= n;
	}
	return 0;
}

static int serve_put(struct serving *v)
{
	struct arriving a = { .v = v };
	struct depot_bytes from = { .fd = -1, .read = read_piece, .ctx = &a };
	struct digest blob;
	uint64_t there;
	int r;

	stream_digest(&v->stream, &blob);
	a.left = from.size = stream_u64(&v->stream);
	if (!stream_is_whole(&v->stream))
		return wrong(v);
	r = v->depot->ops->has_blob(v->depot, &blob, &there, &v->why);
	if (r < 0)
		return r;
	a.none = r == 1 && there == from.size;
	if (a.none)
		a.left = 0;
	stream_begin(&v->stream, STREAM_OK);
	stream_add_u32(&v->stream, a.none);
	if (stream_send(&v->stream) < 0)
		return -EPIPE;
	r = v->depot->ops->put_blob(v->depot, &blob, &from, NULL, &v->why);
	/* What was sent for nothing must be read all the same. */
	while (r != -EPROTO && a.left > 0)
		if (next_piece(&a) < 0)
			return wrong(v);
	return r;
}

/* --- a blob goes -------------------------------------------------------------------------- */

static int send_piece(const void *data, size_t len, void *ctx)
{
	struct serving *v = ctx;

	for (size_t at = 0; at < len;) {
		const size_t n = len - at < STREAM_PIECE ? len - at : STREAM_PIECE;

		stream_begin(&v->stream, STREAM_DATA);
		stream_add_raw(&v->stream, (const char *)data + at, n);
		if (stream_send(&v->stream) < 0)
			return -EPIPE;
		at += n;
	}
	return 0;
}

static int serve_get(struct serving *v)
{
	struct digest blob;
	uint64_t off, len;

	stream_digest(&v->stream, &blob);
	off = stream_u64(&v->stream);
	len = stream_u64(&v->stream);
	if (!stream_is_whole(&v->stream))
		return wrong(v);
	return v->depot->ops->get_blob(v->depot, &blob, off, len, send_piece, v, NULL, &v->why);
}

/* --- names -------------------------------------------------------------------------------- */

static int serve_put_manifest(struct serving *v)
{
	AUTO_FREE char *tag = stream_text(&v->stream), *type = stream_text(&v->stream);
	const bool expects = stream_u32(&v->stream) != 0;
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	struct digest expect;
	const void *at;
	size_t len;

	stream_digest(&v->stream, &expect);
	at = stream_rest(&v->stream, &len);
	if (!tag || !type || (at && buf_append(&bytes, at, len) < 0))
		return -ENOMEM;
	if (!stream_is_whole(&v->stream) || len > DEPOT_MANIFEST_MAX ||
	    (tag[0] != '\0' && !depot_tag_valid(tag)))
		return wrong(v);
	return v->depot->ops->put_manifest(v->depot, tag[0] != '\0' ? tag : NULL,
					   expects ? &expect : NULL, type, bytes.data, len,
					   &v->why);
}

static int serve_get_manifest(struct serving *v)
{
	AUTO_FREE char *reference = stream_text(&v->stream);
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	int r;

	if (!reference)
		return -ENOMEM;
	if (!stream_is_whole(&v->stream))
		return wrong(v);
	r = v->depot->ops->get_manifest(v->depot, reference, &bytes, &v->why);
	if (r < 0)
		return r;
	stream_begin(&v->stream, STREAM_OK);
	stream_add_raw(&v->stream, bytes.data, bytes.len);
	return stream_send(&v->stream) < 0 ? -EPIPE : 1;
}

static int send_tag(const char *tag, void *ctx)
{
	struct serving *v = ctx;

	/* Others may name things there as no tag is named; a client could not ask for them. */
	if (!depot_tag_valid(tag))
		return 0;
	stream_begin(&v->stream, STREAM_ITEM);
	stream_add_text(&v->stream, tag);
	return stream_send(&v->stream) < 0 ? -EPIPE : 0;
}

static int serve_tags(struct serving *v)
{
	return v->depot->ops->list_tags(v->depot, send_tag, v, &v->why);
}

static int serve_delete(struct serving *v)
{
	AUTO_FREE char *reference = stream_text(&v->stream);

	if (!reference)
		return -ENOMEM;
	if (!stream_is_whole(&v->stream))
		return wrong(v);
	return v->depot->ops->delete_manifest(v->depot, reference, &v->why);
}

/* --- gc and probe ------------------------------------------------------------------------- */

/* A number, and so many digests; -EPROTO if there are fewer. */
static int take_digests(struct serving *v, struct digest **ret, size_t *ret_n)
{
	const uint32_t n = stream_u32(&v->stream);

	if (n > LIST_MAX)
		return -EPROTO;
	*ret = calloc((size_t)n + 1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		stream_digest(&v->stream, &(*ret)[i]);
	*ret_n = n;
	return v->stream.bad ? -EPROTO : 0;
}

static void drops_free(struct depot_drop *drops, size_t n)
{
	for (size_t i = 0; drops && i < n; i++)
		free((char *)(uintptr_t)drops[i].tag);
	free(drops);
}

static int take_drops(struct serving *v, struct depot_drop **ret, size_t *ret_n)
{
	const uint32_t n = stream_u32(&v->stream);

	if (n > LIST_MAX)
		return -EPROTO;
	*ret = calloc((size_t)n + 1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	*ret_n = n;
	for (uint32_t i = 0; i < n; i++) {
		(*ret)[i].tag = stream_text(&v->stream);
		if (!(*ret)[i].tag)
			return -ENOMEM;
		stream_digest(&v->stream, &(*ret)[i].expect);
	}
	return v->stream.bad ? -EPROTO : 0;
}

static int collect(struct serving *v, const struct depot_retention *what)
{
	struct depot_freed f;
	int r = v->depot->ops->collect(v->depot, what, &f, &v->why);

	if (r < 0)
		return r;
	stream_begin(&v->stream, STREAM_OK);
	stream_add_u64(&v->stream, f.names);
	stream_add_u64(&v->stream, f.moved);
	stream_add_u64(&v->stream, f.manifests);
	stream_add_u64(&v->stream, f.blobs);
	stream_add_u64(&v->stream, f.bytes);
	stream_add_u64(&v->stream, f.young);
	stream_add_u64(&v->stream, f.kept);
	return stream_send(&v->stream) < 0 ? -EPIPE : 1;
}

static int serve_collect(struct serving *v)
{
	AUTO_FREE struct digest *keep = NULL, *gone = NULL;
	struct depot_retention what = { 0 };
	struct depot_drop *drops = NULL;
	int r;

	what.dry = stream_u32(&v->stream) != 0;
	what.grace_ms = stream_u64(&v->stream);
	r = take_drops(v, &drops, &what.n_drop);
	if (r == 0)
		r = take_digests(v, &keep, &what.n_keep);
	if (r == 0)
		r = take_digests(v, &gone, &what.n_gone);
	what.drop = drops;
	what.keep = keep;
	what.gone = gone;
	if (r == -EPROTO || (r == 0 && !stream_is_whole(&v->stream)))
		r = wrong(v);
	if (r == 0)
		r = collect(v, &what);
	drops_free(drops, what.n_drop);
	return r;
}

static void send_finding(const struct depot_finding *f, void *ctx)
{
	struct serving *v = ctx;

	stream_begin(&v->stream, STREAM_ITEM);
	stream_add_text(&v->stream, f->name);
	stream_add_u32(&v->stream, (uint32_t)f->level);
	stream_add_text(&v->stream, f->detail);
	stream_add_text(&v->stream, f->fix);
	IGNORE_RESULT(stream_send(&v->stream), "the client is gone, which the next message tells");
}

/* The findings say what is wrong. */
static int serve_probe(struct serving *v)
{
	const int r = v->depot->ops->probe(v->depot, send_finding, v);

	stream_begin(&v->stream, STREAM_OK);
	stream_add_u32(&v->stream, r < 0);
	stream_add_u64(&v->stream, (uint64_t)time(NULL));
	return stream_send(&v->stream) < 0 ? -EPIPE : 1;
}

/* --- the loop ----------------------------------------------------------------------------- */

/* Each answers itself and returns 1, or leaves the plain OK (0) and failures to the loop. */
static int (*const verbs[])(struct serving *v) = {
	[STREAM_HAS] = serve_has,
	[STREAM_PUT] = serve_put,
	[STREAM_GET] = serve_get,
	[STREAM_PUT_MANIFEST] = serve_put_manifest,
	[STREAM_GET_MANIFEST] = serve_get_manifest,
	[STREAM_TAGS] = serve_tags,
	[STREAM_DELETE] = serve_delete,
	[STREAM_COLLECT] = serve_collect,
	[STREAM_PROBE] = serve_probe,
};

static int serve_one(struct serving *v, int type)
{
	int r;

	v->why = (struct err){ 0 };
	if (type == STREAM_OPEN)
		r = serve_open(v);
	else if (type == STREAM_TICKET)
		r = serve_ticket(v);
	else if (type == STREAM_STOP)
		return 0; /* it crossed the answer */
	else if (type < 0 || (size_t)type >= ARRAY_LEN(verbs) || !verbs[type] || !v->depot)
		r = wrong(v);
	else
		r = verbs[type](v);
	if (r == -EPIPE)
		return r;
	if (r == 0)
		return answer_ok(v) < 0 ? -EPIPE : 0;
	if (r > 0)
		return 0;
	if (stream_send_fail(&v->stream, r, v->why.code == r ? v->why.msg : "") < 0)
		return -EPIPE;
	/* What follows would be read as something else. */
	return r == -EPROTO ? r : 0;
}

int depot_serve(int in, int out, const struct depot_serve_options *options, struct err *err)
{
	CLEANUP(serving_done) struct serving v = { .stream = { .in = in, .out = out },
						   .options = options };
	int r = fdio_write(out, STREAM_MAGIC, STREAM_MAGIC_SIZE);

	while (r == 0) {
		const int type = stream_receive(&v.stream);

		if (type == 0)
			return 0;
		r = type < 0 ? type : serve_one(&v, type);
	}
	if (r == -EPIPE || r == -ECONNRESET)
		return 0; /* the client left */
	return v.why.code == r ? err_set(err, r, "%s", v.why.msg)
			       : err_set(err, r, "serving a depot: %s", strerror(-r));
}
