/*
 * Forgetting and moving a project. Only the holder of the path's turn takes snapshots of the
 * project or changes it; a command that waited for the turn looks again (project_still()).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/strlist.h"
#include "base/text.h"
#include "base/vec.h"
#include "engine/act/acts-i.h"
#include "engine/act/survey-i.h"
#include "engine/api/clone.h"
#include "engine/find/hidden-i.h"
#include "engine/find/moved-i.h"
#include "engine/find/touched-i.h"
#include "engine/host/host-i.h"

/* A project inside one that moves, and where it is then. */
struct inner {
	struct project project;
	char *to;
};

struct editing {
	struct task *task;
	struct store *store;
	struct project project;
	struct strlist clones;      /* of it */
	size_t artifacts;           /* of it */
	struct catalog_id *targets; /* owned; directories that it promoted to */
	size_t n_targets;
	bool force;
	struct batch *batch;
	char hex[CATALOG_HEX_SIZE];
	/* For moving: */
	const char *to;
	struct inner *inner;
	struct turn **turns;
	size_t n_inner, n_turns;
};

static void inner_done(struct inner *i)
{
	project_done(&i->project);
	free(i->to);
}

static void editing_done(struct editing *e)
{
	project_done(&e->project);
	strlist_done(&e->clones);
	batch_end(e->batch);
	VEC_FREE(it, e->inner, e->n_inner, inner_done(it));
	while (e->n_turns > 0)
		turn_give(e->turns[--e->n_turns]);
	free(e->turns);
	free(e->targets);
}

/* --- what it has ------------------------------------------------------------------------ */

struct search {
	const char *hex;
	struct project *ret;
};

static int on_project(const struct project *p, void *ctx, struct err *err)
{
	const struct search *s = ctx;
	char hex[CATALOG_HEX_SIZE];

	if ((p->hidden != PROJECT_SHOWN && p->hidden != PROJECT_IMAGE) ||
	    strcmp(catalog_id_hex(&p->id, hex), s->hex) != 0)
		return 0;
	return project_copy(p, s->ret) < 0 ? err_nomem(err) : 1;
}

static int find_project(struct editing *e, const char *id, struct err *err)
{
	struct search s = { .hex = id, .ret = &e->project };
	int r = engine_store(&e->task->engine, STORE_WRITE, &e->store, err);

	if (r < 0)
		return r;
	r = project_each(e->store, on_project, &s, err);
	if (r == 0)
		return err_set(err, -ENOENT, "there is no project '%s'", id);
	if (r < 0)
		return r;
	catalog_id_hex(&e->project.id, e->hex);
	return 0;
}

static int add_clone(const struct clone *c, void *ctx, struct err *err)
{
	struct editing *e = ctx;

	if (!catalog_id_same(&c->project, &e->project.id))
		return 0;
	return strlist_add(&e->clones, c->name) < 0 ? err_nomem(err) : 0;
}

static int find_clones(struct editing *e, struct err *err)
{
	strlist_done(&e->clones);
	return clone_each(e->store, add_clone, e, err);
}

static int refuse_begun(const struct receipt *r, void *ctx, struct err *err)
{
	const struct editing *e = ctx;
	const struct project *p = &e->project;

	for (size_t i = 0; i < e->n_inner && !catalog_id_same(&r->project, &p->id); i++)
		p = &e->inner[i].project;
	if (r->state != RECEIPT_BEGUN || !catalog_id_same(&r->project, &p->id))
		return 0;
	return err_set(err, -EBUSY, "something is being done to '%s'", p->path);
}

/* --- forgetting ------------------------------------------------------------------------- */

/* Delete the ref `id` if it is one of the project's. */
static int drop_ref(struct editing *e, enum ref_kind kind, const struct catalog_id *project,
		    const struct catalog_id *id, struct err *err)
{
	char hex[CATALOG_HEX_SIZE];

	if (!catalog_id_same(project, &e->project.id))
		return 0;
	return ref_delete(e->batch, kind, catalog_id_hex(id, hex), CATALOG_HEX_SIZE - 1, err);
}

static int drop_snapshot(const struct snapshot *s, void *ctx, struct err *err)
{
	struct editing *e = ctx;
	int r = drop_ref(e, REF_SNAPSHOT, &s->project, &s->id, err);

	if (r < 0 || !catalog_id_same(&s->project, &e->project.id))
		return r;
	return hidden_drop_of(e->batch, &s->id, err);
}

static int drop_tag(const struct tag *t, void *ctx, struct err *err)
{
	struct editing *e = ctx;
	const size_t n = strlen(e->hex);

	if (strncmp(t->name, e->hex, n) != 0 || t->name[n] != '/')
		return 0;
	return ref_delete(e->batch, REF_TAG, t->name, strlen(t->name), err);
}

static int drop_receipt(const struct receipt *r, void *ctx, struct err *err)
{
	return drop_ref(ctx, REF_RECEIPT, &r->project, &r->id, err);
}

struct target {
	struct editing *editing;
	const struct catalog_id *id;
	bool shared; /* another project put something there, too */
};

static int is_shared(const struct receipt *r, void *ctx, struct err *err)
{
	struct target *t = ctx;

	t->shared |= catalog_id_same(&r->target, t->id) &&
		     !catalog_id_same(&r->project, &t->editing->project.id);
	return 0;
}

static int drop_its_snapshot(const struct snapshot *s, void *ctx, struct err *err)
{
	struct target *t = ctx;
	char hex[CATALOG_HEX_SIZE];

	if (!catalog_id_same(&s->project, t->id))
		return 0;
	return ref_delete(t->editing->batch, REF_SNAPSHOT, catalog_id_hex(&s->id, hex),
			  CATALOG_HEX_SIZE - 1, err);
}

/* Nobody can undo what was put there any more, so its snapshots go; the files stay. */
static int drop_target(struct editing *e, const struct catalog_id *id, struct err *err)
{
	struct target t = { .editing = e, .id = id };
	char hex[CATALOG_HEX_SIZE];
	int r = receipt_each(e->store, is_shared, &t, err);

	if (r < 0 || t.shared)
		return r;
	r = snapshot_each(e->store, drop_its_snapshot, &t, err);
	return r < 0 ? r
		     : ref_delete(e->batch, REF_PROJECT, catalog_id_hex(id, hex),
				  CATALOG_HEX_SIZE - 1, err);
}

static int add_target(const struct receipt *r, void *ctx, struct err *err)
{
	struct editing *e = ctx;

	if (catalog_id_is_zero(&r->target) || !catalog_id_same(&r->project, &e->project.id))
		return 0;
	for (size_t i = 0; i < e->n_targets; i++)
		if (catalog_id_same(&e->targets[i], &r->target))
			return 0;
	if (!VEC_ONE_MORE(e->targets, e->n_targets))
		return err_nomem(err);
	e->targets[e->n_targets++] = r->target;
	return 0;
}

static int drop_targets(struct editing *e, struct err *err)
{
	int r = receipt_each(e->store, add_target, e, err);

	for (size_t i = 0; i < e->n_targets && r >= 0; i++)
		r = drop_target(e, &e->targets[i], err);
	return r;
}

static int drop_artifact(const struct artifact *a, void *ctx, struct err *err)
{
	return drop_ref(ctx, REF_ARTIFACT, &a->project, &a->id, err);
}

static int refuse_clones(const struct editing *e, struct err *err)
{
	if (e->clones.n == 0)
		return 0;
	return err_set(err, -EBUSY, "'%s' has %zu %s, '%s' among them; --force removes them too",
		       e->project.path, e->clones.n, e->clones.n == 1 ? "clone" : "clones",
		       e->clones.list[0]);
}

static int count_artifact(const struct artifact *a, void *ctx, struct err *err)
{
	struct editing *e = ctx;

	e->artifacts += catalog_id_same(&a->project, &e->project.id);
	return 0;
}

static int refuse_artifacts(struct editing *e, struct err *err)
{
	int r = artifact_each(e->store, count_artifact, e, err);

	if (r < 0 || e->artifacts == 0 || e->force)
		return r;
	return err_set(err, -EBUSY, "'%s' has %zu %s; --force removes them too", e->project.path,
		       e->artifacts, e->artifacts == 1 ? "artifact" : "artifacts");
}

/* host->snapshots held for writing: nobody makes a clone or saves an artifact meanwhile */
static int drop_all(struct editing *e, struct err *err)
{
	int r = find_clones(e, err);

	if (r < 0)
		return r;
	r = refuse_clones(e, err);
	if (r < 0)
		return r;
	r = refuse_artifacts(e, err);
	if (r < 0)
		return r;
	r = receipt_each(e->store, refuse_begun, e, err);
	if (r < 0)
		return r;
	r = batch_begin(e->store, &e->batch, err);
	if (r < 0)
		return r;
	r = tag_each(e->store, drop_tag, e, err);
	if (r < 0)
		return r;
	r = drop_targets(e, err);
	if (r < 0)
		return r;
	r = receipt_each(e->store, drop_receipt, e, err);
	if (r < 0)
		return r;
	r = snapshot_each(e->store, drop_snapshot, e, err);
	if (r < 0)
		return r;
	r = artifact_each(e->store, drop_artifact, e, err);
	if (r < 0)
		return r;
	r = ref_delete(e->batch, REF_PROJECT, e->hex, strlen(e->hex), err);
	return r < 0 ? r : batch_commit(e->batch, BATCH_SAFE, err);
}

static int remove_clones(struct editing *e, struct err *err)
{
	struct engine_removed removed;
	int r = find_clones(e, err);

	for (size_t i = 0; i < e->clones.n && r >= 0; i++) {
		r = clone_remove(e->task, e->clones.list[i], true, &removed, err);
		if (r == -ENOENT)
			r = 0;
	}
	return r;
}

int project_forget(struct task *task, const char *id, bool force, struct err *err)
{
	CLEANUP(turn_give_p) struct turn *turn = NULL;
	CLEANUP(editing_done) struct editing e = { .task = task, .force = force };
	struct host *h = task->host;
	struct err why = { 0 };
	int r = find_project(&e, id, err);

	if (r < 0)
		return r;
	if (force)
		r = remove_clones(&e, err);
	if (r < 0)
		return r;
	r = turns_take(&h->turns, e.project.path, &turn, err);
	if (r < 0)
		return r;
	r = project_still(e.store, &e.project, err);
	if (r < 0)
		return r;
	pthread_rwlock_wrlock(&h->snapshots);
	r = drop_all(&e, err);
	pthread_rwlock_unlock(&h->snapshots);
	if (r < 0)
		return r;
	warm_clone_let_go(h->warm_clone);
	touched_forget(e.store, &e.project.id);
	if (survey_forget(task, &e.project, &why) < 0)
		engine_warn(&task->engine, "%s", why.msg);
	return 0;
}

/* --- moving ----------------------------------------------------------------------------- */

/* Did what was at `from` come along to `to`? */
static bool came_along(const struct editing *e, const char *from, const char *to)
{
	struct stat st;

	if (lstat(from, &st) >= 0 || (errno != ENOENT && errno != ENOTDIR))
		return false;
	return lstat(to, &st) >= 0 && S_ISDIR(st.st_mode) && task_may_read(e->task, to, NULL) >= 0;
}

static int add_inner(const struct project *p, void *ctx, struct err *err)
{
	struct editing *e = ctx;
	const size_t n = strlen(e->project.path);
	AUTO_FREE char *to = NULL;
	struct inner *one;

	if (p->hidden != PROJECT_SHOWN || strncmp(p->path, e->project.path, n) != 0 ||
	    p->path[n] != '/')
		return 0;
	to = text_format("%s%s", e->to, p->path + n);
	if (!to)
		return err_nomem(err);
	if (!came_along(e, p->path, to))
		return 0;
	if (!VEC_ONE_MORE(e->inner, e->n_inner))
		return err_nomem(err);
	one = &e->inner[e->n_inner];
	if (project_copy(p, &one->project) < 0)
		return err_nomem(err);
	one->to = TAKE_PTR(to);
	e->n_inner++;
	return 0;
}

/* In the order of names, so that two who move do not wait for each other. */
static int take_turns(struct editing *e, struct err *err)
{
	CLEANUP(strlist_done) struct strlist names = { 0 };
	int r;

	if (strlist_add(&names, e->project.path) < 0 || strlist_add(&names, e->to) < 0)
		return err_nomem(err);
	for (size_t i = 0; i < e->n_inner; i++)
		if (strlist_add(&names, e->inner[i].project.path) < 0 ||
		    strlist_add(&names, e->inner[i].to) < 0)
			return err_nomem(err);
	strlist_sort(&names);
	e->turns = calloc(names.n, sizeof(struct turn *));
	if (!e->turns)
		return err_nomem(err);
	for (size_t i = 0; i < names.n; i++) {
		if (i > 0 && strcmp(names.list[i], names.list[i - 1]) == 0)
			continue;
		r = turns_take(&e->task->host->turns, names.list[i], &e->turns[e->n_turns], err);
		if (r < 0)
			return r;
		e->n_turns++;
	}
	return 0;
}

/* Tasks that waited look again.  What speeds up surveys names files by inode number. */
static int check_still(struct editing *e, const struct project *p, struct err *err)
{
	int r = project_still(e->store, p, err);

	return r < 0 ? r : survey_forget(e->task, p, err);
}

/* An inner one whose new path is another project's stays where it was. */
static int refuse_taken(const struct project *p, void *ctx, struct err *err)
{
	struct editing *e = ctx;

	if (p->hidden != PROJECT_SHOWN)
		return 0;
	if (strcmp(p->path, e->to) == 0)
		return err_set(err, -EEXIST, "'%s' is a project already", p->path);
	for (size_t i = 0; i < e->n_inner; i++) {
		if (strcmp(p->path, e->inner[i].to) != 0)
			continue;
		inner_done(&e->inner[i]);
		e->inner[i--] = e->inner[--e->n_inner];
	}
	return 0;
}

static int put_path(struct editing *e, const struct project *p, char *to, struct err *err)
{
	AUTO_FREE char *former = NULL;
	struct project moved = *p;
	int r = moved_add_former(p, engine_now(), &former, err);

	if (r < 0)
		return r;
	moved.path = to;
	moved.former = former;
	moved_identify(&moved);
	return project_put(e->batch, &moved, REF_REPLACE, err);
}

static int put_paths(struct editing *e, char *path, struct err *err)
{
	int r = project_each(e->store, refuse_taken, e, err);

	if (r < 0)
		return r;
	r = receipt_each(e->store, refuse_begun, e, err);
	if (r < 0)
		return r;
	r = batch_begin(e->store, &e->batch, err);
	if (r < 0)
		return r;
	r = put_path(e, &e->project, path, err);
	for (size_t i = 0; i < e->n_inner && r >= 0; i++)
		r = put_path(e, &e->inner[i].project, e->inner[i].to, err);
	return r < 0 ? r : batch_commit(e->batch, BATCH_DURABLE, err);
}

/* While the project is still at its old path, it has not moved. */
static int check_gone(const struct editing *e, bool force, struct err *err)
{
	struct stat st;

	if (force || stat(e->project.path, &st) < 0)
		return 0;
	return err_set(err, -ECANCELED,
		       "'%s' is still there; --force moves the project all the same",
		       e->project.path);
}

/* Projects inside it that are gone from their old paths too move in the same batch. */
int project_move(struct task *task, const char *id, char *path, bool force, struct err *err)
{
	CLEANUP(editing_done) struct editing e = { .task = task, .to = path };
	int r = find_project(&e, id, err);

	if (r < 0)
		return r;
	if (e.project.hidden != PROJECT_SHOWN)
		return err_set(err, -ENOENT, "there is no project '%s'", id);
	if (strcmp(e.project.path, path) == 0)
		return err_set(err, -EEXIST, "'%s' is a project already", path);
	r = task_may_read(task, path, err);
	if (r < 0)
		return r;
	r = check_gone(&e, force, err);
	if (r < 0)
		return r;
	r = project_each(e.store, add_inner, &e, err);
	if (r < 0)
		return r;
	r = take_turns(&e, err);
	if (r < 0)
		return r;
	r = check_still(&e, &e.project, err);
	for (size_t i = 0; i < e.n_inner && r >= 0; i++)
		r = check_still(&e, &e.inner[i].project, err);
	if (r < 0)
		return r;
	r = put_paths(&e, path, err);
	if (r < 0)
		return r;
	warm_clone_let_go(task->host->warm_clone);
	return r;
}
