#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/vec.h"
#include "engine/find/image-i.h"

int image_check_name(const char *name, struct err *err)
{
	struct err why = { 0 };
	int r = clone_check_name(name, &why);

	return r < 0 ? err_set(err, r, "an image: %s", why.msg) : 0;
}

char *image_path(const struct engine *e, const char *name)
{
	AUTO_FREE char *dir = path_join(e->store_path, IMAGES_DIR);

	return dir ? path_join(dir, name) : NULL;
}

/* --- one -------------------------------------------------------------------------------- */

struct search {
	const char *name;
	struct project *ret;
};

static int match(const struct project *p, void *ctx, struct err *err)
{
	const struct search *s = ctx;

	if (p->hidden != PROJECT_IMAGE || strcmp(path_base(p->path), s->name) != 0)
		return 0;
	return project_copy(p, s->ret) < 0 ? err_nomem(err) : 1;
}

int image_project(struct store *s, const char *name, struct project *ret, struct err *err)
{
	struct search search = { .name = name, .ret = ret };
	int r = project_each(s, match, &search, err);

	return r < 0 ? r : r > 0 ? 0 : -ENOENT;
}

int image_snapshot(struct store *s, const char *name, struct snapshot *ret, struct err *err)
{
	CLEANUP(project_done) struct project p = { 0 };
	int r = image_project(s, name, &p, err);

	return r < 0 ? r : engine_as_damage(err, history_newest(s, &p.id, ret, err));
}

int image_refuse(const struct clone *c, const struct project *p, const char *done, struct err *err)
{
	if (p->hidden != PROJECT_IMAGE)
		return 0;
	return err_set(
	    err, -ECANCELED,
	    "clone '%s' is of the image '%s': there is no directory that it could be %s; "
	    "'snap export %s' writes it",
	    c->name, path_base(p->path), done, c->name);
}

/* --- all -------------------------------------------------------------------------------- */

struct listing {
	struct store *store;
	const char *only; /* NULL: all */
	struct engine_images all;
};

static void listing_done(struct listing *l)
{
	engine_images_done(&l->all);
}

struct counting {
	const struct catalog_id *project;
	uint64_t n;
};

static int count_clone(const struct clone *c, void *ctx, struct err *err)
{
	struct counting *k = ctx;

	k->n += catalog_id_same(&c->project, k->project);
	return 0;
}

static int describe(struct store *s, const struct project *p, struct engine_image *ret,
		    struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot at = { 0 };
	struct counting k = { .project = &p->id };
	int r = engine_as_damage(err, history_newest(s, &p->id, &at, err));

	if (r < 0)
		return r;
	r = clone_each(s, count_clone, &k, err);
	if (r < 0)
		return r;
	*ret = (struct engine_image){
		.name = strdup(path_base(p->path)),
		.about = strdup(at.image ? at.image : "{}"),
		.created = at.created,
		.files = at.files,
		.bytes = at.bytes,
		.clones = k.n,
	};
	catalog_id_hex(&at.id, ret->id);
	if (ret->name && ret->about)
		return 0;
	engine_image_done(ret);
	return err_nomem(err);
}

static int add(const struct project *p, void *ctx, struct err *err)
{
	struct listing *l = ctx;
	int r;

	if (p->hidden != PROJECT_IMAGE || (l->only && strcmp(path_base(p->path), l->only) != 0))
		return 0;
	if (!VEC_ONE_MORE(l->all.list, l->all.n))
		return err_nomem(err);
	r = describe(l->store, p, &l->all.list[l->all.n], err);
	l->all.n += r >= 0;
	return r;
}

static int by_name(const void *a, const void *b)
{
	const struct engine_image *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int load(struct engine *e, const char *only, struct engine_images *ret, struct err *err)
{
	CLEANUP(listing_done) struct listing l = { .only = only };
	int r = engine_has_store(e) ? engine_store(e, STORE_READ, &l.store, err) : -ENOENT;

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	r = project_each(l.store, add, &l, err);
	if (r < 0)
		return r;
	VEC_SORT(l.all.list, l.all.n, by_name);
	*ret = TAKE_STRUCT(l.all);
	return 0;
}

int engine_images(struct engine *e, struct engine_images *ret, struct err *err)
{
	*ret = (struct engine_images){ 0 };
	return load(e, NULL, ret, err);
}

int engine_image_find(struct engine *e, const char *name, struct engine_image *ret, struct err *err)
{
	CLEANUP(engine_images_done) struct engine_images all = { 0 };
	int r = load(e, name, &all, err);

	if (r < 0)
		return r;
	if (all.n == 0)
		return err_set(err, -ENOENT, "there is no image '%.64s'", name);
	*ret = all.list[0];
	all.list[0] = (struct engine_image){ 0 };
	return 0;
}
