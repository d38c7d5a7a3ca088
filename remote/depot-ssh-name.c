#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "remote/depot-ssh-i.h"
#include "remote/probe-i.h"

#define TAGS_MAX 1000000 /* of a far end that never comes to an end */

/* --- names -------------------------------------------------------------------------------- */

struct name_question {
	const char *reference;
	struct buf *out;
	depot_tag_fn fn;
	void *ctx;
	size_t n, skip; /* tags of this answer, and those that the caller had from one that broke */
};

static int ask_manifest(struct ssh_depot *s, void *ctx, struct err *err)
{
	struct name_question *q = ctx;
	const void *at;
	size_t len;
	int r;

	stream_begin(&s->line.stream, STREAM_GET_MANIFEST);
	stream_add_text(&s->line.stream, q->reference);
	r = ssh_send(s, err);
	if (r == 0)
		r = ssh_receive_ok(s, err);
	if (r < 0)
		return r;
	at = stream_rest(&s->line.stream, &len);
	if (len > DEPOT_MANIFEST_MAX)
		return ssh_strange(s, err);
	buf_reset(q->out);
	return len > 0 && buf_append(q->out, at, len) < 0 ? err_nomem(err) : 0;
}

/* A digest proves what came for it, a tag nothing. */
int ssh_get_manifest(struct depot *d, const char *reference, struct buf *out, struct err *err)
{
	struct name_question q = { .reference = reference, .out = out };
	int r = ssh_ask(ssh_of(d), ask_manifest, &q, err);
	struct digest want, have;

	if (r < 0 || digest_parse(reference, &want) < 0)
		return r;
	have = digest_of(out->data, out->len);
	return digest_equal(&have, &want)
		   ? 0
		   : err_set(err, -EBADMSG, "'%s' gave wrong bytes for manifest %s", d->url,
			     reference);
}

struct tag_question {
	const char *tag;
	const struct digest *expect;
	const char *media_type;
	const void *bytes;
	size_t len;
	bool asked; /* it may have been done, by a connection that broke then */
};

/* Does the tag name what we put? */
static bool is_done(struct ssh_depot *s, const struct tag_question *q)
{
	CLEANUP(buf_done) struct buf now = BUF_INIT;
	struct name_question look = { .reference = q->tag, .out = &now };
	struct err ignored = { 0 };

	return q->tag && ask_manifest(s, &look, &ignored) == 0 && now.len == q->len &&
	       memcmp(now.data, q->bytes, q->len) == 0;
}

static int ask_tag(struct ssh_depot *s, void *ctx, struct err *err)
{
	static const struct digest none;
	struct tag_question *q = ctx;
	int r;

	if (q->asked && is_done(s, q))
		return 0;
	r = ssh_connect(s, err);
	if (r < 0)
		return r;
	stream_begin(&s->line.stream, STREAM_PUT_MANIFEST);
	stream_add_text(&s->line.stream, q->tag);
	stream_add_text(&s->line.stream, q->media_type);
	stream_add_u32(&s->line.stream, q->expect != NULL);
	stream_add_digest(&s->line.stream, q->expect ? q->expect : &none);
	stream_add_raw(&s->line.stream, q->bytes, q->len);
	q->asked = true;
	r = ssh_send(s, err);
	return r < 0 ? r : ssh_receive_ok(s, err);
}

int ssh_put_manifest(struct depot *d, const char *tag, const struct digest *expect,
		     const char *media_type, const void *bytes, size_t len, struct err *err)
{
	struct tag_question q = { tag, expect, media_type, bytes, len, false };

	return ssh_ask(ssh_of(d), ask_tag, &q, err);
}

static int ask_tags(struct ssh_depot *s, void *ctx, struct err *err)
{
	struct name_question *q = ctx;
	int r;

	q->n = 0;
	stream_begin(&s->line.stream, STREAM_TAGS);
	r = ssh_send(s, err);
	while (r == 0) {
		AUTO_FREE char *tag = NULL;

		r = ssh_receive(s, err);
		if (r < 0 || r == STREAM_OK)
			return r < 0 ? r : 0;
		tag = r == STREAM_ITEM ? stream_text(&s->line.stream) : NULL;
		if (!tag || !stream_is_whole(&s->line.stream) || !depot_tag_valid(tag))
			return ssh_strange(s, err);
		if (q->n == TAGS_MAX) {
			ssh_hang_up(s);
			return err_set(err, -EPROTO, "'%s' has a list of tags without end",
				       s->depot.url);
		}
		r = 0;
		if (q->n++ >= q->skip) {
			q->skip++;
			r = q->fn(tag, q->ctx);
		}
		if (r != 0)
			ssh_hang_up(s);
	}
	return r;
}

int ssh_list_tags(struct depot *d, depot_tag_fn fn, void *ctx, struct err *err)
{
	struct name_question q = { .fn = fn, .ctx = ctx };

	return ssh_ask(ssh_of(d), ask_tags, &q, err);
}

static int ask_delete(struct ssh_depot *s, void *ctx, struct err *err)
{
	const struct name_question *q = ctx;
	int r;

	stream_begin(&s->line.stream, STREAM_DELETE);
	stream_add_text(&s->line.stream, q->reference);
	r = ssh_send(s, err);
	return r < 0 ? r : ssh_receive_ok(s, err);
}

int ssh_delete_manifest(struct depot *d, const char *reference, struct err *err)
{
	struct name_question q = { .reference = reference };

	return ssh_ask(ssh_of(d), ask_delete, &q, err);
}

/* --- gc and probe ------------------------------------------------------------------------- */

struct gc_question {
	const struct depot_retention *what;
	struct depot_freed *ret;
};

static void add_digests(struct stream *st, const struct digest *list, size_t n)
{
	stream_add_u32(st, (uint32_t)n);
	for (size_t i = 0; i < n; i++)
		stream_add_digest(st, &list[i]);
}

static int ask_collect(struct ssh_depot *s, void *ctx, struct err *err)
{
	struct gc_question *q = ctx;
	const struct depot_retention *what = q->what;
	struct depot_freed *f = q->ret;
	struct stream *st = &s->line.stream;
	int r;

	stream_begin(st, STREAM_COLLECT);
	stream_add_u32(st, what->dry);
	stream_add_u64(st, what->grace_ms);
	stream_add_u32(st, (uint32_t)what->n_drop);
	for (size_t i = 0; i < what->n_drop; i++) {
		stream_add_text(st, what->drop[i].tag);
		stream_add_digest(st, &what->drop[i].expect);
	}
	add_digests(st, what->keep, what->n_keep);
	add_digests(st, what->gone, what->n_gone);
	r = ssh_send(s, err);
	if (r == 0)
		r = ssh_receive_ok(s, err);
	if (r < 0)
		return r;
	f->names = stream_u64(st);
	f->moved = stream_u64(st);
	f->manifests = stream_u64(st);
	f->blobs = stream_u64(st);
	f->bytes = stream_u64(st);
	f->young = stream_u64(st);
	f->kept = stream_u64(st);
	return stream_is_whole(st) ? 0 : ssh_strange(s, err);
}

int ssh_collect(struct depot *d, const struct depot_retention *what, struct depot_freed *ret,
		struct err *err)
{
	struct gc_question q = { what, ret };

	*ret = (struct depot_freed){ 0 };
	return ssh_ask(ssh_of(d), ask_collect, &q, err);
}

/* What the far end found; names of the near end's own findings are others there. */
static int hand_on(struct ssh_depot *s, const struct probe *p, struct err *err)
{
	AUTO_FREE char *name = stream_text(&s->line.stream);
	const uint32_t level = stream_u32(&s->line.stream);
	AUTO_FREE char *detail = stream_text(&s->line.stream), *fix = stream_text(&s->line.stream);

	if (!name || !detail || !fix)
		return err_nomem(err);
	if (!stream_is_whole(&s->line.stream) || level > DEPOT_ILL)
		return ssh_strange(s, err);
	if (strcmp(name, "reach") == 0)
		probe_tell(p, level, "depot", fix, "%s", detail);
	else if (strcmp(name, "space") == 0)
		probe_tell(p, level, "space", fix, "%s", detail);
	else if (strcmp(name, "push") == 0)
		probe_tell(p, level, "push", fix, "%s", detail);
	return 0;
}

static int ask_probe(struct ssh_depot *s, void *ctx, struct err *err)
{
	const struct probe *p = ctx;
	const time_t before = time(NULL);
	bool failed;
	int r;

	stream_begin(&s->line.stream, STREAM_PROBE);
	r = ssh_send(s, err);
	while (r == 0) {
		r = ssh_receive(s, err);
		if (r == STREAM_OK)
			break;
		if (r >= 0)
			r = r == STREAM_ITEM ? hand_on(s, p, err) : ssh_strange(s, err);
	}
	if (r < 0)
		return r;
	failed = stream_u32(&s->line.stream) != 0;
	probe_clock(p, (time_t)stream_u64(&s->line.stream), before - 1, time(NULL) + 1);
	return failed ? -EIO : 0;
}

int ssh_probe(struct depot *d, depot_tell_fn tell, void *ctx)
{
	struct ssh_depot *s = ssh_of(d);
	struct probe p = { tell, ctx };
	const struct digest none = digest_of("", 0);
	uint64_t start = clock_us(), size;
	struct err why = { 0 };
	char fix[200];
	int r = ssh_connect(s, &why);

	if (r < 0) {
		snprintf(fix, sizeof(fix),
			 r == -ENOTSUP ? "install snapcow there: ssh %.100s snapcow version"
				       : "see what ssh says: ssh -v %.100s true",
			 s->line.place.host);
		probe_tell(&p, DEPOT_ILL, r == -EACCES ? "login" : "reach", fix, "%s", why.msg);
		return r;
	}
	probe_tell(&p, DEPOT_WELL, "reach", "",
		   "ssh to '%s' and snapcow there answered after %" PRIu64 " ms",
		   s->line.place.host, (clock_us() - start) / 1000);
	r = ask_probe(s, &p, &why);
	start = clock_us();
	if (r == 0)
		r = ssh_has_blob(d, &none, &size, &why) < 0 ? -EIO : 0;
	if (r == 0)
		probe_tell(&p, DEPOT_WELL, "latency", "",
			   "%" PRIu64 ".%" PRIu64 " ms for a question", (clock_us() - start) / 1000,
			   (clock_us() - start) % 1000 / 100);
	return r;
}
