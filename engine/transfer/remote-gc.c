/*
 * Rules over names and times decide here which snapshots of a remote stay. The depot itself
 * (depot.h) makes sure that nothing goes that a name needs: it reads the names for the last time.
 */
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/strlist.h"
#include "base/vec.h"
#include "engine/transfer/sealing-i.h"
#include "engine/transfer/transfer-i.h"

#define TICKETS_NS (INT64_C(8) * 86400 * 1000000000) /* longer than a queue keeps results */

struct digest_list {
	struct digest *list; /* owned */
	size_t n;
};

struct ruling {
	const struct engine_remote_gc_options *options;
	struct depot *depot;
	struct cache cache; /* of what this store encrypted itself */
	struct sealing sealing;
	int64_t limit;         /* pushed before it: old */
	int64_t tickets_limit; /* the same of names of tickets */
	struct digest_list keep, gone;
	struct depot_drop *drops; /* owned, with their tags in `tags` */
	size_t n_drops;
	struct strlist tags;
	struct engine_remote_gc *ret;
	struct meter meter;
};

static void ruling_done(struct ruling *g)
{
	free(g->keep.list);
	free(g->gone.list);
	free(g->drops);
	strlist_done(&g->tags);
	sealing_done(&g->sealing);
	cache_close(&g->cache);
}

static int add_digest(struct digest_list *l, const struct digest *d, struct err *err)
{
	if (!VEC_ONE_MORE(l->list, l->n))
		return err_nomem(err);
	l->list[l->n++] = *d;
	return 0;
}

static bool has_digest(const struct digest_list *l, const struct digest *d)
{
	return VEC_HAS(it, l->list, l->n, digest_equal(it, d));
}

/* What workers and their callers name by themselves, "queue-" and "result-", and no person would. */
static bool is_of_ticket(const char *tag)
{
	static const struct {
		const char *prefix;
		size_t digits;
	} names[] = { { "queue-", 16 }, { "result-", 32 } };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const size_t len = strlen(names[i].prefix);

		if (strncmp(tag, names[i].prefix, len) == 0 &&
		    strlen(tag + len) == names[i].digits &&
		    strspn(tag + len, "0123456789abcdef") == names[i].digits)
			return true;
	}
	return false;
}

static bool is_named(const struct engine_remote_gc_options *o, const char *tag)
{
	return VEC_HAS(it, o->keep_tags, o->n_keep_tags, fnmatch(*it, tag, 0) == 0);
}

/* Does what the name means now stay, and nothing that it meant before? */
static bool keeps_present_alone(const struct engine_remote_gc_options *o, const char *tag)
{
	return o->keep_last == 1 && o->older_than_ms == 0 && !is_named(o, tag);
}

static bool keeps_all(const struct engine_remote_gc_options *o, const char *tag)
{
	return is_named(o, tag) || (o->keep_last == 0 && o->older_than_ms == 0);
}

/* Does a rule keep what the name meant `n` pushes ago? */
static bool is_kept(const struct ruling *g, const char *tag, uint64_t n, int64_t pushed)
{
	const struct engine_remote_gc_options *o = g->options;

	/* A result stands in the queue for a week; whoever has not fetched it by then gets none. */
	if (is_of_ticket(tag) && !is_named(o, tag))
		return pushed >= g->tickets_limit;
	return keeps_all(o, tag) || (o->keep_last > 0 && n < o->keep_last) ||
	       (o->older_than_ms > 0 && pushed >= g->limit);
}

static int add_gone(struct ruling *g, const char *tag, const struct digest *digest, int64_t pushed,
		    struct err *err)
{
	struct engine_remote_gone one = { .pushed = pushed };

	if (!VEC_ONE_MORE(g->ret->gone, g->ret->n_gone))
		return err_nomem(err);
	one.name = tag ? strdup(tag) : NULL;
	digest_text(digest, one.manifest);
	g->ret->gone[g->ret->n_gone++] = one;
	return tag && !one.name ? err_nomem(err) : 0;
}

static int drop_name(struct ruling *g, const char *tag, const struct digest *digest,
		     struct err *err)
{
	if (!VEC_ONE_MORE(g->drops, g->n_drops))
		return err_nomem(err);
	g->drops[g->n_drops++] = (struct depot_drop){ .tag = tag, .expect = *digest };
	return 0;
}

/* One snapshot that a name means, or meant `n` pushes ago. */
static int judge(struct ruling *g, const char *tag, uint64_t n, bool keep,
		 const struct digest *digest, int64_t pushed, struct err *err)
{
	int r = add_digest(keep ? &g->keep : &g->gone, digest, err);

	if (r < 0)
		return r;
	if (keep) {
		g->ret->snapshots++;
		g->ret->names += n == 0;
		return 0;
	}
	r = n == 0 ? drop_name(g, tag, digest, err) : 0;
	return r < 0 ? r : add_gone(g, n == 0 ? tag : NULL, digest, pushed, err);
}

/* What a name meant before stands in what cannot be read. */
static int stop(const struct ruling *g, const char *tag, const char *at, int r,
		const struct err *why, struct err *err)
{
	if (r == -EACCES)
		return err_set(
		    err, r,
		    "'%s' of '%s' is encrypted: gc cannot see what it meant before, and "
		    "nothing is removed: name your key with --identity, or keep the last "
		    "snapshot of each name alone with --keep-last 1",
		    tag, g->depot->url);
	if (r == -EPROTO)
		return err_set(err, -ENOTSUP,
			       "'%s' of '%s' is of a later version: gc cannot see what it needs, "
			       "and nothing is removed",
			       tag, g->depot->url);
	return err_set(err, r,
		       "gc cannot read '%s' and cannot see what '%s' meant before; nothing is "
		       "removed: %s",
		       at, tag, why->code == r ? why->msg : strerror(-r));
}

static int get_snapshot(struct ruling *g, const struct manifest *m, struct manifest_snapshot *ret,
			struct err *err)
{
	int r = m->sealed ? sealing_prepare(&g->sealing, err) : 0;

	return r < 0 ? r : manifest_get_snapshot(g->depot, m, &g->sealing.opener, ret, err);
}

/* All that a name means and meant, as far as the remote has it. */
static int judge_name(struct ruling *g, const char *tag, struct err *err)
{
	AUTO_FREE char *next = strdup(tag);
	bool named = true;

	if (!next)
		return err_nomem(err);
	for (uint64_t n = 0; next; n++) {
		CLEANUP(manifest_snapshot_done) struct manifest_snapshot s = { 0 };
		CLEANUP(manifest_done) struct manifest m = { 0 };
		struct digest digest;
		struct err why = { 0 };
		bool keep;
		int r = manifest_get(g->depot, next, &m, NULL, &digest, &why);

		/* The end of what is there. */
		if (r == -ENOENT)
			return n > 0 && digest_parse(next, &digest) == 0
				   ? add_digest(&g->keep, &digest, err)
				   : 0;
		/* Something of others, which stays; or damage, which stops the depot's own look. */
		if (r == -EBADMSG && n == 0)
			return 0;
		if (r == 0)
			r = get_snapshot(g, &m, &s, &why);
		/* Its packs stand in its manifest, in the clear, and no rule asks for more. */
		if ((r == -EACCES || r == -ECANCELED) && m.sealed &&
		    keeps_present_alone(g->options, tag))
			return judge(g, tag, n, true, &digest, 0, err);
		if (r < 0)
			return stop(g, tag, next, r, &why, err);
		keep = named && is_kept(g, tag, n, s.pushed);
		if (n == 0)
			named = keep; /* a name that goes takes its past along */
		r = judge(g, tag, n, keep, &digest, s.pushed, err);
		if (r < 0)
			return r;
		free(next);
		next = TAKE_PTR(s.parent);
		IGNORE_RESULT(meter_moved(0, &g->meter), "it only shows that something goes on");
	}
	return 0;
}

/* What another name keeps does not go. */
static void settle(struct ruling *g)
{
	struct engine_remote_gc *ret = g->ret;
	size_t n = 0, shown = 0;

	for (size_t i = 0; i < g->gone.n; i++)
		if (!has_digest(&g->keep, &g->gone.list[i]))
			g->gone.list[n++] = g->gone.list[i];
	g->gone.n = n;
	for (size_t i = 0; i < ret->n_gone; i++) {
		struct digest d;

		if (!ret->gone[i].name && digest_parse(ret->gone[i].manifest, &d) == 0 &&
		    has_digest(&g->keep, &d))
			continue;
		ret->gone[shown++] = ret->gone[i];
	}
	ret->n_gone = shown;
}

static int collect(struct ruling *g, struct err *err)
{
	const struct depot_retention what = {
		.drop = g->drops,
		.n_drop = g->n_drops,
		.keep = g->keep.list,
		.n_keep = g->keep.n,
		.gone = g->gone.list,
		.n_gone = g->gone.n,
		.grace_ms = g->options->grace_ms,
		.dry = g->options->dry,
	};
	struct depot_freed freed;
	int r = g->depot->ops->collect(g->depot, &what, &freed, err);

	if (r < 0)
		return r;
	g->ret->moved = freed.moved;
	g->ret->blobs = freed.blobs;
	g->ret->bytes = freed.bytes;
	g->ret->young = freed.young;
	g->ret->kept = freed.kept;
	g->ret->later = freed.later;
	return 0;
}

static int open_sealing(struct ruling *g, struct engine *e, const struct target *t, struct err *err)
{
	const struct sealing_options o = { .identity = g->options->identity };

	cache_open(e, &g->cache);
	return sealing_begin(e, t, &g->cache, &o, &g->sealing, err);
}

int engine_remote_gc(struct engine *e, const struct engine_remote_gc_options *options,
		     struct engine_remote_gc *ret, struct err *err)
{
	CLEANUP(engine_remote_gc_done) struct engine_remote_gc out = { 0 };
	CLEANUP(depot_close_p) struct depot *d = NULL;
	CLEANUP(target_done) struct target t = { 0 };
	CLEANUP(ruling_done) struct ruling g = { .options = options,
						 .ret = &out,
						 .cache = { .fd = -1 },
						 .meter = { .lock = PTHREAD_MUTEX_INITIALIZER,
							    .watch = &options->watch,
							    .doing = "reading" } };
	const int64_t now = engine_now();
	int r = target_find(e, options->remote, &t, err);

	g.tickets_limit = now - TICKETS_NS;
	if (options->older_than_ms < (uint64_t)now / 1000000)
		g.limit = now - (int64_t)options->older_than_ms * 1000000;
	if (r == 0 && t.name)
		return err_set(err, -EINVAL,
			       "'%s' names a snapshot: 'remote gc' works on a whole remote",
			       options->remote);
	if (r == 0)
		r = depot_open(t.url, NULL, &d, err);
	g.depot = d;
	if (r == 0)
		r = open_sealing(&g, e, &t, err);
	if (r == 0)
		r = d->ops->list_tags(d, strlist_add_to, &g.tags, err);
	for (size_t i = 0; r == 0 && i < g.tags.n; i++)
		r = judge_name(&g, g.tags.list[i], err);
	if (r == 0) {
		settle(&g);
		r = collect(&g, err);
	}
	if (r < 0)
		return r;
	out.remote = TAKE_PTR(t.url);
	*ret = TAKE_STRUCT(out);
	return 0;
}
