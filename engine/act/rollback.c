/*
 * The present and the wanted state are compared before anything is saved or changed, so that a
 * rollback to the present state makes no snapshot. Both roots are pinned meanwhile, so no other act
 * can remove them.
 */
#include "engine/api/rollback.h"
#include "base/text.h"
#include "engine/act/events-i.h"
#include "engine/act/hold-i.h"

#include <errno.h>
#include <string.h>

#include "cowfs/store/pin.h"
#include "engine/act/rolling-i.h"
#include "engine/find/patterns-i.h"

static void rolling_done(struct rolling *g)
{
	project_done(&g->project);
	clone_done(&g->clone);
	snapshot_done(&g->to);
	snapshot_done(&g->base);
	snapshot_done(&g->rebase);
	snapshot_done(&g->newest);
	if (g->pinned)
		store_unpin(g->store, OBJECT_TREE, &g->wanted);
	ignore_free(g->paths);
	plan_done(&g->plan);
	engine_rolled_done(&g->result);
}

/* --- what is meant ---------------------------------------------------------------------- */

/* 1 if the word names a clone, which is then loaded. */
static int is_clone(struct rolling *g, const char *word, struct err *err)
{
	int r =
	    clone_check_name(word, NULL) < 0 ? -ENOENT : clone_get(g->store, word, &g->clone, err);

	return r == -ENOENT ? 0 : r < 0 ? r : 1;
}

/* Find the clone, if the words name one, and the word that names the snapshot. */
static int choose(struct rolling *g, const char **ret_state, struct err *err)
{
	const struct engine_rollback_options *o = g->options;
	AUTO_FREE char *here = clone_here(&g->task->engine);
	int r = 0;

	*ret_state = o->second;
	if (o->second || (o->clone_only && o->first))
		return clone_find(g->store, o->first, &g->clone, err);
	if (o->first)
		r = is_clone(g, o->first, err);
	if (r != 0)
		return r < 0 ? r : 0;
	*ret_state = o->first;
	return here ? clone_find(g->store, here, &g->clone, err) : 0;
}

static int find_project(struct rolling *g, struct err *err)
{
	int r;

	if (g->clone.name)
		return engine_as_damage(err,
					project_get(g->store, &g->clone.project, &g->project, err));
	r = project_around(&g->task->engine, g->store, &g->project, err);
	return r < 0 ? r : task_may_read(g->task, g->project.path, err);
}

static int find_newest(struct rolling *g, struct err *err)
{
	CLEANUP(engine_history_done) struct engine_history h = { 0 };
	const struct clone *clone = g->clone.name ? &g->clone : NULL;
	int r = history_load(g->store, &g->project.id, clone, &h, err);

	if (r < 0)
		return engine_as_damage(err, r);
	r = history_last(g->store, &h, clone, NULL, &g->newest, err);
	if (r < 0)
		return r;
	history_keep_users(&h);
	if (h.n > 0 && !h.list[0].automatic)
		memcpy(g->last, h.list[0].id, sizeof(g->last));
	else if (g->clone.name)
		catalog_id_hex(clone_start(&g->clone), g->last);
	return 0;
}

static int find_wanted(struct rolling *g, const char *state, struct err *err)
{
	char hex[CATALOG_HEX_SIZE];
	int r;

	if (!state && catalog_id_is_zero(&g->newest.id))
		return err_set(err, -ENOENT, "'%s' has no snapshot yet", g->project.path);
	if (!state && g->last[0] == '\0')
		return err_set(err, -ENOENT, "'%s' has automatic snapshots only; name one to go to",
			       g->project.path);
	if (state)
		r = state_resolve(&g->task->engine, g->store, state, &g->to, err);
	else
		r = engine_as_damage(err, snapshot_find(g->store, g->last, &g->to, err));
	if (r < 0)
		return r;
	if (!catalog_id_same(&g->to.project, &g->project.id))
		return err_set(err, -EINVAL, "snapshot %s is of another project than '%s'",
			       catalog_id_hex(&g->to.id, hex), g->project.path);
	/* The rest of the project is in no such snapshot, so an undo could not know what it was. */
	if (!g->clone.name && g->to.part && !g->paths)
		return err_set(err, -EINVAL,
			       "snapshot %s has only '%.80s': 'rollback --path /%.80s' takes that "
			       "back, and 'promote' brings what a clone changed in it",
			       catalog_id_hex(&g->to.id, hex), g->to.part, g->to.part);
	if (g->options->own_only && rolling_is_foreign(g))
		return err_set(err, -ECANCELED,
			       "nothing is rolled back: snapshot %s is of clone '%s', which comes "
			       "into the project by a promotion with its checks only",
			       catalog_id_hex(&g->to.id, hex), g->to.clone);
	return 0;
}

/* Fill in the snapshot of the present state, but for its tree. */
static int name_saved(struct rolling *g, char *message, struct err *err)
{
	struct snapshot *s = &g->saved;

	*s = (struct snapshot){
		.created = engine_now(),
		.parent = g->newest.id,
		.project = g->project.id,
		.clone = g->clone.name,
		.message = message,
		.made = SNAPSHOT_MADE_AUTOMATICALLY,
	};
	if (s->created <= g->newest.created)
		s->created = g->newest.created + 1;
	if (s->created <= g->clone.created)
		s->created = g->clone.created + 1;
	return catalog_id_new(&s->id, err);
}

/* --- the whole of it -------------------------------------------------------------------- */

static int roll(struct rolling *g, const char *state, struct err *err)
{
	char hex[CATALOG_HEX_SIZE];
	AUTO_FREE char *message = NULL;
	int r = find_project(g, err);

	if (r < 0)
		return r;
	r = find_newest(g, err);
	if (r < 0)
		return r;
	r = find_wanted(g, state, err);
	if (r < 0)
		return r;
	message = text_format(ROLLING_BEFORE "rollback %sto %s", g->paths ? "of some paths " : "",
			      catalog_id_hex(&g->to.id, hex));
	if (!message)
		return err_nomem(err);
	r = name_saved(g, message, err);
	if (r < 0)
		return r;
	r = hold_tree(g->store, &g->to, err);
	if (r < 0)
		return r;
	r = g->clone.name ? rolling_move_clone(g, err) : rolling_move_project(g, err);
	store_unpin(g->store, OBJECT_TREE, &g->to.root);
	return r;
}

int rollback_do(struct task *task, const struct engine_rollback_options *options,
		struct engine_rolled *ret, struct err *err)
{
	CLEANUP(rolling_done) struct rolling g = { .task = task, .options = options };
	const uint64_t start = engine_clock_ms();
	const char *state;
	int r = engine_store(&task->engine, STORE_WRITE, &g.store, err);

	if (r < 0)
		return r;
	r = patterns_parse(&options->paths, &g.paths, err);
	if (r < 0)
		return r;
	r = choose(&g, &state, err);
	if (r < 0)
		return r;
	if (g.clone.name && (options->no_git || options->skip_unreadable))
		return err_set(err, -EINVAL, "option '--%s' is for projects, not for clone '%s'",
			       options->no_git ? "no-git" : "skip-unreadable", g.clone.name);
	r = roll(&g, state, err);
	if (r < 0)
		return r;
	catalog_id_hex(&g.to.id, g.result.to);
	g.result.dry_run = options->dry_run;
	g.result.clone = g.clone.name ? strdup(g.clone.name) : NULL;
	g.result.project = strdup(g.project.path);
	if (!g.result.project || (g.clone.name && !g.result.clone))
		return err_nomem(err);
	event_rolled(task, &g.result);
	g.result.elapsed_ms = engine_clock_ms() - start;
	*ret = TAKE_STRUCT(g.result);
	return 0;
}
