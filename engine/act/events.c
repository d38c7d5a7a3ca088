#include "engine/act/events-i.h"

#include <stdio.h>

#include "engine/find/event-i.h"
#include "engine/find/run-record.h"

#define PATHS_MAX 20 /* that an event names; all are counted */

static void set_id(struct json j, const char *key, const char *id)
{
	if (*id != '\0')
		json_set_text(j, key, id);
}

static void set_paths(struct json j, const char *key, const struct engine_rolled_path *list,
		      size_t n)
{
	const struct json paths = json_set_array(j, key);

	for (size_t i = 0; i < n && i < PATHS_MAX; i++)
		json_add_name(paths, list[i].path);
}

/* The record of the project; that it cannot be read is no reason to hide the event. */
static char *project_path(const struct task *task, const struct catalog_id *id)
{
	CLEANUP(project_done) struct project p = { 0 };

	return project_get(task->engine.store, id, &p, NULL) < 0 ? NULL : TAKE_PTR(p.path);
}

static void set_meta(struct json j, const char *text)
{
	const struct json meta = json_set_object(j, "meta");
	struct meta_pair p;
	char key[META_KEY_MAX + 1];

	while (text) {
		text = meta_next(text, &p);
		snprintf(key, sizeof(key), "%.*s", (int)p.key_len, p.key);
		json_set_text_len(meta, key, p.value, p.value_len);
	}
}

void event_taken(const struct task *task, const struct engine_taken *t)
{
	const struct event_subject of = { .project = t->project,
					  .clone = t->snapshot.clone,
					  .store = task->engine.store };
	struct event ev;

	event_begin(&ev, "snapshot", of);
	json_set_text(ev.data, "snapshot", t->snapshot.id);
	json_set_bool(ev.data, "automatic", t->snapshot.automatic);
	json_set_text(ev.data, "message", t->snapshot.message);
	if (t->snapshot.meta)
		set_meta(ev.data, t->snapshot.meta);
	if (t->compared) {
		json_set_uint(ev.data, "added", t->added);
		json_set_uint(ev.data, "modified", t->modified);
		json_set_uint(ev.data, "deleted", t->deleted);
	}
	event_end(&ev, task->engine.store_path);
}

void event_artifact(const struct task *task, const struct catalog_id *project,
		    const struct engine_artifact *a, bool removed)
{
	AUTO_FREE char *path = project_path(task, project);
	const struct event_subject of = {
		.project = path,
		.clone = a->clone,
		.run = *a->run != '\0' ? a->run : NULL,
		.store = task->engine.store,
	};
	struct event ev;
	struct json paths;

	event_begin(&ev, removed ? "artifact-removed" : "artifact", of);
	json_set_text(ev.data, "artifact", a->id);
	json_set_text(ev.data, "sha256", a->sha256);
	json_set_uint(ev.data, "bytes", a->bytes);
	paths = json_set_array(ev.data, "paths");
	for (size_t i = 0; i < a->n_paths && i < PATHS_MAX; i++)
		json_add_name(paths, a->paths[i]);
	event_end(&ev, task->engine.store_path);
}

void event_cloned(const struct task *task, const struct engine_clones *c)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct event_subject of = { .project = c->project,
						  .clone = c->list[i].name,
						  .store = task->engine.store };
		struct event ev;

		event_begin(&ev, "clone", of);
		json_set_text(ev.data, "base", c->list[i].base);
		json_set_text(ev.data, "who", c->list[i].who);
		json_set_text(ev.data, "via", c->list[i].via);
		event_end(&ev, task->engine.store_path);
	}
}

void event_removed(const struct task *task, const struct clone *c, const char *why)
{
	AUTO_FREE char *project = project_path(task, &c->project);
	const struct event_subject of = { .project = project,
					  .clone = c->name,
					  .store = task->engine.store };
	struct event ev;

	event_begin(&ev, "clone-removed", of);
	json_set_text(ev.data, "why", why);
	event_end(&ev, task->engine.store_path);
}

void event_snapshot_removed(const struct task *task, const struct snapshot *s)
{
	AUTO_FREE char *project = project_path(task, &s->project);
	const struct event_subject of = { .project = project,
					  .clone = s->clone,
					  .store = task->engine.store };
	char hex[CATALOG_HEX_SIZE];
	struct event ev;

	event_begin(&ev, "snapshot-removed", of);
	json_set_text(ev.data, "snapshot", catalog_id_hex(&s->id, hex));
	event_end(&ev, task->engine.store_path);
}

static void set_conflicts(struct json j, const struct engine_conflict *list, size_t n)
{
	const struct json paths = json_set_array(j, "paths");

	json_set_uint(j, "conflicts", n);
	for (size_t i = 0; i < n && i < PATHS_MAX; i++)
		json_add_name(paths, list[i].path);
}

static void event_stopped(const struct task *task, const struct engine_promotion *p)
{
	const bool held = p->end == ENGINE_HELD;
	struct event ev;

	event_begin(&ev, held ? "held" : "conflict",
		    (struct event_subject){
			.project = p->project, .clone = p->clone, .store = task->engine.store });
	set_id(ev.data, "undoes", p->undone);
	if (held) {
		json_set_uint(ev.data, "held", p->n_held);
		set_paths(ev.data, "paths", p->held, p->n_held);
	} else {
		set_conflicts(ev.data, p->conflicts, p->n_conflicts);
	}
	event_end(&ev, task->engine.store_path);
}

void event_promoted(const struct task *task, const struct engine_promotion *p)
{
	const struct event_subject of = { .project = p->project,
					  .clone = p->clone,
					  .store = task->engine.store };
	struct event ev;

	if (p->dry_run)
		return;
	if (p->end == ENGINE_CONFLICTS || p->end == ENGINE_HELD) {
		event_stopped(task, p);
		return;
	}
	if (*p->id == '\0')
		return;
	event_begin(&ev, *p->undone != '\0' ? "undo" : "promotion", of);
	json_set_text(ev.data, "receipt", p->id);
	set_id(ev.data, "undoes", p->undone);
	set_id(ev.data, "before", p->before);
	set_id(ev.data, "after", p->after);
	if (p->to)
		json_set_name(ev.data, "to", p->to);
	json_set_uint(ev.data, "changed", p->changed);
	set_paths(ev.data, "paths", p->paths, p->n_paths);
	event_end(&ev, task->engine.store_path);
}

/* What stopped it, if anything did, and which paths that is about. */
static const char *rolled_kind(const struct engine_rolled *r, const struct engine_rolled_path **ret,
			       size_t *ret_n)
{
	*ret = r->n_held > 0 ? r->held : r->n_conflicts > 0 ? r->conflicts : r->paths;
	*ret_n = r->n_held > 0 ? r->n_held : r->n_conflicts > 0 ? r->n_conflicts : r->n_paths;
	return r->n_held > 0 ? "held" : r->n_conflicts > 0 ? "conflict" : "rollback";
}

void event_rolled(const struct task *task, const struct engine_rolled *r)
{
	const struct event_subject of = { .project = r->project,
					  .clone = r->clone,
					  .store = task->engine.store };
	const struct engine_rolled_path *paths;
	struct event ev;
	size_t n;

	if (r->dry_run || (r->n_held == 0 && r->n_conflicts == 0 && *r->saved == '\0'))
		return;
	event_begin(&ev, rolled_kind(r, &paths, &n), of);
	json_set_text(ev.data, "to", r->to);
	set_id(ev.data, "saved", r->saved);
	set_id(ev.data, "receipt", r->receipt);
	if (r->n_held > 0)
		json_set_uint(ev.data, "held", n);
	else if (r->n_conflicts > 0)
		json_set_uint(ev.data, "conflicts", n);
	else
		json_set_uint(ev.data, "changed", r->changed);
	set_paths(ev.data, "paths", paths, n);
	event_end(&ev, task->engine.store_path);
}

void event_rebased(const struct task *task, const struct engine_rebased *r)
{
	const struct event_subject of = { .project = r->project,
					  .clone = r->clone,
					  .store = task->engine.store };
	struct event ev;

	if (r->dry_run || (!r->conflicted && *r->saved == '\0'))
		return;
	event_begin(&ev, r->conflicted ? "conflict" : "rebase", of);
	set_id(ev.data, "saved", r->saved);
	if (r->conflicted)
		set_conflicts(ev.data, r->conflicts, r->n_conflicts);
	else
		json_set_text(ev.data, "onto", r->onto);
	event_end(&ev, task->engine.store_path);
}

void event_damage(const struct task *task, const char *problem)
{
	struct event ev;

	event_begin(&ev, "damage", (struct event_subject){ 0 });
	json_set_text(ev.data, "problem", problem);
	event_end(&ev, task->engine.store_path);
}

static struct event_subject subject_of(const struct engine_run *record, const char *run)
{
	return (struct event_subject){
		.project = record->project,
		.project_id = *record->project_id != '\0' ? record->project_id : NULL,
		.clone = record->clone,
		.run = run,
	};
}

void event_question(const struct task *task, const struct question_ask *ask)
{
	CLEANUP(engine_run_done) struct engine_run record = { 0 };
	struct event_subject of = { .run = ask->run };
	struct event ev;

	if (run_record_read(task->engine.store_path, ask->run, &record, NULL) == 0)
		of = subject_of(&record, ask->run);
	event_begin(&ev, "question", of);
	json_set_text(ev.data, "question", ask->id);
	json_set_text(ev.data, "of", ask->kind);
	json_set_name(ev.data, "what", ask->what);
	json_set_uint(ev.data, "wait_ms", ask->wait_ms);
	event_end(&ev, task->engine.store_path);
}

void event_run_lost(const struct task *task, const char *run)
{
	CLEANUP(engine_run_done) struct engine_run record = { 0 };
	struct event ev;

	/* One without a record has not begun. */
	if (run_record_read(task->engine.store_path, run, &record, NULL) < 0)
		return;
	event_begin(&ev, "run-ended", subject_of(&record, run));
	json_set_text(ev.data, "state", "lost");
	event_end(&ev, task->engine.store_path);
}
