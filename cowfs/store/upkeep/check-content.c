/*
 * Do the blocks of a file fit in their places? The subtree of a recipe node depends only on its row
 * and the number of bytes that it has to cover, so each pair is checked once: a file that a
 * thousand directories name costs one check, and so does a recipe that names one node five hundred
 * times on every level. A pair with damage is checked again for every file, to blame that file, but
 * once only.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "cowfs/store/recipe.h"
#include "cowfs/store/upkeep/check-walk-i.h"

struct seen_recipe {
	struct recipe_key {
		int64_t seq;    /* of its row */
		uint64_t bytes; /* of the file from where it begins, no more than it can cover */
		unsigned level; /* that it must have there */
	} key;
	bool ok;
	uint64_t data;  /* ok: bytes below it that are no holes */
	uint64_t place; /* else: the file that was blamed last */
};

static uint64_t recipe_key_hash(const void *key)
{
	const struct recipe_key *k = key;

	return ((uint64_t)k->seq * 8 + k->level) * 0x9e3779b97f4a7c15u ^
	       k->bytes * 0xc2b2ae3d27d4eb4fu;
}

static bool recipe_key_equal(const void *a, const void *b)
{
	const struct recipe_key *x = a, *y = b;

	return x->seq == y->seq && x->bytes == y->bytes && x->level == y->level;
}

void walk_content_done(struct check_walk *w)
{
	size_t pos = 0;
	void *seen;

	while ((seen = map_next(&w->recipes, &pos)))
		free(seen);
	map_done(&w->recipes);
}

static int seen_recipe_take(struct check_walk *w, const struct recipe_key *key,
			    struct seen_recipe **ret, struct err *err)
{
	AUTO_FREE struct seen_recipe *seen = NULL;
	void *there = NULL;

	if (!w->recipes.hash)
		w->recipes = MAP_INIT(recipe_key_hash, recipe_key_equal);
	*ret = map_get(&w->recipes, key);
	if (*ret)
		return 0;
	seen = calloc(1, sizeof(*seen));
	if (!seen)
		return err_nomem(err);
	seen->key = *key;
	if (map_add(&w->recipes, &seen->key, seen, &there) < 0)
		return err_nomem(err);
	*ret = TAKE_PTR(seen);
	return 0;
}

/* The length of a chunk: the first pass wrote it down, unless there were too many. */
static int chunk_len(struct check_walk *w, const struct object_id *id, int64_t seq, size_t *ret,
		     struct err *err)
{
	const struct buf *known = &w->c->chunk_len;
	int r;

	*ret = 0;
	if ((uint64_t)seq < known->len / sizeof(uint32_t))
		*ret = ((const uint32_t *)known->data)[seq];
	if (*ret > 0)
		return 1;
	r = walk_fetch(w, OBJECT_CHUNK, id, &w->c->rd->raw, err);
	*ret = w->c->rd->raw.len;
	return r;
}

static int walk_chunk(struct check_walk *w, const struct object_id *id, uint64_t want,
		      struct err *err)
{
	struct err why = { 0 };
	struct row row;
	size_t len;
	int r = walk_visit(w, OBJECT_CHUNK, id, &row, err);

	if (r > 0)
		r = chunk_len(w, id, row.seq, &len, err);
	if (r <= 0 || len == want)
		return r;
	err_set(&why, -EBADMSG, "it has %zu bytes where %" PRIu64 " belong", len, want);
	return walk_contradiction(w, OBJECT_CHUNK, id, why.msg, err);
}

static int walk_recipe(struct check_walk *w, const struct object_id *id, unsigned level,
		       uint64_t bytes, uint64_t *ret_data, struct err *err);

/* 1 and the bytes that are no holes, if all that the node names is there and fits; 0 if not. */
static int walk_slots(struct check_walk *w, const struct recipe_node *node, uint64_t bytes,
		      uint64_t *ret_data, struct err *err)
{
	const uint64_t span = recipe_slot_span(node->level);
	uint64_t data = 0;
	bool ok = true;
	int r;

	for (unsigned i = 0; i < node->n; i++) {
		const uint64_t left = bytes - i * span;
		uint64_t in_slot = left < span ? left : span;

		if (object_id_is_zero(&node->id[i]))
			continue;
		if (node->level > 0)
			r = walk_recipe(w, &node->id[i], node->level - 1, in_slot, &in_slot, err);
		else
			r = walk_chunk(w, &node->id[i], in_slot, err);
		if (r < 0)
			return r;
		ok = ok && r > 0;
		data += in_slot;
	}
	*ret_data = data;
	return ok;
}

static int open_recipe(const struct buf *raw, unsigned level, uint64_t bytes,
		       struct recipe_node *node, struct err *err)
{
	int r = recipe_decode(raw->data, raw->len, node, err);

	if (r < 0)
		return r;
	if (node->level != level)
		return err_set(err, -EBADMSG, "its level is wrong here");
	if (node->n - 1 > (bytes - 1) / recipe_slot_span(level))
		return err_set(err, -EBADMSG, "it goes beyond the end of its file");
	return 0;
}

static int look_into_recipe(struct check_walk *w, const struct object_id *id, unsigned level,
			    uint64_t bytes, uint64_t *ret_data, struct err *err)
{
	AUTO_FREE struct recipe_node *node = malloc(sizeof(*node));
	CLEANUP(buf_done) struct buf raw = BUF_INIT;
	struct err why = { 0 };
	int r;

	if (!node)
		return err_nomem(err);
	r = walk_fetch(w, OBJECT_RECIPE, id, &raw, err);
	if (r <= 0)
		return r;
	if (open_recipe(&raw, level, bytes, node, &why) < 0)
		return walk_contradiction(w, OBJECT_RECIPE, id, why.msg, err);
	return walk_slots(w, node, bytes, ret_data, err);
}

/* `level` bounds the recursion: a node below level n has level n - 1. */
static int walk_recipe(struct check_walk *w, const struct object_id *id, unsigned level,
		       uint64_t bytes, uint64_t *ret_data, struct err *err)
{
	struct recipe_key key = { .bytes = bytes, .level = level };
	struct seen_recipe *seen;
	struct row row;
	int r = walk_visit(w, OBJECT_RECIPE, id, &row, err);

	if (r <= 0)
		return r;
	key.seq = row.seq;
	r = seen_recipe_take(w, &key, &seen, err);
	if (r < 0)
		return r;
	if (!seen->ok && seen->place != w->place) {
		seen->place = w->place;
		r = look_into_recipe(w, id, level, bytes, &seen->data, err);
		if (r < 0)
			return r;
		seen->ok = r > 0;
	}
	if (seen->ok)
		*ret_data = seen->data;
	return seen->ok;
}

int walk_content(struct check_walk *w, const struct tree_entry *e, struct err *err)
{
	struct err why = { 0 };
	uint64_t data;
	int r;

	if (e->form == TREE_CHUNK)
		return walk_chunk(w, &e->id, e->size, err);
	r = walk_recipe(w, &e->id, recipe_level(e->size), e->size, &data, err);
	if (r <= 0 || data == e->data)
		return r;
	err_set(&why, -EBADMSG,
		"its blocks hold %" PRIu64 " bytes, not %" PRIu64 " as its file says", data,
		e->data);
	return walk_contradiction(w, OBJECT_RECIPE, &e->id, why.msg, err);
}
