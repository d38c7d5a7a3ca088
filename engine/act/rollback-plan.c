/*
 * rollback-plan.c - the changes of a rollback, and the paths that stay.
 */
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "cowfs/store/pin.h"
#include "engine/act/land-i.h"
#include "engine/act/rolling-i.h"
#include "engine/act/survey-i.h"
#include "engine/find/part-i.h"
#include "snapshot/merge/merge.h"
#include "snapshot/text/ignore.h"

#define GIT ".git"

static int list_step(const struct plan_step *s, void *ctx)
{
	struct rolling *g = ctx;
	struct engine_rolled *r = &g->result;

	if (!plan_counts(&g->plan, s))
		return 0;
	return landing_add_path(&r->paths, &r->n_paths, s->path,
				s->act == PLAN_CREATE   ? 'A'
				: s->act == PLAN_REMOVE ? 'D'
							: 'M',
				NULL);
}

/* Paths that stay as they are. */
struct leaving {
	char *lacks;       /* owned; rolling.lacks */
	const char **list; /* owned */
	size_t n;
};

static void leaving_done(struct leaving *l)
{
	free(l->lacks);
	free(l->list);
}

bool rolling_is_foreign(const struct rolling *g)
{
	return !g->clone.name && g->to.clone;
}

bool rolling_mixes(const struct rolling *g)
{
	return g->paths || (g->clone.name && g->lacks);
}

/* Of a project's files beside a part the state says nothing; a clone has no others than its part. */
static bool lacks_more(const struct rolling *g)
{
	return (!g->clone.name && g->to.part) ||
	       (g->lacks && strcmp(g->lacks, SNAPSHOT_LACKS_MORE) == 0);
}

static int find_left(const struct rolling *g, struct leaving *l, struct err *err)
{
	size_t n = 2 + (g->unread ? g->unread->n : 0);

	l->lacks = strdup(g->lacks && !g->clone.name ? g->lacks : "");
	for (const char *p = l->lacks; p && (p = strstr(p, "//")); p += 2)
		n++;
	l->list = calloc(n, sizeof(*l->list));
	if (!l->lacks || !l->list)
		return err_nomem(err);
	if (g->options->no_git || rolling_is_foreign(g))
		l->list[l->n++] = GIT;
	for (size_t i = 0; g->unread && i < g->unread->n; i++)
		l->list[l->n++] = g->unread->list[i].path;
	for (char *p = l->lacks, *next; p && *p != '\0'; p = next) {
		next = strstr(p, "//");
		if (next) {
			*next = '\0';
			next += 2;
		}
		l->list[l->n++] = p;
	}
	return 0;
}

/* --- a mixture -------------------------------------------------------------------------- */

struct picking {
	const struct rolling *rolling;
	const struct leaving *leaving;
	int r; /* the first failure, and */
	struct err *err;
};

/* What is not there cannot be told from what was not named; a clone may have made what its base lacked. */
static bool is_known(struct picking *p, const char *path)
{
	const struct rolling *g = p->rolling;
	size_t len;
	const bool in_doubt =
	    lacks_more(g) || (g->clone.name && survey_lacks_at(g->lacks, path, &len));
	int r = in_doubt ? part_is_in(g->store, &g->to.root, path, p->err) : 1;

	if (r < 0 && p->r == 0)
		p->r = r;
	return r > 0;
}

static bool is_picked(const char *path, void *ctx)
{
	struct picking *p = ctx;

	if (!part_covers(p->rolling->to.part, path))
		return false;
	for (size_t i = 0; i < p->leaving->n; i++)
		if (path_is_within(path, p->leaving->list[i]))
			return false;
	return (!p->rolling->paths || ignore_covers(p->rolling->paths, path)) && is_known(p, path);
}

/* The present state with what is picked from the snapshot.  It cannot conflict. */
static int mix(struct rolling *g, const struct leaving *leaving, struct object_id *ret,
	       struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	CLEANUP(merge_done) struct merge m = { 0 };
	struct picking picking = { .rolling = g, .leaving = leaving, .err = err };
	const struct merge_options options = {
		.on_conflict = MERGE_THEIRS,
		.no_renames = true,
		.take = is_picked,
		.take_ctx = &picking,
		.now = engine_now(),
	};
	int r = batch_begin(g->store, &b, err);

	if (r < 0)
		return r;
	r = merge_trees(b, &g->now, &g->now, &g->to.root, &options, &m, err);
	r = picking.r < 0 ? picking.r : r;
	if (r < 0)
		return r;
	r = batch_commit(b, BATCH_SAFE, err);
	if (r < 0)
		return r;
	r = store_pin(g->store, OBJECT_TREE, &m.root, err);
	if (r < 0)
		return r;
	*ret = m.root;
	return r;
}

static int find_root(struct rolling *g, const struct leaving *leaving, struct err *err)
{
	struct object_id mixed;
	int r;

	if (!rolling_mixes(g)) {
		g->wanted = g->to.root;
		return 0;
	}
	r = mix(g, leaving, &mixed, err);
	if (r < 0)
		return r;
	if (g->pinned)
		store_unpin(g->store, OBJECT_TREE, &g->wanted);
	g->wanted = mixed;
	g->pinned = true;
	return 0;
}

static int make_plan(struct rolling *g, const struct leaving *leaving, const struct object_id *root,
		     int64_t as_of, struct plan *ret, struct err *err)
{
	const struct plan_options options = {
		.leave = leaving->list,
		.n_leave = leaving->n,
		.leave_ignored = !g->clone.name,
		.leave_unwanted = lacks_more(g),
		.as_of = as_of,
		.twins = &g->task->host->twins,
	};

	return plan_make(g->store, &g->now, root, &options, ret, err);
}

int rolling_differs(struct rolling *g, const struct object_id *root, int64_t as_of, struct err *err)
{
	CLEANUP(leaving_done) struct leaving leaving = { 0 };
	CLEANUP(plan_done) struct plan plan = { 0 };
	int r = find_left(g, &leaving, err);

	if (r >= 0)
		r = make_plan(g, &leaving, root, as_of, &plan, err);
	return r < 0 ? r : plan_count(&plan) > 0;
}

int rolling_compare(struct rolling *g, int64_t as_of, struct err *err)
{
	CLEANUP(leaving_done) struct leaving leaving = { 0 };
	int r = find_left(g, &leaving, err);

	if (r < 0)
		return r;
	r = find_root(g, &leaving, err);
	if (r < 0)
		return r;
	r = make_plan(g, &leaving, &g->wanted, as_of, &g->plan, err);
	if (r < 0)
		return r;
	g->result.changed = plan_count(&g->plan);
	return plan_each(&g->plan, list_step, g) < 0 ? err_nomem(err) : 0;
}
