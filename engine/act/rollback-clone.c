/*
 * rollback-clone.c - roll back a clone: its layer gets the wanted state, mounted or not.
 */
#include <errno.h>
#include <string.h>

#include "engine/act/echo-i.h"
#include "engine/act/hide-i.h"
#include "engine/act/rolling-i.h"
#include "engine/find/part-i.h"
#include "engine/host/host-i.h"

/* 1 if the newest snapshot is that state.  It may have been removed since it was found. */
static int is_saved(struct rolling *g, const struct object_id *root, struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot still = { 0 };
	int r = -ENOENT;

	if (!catalog_id_is_zero(&g->newest.id))
		r = snapshot_get(g->store, &g->newest.id, &still, err);
	if (r == -ENOENT)
		g->saved.parent = (struct catalog_id){ 0 };
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	/* Only a snapshot of the clone itself restores its base, too. */
	return history_holds(&g->newest, root, &g->saved.base) &&
	       (catalog_id_is_zero(&g->rebase.id) || g->newest.clone);
}

static int put_saved(struct rolling *g, struct batch *b, const struct object_id *root,
		     uint64_t files, uint64_t bytes, struct err *err)
{
	const int known = is_saved(g, root, err);

	if (known < 0)
		return known;
	catalog_id_hex(known ? &g->newest.id : &g->saved.id, g->result.saved);
	if (known)
		return 0;
	g->saved.root = *root;
	g->saved.files = files;
	g->saved.bytes = bytes;
	return snapshot_put(b, &g->saved, REF_NEW, err);
}

static int put_state(struct batch *b, const struct layer_state *state, void *ctx, struct err *err)
{
	struct rolling *g = ctx;
	int r = hide_inherit(g->store, b, &g->to, &g->clone, err);

	return r < 0 ? r : put_saved(g, b, &state->id, state->files, state->bytes, err);
}

/* Called while no write can reach the clone, which may have changed since rolling_compare(). */
static int choose_root(const struct layer_state *now, struct object_id *ret, void *ctx,
		       struct err *err)
{
	struct rolling *g = ctx;
	int r = 0;

	if (!object_id_equal(&now->id, &g->now)) {
		g->now = now->id;
		plan_done(&g->plan);
		engine_rolled_paths_free(g->result.paths, g->result.n_paths);
		g->result.paths = NULL;
		g->result.n_paths = 0;
		r = rolling_compare(g, 0, err);
	}
	*ret = g->wanted;
	return r;
}

/* host->snapshots held for reading until the commit names what was found (forget-i.h). */
static int rebase_locked(struct rolling *g, struct layer *layer, const struct layer_rebase *how,
			 struct layer_changes *changes, struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot found = { 0 };
	int r = how->to ? snapshot_get(g->store, &how->to->id, &found, err) : 0;

	if (r == -ENOENT)
		return err_set(err, r, "the base of the snapshot was removed just now");
	return r < 0 ? r : layer_rebase(layer, how, changes, err);
}

static int switch_layer(struct layer *layer, struct mount *mount, void *ctx, struct err *err)
{
	CLEANUP(layer_changes_done) struct layer_changes changes = { 0 };
	struct rolling *g = ctx;
	const bool rebases = !catalog_id_is_zero(&g->rebase.id);
	const struct layer_rebase how = {
		.also = put_state,
		.ctx = g,
		.choose = rolling_mixes(g) ? choose_root : NULL,
		.target = &g->to.root,
		.from = &g->base,
		.to = rebases ? &g->rebase : NULL,
	};
	struct host *h = g->task->host;
	struct layer_state state;
	struct err why = { 0 };
	int r = layer_persist(layer, BATCH_SAFE, NULL, NULL, &state, err);

	if (r < 0)
		return err_wrap(err, r, "clone '%s'", g->clone.name);
	g->now = state.id;
	r = rolling_compare(g, 0, err);
	if (r < 0 || g->options->dry_run || (plan_is_empty(&g->plan) && !rebases))
		return r;
	r = task_wanted(g->task, err);
	if (r < 0)
		return r;
	pthread_rwlock_rdlock(&h->snapshots);
	r = rebase_locked(g, layer, &how, &changes, err);
	pthread_rwlock_unlock(&h->snapshots);
	if (r < 0)
		return r;
	if (mount && echo_announce(g->task, g->clone.name, mount, &changes, &why) < 0)
		engine_warn(
		    &g->task->engine,
		    "clone '%s' is rolled back, but programs may still see the old files: %s",
		    g->clone.name, why.msg);
	return r;
}

/*
 * A promotion takes what the clone lacks and its base has for deleted, so a clone holds as much of the
 * project as its base does.
 */
static int check_part(struct rolling *g, const char *part, struct err *err)
{
	const char *of = g->to.part;
	char hex[CATALOG_HEX_SIZE];

	if (part_same(part, of))
		return 0;
	return err_set(
	    err, -EINVAL,
	    "clone '%.64s' has %s%.80s%s, and snapshot %s has %s%.80s%s: make a clone of "
	    "that with 'clone --from'",
	    g->clone.name, part ? "only '" : "", part ? part : "all of its project",
	    part ? "'" : "", catalog_id_hex(&g->to.id, hex), of ? "only '" : "",
	    of ? of : "all of it", of ? "'" : "");
}

/*
 * A clone's state has all that its base had, but for what the clone itself removed.  Beside any other base
 * what the state lacks unread would seem removed, so it stays.
 */
static const char *find_lacks(const struct rolling *g, const struct catalog_id *base)
{
	const struct snapshot *to = &g->to;

	if (catalog_id_same(&to->id, base) || catalog_id_same(&to->base, base))
		return NULL;
	return to->lacks;
}

/* A snapshot from before a rebase needs the base that the clone had then. */
static int find_bases(struct rolling *g, const struct clone *found, struct err *err)
{
	const struct snapshot *to = &g->to;
	int r;

	g->saved.base = found->base;
	g->lacks = find_lacks(g, &found->base);
	r = engine_as_damage(err, snapshot_get(g->store, &found->base, &g->base, err));
	if (r < 0)
		return r;
	g->saved.part = g->base.part;
	g->saved.lacks = g->base.lacks;
	if (g->paths || !to->clone || strcmp(to->clone, found->name) != 0 ||
	    to->created <= found->created || catalog_id_is_zero(&to->base) ||
	    catalog_id_same(&to->base, &found->base))
		return check_part(g, g->base.part, err);
	r = engine_as_damage(err, snapshot_get(g->store, &to->base, &g->rebase, err));
	g->lacks = NULL;
	return r < 0 ? r : check_part(g, g->rebase.part, err);
}

int rolling_move_clone(struct rolling *g, struct err *err)
{
	CLEANUP(turn_give_p) struct turn *turn = NULL;
	CLEANUP(clone_done) struct clone found = { 0 };
	struct host *h = g->task->host;
	int r = turns_take(&h->turns, g->clone.name, &turn, err);

	if (r < 0)
		return r;
	/* The task that had the turn before may have removed the clone, and made it anew. */
	r = clone_find(g->store, g->clone.name, &found, err);
	if (r < 0)
		return r;
	g->clone.created = found.created;
	r = find_bases(g, &found, err);
	if (r < 0)
		return r;
	return live_change(h, g->clone.name, switch_layer, g, err);
}
