#include "engine/transfer/beside-i.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cowfs/store/catalog.h"

void beside_done(struct beside *b)
{
	target_done(&b->target);
	free(b->repository);
	connections_done(&b->more);
	manifest_done(&b->manifest);
}

/* --- which -------------------------------------------------------------------------------- */

struct looking {
	const char *url; /* that is pushed to */
	const struct snapshot *like;
	bool across;
	struct store *store;
	struct beside *best;
	struct err *err;
};

static bool is_of_project(const struct looking *l, const struct seen *seen)
{
	CLEANUP(snapshot_done) struct snapshot s = { 0 };
	struct err ignored = { 0 };

	return snapshot_find(l->store, seen->snapshot, &s, &ignored) == 0 &&
	       memcmp(&s.project, &l->like->project, sizeof(s.project)) == 0;
}

/* What is there already comes first, then the latest: it has most of what is pushed now. */
static bool is_better(const struct beside *b, const char *repository, const struct seen *seen)
{
	if (!b->target.url)
		return true;
	if (!b->repository != !repository)
		return !repository;
	return seen->pushed > b->seen.pushed;
}

static int on_seen(const char *url, const char *name, const struct seen *seen, void *ctx)
{
	const struct looking *l = ctx;
	const bool here = strcmp(url, l->url) == 0;
	AUTO_FREE char *repository = here || !l->across ? NULL : depot_beside(l->url, url);
	struct beside *b = l->best;

	if ((!here && !repository) || !is_better(b, repository, seen) || !is_of_project(l, seen))
		return 0;
	target_done(&b->target);
	free(b->repository);
	b->repository = TAKE_PTR(repository);
	b->seen = *seen;
	if (text_copy(&b->target.url, url, l->err) < 0 ||
	    text_copy(&b->target.name, name, l->err) < 0)
		return -ENOMEM;
	return 0;
}

int beside_find(struct engine *e, const struct target *t, const struct snapshot *like, bool across,
		struct beside *ret, struct err *err)
{
	struct looking l = {
		.url = t->url, .like = like, .across = across, .best = ret, .err = err
	};
	int r = engine_store(e, STORE_READ, &l.store, err);

	return r < 0 ? r : seen_each(e, on_seen, &l, err);
}

/* --- its packs ---------------------------------------------------------------------------- */

int beside_open(struct engine *e, struct beside *b, struct connections *to, uint64_t rate,
		uint64_t jobs, struct err *err)
{
	char text[DIGEST_TEXT_SIZE];
	struct digest unused;
	int r = 0;

	b->lines = b->repository ? &b->more : to;
	if (b->repository)
		r = connections_open(e, &b->more, b->target.url, rate, jobs, err);
	return r < 0 ? r
		     : manifest_get(b->lines->list[0], digest_text(&b->seen.manifest, text),
				    &b->manifest, NULL, &unused, err);
}

struct taking {
	const struct beside *from;
	const bool *listed;
	struct connections *to;
};

static int take_one(unsigned member, size_t i, void *ctx, struct err *err)
{
	const struct taking *t = ctx;
	const struct manifest_pack *p = &t->from->manifest.packs[i];
	const char *from = t->from->repository;
	struct depot *d;
	int r;

	if (!t->listed[i])
		return 0;
	r = connections_get(t->to, member, &d, err);
	if (r == 0)
		r = d->ops->mount_blob(d, &p->pack.digest, from, err);
	if (r > 0)
		r = d->ops->mount_blob(d, &p->index.digest, from, err);
	if (r == 0)
		return -EXDEV;
	return r < 0 ? r : 0;
}

int beside_take(struct beside *b, const bool *listed, struct connections *to, struct err *err)
{
	struct taking t = { b, listed, to };
	const size_t n = b->repository ? b->manifest.n : 0;

	return crew_each(to->n < n ? to->n : (unsigned)n, n, take_one, &t, err);
}
