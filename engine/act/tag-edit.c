#include <errno.h>
#include <string.h>

#include "engine/act/acts-i.h"
#include "engine/api/tag.h"
#include "engine/host/host-i.h"

/* A tag being added or deleted. */
struct change {
	struct project project;
	struct batch *batch;
	char *full; /* owned; its name in the catalog */
	struct tag there;
	struct engine_tags told;
};

static void change_done(struct change *c)
{
	project_done(&c->project);
	batch_end(c->batch);
	free(c->full);
	tag_done(&c->there);
	engine_tags_done(&c->told);
}

/* 1 if there is a tag of that name. */
static int begin(struct task *task, const char *name, struct change *c, struct err *err)
{
	int r = project_around(&task->engine, task->engine.store, &c->project, err);

	if (r < 0)
		return r;
	c->full = tag_full_name(&c->project.id, name);
	if (!c->full)
		return err_nomem(err);
	r = batch_begin(task->engine.store, &c->batch, err);
	if (r < 0)
		return r;
	r = tag_get(task->engine.store, c->full, &c->there, err);
	return r == -ENOENT ? 0 : r < 0 ? r : 1;
}

static int commit(struct change *c, const char *name, const struct catalog_id *snapshot,
		  struct engine_tags *ret, struct err *err)
{
	int r = tag_list_add(&c->told, name, snapshot, err);

	if (r < 0)
		return r;
	r = batch_commit(c->batch, BATCH_DURABLE, err);
	if (r < 0)
		return r;
	c->told.project = TAKE_PTR(c->project.path);
	*ret = TAKE_STRUCT(c->told);
	return 0;
}

/* host->snapshots held for reading */
static int add(struct task *task, const char *name, const char *state, struct engine_tags *ret,
	       struct err *err)
{
	CLEANUP(change_done) struct change c = { 0 };
	CLEANUP(snapshot_done) struct snapshot s = { 0 };
	struct tag tag = { 0 };
	char hex[CATALOG_HEX_SIZE];
	int r = begin(task, name, &c, err);

	if (r > 0)
		return err_set(err, -EEXIST, "tag '%s' is taken by snapshot %s", name,
			       catalog_id_hex(&c.there.snapshot, hex));
	if (r < 0)
		return r;
	r = state_resolve(&task->engine, task->engine.store, state, &s, err);
	if (r < 0)
		return r;
	if (!catalog_id_same(&s.project, &c.project.id))
		return err_set(err, -ENOENT, "snapshot '%s' is one of another project", state);
	tag.name = c.full;
	tag.snapshot = s.id;
	r = tag_put(c.batch, &tag, REF_NEW, err);
	return r < 0 ? r : commit(&c, name, &s.id, ret, err);
}

int tag_add(struct task *task, const char *name, const char *state, struct engine_tags *ret,
	    struct err *err)
{
	int r = tag_check_name(name, err);

	if (r < 0)
		return r;
	pthread_rwlock_rdlock(&task->host->snapshots);
	r = add(task, name, state, ret, err);
	pthread_rwlock_unlock(&task->host->snapshots);
	return r;
}

int tag_delete(struct task *task, const char *name, struct engine_tags *ret, struct err *err)
{
	CLEANUP(change_done) struct change c = { 0 };
	int r = begin(task, name, &c, err);

	if (r == 0)
		return err_set(err, -ENOENT, "this project has no tag '%s'", name);
	if (r < 0)
		return r;
	r = ref_delete(c.batch, REF_TAG, c.full, strlen(c.full), err);
	return r < 0 ? r : commit(&c, name, &c.there.snapshot, ret, err);
}
