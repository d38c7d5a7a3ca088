#include <string.h>

#include "base/vec.h"
#include "cowfs/store/root.h"
#include "cowfs/store/unshared.h"
#include "engine/api/upkeep.h"
#include "engine/find/config-i.h"
#include "engine/find/engine-i.h"

struct census {
	struct store *store;
	struct engine_stats stats;
};

static void census_done(struct census *c)
{
	engine_stats_done(&c->stats);
}

static int count_project(const struct project *p, void *ctx, struct err *err)
{
	((struct census *)ctx)->stats.projects += p->hidden == PROJECT_SHOWN;
	return 0;
}

static int count_snapshot(const struct snapshot *s, void *ctx, struct err *err)
{
	struct census *c = ctx;

	c->stats.snapshots++;
	c->stats.logical += s->bytes;
	return 0;
}

static int count_tag(const struct tag *t, void *ctx, struct err *err)
{
	((struct census *)ctx)->stats.tags++;
	return 0;
}

/* A clone's base stays in the store as long as the clone does. */
static int measure(struct store *s, const struct clone *clone, struct engine_share *ret,
		   struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot base = { 0 };
	CLEANUP(project_done) struct project project = { 0 };
	struct unshared unshared;
	struct root root;
	int r = root_get(s, &clone->root, &root, err);

	if (r < 0)
		return r;
	r = engine_as_damage(err, snapshot_get(s, &clone->base, &base, err));
	if (r < 0)
		return r;
	r = engine_as_damage(err, project_get(s, &clone->project, &project, err));
	if (r < 0)
		return r;
	r = unshared_count(s, &clone->root, &base.root, &unshared, err);
	if (r < 0)
		return r;
	ret->logical = root.top.below.bytes + root.in_links.bytes;
	ret->unshared = unshared.bytes;
	ret->clone = strdup(clone->name);
	ret->project = TAKE_PTR(project.path);
	return ret->clone ? 0 : err_nomem(err);
}

static int count_clone(const struct clone *clone, void *ctx, struct err *err)
{
	struct engine_stats *s = &((struct census *)ctx)->stats;
	struct engine_share *share;
	int r;

	if (!VEC_ONE_MORE(s->shares, s->n_shares))
		return err_nomem(err);
	share = &s->shares[s->n_shares++];
	*share = (struct engine_share){ 0 };
	r = measure(((struct census *)ctx)->store, clone, share, err);
	s->clones++;
	s->logical += share->logical;
	return r < 0 ? err_wrap(err, r, "clone '%s'", clone->name) : r;
}

static int read_limit(const struct engine *e, uint64_t *ret, struct err *err)
{
	AUTO_FREE char *path = config_file(e->home, CONFIG_FILE);
	CLEANUP(config_done) struct config config = { 0 };
	int r = path ? config_read(path, &config, err) : 0;

	*ret = config.store_limit;
	return r;
}

int engine_stats(struct engine *e, struct engine_stats *ret, struct err *err)
{
	CLEANUP(census_done) struct census c = { 0 };
	struct store_sizes sizes = { 0 };
	int r = engine_store(e, STORE_READ, &c.store, err);

	if (r < 0)
		return r;
	r = project_each(c.store, count_project, &c, err);
	if (r < 0)
		return r;
	r = snapshot_each(c.store, count_snapshot, &c, err);
	if (r < 0)
		return r;
	r = tag_each(c.store, count_tag, &c, err);
	if (r < 0)
		return r;
	r = clone_each(c.store, count_clone, &c, err);
	if (r < 0)
		return r;
	r = store_sizes(c.store, &sizes, err);
	if (r < 0)
		return r;
	r = read_limit(e, &c.stats.limit, err);
	if (r < 0)
		return r;
	c.stats.chunks = sizes.chunks;
	c.stats.objects = sizes.objects;
	c.stats.stored = sizes.chunk_bytes + sizes.object_bytes;
	c.stats.disk = sizes.file_bytes;
	c.stats.free = sizes.free_bytes;
	*ret = TAKE_STRUCT(c.stats);
	return 0;
}
