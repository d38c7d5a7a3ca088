/*
 * Who made a version. A snapshot shows the work of the programs between it and the one before:
 *
 *   - an agent's hook takes one with each prompt, before each tool and, if the client has such a
 *     hook, after it; snapshots that would equal the last one of the turn are left out;
 *   - a run has the snapshot that was taken before it, and begins after that;
 *   - if a promotion brought a version of which the clone has no snapshot, the clone's last run
 *     wrote it.
 *
 * Where none of that is known, the store's user took the snapshot.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/user.h"
#include "base/vec.h"
#include "engine/verb/trace-i.h"

const char *engine_writer_name(enum engine_writer w)
{
	static const char *const names[] = {
		[ENGINE_BY_NOBODY] = "now",          [ENGINE_BY_SNAPSHOT] = "snapshot",
		[ENGINE_BY_STEP] = "step",           [ENGINE_BY_RUN] = "run",
		[ENGINE_BY_PROMOTION] = "promotion", [ENGINE_BY_ROLLBACK] = "rollback",
		[ENGINE_BY_UNDO] = "undo",
	};

	return names[w];
}

static void engine_version_done(struct engine_version *v)
{
	engine_snapshot_done(&v->snapshot);
	free(v->path);
	free(v->old_path);
	free(v->command);
	free(v->clone);
	free(v->who);
	free(v->session);
	*v = (struct engine_version){ 0 };
}

void engine_versions_done(struct engine_versions *v)
{
	VEC_FREE(it, v->list, v->n, engine_version_done(it));
	free(v->project);
	free(v->path);
	*v = (struct engine_versions){ 0 };
}

static int copy_text(char **to, const char *text, size_t len, struct err *err)
{
	free(*to);
	*to = strndup(text, len);
	return *to ? 0 : err_nomem(err);
}

/* --- steps of agents -------------------------------------------------------------------- */

/* Anybody can give a snapshot such labels, but only a hook takes an automatic one with them. */
static bool is_step(const struct snapshot *s, const char *step)
{
	return history_is_automatic(s) && meta_matches(s->meta, "client") &&
	       meta_matches(s->meta, "session") && meta_matches(s->meta, step);
}

static bool is_same_turn(const struct snapshot *s, const struct snapshot *parent)
{
	return is_step(s, "turn") && is_step(parent, "turn") &&
	       meta_agree(s->meta, parent->meta, "session") &&
	       meta_agree(s->meta, parent->meta, "turn");
}

static int fill_step(const struct snapshot *s, struct engine_version *v, struct err *err)
{
	size_t len;
	const char *value = meta_find(s->meta, "client", &len);
	int r = copy_text(&v->who, value, len, err);

	value = meta_find(s->meta, "session", &len);
	if (r >= 0)
		r = copy_text(&v->session, value, len, err);
	value = meta_find(s->meta, "turn", &len);
	v->turn = value ? strtoull(value, NULL, 10) : 0;
	if (r >= 0)
		r = copy_text(&v->command, s->message, strlen(s->message), err);
	v->writer = ENGINE_BY_STEP;
	return r;
}

/* --- runs ------------------------------------------------------------------------------- */

static int load_runs(struct trace *w, struct err *err)
{
	const struct engine_runs_options all = { .all = true };

	if (w->has_runs)
		return 0;
	w->has_runs = true;
	return engine_runs(w->engine, &all, &w->runs, err);
}

static bool changed_something(const struct engine_run *run)
{
	return !run->compared || run->added + run->modified + run->deleted > 0;
}

static int fill_run(const struct engine_run *run, struct engine_version *v, struct err *err)
{
	CLEANUP(buf_done) struct buf line = BUF_INIT;

	for (size_t i = 0; i < run->argv.n; i++)
		if ((i > 0 && buf_append_str(&line, " ") < 0) ||
		    buf_append_str(&line, run->argv.list[i]) < 0)
			return err_nomem(err);
	memcpy(v->run, run->id, sizeof(v->run));
	v->writer = ENGINE_BY_RUN;
	return copy_text(&v->command, line.data ? (const char *)line.data : "", line.len, err);
}

/* The last run in the clone that began in that time and changed something. */
static int find_run(struct trace *w, const char *clone, int64_t from, int64_t to,
		    struct engine_version *v, struct err *err)
{
	int r = load_runs(w, err);

	for (size_t i = 0; r >= 0 && i < w->runs.n; i++) {
		const struct engine_run *run = &w->runs.list[i];

		if (run->clone && strcmp(run->clone, clone) == 0 && run->started >= from &&
		    run->started < to && changed_something(run))
			return fill_run(run, v, err);
	}
	return r;
}

/* --- the version ------------------------------------------------------------------------ */

static int fill_act(struct trace *w, size_t at, const struct trail_act *act,
		    struct engine_version *v, struct err *err)
{
	const struct trail *t = &w->trail;
	size_t last;
	int r;

	catalog_id_hex(&act->id, v->promotion);
	v->writer = act->kind == RECEIPT_PROMOTION  ? ENGINE_BY_PROMOTION
		    : act->kind == RECEIPT_ROLLBACK ? ENGINE_BY_ROLLBACK
						    : ENGINE_BY_UNDO;
	r = copy_text(&v->who, act->who, strlen(act->who), err);
	if (r < 0 || act->kind != RECEIPT_PROMOTION || !act->clone)
		return r;
	r = copy_text(&v->clone, act->clone, strlen(act->clone), err);
	if (r < 0)
		return r;
	last = trail_newest(t, act->clone, t->list[at].created);
	return find_run(w, act->clone, last == TRAIL_NONE ? 0 : t->list[last].created,
			t->list[at].created, v, err);
}

static int fill_clone(struct trace *w, size_t at, struct engine_version *v, struct err *err)
{
	const struct trail_snapshot *s = &w->trail.list[at];
	const size_t parent = trail_index(&w->trail, &s->parent);
	int r = copy_text(&v->clone, s->clone, strlen(s->clone), err);

	return r < 0
		   ? r
		   : find_run(w, s->clone, parent == TRAIL_NONE ? 0 : w->trail.list[parent].created,
			      s->created, v, err);
}

static int find_writer(struct trace *w, size_t at, const struct snapshot *s,
		       struct engine_version *v, struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot parent = { 0 };
	const struct trail_act *act = s->clone ? NULL : trail_act_of(&w->trail, at);
	int r = 0;

	v->writer = ENGINE_BY_SNAPSHOT;
	if (act)
		return fill_act(w, at, act, v, err);
	if (s->clone)
		r = fill_clone(w, at, v, err);
	if (r < 0 || v->writer == ENGINE_BY_RUN)
		return r;
	if (is_step(s, "step=after"))
		return fill_step(s, v, err);
	if (catalog_id_is_zero(&s->parent))
		return 0;
	r = snapshot_get(w->trail.store, &s->parent, &parent, err);
	if (r == -ENOENT)
		return 0;
	if (r < 0 || !(is_step(&parent, "step=before") || is_same_turn(s, &parent)))
		return r;
	return fill_step(&parent, v, err);
}

static int fill_now(struct trace *w, const struct node *n, struct engine_version *v,
		    struct err *err)
{
	const char *clone = n->at == TRAIL_NONE ? NULL : w->trail.list[n->at].clone;

	v->writer = ENGINE_BY_NOBODY;
	v->snapshot.message = strdup("");
	v->snapshot.created = engine_now();
	if (!v->snapshot.message)
		return err_nomem(err);
	return clone ? fill_clone(w, n->at, v, err) : 0;
}

static int fill_snapshot(struct trace *w, const struct node *n, struct engine_version *v,
			 struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot s = { 0 };
	int r;

	if (n->at == TRAIL_NONE || catalog_id_is_zero(&w->trail.list[n->at].id))
		return fill_now(w, n, v, err);
	r = engine_as_damage(err, snapshot_get(w->trail.store, &w->trail.list[n->at].id, &s, err));
	if (r < 0)
		return r;
	r = history_entry(&s, &v->snapshot, err);
	return r < 0 ? r : find_writer(w, n->at, &s, v, err);
}

static char status_of(const struct node *n, const struct earliers *before)
{
	const struct earlier *first = &before->list[0];

	if (before->n == 0)
		return 'A';
	if (strcmp(first->path, n->path) != 0)
		return 'R';
	return n->at != TRAIL_NONE && (first->file.mode & S_IFMT) != (n->file.mode & S_IFMT) ? 'T'
											     : 'M';
}

int version_fill(struct trace *w, const struct node *n, const struct earliers *before,
		 struct engine_version *ret, struct err *err)
{
	struct stat st;
	int r = 0;

	ret->status = status_of(n, before);
	ret->path = strdup(n->path);
	if (ret->status == 'R')
		ret->old_path = strdup(before->list[0].path);
	if (!ret->path || (ret->status == 'R' && !ret->old_path))
		return err_nomem(err);
	r = fill_snapshot(w, n, ret, err);
	if (r < 0 || ret->who)
		return r;
	ret->who = user_name(stat(w->engine->store_path, &st) == 0 ? st.st_uid : 0);
	return ret->who ? 0 : err_nomem(err);
}
