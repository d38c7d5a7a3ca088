/*
 * Damaged objects are set aside (cowfs/store/upkeep/repair.h).  Then everything that still exists is
 * stored again: each project is captured whole, without signatures, into a batch that names nothing,
 * and mounted clones are persisted.  The same content has the same id, so missing objects come back
 * wherever they were used, in old snapshots too.  The rest of such a batch is garbage.
 *
 * Signatures are removed first: they vouch for objects that may be gone.
 */

#include "cowfs/store/upkeep/repair.h"
#include "base/strlist.h"
#include "base/text.h"
#include "base/vec.h"
#include "engine/act/repair-i.h"
#include "engine/act/survey-i.h"

struct mending {
	struct task *task;
	struct store *store;
	const struct engine_watch *watch;
	struct check_report found; /* before */
	char **from;               /* owned; for each finding: what it came back from, or NULL */
	bool *lost;                /* owned; for each finding: its object is not in the store */
	struct project *projects;  /* owned */
	size_t n_projects;
	struct strlist clones; /* names */
};

static void mending_done(struct mending *m)
{
	VEC_FREE(one, m->from, m->found.n_findings, free(*one));
	free(m->lost);
	VEC_FREE(it, m->projects, m->n_projects, project_done(it));
	strlist_done(&m->clones);
	check_report_done(&m->found);
}

/* --- what there is ---------------------------------------------------------------------- */

static int add_project(const struct project *p, void *ctx, struct err *err)
{
	struct mending *m = ctx;

	if (!VEC_ONE_MORE(m->projects, m->n_projects) ||
	    project_copy(p, &m->projects[m->n_projects]) < 0)
		return err_nomem(err);
	m->n_projects++;
	return 0;
}

static int add_clone(const struct clone *c, void *ctx, struct err *err)
{
	struct mending *m = ctx;

	return strlist_add(&m->clones, c->name) < 0 ? err_nomem(err) : 0;
}

/* 1 if a named object is missing. */
static int list_lost(struct mending *m, struct err *err)
{
	int r, any = 0;

	m->from = calloc(m->found.n_findings, sizeof(*m->from));
	m->lost = calloc(m->found.n_findings, sizeof(*m->lost));
	if (!m->from || !m->lost)
		return err_nomem(err);
	for (size_t i = 0; i < m->found.n_findings; i++) {
		const struct check_finding *f = &m->found.findings[i];

		if (!f->object.kind)
			continue;
		r = store_has(m->store, f->object.kind, &f->object.id, err);
		if (r < 0)
			return r;
		m->lost[i] = r == 0;
		any |= m->lost[i] && f->n_paths > 0;
	}
	return any;
}

/* --- what comes back -------------------------------------------------------------------- */

/* Mark the lost objects that the store has again. */
static int claim(struct mending *m, const char *kind, const char *name, struct err *err)
{
	for (size_t i = 0; i < m->found.n_findings; i++) {
		const struct object_ref *o = &m->found.findings[i].object;
		int r;

		if (!m->lost[i])
			continue;
		r = store_has(m->store, o->kind, &o->id, err);
		if (r < 0)
			return r;
		if (r == 0)
			continue;
		m->from[i] = text_format("%s '%s'", kind, name);
		if (!m->from[i])
			return err_nomem(err);
		m->lost[i] = false;
	}
	return 0;
}

/* The caller has the project's turn. */
static int capture_whole(struct mending *m, const struct project *p, struct err *err)
{
	const struct survey_options options = { .skip_unreadable = true, .watch = *m->watch };
	CLEANUP(captured_done) struct captured captured = { 0 };
	CLEANUP(batch_end_p) struct batch *b = NULL;
	uint64_t unread;
	int r = task_may_read(m->task, p->path, err);

	if (r < 0)
		return r;
	r = batch_begin(m->store, &b, err);
	if (r < 0)
		return r;
	r = survey_capture(m->task, p, b, &options, &captured, err);
	if (r < 0)
		return r;
	r = batch_commit(b, BATCH_DURABLE, err);
	if (r < 0)
		return r;
	unread = captured.unread.n + captured.unread.more;
	if (unread > 0)
		engine_warn(&m->task->engine, "project '%s': %llu of its paths cannot be read",
			    p->path, (unsigned long long)unread);
	return r;
}

/* If one project cannot be read, go on with the others. */
static int restore_project(struct mending *m, const struct project *p, struct err *err)
{
	CLEANUP(turn_give_p) struct turn *turn = NULL;
	struct err why = { 0 };
	int r = turns_take(&m->task->host->turns, p->path, &turn, err);

	if (r < 0)
		return r;
	r = survey_forget(m->task, p, err);
	if (r < 0)
		return r;
	if (capture_whole(m, p, &why) < 0) {
		engine_warn(&m->task->engine, "nothing came back from project '%s': %s", p->path,
			    why.msg);
		return 0;
	}
	return claim(m, "project", p->path, err);
}

static int restore_clone(struct mending *m, const char *name, struct err *err)
{
	CLEANUP(turn_give_p) struct turn *turn = NULL;
	struct layer_state state;
	struct err why = { 0 };
	struct live *live;
	int r = turns_take(&m->task->host->turns, name, &turn, err);

	if (r < 0)
		return r;
	live = live_find(m->task->host, name);
	if (!live || !live->layer)
		return 0;
	if (layer_persist(live->layer, BATCH_DURABLE, NULL, NULL, &state, &why) < 0) {
		engine_warn(&m->task->engine, "nothing came back from clone '%s': %s", name,
			    why.msg);
		return 0;
	}
	return claim(m, "clone", name, err);
}

static int restore(struct mending *m, struct err *err)
{
	int r = project_each(m->store, add_project, m, err);

	if (r < 0)
		return r;
	r = clone_each(m->store, add_clone, m, err);
	/* Clones first: some of their data is in memory only. */
	for (size_t i = 0; i < m->clones.n && r >= 0; i++)
		r = restore_clone(m, m->clones.list[i], err);
	for (size_t i = 0; i < m->n_projects && r >= 0; i++)
		r = restore_project(m, &m->projects[i], err);
	return r;
}

static int take_restored(struct mending *m, struct engine_check *c, struct err *err)
{
	int r = 0;

	c->restored = calloc(m->found.n_findings, sizeof(*c->restored));
	if (!c->restored)
		return err_nomem(err);
	for (size_t i = 0; i < m->found.n_findings && r >= 0; i++) {
		struct engine_damage *d = &c->restored[c->n_restored];

		if (!m->from[i])
			continue;
		c->n_restored++;
		d->from = TAKE_PTR(m->from[i]);
		r = upkeep_take_finding(&m->found.findings[i], d, err);
	}
	return r;
}

int upkeep_repair(struct task *task, const struct engine_watch *watch, struct check_report *report,
		  struct engine_check *c, struct err *err)
{
	CLEANUP(mending_done) struct mending m = { .task = task,
						   .store = task->engine.store,
						   .watch = watch };
	struct repair_report done = { 0 };
	int r;

	if (report->torn) {
		engine_warn(&task->engine, "a database itself is damaged; nothing was repaired");
		return 0;
	}
	r = repair_store(m.store, report, &done, err);
	if (r < 0)
		return r;
	c->mended = done.mended;
	c->set_aside = done.set_aside;
	if (done.left > 0)
		engine_warn(&task->engine,
			    "%llu damaged objects are in use and were left; repair again",
			    (unsigned long long)done.left);
	m.found = *report;
	*report = (struct check_report){ 0 };
	r = list_lost(&m, err);
	if (r > 0)
		r = restore(&m, err);
	if (r < 0)
		return r;
	r = take_restored(&m, c, err);
	return r < 0 ? r : upkeep_look(m.store, watch, report, err);
}
