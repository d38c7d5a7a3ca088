/*
 * A directory is built anew once all directories in it are. The way down is a list and not the
 * stack of a thread, because nothing limits how deep a tree is.
 */
#include "cowfs/store/settle.h"

#include <errno.h>
#include <stdlib.h>

#include "base/le.h"
#include "base/map.h"
#include "base/vec.h"
#include "cowfs/store/root.h"
#include "cowfs/store/tree.h"

struct object_id settle_promise(const struct object_key *key, const struct catalog_id *capture,
				uint64_t ino, const struct tree_entry *e)
{
	uint8_t what[CATALOG_ID_SIZE + 6 * 8];
	uint8_t *at = what + CATALOG_ID_SIZE;

	memcpy(what, capture->b, CATALOG_ID_SIZE);
	le64_store(at, ino);
	le64_store(at + 8, e->size);
	le64_store(at + 16, (uint64_t)e->mtime_s);
	le64_store(at + 24, (uint64_t)e->ctime_s);
	le64_store(at + 32, e->mtime_ns);
	le64_store(at + 40, e->ctime_ns);
	return object_id_of(key, OBJECT_CHUNK, what, sizeof(what));
}

struct object_id settle_promise_remote(const struct object_key *key,
				       const struct catalog_id *capture, enum object_kind kind,
				       uint64_t size, const uint8_t sha256[32])
{
	uint8_t what[CATALOG_ID_SIZE + 8 + 8 + 32];

	memcpy(what, capture->b, CATALOG_ID_SIZE);
	le64_store(what + CATALOG_ID_SIZE, (uint64_t)kind);
	le64_store(what + CATALOG_ID_SIZE + 8, size);
	memcpy(what + CATALOG_ID_SIZE + 16, sha256, 32);
	return object_id_of(key, OBJECT_CHUNK, what, sizeof(what));
}

struct settled {
	struct object_ref from; /* its key */
	struct object_id to;
	struct tree_summary below;
};

/* A directory on the way down. */
struct settle_level {
	struct object_id tree;
	struct tree_iter *it;         /* owned */
	struct tree_builder *builder; /* owned */
	struct tree_entry entry; /* borrowed from `it`: a directory that is being built below */
};

struct settle {
	settle_fn fn;
	void *ctx;
	struct map done;             /* struct settled by `from`, owned */
	struct settle_level *levels; /* owned */
	size_t n, cap;
};

int settle_new(settle_fn fn, void *ctx, struct settle **ret, struct err *err)
{
	struct settle *s = calloc(1, sizeof(*s));

	if (!s)
		return err_nomem(err);
	s->fn = fn;
	s->ctx = ctx;
	s->done = MAP_INIT(object_ref_hash, object_ref_equal);
	*ret = s;
	return 0;
}

static void level_done(struct settle_level *l)
{
	tree_iter_free(l->it);
	tree_builder_free(l->builder);
}

static void drop_levels(struct settle *s)
{
	while (s->n > 0)
		level_done(&s->levels[--s->n]);
}

void settle_free(struct settle *s)
{
	struct settled *one;

	if (!s)
		return;
	drop_levels(s);
	for (size_t pos = 0; (one = map_next(&s->done, &pos));)
		free(one);
	map_done(&s->done);
	free(s->levels);
	free(s);
}

static const struct settled *find_settled(const struct settle *s, const struct object_id *tree)
{
	const struct object_ref key = { .id = *tree, .kind = OBJECT_TREE };

	return map_get(&s->done, &key);
}

const struct object_id *settle_find(const struct settle *s, const struct object_id *tree)
{
	const struct settled *one = find_settled(s, tree);

	return one ? &one->to : NULL;
}

int settle_one(const struct settle *s, const struct object_id *promise, struct content *ret,
	       struct err *err)
{
	return s->fn(promise, ret, s->ctx, err);
}

static int go_down(struct settle *s, struct batch *b, const struct object_id *tree, struct err *err)
{
	struct settle_level *l;
	int r;

	if (!VEC_ROOM(s->levels, s->n, s->cap))
		return err_nomem(err);
	l = &s->levels[s->n++];
	*l = (struct settle_level){ .tree = *tree };
	r = tree_iter_new(batch_store(b), tree, &l->it, err);
	return r < 0 ? r : tree_builder_new(b, &l->builder, err);
}

/* The directory above it, if there is one, goes on with it. */
static int go_up(struct settle *s, struct err *err)
{
	struct settle_level *l = &s->levels[s->n - 1];
	struct settled *one = calloc(1, sizeof(*one));
	int r;

	if (!one)
		return err_nomem(err);
	one->from = (struct object_ref){ .id = l->tree, .kind = OBJECT_TREE };
	r = tree_builder_finish(l->builder, &one->to, &one->below, err);
	if (r >= 0 && map_add(&s->done, &one->from, one, NULL) < 0)
		r = err_nomem(err);
	if (r < 0) {
		free(one);
		return r;
	}
	level_done(l);
	s->n--;
	return 0;
}

/* 1; 0: it was lost. */
static int settle_file(const struct settle *s, struct tree_entry *e, struct err *err)
{
	struct content content;
	int r = s->fn(&e->id, &content, s->ctx, err);

	if (r <= 0)
		return r;
	if (content.size != e->size)
		return err_set(err, -EBADMSG, "a promise was kept with another size");
	tree_entry_set_content(e, &content);
	return 1;
}

int settle_entry(const struct settle *s, struct tree_entry *e, struct err *err)
{
	const struct settled *one;

	if (e->form == TREE_LAZY)
		return settle_file(s, e, err);
	if (e->form != TREE_DIR)
		return 1;
	one = find_settled(s, &e->id);
	if (!one)
		return 0;
	e->id = one->to;
	e->below = one->below;
	return 1;
}

/* `e` is a directory that is done below, or no directory. */
static int add(const struct settle *s, struct settle_level *l, struct tree_entry *e,
	       struct err *err)
{
	int r = settle_entry(s, e, err);

	return r < 0 ? r : tree_builder_add(l->builder, e, err);
}

static int step(struct settle *s, struct batch *b, struct err *err)
{
	struct settle_level *l = &s->levels[s->n - 1];
	struct tree_entry e = l->entry;
	int r = 1;

	l->entry = (struct tree_entry){ 0 };
	if (!e.name)
		r = tree_iter_next(l->it, &e, err);
	if (r <= 0)
		return r < 0 ? r : go_up(s, err);
	if (e.form == TREE_DIR && !find_settled(s, &e.id)) {
		l->entry = e;
		return go_down(s, b, &e.id, err);
	}
	return add(s, l, &e, err);
}

/* The tree of a directory. */
static int settle_tree(struct settle *s, struct batch *b, const struct object_id *tree,
		       struct err *err)
{
	int r;

	if (find_settled(s, tree))
		return 0;
	r = go_down(s, b, tree, err);
	while (r >= 0 && s->n > 0)
		r = step(s, b, err);
	drop_levels(s);
	return r < 0 ? r : 0;
}

int settle_root(struct settle *s, struct batch *b, const struct object_id *root,
		struct object_id *ret, struct err *err)
{
	const struct settled *one;
	struct root to;
	int r = root_get(batch_store(b), root, &to, err);

	if (r < 0)
		return r;
	r = settle_tree(s, b, &to.top.id, err);
	if (r >= 0 && !object_id_is_zero(&to.links))
		r = settle_tree(s, b, &to.links, err);
	if (r < 0)
		return r;
	to.top.id = find_settled(s, &to.top.id)->to;
	if (!object_id_is_zero(&to.links)) {
		one = find_settled(s, &to.links);
		to.links = one->to;
		to.in_links = one->below;
	}
	return root_put(b, &to, ret, err);
}
