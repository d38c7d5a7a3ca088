/*
 * A pin must be set while something else still reaches the root.  The root of a project, or of a
 * clone with changes, is in a batch that is not committed yet.  For a clone without changes we read
 * the ref again after the pin is set, because the committer may have moved it meanwhile.
 */
#include "engine/act/hold-i.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cowfs/store/pin.h"
#include "engine/act/survey-i.h"
#include "engine/host/keep-i.h"

struct pinned {
	struct kept kept;
	struct store *store;
	struct object_id root; /* zero: nothing is pinned yet */
};

static void unpin(struct pinned *p)
{
	if (!object_id_is_zero(&p->root))
		store_unpin(p->store, OBJECT_TREE, &p->root);
	p->root = (struct object_id){ 0 };
}

static void pinned_free(struct pinned *p)
{
	if (p)
		unpin(p);
	free(p);
}
DEFINE_CLEANUP(struct pinned *, pinned_free)

static void release(struct kept *k)
{
	pinned_free((struct pinned *)k);
}

int hold_tree(struct store *s, const struct snapshot *of, struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot still = { 0 };
	int r = store_pin(s, OBJECT_TREE, &of->root, err);

	if (r < 0)
		return r;
	r = snapshot_get(s, &of->id, &still, err);
	if (r == -ENOENT)
		err_set(err, r, "a snapshot that is needed was removed just now");
	else if (r >= 0 && !object_id_equal(&still.root, &of->root))
		r = err_set(err, -EAGAIN, "a snapshot that is needed was completed just now");
	if (r < 0)
		store_unpin(s, OBJECT_TREE, &of->root);
	return r;
}

static struct pinned *pinned_new(struct store *s)
{
	struct pinned *p = calloc(1, sizeof(*p));

	if (p)
		*p = (struct pinned){ .kept.release = release, .store = s };
	return p;
}

static int pin(struct pinned *p, const struct object_id *root, struct err *err)
{
	int r = store_pin(p->store, OBJECT_TREE, root, err);

	if (r < 0)
		return r;
	p->root = *root;
	return r;
}

/* --- clones ----------------------------------------------------------------------------- */

static int pin_state(struct batch *b, const struct layer_state *state, void *ctx, struct err *err)
{
	return pin(ctx, &state->id, err);
}

/* 1 if the clone has no changes beyond the root in its ref, which is now pinned. */
static int pin_unchanged(struct task *task, const char *name, struct live *live, struct pinned *p,
			 struct err *err)
{
	CLEANUP(clone_done) struct clone before = { 0 }, after = { 0 };
	struct layer_usage usage;
	int r = clone_find(task->engine.store, name, &before, err);

	if (r < 0)
		return r;
	r = pin(p, &before.root, err);
	if (r < 0 || !live)
		return r < 0 ? r : 1;
	layer_usage(live->layer, &usage);
	r = clone_find(task->engine.store, name, &after, err);
	if (r < 0)
		return r;
	if (usage.changed || !object_id_equal(&before.root, &after.root))
		unpin(p);
	return !object_id_is_zero(&p->root);
}

static int pin_clone(struct task *task, const char *name, struct pinned *p, struct err *err)
{
	struct live *live = live_find(task->host, name);
	struct layer_state state;
	int r = pin_unchanged(task, name, live, p, err);

	if (r != 0)
		return r < 0 ? r : 0;
	return layer_look(live->layer, pin_state, p, &state, err);
}

/* --- projects --------------------------------------------------------------------------- */

static int pin_project(struct task *task, const struct project *project,
		       const struct engine_watch *watch, struct pinned *p, struct err *err)
{
	CLEANUP(turn_give_p) struct turn *turn = NULL;
	CLEANUP(batch_end_p) struct batch *b = NULL;
	struct survey survey;
	int r = task_may_read(task, project->path, err);

	if (r < 0)
		return r;
	r = turns_take(&task->host->turns, project->path, &turn, err);
	if (r < 0)
		return r;
	r = batch_begin(task->engine.store, &b, err);
	if (r < 0)
		return r;
	r = survey_project(task, project, b, watch, &survey, err);
	if (r < 0)
		return r;
	r = batch_commit(b, BATCH_SAFE, err);
	return r < 0 ? r : pin(p, &survey.root, err);
}

/* --- any -------------------------------------------------------------------------------- */

/* Hand it over to the connection. */
static void hand_over_pin(struct task *task, struct pinned *p, int64_t time, struct held *ret)
{
	*ret = (struct held){ .root = p->root, .time = time };
	keep_add(task->kept, &p->kept);
}

int hold_project(struct task *task, const struct project *project, const struct engine_watch *watch,
		 struct held *ret, struct err *err)
{
	CLEANUP(pinned_free_p) struct pinned *p = pinned_new(task->engine.store);
	const int64_t now = engine_now();
	int r = p ? pin_project(task, project, watch, p, err) : err_nomem(err);

	if (r < 0)
		return r;
	hand_over_pin(task, TAKE_PTR(p), now, ret);
	return r;
}

int hold_in_turn(struct task *task, const char *name, struct held *ret, struct err *err)
{
	CLEANUP(pinned_free_p) struct pinned *p = pinned_new(task->engine.store);
	const int64_t now = engine_now();
	int r = p ? pin_clone(task, name, p, err) : err_nomem(err);

	if (r < 0)
		return r;
	hand_over_pin(task, TAKE_PTR(p), now, ret);
	return r;
}

int hold_clone(struct task *task, const char *name, struct held *ret, struct err *err)
{
	CLEANUP(turn_give_p) struct turn *turn = NULL;
	int r = turns_take(&task->host->turns, name, &turn, err);

	return r < 0 ? r : hold_in_turn(task, name, ret, err);
}

struct names_held {
	struct kept kept;
	struct host *host;
	struct catalog_id mounting;
	char name[]; /* of the clone */
};

/* One that was mounted anew since is another layer, in which nothing is held. */
static void release_names(struct kept *k)
{
	struct names_held *h = (struct names_held *)k;
	CLEANUP(turn_give_p) struct turn *turn = NULL;
	struct live *live = NULL;

	if (turns_take(&h->host->turns, h->name, &turn, NULL) >= 0)
		live = live_find(h->host, h->name);
	if (live && memcmp(&live->mounting, &h->mounting, sizeof(h->mounting)) == 0)
		layer_release_names(live->layer);
	free(h);
}

int hold_names(struct task *task, const char *name, uint64_t ms, struct held *ret, struct err *err)
{
	const size_t size = strlen(name) + 1;
	CLEANUP(turn_give_p) struct turn *turn = NULL;
	struct names_held *h;
	struct live *live;
	int r = turns_take(&task->host->turns, name, &turn, err);

	if (r < 0)
		return r;
	/* What the clone has not put in the store yet is put before anybody waits for it. */
	r = hold_in_turn(task, name, ret, err);
	if (r < 0)
		return r;
	live = live_find(task->host, name);
	if (!live)
		return err_set(err, -EAGAIN, "clone '%s' was unmounted just now", name);
	h = malloc(sizeof(*h) + size);
	if (!h)
		return err_nomem(err);
	*h = (struct names_held){ { .release = release_names }, task->host, live->mounting };
	memcpy(h->name, name, size);
	layer_hold_names(live->layer, ms < HOLD_NAMES_MS ? ms : HOLD_NAMES_MS);
	keep_add(task->kept, &h->kept);
	return hold_in_turn(task, name, ret, err);
}

static int hold_snapshot(struct task *task, const struct snapshot *s, struct held *ret,
			 struct err *err)
{
	CLEANUP(pinned_free_p) struct pinned *p = pinned_new(task->engine.store);
	int r = p ? hold_tree(p->store, s, err) : err_nomem(err);

	if (r < 0)
		return r;
	p->root = s->root;
	hand_over_pin(task, TAKE_PTR(p), s->created, ret);
	return r;
}

int hold_state(struct task *task, const char *text, const struct engine_watch *watch,
	       struct held *ret, struct err *err)
{
	CLEANUP(state_done) struct state state = { 0 };
	int r = state_find(&task->engine, task->engine.store, text, &state, err);

	if (r < 0)
		return r;
	switch (state.kind) {
	case STATE_PROJECT:
		return hold_project(task, &state.project, watch, ret, err);
	case STATE_CLONE:
		return hold_clone(task, state.clone.name, ret, err);
	case STATE_SNAPSHOT:
		break;
	}
	return hold_snapshot(task, &state.snapshot, ret, err);
}
