/*
 * gc of a depot in an S3 store; s3-i.h says why a push that runs meanwhile loses nothing.
 *
 * A gc renews the object that announces it, and so never removes anything once others take it for
 * dead. Manifests go before other blobs, so that every snapshot in a log is whole, even if gc is
 * interrupted. Ages are by the store's clock alone.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/strlist.h"
#include "base/sys.h"
#include "base/vec.h"
#include "remote/depot-mark.h"
#include "remote/s3-i.h"

struct collecting {
	struct s3_depot *s;
	const struct depot_retention *what;
	struct depot_marks marks;
	struct depot_freed *freed;
	struct strlist tags;    /* that are listed */
	struct strlist pushing; /* tags that a push is about to move */
	struct strlist pending; /* keys of their objects, behind "pending/" */
	struct strlist dead;    /* the same of pushes that died */
	struct strlist drops;   /* tags that go */
	char *claim;            /* owned: the URL of gc/RANDOM */
	uint64_t claimed_ms;
	bool manifests; /* this round removes manifests alone */
	struct err *err;
};

static void collecting_done(struct collecting *c)
{
	depot_marks_done(&c->marks);
	strlist_done(&c->tags);
	strlist_done(&c->pushing);
	strlist_done(&c->pending);
	strlist_done(&c->dead);
	strlist_done(&c->drops);
	free(c->claim);
}

/* --- who is there ------------------------------------------------------------------------- */

static int renew(struct collecting *c)
{
	static const char text[] = "snapcow remote gc\n";
	const uint64_t now = sys_boot_ms();
	int r;

	if (c->claimed_ms > 0 && now - c->claimed_ms < S3_GC_RENEW_MS)
		return 0;
	/* By now a push may have begun that we do not know of. */
	if (c->claimed_ms > 0 && now - c->claimed_ms >= S3_GC_LOST_MS)
		return err_set(c->err, -EAGAIN,
			       "'%s': nothing was heard of this gc for too long, and others take "
			       "it for dead: begin it again",
			       c->s->depot.url);
	r = s3_put_small(c->s, c->claim, text, sizeof(text) - 1, c->err);
	if (r == 0)
		c->claimed_ms = now;
	return r;
}

static int claim(struct collecting *c)
{
	unsigned char random[16];
	char hex[2 * sizeof(random) + 1];
	int r = sys_random(random, sizeof(random));

	if (r < 0)
		return err_wrap(c->err, r, "naming a gc");
	c->claim = s3_url(c->s, "gc/%s", hex_encode(random, sizeof(random), hex));
	return c->claim ? renew(c) : err_nomem(c->err);
}

static int remove_url(struct collecting *c, char *url)
{
	AUTO_FREE char *owned = url;
	int r = owned ? renew(c) : err_nomem(c->err);

	if (r == 0)
		r = s3_remove(c->s, owned, c->err);
	return r == -ENOENT ? 0 : r;
}

/* "TAG/RANDOM"; any other key is somebody else's, and as part of a URL it could lead anywhere. */
static int on_pending(const struct s3_entry *e, void *ctx)
{
	struct collecting *c = ctx;
	AUTO_FREE char *tag = strndup(e->key, strcspn(e->key, "/"));
	int r;

	if (!tag)
		return err_nomem(c->err);
	if (e->key[strlen(tag)] != '/' || !depot_tag_valid(tag) ||
	    !depot_tag_valid(e->key + strlen(tag) + 1))
		return 0;
	if (e->now - e->modified >= S3_PENDING_STALE_S)
		return strlist_add(&c->dead, e->key) < 0 ? err_nomem(c->err) : 0;
	r = strlist_add(&c->pushing, tag);
	if (r == 0)
		r = strlist_add(&c->pending, e->key);
	return r < 0 ? err_nomem(c->err) : 0;
}

/* What a push announces; one that is over by now has a tag. */
static int mark_pending(struct collecting *c)
{
	int r = s3_each(c->s, "pending/", on_pending, c, c->err);

	for (size_t i = 0; r == 0 && i < c->pending.n; i++) {
		CLEANUP(http_answer_done) struct http_answer a = { 0 };
		AUTO_FREE char *url = s3_url(c->s, "pending/%s", c->pending.list[i]);
		struct http_request q = { .method = "GET", .url = url };

		if (!url)
			return err_nomem(c->err);
		r = s3_send(c->s, &q, NULL, NULL, &a, c->err);
		if (r == 0 && a.status == 404)
			continue;
		if (r == 0 && a.status != 200)
			r = s3_explain(c->s, &a, "reading what is being pushed", c->err);
		if (r == 0)
			r = depot_mark_bytes(&c->marks, &a.body);
	}
	return r;
}

/* --- names -------------------------------------------------------------------------------- */

static int add_tag(const char *tag, void *ctx)
{
	struct collecting *c = ctx;

	return strlist_add(&c->tags, tag) < 0 ? err_nomem(c->err) : 0;
}

/* What the name means stays, unless the name goes. */
static int judge_tag(struct collecting *c, const char *tag)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	const struct depot_drop *drop =
	    VEC_FIND(it, c->what->drop, c->what->n_drop, strcmp(it->tag, tag) == 0);
	struct digest now;
	int r = s3_get_manifest(&c->s->depot, tag, &bytes, c->err);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	now = digest_of(bytes.data, bytes.len);
	if (drop && digest_equal(&now, &drop->expect) && !strlist_has(&c->pushing, tag)) {
		c->freed->names++;
		return strlist_add(&c->drops, tag) < 0 ? err_nomem(c->err) : 0;
	}
	c->freed->moved += drop != NULL;
	return depot_mark_bytes(&c->marks, &bytes);
}

/* --- blobs -------------------------------------------------------------------------------- */

static int on_blob(const struct s3_entry *e, void *ctx)
{
	struct collecting *c = ctx;
	struct digest d;
	int r = c->what->dry ? 0 : renew(c);

	if (r < 0)
		return r;
	/* A name that is no blob's is somebody else's. */
	if (strlen(e->key) != SHA256_HEX_SIZE - 1 ||
	    hex_decode(e->key, strlen(e->key), d.b, sizeof(d.b)) < 0 ||
	    depot_is_gone(&c->marks, &d) != c->manifests)
		return 0;
	if (depot_is_needed(&c->marks, &d)) {
		c->freed->kept += e->size;
		return 0;
	}
	if ((e->now - e->modified) * 1000 < (int64_t)c->what->grace_ms) {
		c->freed->young += e->size;
		return 0;
	}
	c->freed->blobs++;
	c->freed->bytes += e->size;
	c->freed->manifests += c->manifests;
	return c->what->dry ? 0 : remove_url(c, s3_blob_url(c->s, &d));
}

static int sweep(struct collecting *c)
{
	int r = 0;

	for (size_t i = 0; r == 0 && !c->what->dry && i < c->drops.n; i++)
		r = remove_url(c, s3_url(c->s, "tags/%s", c->drops.list[i]));
	for (size_t i = 0; r == 0 && !c->what->dry && i < c->dead.n; i++)
		r = remove_url(c, s3_url(c->s, "pending/%s", c->dead.list[i]));
	for (int round = 0; r == 0 && round < 2; round++) {
		c->manifests = round == 0;
		r = s3_each(c->s, "blobs/sha256/", on_blob, c, c->err);
	}
	return r;
}

int s3_collect(struct depot *d, const struct depot_retention *what, struct depot_freed *ret,
	       struct err *err)
{
	struct err own = { 0 };
	CLEANUP(collecting_done) struct collecting c = {
		.s = s3_of(d), .what = what, .freed = ret, .err = err ? err : &own
	};
	int r;

	*ret = (struct depot_freed){ 0 };
	c.marks = (struct depot_marks){ .depot = d, .err = c.err };
	r = what->dry ? 0 : claim(&c);
	/* Pushes first: one that ends between the two lists is in the second. */
	if (r == 0)
		r = mark_pending(&c);
	if (r == 0)
		r = s3_list_tags(d, add_tag, &c, c.err);
	for (size_t i = 0; r == 0 && i < c.tags.n; i++) {
		r = what->dry ? 0 : renew(&c);
		if (r == 0)
			r = judge_tag(&c, c.tags.list[i]);
	}
	if (r == 0)
		r = depot_mark_retained(&c.marks, what);
	if (r == 0)
		r = sweep(&c);
	if (c.claim)
		IGNORE_RESULT(s3_remove(c.s, c.claim, NULL),
			      "pushes wait for it for an hour at most");
	return r;
}
