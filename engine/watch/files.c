/*
 * Which files changed since a rule looked last, except by a landing of ours.
 *
 * Every landing leaves a snapshot before and one after it. So the changes of others are those from
 * the last state that the rule has seen to our first landing, between each two landings, and from
 * the last one to now.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/api/receipts.h"
#include "engine/find/patterns-i.h"
#include "engine/pipeline/pipeline-i.h"
#include "engine/watch/watch-i.h"
#include "snapshot/diff/changes.h"

#define TRIES 5

/* --- whose landing ------------------------------------------------------------------------- */

/* A landing may be over before its change says so: then the clone tells. */
static bool is_landing_of(const struct engine_change *c, const struct engine_receipt *r)
{
	for (size_t k = 0; k < c->n_passed; k++)
		if (strcmp(c->passed[k].receipt, r->id) == 0)
			return true;
	return r->clone && (strcmp(r->clone, c->clone) == 0 ||
			    (c->landing_clone && strcmp(r->clone, c->landing_clone) == 0));
}

/* Taken back because it was sick; what a person takes back is the person's. */
static bool is_undo_of(const struct engine_change *c, const struct engine_receipt *r)
{
	for (size_t k = 0; k < c->n_passed; k++)
		if (strcmp(c->passed[k].receipt, r->undoes) == 0)
			return c->passed[k].undone || c->state == ENGINE_CHANGE_UNDOING;
	return false;
}

static bool is_by_watch(const struct engine_changes *changes, const struct engine_receipt *r)
{
	for (size_t i = 0; i < changes->n; i++) {
		const struct engine_change *c = &changes->list[i];

		if (strncmp(c->who, "watch:", 6) == 0 &&
		    ((r->kind == ENGINE_RECEIPT_PROMOTION && is_landing_of(c, r)) ||
		     (r->kind == ENGINE_RECEIPT_UNDO && is_undo_of(c, r))))
			return true;
	}
	return false;
}

/* --- what changed -------------------------------------------------------------------------- */

struct gathering {
	const struct ignore *patterns; /* NULL: all */
	struct strlist *paths;
	uint64_t more; /* beside those; one that changed twice may count twice */
};

static int gather(const char *path, char status, void *ctx, struct err *err)
{
	struct gathering *g = ctx;

	if (*path == '\0' || strncmp(path, ".git/", 5) == 0 || strcmp(path, ".git") == 0 ||
	    (g->patterns && !ignore_covers(g->patterns, path)))
		return 0;
	if (g->paths->n >= WATCH_PATHS) {
		g->more++;
		return 0;
	}
	if (strlist_has(g->paths, path))
		return 0;
	return strlist_add(g->paths, path) < 0 ? err_nomem(err) : 0;
}

static int gather_between(struct store *s, struct gathering *g, const char *from, const char *to,
			  struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot a = { 0 }, b = { 0 };
	int r;

	if (strcmp(from, to) == 0)
		return 0;
	r = snapshot_find(s, from, &a, err);
	if (r < 0)
		return r;
	r = snapshot_find(s, to, &b, err);
	return r < 0 ? r : changes_each(s, &a.root, &b.root, gather, g, err);
}

/* From the cursor to `now`, past our own landings; `receipts` are the newest first. */
static int gather_others(struct engine *there, const struct watch_cursor *c, const char *now,
			 const struct engine_receipts *receipts, struct gathering *g,
			 struct err *err)
{
	CLEANUP(engine_changes_done) struct engine_changes changes = { 0 };
	const char *from = c->seen;
	struct store *s;
	size_t n = 0;
	int r = engine_store(there, STORE_READ, &s, err);

	if (r >= 0)
		r = engine_changes(there, true, &changes, err);
	while (n < receipts->n && strcmp(receipts->list[n].id, c->receipt) != 0)
		n++;
	for (; r >= 0 && n-- > 0;) {
		const struct engine_receipt *own = &receipts->list[n];

		if (!is_by_watch(&changes, own))
			continue;
		r = gather_between(s, g, from, own->before, err);
		from = own->after;
	}
	return r < 0 ? r : gather_between(s, g, from, now, err);
}

/* --- the project now ----------------------------------------------------------------------- */

static const char *newest(const struct engine_receipts *l)
{
	return l->n > 0 ? l->list[0].id : "";
}

void files_view_done(struct files_view *v)
{
	free(v->project);
	engine_receipts_done(&v->receipts);
	*v = (struct files_view){ 0 };
}

/* A snapshot, and the receipts that it has seen: none landed while it was taken. */
static int take_view(struct engine *there, const char *project, struct files_view *v,
		     struct err *err)
{
	int r;

	files_view_done(v);
	for (int i = 0; i < TRIES; i++) {
		CLEANUP(engine_receipts_done) struct engine_receipts after = { 0 };
		CLEANUP(engine_taken_done) struct engine_taken taken = { 0 };
		const struct engine_take_options options = { .dir = project, .automatic = true };

		engine_receipts_done(&v->receipts);
		r = engine_receipts(there, &v->receipts, err);
		/* It is no project yet. */
		if (r == -ENXIO || r == -ENOENT)
			r = 0;
		if (r < 0)
			return r;
		r = engine_take(there, &options, &taken, err);
		if (r < 0)
			return r;
		r = engine_receipts(there, &after, err);
		if (r < 0)
			return r;
		memcpy(v->snapshot, taken.snapshot.id, ENGINE_ID_SIZE);
		if (strcmp(newest(&v->receipts), newest(&after)) != 0)
			continue;
		v->project = strdup(project);
		return v->project ? 0 : err_nomem(err);
	}
	return err_set(err, -EBUSY, "changes land in '%s' all the time", project);
}

int files_look(struct engine *e, const struct engine_rule *rule, struct watch_cursor *c,
	       struct files_view *view, struct strlist *ret_paths, uint64_t *ret_more,
	       struct err *err)
{
	CLEANUP(engine_close_p) struct engine *there = NULL;
	CLEANUP(ignore_free_p) struct ignore *patterns = NULL;
	const struct engine_list files = { (const char *const *)rule->files, rule->n_files };
	struct gathering g = { .paths = ret_paths };
	int r = pipeline_engine(e, rule->project, &there, err);

	if (r >= 0)
		r = patterns_parse(&files, &patterns, err);
	if (r >= 0 && (!view->project || strcmp(view->project, rule->project) != 0))
		r = take_view(there, rule->project, view, err);
	g.patterns = patterns;
	if (r >= 0 && c->known && strcmp(view->snapshot, c->seen) != 0)
		r = gather_others(there, c, view->snapshot, &view->receipts, &g, err);
	/* The state that it has seen is gone: what changed since is not known, and it begins with this one. */
	if (r == -ENOENT && c->known && view->project) {
		engine_warn(e,
			    "rule '%s': the last state that it has seen is gone, continuing "
			    "with the present one",
			    rule->name);
		r = 0;
	}
	if (r < 0)
		return r;
	*ret_more = g.more;
	memcpy(c->seen, view->snapshot, sizeof(c->seen));
	snprintf(c->receipt, sizeof(c->receipt), "%s", newest(&view->receipts));
	c->known = true;
	return 0;
}
