/*
 * Names in an S3 store. s3-i.h says how a push and a gc keep out of each other's way; a condition
 * of the PUT keeps two pushes of one name apart, where the store knows conditions.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/strlist.h"
#include "base/sys.h"
#include "base/text.h"
#include "remote/depot-mark.h"
#include "remote/s3-i.h"

#define WAIT_MAX_MS 60000 /* for a gc */

/* --- reading ------------------------------------------------------------------------------ */

/* The manifest that a tag means now, and the ETag (may be NULL) of its object, owned. */
static int read_tag(struct s3_depot *s, const char *tag, struct buf *out, char **ret_etag,
		    struct err *err)
{
	CLEANUP(http_answer_done) struct http_answer a = { 0 };
	AUTO_FREE char *url = s3_url(s, "tags/%s", tag);
	struct http_request q = { .method = "GET", .url = url };
	char text[DIGEST_TEXT_SIZE];
	struct digest have;
	int r;

	if (!url)
		return err_nomem(err);
	r = s3_send(s, &q, NULL, NULL, &a, err);
	if (r < 0)
		return r;
	if (a.status != 200)
		return s3_explain(s, &a, "reading a name", err);
	have = digest_of(a.body.data, a.body.len);
	if (a.meta_digest && strcmp(a.meta_digest, digest_text(&have, text)) != 0)
		return err_set(err, -EBADMSG, "'%s' gave wrong bytes for '%s'", s->depot.url, tag);
	buf_swap(out, &a.body);
	if (ret_etag)
		*ret_etag = TAKE_PTR(a.etag);
	return 0;
}

int s3_get_manifest(struct depot *d, const char *reference, struct buf *out, struct err *err)
{
	struct digest digest;

	if (digest_parse(reference, &digest) == 0)
		return depot_get(d, &digest, DEPOT_MANIFEST_MAX, out, NULL, err);
	if (!depot_tag_valid(reference))
		return err_set(err, -EINVAL, "'%s' is neither a tag nor a digest", reference);
	return read_tag(s3_of(d), reference, out, NULL, err);
}

struct tags {
	depot_tag_fn fn;
	void *ctx;
};

static int on_tag(const struct s3_entry *e, void *ctx)
{
	const struct tags *t = ctx;

	/* A name that is no tag's is somebody else's. */
	return depot_tag_valid(e->key) ? t->fn(e->key, t->ctx) : 0;
}

int s3_list_tags(struct depot *d, depot_tag_fn fn, void *ctx, struct err *err)
{
	struct tags t = { fn, ctx };

	return s3_each(s3_of(d), "tags/", on_tag, &t, err);
}

/* --- moving a name ------------------------------------------------------------------------ */

/* The URL of an object that tells a gc of this push, owned. */
static int announce(struct s3_depot *s, const char *tag, const void *bytes, size_t len, char **ret,
		    struct err *err)
{
	unsigned char random[16];
	char hex[2 * sizeof(random) + 1];
	int r = sys_random(random, sizeof(random));

	if (r < 0)
		return err_wrap(err, r, "naming a push");
	*ret = s3_url(s, "pending/%s/%s", tag, hex_encode(random, sizeof(random), hex));
	return *ret ? s3_put_small(s, *ret, bytes, len, err) : err_nomem(err);
}

static int on_gc(const struct s3_entry *e, void *ctx)
{
	*(bool *)ctx |= e->now - e->modified < S3_GC_STALE_S;
	return 0;
}

/* Until no gc runs: what was there before may be gone then. */
static int wait_for_gc(struct s3_depot *s, struct err *err)
{
	const struct http_request q = { .method = "GET" };
	const uint64_t until = sys_boot_ms() + WAIT_MAX_MS;

	for (unsigned n = 0;; n++) {
		bool running = false;
		int r = s3_each(s, "gc/", on_gc, &running, err);

		if (r < 0 || !running)
			return r;
		if (sys_boot_ms() > until)
			return err_set(err, -EAGAIN, "a gc of '%s' is running: push again later",
				       s->depot.url);
		r = http_pause(&q, NULL, n < 4 ? n : 4);
		if (r < 0)
			return r;
	}
}

struct checking {
	struct s3_depot *s;
	struct err *err;
};

static int check_there(const struct digest *blob, bool is_manifest, void *ctx)
{
	const struct checking *c = ctx;
	char text[DIGEST_TEXT_SIZE];
	int r = s3_has_blob(&c->s->depot, blob, NULL, c->err);

	if (r != 0)
		return r < 0 ? r : 0;
	return err_set(c->err, -EAGAIN,
		       "'%s' lost blob %s while it was pushed to: push once more, or with --whole",
		       c->s->depot.url, digest_text(blob, text));
}

/* The object of a tag, with a condition (NULL: none): the answer's status, or a negative errno. */
static int put_tag(struct s3_depot *s, const char *tag, const char *condition,
		   const struct digest *digest, const void *bytes, size_t len,
		   struct http_answer *a, struct err *err)
{
	const struct http_source source = http_source_bytes(bytes, len);
	CLEANUP(strlist_done) struct strlist headers = { 0 };
	AUTO_FREE char *url = s3_url(s, "tags/%s", tag), *meta = NULL;
	struct http_request q = { .method = "PUT", .url = url, .source = &source };
	char text[DIGEST_TEXT_SIZE];
	int r = text_set(&meta, err, "x-amz-meta-digest: %s", digest_text(digest, text));

	if (r < 0)
		return r;
	if (!url || strlist_add(&headers, meta) < 0 ||
	    (condition && strlist_add(&headers, condition) < 0))
		return err_nomem(err);
	r = s3_send(s, &q, digest, &headers, a, err);
	return r < 0 ? r : a->status;
}

static int is_stale(const struct s3_depot *s, const char *tag, struct err *err)
{
	return err_set(err, -ESTALE, "'%s' of '%s' was moved by somebody else meanwhile", tag,
		       s->depot.url);
}

/* The header that makes a PUT fail unless the tag still means what is expected; owned, NULL: none is known. */
static int make_condition(struct s3_depot *s, const char *tag, const struct digest *expect,
			  char **ret, struct err *err)
{
	static const struct digest none;
	CLEANUP(buf_done) struct buf now = BUF_INIT;
	AUTO_FREE char *etag = NULL;
	struct digest have = none;
	int r = read_tag(s, tag, &now, &etag, err);

	if (r < 0 && r != -ENOENT)
		return r;
	if (r == 0)
		have = digest_of(now.data, now.len);
	if (!digest_equal(&have, expect))
		return is_stale(s, tag, err);
	if (s->plain || (r == 0 && !etag))
		return 0;
	return r == 0 ? text_set(ret, err, "If-Match: %s", etag)
		      : text_set(ret, err, "If-None-Match: *");
}

/* After a refused condition: a first try, whose answer was lost, may have moved it. */
static int settle(struct s3_depot *s, const char *tag, const struct digest *digest, struct err *err)
{
	CLEANUP(buf_done) struct buf now = BUF_INIT;
	struct digest have;
	int r = read_tag(s, tag, &now, NULL, err);

	if (r < 0 && r != -ENOENT)
		return r;
	have = digest_of(now.data, now.len);
	return r == 0 && digest_equal(&have, digest) ? 0 : is_stale(s, tag, err);
}

static int move_tag(struct s3_depot *s, const char *tag, const struct digest *expect,
		    const struct digest *digest, const void *bytes, size_t len, struct err *err)
{
	CLEANUP(http_answer_done) struct http_answer a = { 0 };
	AUTO_FREE char *condition = NULL;
	int r = expect ? make_condition(s, tag, expect, &condition, err) : 0;

	if (r < 0)
		return r;
	r = put_tag(s, tag, condition, digest, bytes, len, &a, err);
	if (r == 501 && condition) {
		/* Then the look right before is all there is, as with a registry. */
		s->plain = true;
		r = put_tag(s, tag, NULL, digest, bytes, len, &a, err);
	}
	if (r < 0 || r == 200)
		return r < 0 ? r : 0;
	if (condition && (r == 412 || r == 409 || r == 404))
		return settle(s, tag, digest, err);
	r = s3_explain(s, &a, "moving a name", err);
	return r == -ENOENT ? err_set(err, -EPROTO, "'%s' answers a PUT with 404", s->depot.url)
			    : r;
}

int s3_put_manifest(struct depot *d, const char *tag, const struct digest *expect,
		    const char *media_type, const void *bytes, size_t len, struct err *err)
{
	struct s3_depot *s = s3_of(d);
	const struct buf text = { .data = (void *)(uintptr_t)bytes, .len = len };
	struct err own = { 0 };
	struct checking checking = { s, err ? err : &own };
	AUTO_FREE char *pending = NULL;
	struct digest digest;
	int r;

	(void)media_type; /* it stands in the manifest, too */
	if (len > DEPOT_MANIFEST_MAX)
		return err_set(err, -EFBIG, "a manifest of %zu bytes is too large", len);
	if (tag && !depot_tag_valid(tag))
		return err_set(err, -EINVAL, "'%s' is no tag", tag);
	r = depot_put(d, bytes, len, &digest, err);
	if (r < 0 || !tag)
		return r;
	r = announce(s, tag, bytes, len, &pending, err);
	if (r == 0)
		r = wait_for_gc(s, err);
	if (r == 0)
		r = check_there(&digest, true, &checking);
	if (r == 0)
		r = depot_each_blob(&text, check_there, &checking);
	if (r == 0)
		r = move_tag(s, tag, expect, &digest, bytes, len, err);
	if (pending)
		IGNORE_RESULT(s3_remove(s, pending, NULL), "a gc removes it after a day");
	return r;
}

/* --- removing ----------------------------------------------------------------------------- */

int s3_delete_manifest(struct depot *d, const char *reference, struct err *err)
{
	struct s3_depot *s = s3_of(d);
	CLEANUP(strlist_done) struct strlist tags = { 0 };
	struct digest digest;
	const bool by_digest = digest_parse(reference, &digest) == 0;
	bool any = false;
	int r =
	    by_digest ? s3_list_tags(d, strlist_add_to, &tags, err) : strlist_add(&tags, reference);

	for (size_t i = 0; r == 0 && i < tags.n; i++) {
		CLEANUP(buf_done) struct buf now = BUF_INIT;
		AUTO_FREE char *url = s3_url(s, "tags/%s", tags.list[i]);
		struct digest have;

		if (!url)
			return err_nomem(err);
		r = s3_get_manifest(d, tags.list[i], &now, err);
		if (r == -ENOENT) {
			r = 0;
			continue;
		}
		have = digest_of(now.data, now.len);
		if (r < 0 || (by_digest && !digest_equal(&have, &digest)))
			continue;
		any = true;
		r = s3_remove(s, url, err);
	}
	return r == 0 && !any ? -ENOENT : r;
}
