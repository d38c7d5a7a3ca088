/*
 * The command line parses the archive in a confined process and passes the result on as a stream of
 * plain records; here it becomes a tree and, in one commit, an image. Nothing has a name before
 * that commit: a failure or death earlier leaves objects that the next gc removes.
 */
#include "engine/act/image-i.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "engine/act/acts-i.h"
#include "engine/find/image-i.h"
#include "engine/host/host-i.h"
#include "image/ingest.h"

struct importing {
	struct task *task;
	const struct import_ask *ask;
	const struct engine_watch *watch;
	struct store *store;
	struct batch *batch;
	struct project project; /* its id zero: it is new */
	struct snapshot parent; /* all zero: none */
	struct ingested tree;
	bool is_new;
};

static void importing_done(struct importing *i)
{
	batch_end(i->batch);
	project_done(&i->project);
	snapshot_done(&i->parent);
}

/* --- checks ----------------------------------------------------------------------------- */

static int check_about(const char *text, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j;

	if (strlen(text) > ENGINE_IMAGE_TEXT_MAX)
		return err_set(err, -E2BIG, "the image's description takes %zu bytes",
			       strlen(text));
	return json_parse(&doc, text, strlen(text), &j, err);
}

/* A tag or a clone of that name would be meant instead, so there must be none of the latter. */
static int check_name(const struct importing *i, struct err *err)
{
	CLEANUP(clone_done) struct clone clone = { 0 };
	const char *name = i->ask->name;
	int r = image_check_name(name, err);

	if (r < 0)
		return r;
	r = clone_get(i->store, name, &clone, err);
	if (r == -ENOENT)
		return 0;
	return r < 0 ? r
		     : err_set(err, -EEXIST, "there is a clone '%s': choose another name", name);
}

static int find_project(struct importing *i, struct err *err)
{
	const char *name = i->ask->name;
	int r = image_project(i->store, name, &i->project, err);

	if (r < 0 && r != -ENOENT)
		return r;
	i->is_new = r == -ENOENT;
	if (!i->is_new && !i->ask->replace)
		return err_set(err, -EEXIST, "there is an image '%s' already", name);
	if (!i->is_new)
		return engine_as_damage(err,
					history_newest(i->store, &i->project.id, &i->parent, err));
	i->project = (struct project){
		.path = image_path(&i->task->engine, name),
		.hidden = PROJECT_IMAGE,
		.created = engine_now(),
	};
	return i->project.path ? catalog_id_new(&i->project.id, err) : err_nomem(err);
}

/* --- reading ---------------------------------------------------------------------------- */

static int is_wanted(void *ctx, struct err *err)
{
	return task_wanted(ctx, err);
}

static void on_progress(uint64_t entries, uint64_t bytes, void *ctx)
{
	const struct importing *i = ctx;
	const struct engine_progress p = { .doing = "importing", .files = entries, .bytes = bytes };

	i->watch->fn(&p, i->watch->ctx);
}

static void stream_done(struct stream_reader *in)
{
	stream_reader_done(in);
}

static int read_tree(struct importing *i, int fd, struct err *err)
{
	CLEANUP(stream_done) struct stream_reader in = { .fd = fd,
							 .wanted = is_wanted,
							 .ctx = i->task };
	const struct ingest_report report = { .fn = i->watch->fn ? on_progress : NULL, .ctx = i };
	struct ingest_limits limits = ingest_default;

	if (i->ask->max_bytes > 0)
		limits.bytes = i->ask->max_bytes;
	if (i->ask->max_names > 0)
		limits = ingest_limits_for(limits, i->ask->max_names);
	return ingest_stream(&in, i->batch, &limits, &report, &i->tree, err);
}

/* --- the record ------------------------------------------------------------------------- */

static int put_records(struct importing *i, struct snapshot *s, struct err *err)
{
	int r = i->is_new ? project_put(i->batch, &i->project, REF_NEW, err) : 0;

	if (r < 0)
		return r;
	*s = (struct snapshot){
		.root = i->tree.id,
		.parent = i->parent.id,
		.project = i->project.id,
		.message = i->ask->message,
		.created = engine_now(),
		.files = i->tree.root.top.below.files,
		.bytes = i->tree.root.top.below.bytes + i->tree.root.in_links.bytes,
		.made = SNAPSHOT_MADE_BY_USER,
		.image = i->ask->about,
	};
	if (s->created <= i->parent.created)
		s->created = i->parent.created + 1;
	r = catalog_id_new(&s->id, err);
	return r < 0 ? r : snapshot_put(i->batch, s, REF_NEW, err);
}

static int describe(const struct importing *i, const struct snapshot *s,
		    struct engine_imported *ret, struct err *err)
{
	*ret = (struct engine_imported){
		.image = {
			.name = strdup(i->ask->name),
			.about = strdup(i->ask->about),
			.created = s->created,
			.files = s->files,
			.bytes = s->bytes,
		},
		.entries = i->tree.entries,
		.replaced = !i->is_new,
	};
	catalog_id_hex(&s->id, ret->image.id);
	if (ret->image.name && ret->image.about)
		return 0;
	engine_imported_done(ret);
	return err_nomem(err);
}

static int commit(struct importing *i, struct engine_imported *ret, struct err *err)
{
	struct snapshot s;
	int r = put_records(i, &s, err);

	if (r < 0)
		return r;
	r = task_wanted(i->task, err);
	if (r < 0)
		return r;
	r = batch_commit(i->batch, BATCH_DURABLE, err);
	return r < 0 ? r : describe(i, &s, ret, err);
}

int image_import(struct task *task, const struct import_ask *ask, int fd,
		 const struct engine_watch *watch, struct engine_imported *ret, struct err *err)
{
	CLEANUP(turn_give_p) struct turn *turn = NULL;
	CLEANUP(importing_done) struct importing i = { .task = task, .ask = ask, .watch = watch };
	AUTO_FREE char *path = image_path(&task->engine, ask->name);
	int r = path ? check_about(ask->about, err) : err_nomem(err);

	if (r < 0)
		return r;
	r = engine_store(&task->engine, STORE_WRITE, &i.store, err);
	if (r < 0)
		return r;
	r = check_name(&i, err);
	if (r < 0)
		return r;
	r = turns_take(&task->host->turns, path, &turn, err);
	if (r < 0)
		return r;
	r = find_project(&i, err);
	if (r < 0)
		return r;
	r = batch_begin(i.store, &i.batch, err);
	if (r < 0)
		return r;
	r = read_tree(&i, fd, err);
	return r < 0 ? r : commit(&i, ret, err);
}

/* --- removing --------------------------------------------------------------------------- */

int image_remove(struct task *task, const char *name, bool force, struct engine_image *ret,
		 struct err *err)
{
	CLEANUP(engine_image_done) struct engine_image gone = { 0 };
	CLEANUP(project_done) struct project p = { 0 };
	char hex[CATALOG_HEX_SIZE];
	struct store *s;
	int r = engine_store(&task->engine, STORE_WRITE, &s, err);

	if (r < 0)
		return r;
	r = engine_image_find(&task->engine, name, &gone, err);
	if (r < 0)
		return r;
	r = engine_as_damage(err, image_project(s, name, &p, err));
	if (r < 0)
		return r;
	r = project_forget(task, catalog_id_hex(&p.id, hex), force, err);
	if (r < 0)
		return r;
	*ret = TAKE_STRUCT(gone);
	return r;
}
