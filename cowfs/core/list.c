/*
 * list.c - the names of a directory, with cursors that stay good.
 *
 * Names come in the order of a keyed hash, and the cursor after a name is its hash. It means the
 * same place whatever changed meanwhile, after a persist, a rollback, even a restart. Sorting by it
 * takes all names at once: a listing, made when a reader begins at the top and used until it has
 * finished. Names that are known to be gone by then are left out.
 *
 * If two names share a hash, the cursor after the first is the place before both: one may then be
 * given twice, but none is left out.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cowfs/core/ahead-i.h"
#include "cowfs/core/layer-i.h"
#include "cowfs/core/listing-i.h"

#define CURIOUS_LISTINGS 256 /* that have attributes after somebody asked for some */

/* The stored names: of a small tree at once, of a large one as got by op_again(). */
static int take_stored(struct op *op, const struct node *dir, struct listing **ret)
{
	CLEANUP(listing_free_p) struct listing *li = NULL;
	const struct object_id *base = &dir->dir.base;
	const struct cached *o;
	struct tree_node node;
	int r;

	if (op->listing && object_id_equal(&op->listing->tree, base)) {
		*ret = TAKE_PTR(op->listing);
		return 0;
	}
	li = calloc(1, sizeof(*li));
	if (!li)
		return -ENOMEM;
	li->tree = *base;
	if (!object_id_is_zero(base)) {
		r = op_object(op, OBJECT_TREE, base, &o);
		if (r < 0)
			return r;
		r = tree_node_open(o->data, o->len, &node, op->err);
		if (r < 0)
			return r;
		if (node.level > 0) {
			op->need = (struct need){
				.kind = NEED_LISTING,
				.object = { .kind = OBJECT_TREE, .id = *base },
			};
			return -EAGAIN;
		}
		r = listing_add_leaf(li, store_key(cache_store(op->l->cache)), &node, op->err);
		if (r < 0)
			return r;
	}
	*ret = TAKE_PTR(li);
	return 0;
}

/* --- with what is known here ------------------------------------------------------------ */

static int add_known(struct op *op, const struct node *dir, struct listing *li)
{
	const struct object_key *key = store_key(cache_store(op->l->cache));
	const struct entry *e;
	int r = 0;

	if (dir->dir.added == 0)
		return 0;
	for (size_t pos = 0; r >= 0 && (e = map_next(&dir->dir.entries, &pos));)
		if (e->node && !e->stored)
			r = listing_add(li, key, e->name, strlen(e->name), e->node->ino,
					e->node->mode);
	return r;
}

/* What is gone already: once that is persisted nothing here would say so. */
static void drop_hidden(const struct node *dir, struct listing *li)
{
	size_t n = 0;

	if (dir->dir.hidden == 0)
		return;
	for (size_t i = 0; i < li->n; i++) {
		const struct entry *e = map_get(&dir->dir.entries, item_name(li, &li->items[i]));

		if (!e || e->node)
			li->items[n++] = li->items[i];
	}
	li->n = n;
}

static int make_listing(struct op *op, struct node *dir)
{
	CLEANUP(listing_free_p) struct listing *li = NULL;
	int r = take_stored(op, dir, &li);

	if (r < 0)
		return r;
	drop_hidden(dir, li);
	r = add_known(op, dir, li);
	if (r < 0)
		return r;
	listing_sort(li);
	li->version = dir->dir.version;
	listing_free(dir->dir.listing);
	dir->dir.listing = TAKE_PTR(li);
	return 0;
}

/* From the top everybody gets what is there now; further down what there was will do. */
static int need_listing(struct op *op, struct node *dir, uint64_t off)
{
	const struct listing *li = dir->dir.listing;

	if (li && (off > CURSOR_DOTDOT || li->version == dir->dir.version))
		return 0;
	return make_listing(op, dir);
}

/* --- giving ----------------------------------------------------------------------------- */

struct giving {
	struct op *op;
	struct node *dir;
	bool plus;
	layer_fill_fn fill;
	void *ctx;
	uint64_t off; /* the cursor behind what was given */
	bool any;     /* something was given, so failing must wait for the next call */
};

static void given(struct giving *g, uint64_t next)
{
	g->off = next;
	g->any = true;
}

/* 1: no room. */
static int give_dots(struct giving *g)
{
	struct node *above = g->dir->names ? g->dir->names->dir : g->dir;
	struct layer_found found = { .st.st_mode = S_IFDIR, .st.st_ino = g->dir->ino };

	if (g->off < CURSOR_DOT) {
		if (g->fill(g->ctx, ".", &found, CURSOR_DOT) > 0)
			return 1;
		given(g, CURSOR_DOT);
	}
	if (g->off < CURSOR_DOTDOT) {
		found.st.st_ino = above->ino;
		if (g->fill(g->ctx, "..", &found, CURSOR_DOTDOT) > 0)
			return 1;
		given(g, CURSOR_DOTDOT);
	}
	return 0;
}

/*
 * With node and attributes, and a reference if it was taken.  To a caller that has both already, and
 * since when nothing made them out of date, they would be a burden: it gets the name alone.
 */
static int give_plus(struct giving *g, const char *name, uint64_t next)
{
	struct layer_found found;
	struct entry *e;
	int r = dir_find(g->op, g->dir, name, &e);

	if (r < 0)
		return r;
	if (e->node->refs > 0 && e->node->told) {
		found =
		    (struct layer_found){ .st.st_mode = e->node->mode, .st.st_ino = e->node->ino };
		return g->fill(g->ctx, name, &found, next);
	}
	node_found(e->node, &found);
	r = g->fill(g->ctx, name, &found, next);
	if (r > 0) {
		e->node->refs--;
		node_release(g->op->l, e->node);
	}
	return r;
}

static int give_plain(struct giving *g, const struct item *it, const char *name, uint64_t next)
{
	const struct entry *e = map_get(&g->dir->dir.entries, name);
	struct layer_found found = { .st.st_mode = it->type, .st.st_ino = it->ino };

	if (e) {
		if (!e->node)
			return -ENOENT;
		found.st.st_mode = e->node->mode;
		found.st.st_ino = e->node->ino;
	}
	return g->fill(g->ctx, name, &found, next);
}

/* The first item behind a cursor. */
static size_t find_item(const struct listing *li, uint64_t off)
{
	size_t lo = 0, hi = li->n;

	while (lo < hi) {
		const size_t mid = lo + (hi - lo) / 2;

		if (li->items[mid].cursor <= off)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static uint64_t cursor_behind(const struct listing *li, size_t i)
{
	const uint64_t cursor = li->items[i].cursor;

	return i + 1 < li->n && li->items[i + 1].cursor == cursor ? cursor - 1 : cursor;
}

/*
 * A new clone of a large project is often listed and not examined, and a node for each name costs time and
 * memory, here and in the kernel.  So promised files are listed by name alone until
 * somebody looks one of them up: then listings have attributes for a while.  Other files always have theirs,
 * because a warm clone is to know them.
 */
static bool is_name_enough(const struct giving *g, const struct item *it)
{
	return it->promised && g->op->l->curious == 0;
}

void list_note_lookup(struct layer *l, struct node *dir, const struct node *found)
{
	if (dir->dir.bare && S_ISREG(found->mode))
		l->curious = CURIOUS_LISTINGS;
}

static void note_listing(struct giving *g)
{
	struct layer *l = g->op->l;

	if (g->plus && g->off == 0)
		l->curious -= l->curious > 0;
	if (g->off == 0)
		g->dir->dir.bare = g->plus && l->curious == 0;
}

static int give_items(struct giving *g)
{
	const struct listing *li = g->dir->dir.listing;
	int r;

	for (size_t i = find_item(li, g->off); i < li->n; i++) {
		const struct item *it = &li->items[i];
		const char *name = item_name(li, it);
		const uint64_t next = cursor_behind(li, i);

		if (g->plus && !is_name_enough(g, it))
			r = give_plus(g, name, next);
		else
			r = give_plain(g, it, name, next);
		if (r == -ENOENT)
			continue;
		if (r != 0)
			return r < 0 ? r : 0;
		given(g, next);
	}
	if (!g->any) {
		listing_free(g->dir->dir.listing);
		g->dir->dir.listing = NULL;
	}
	return 0;
}

/*
 * A program that lists a directory often lists its subdirectories next, and one that reads files will
 * read the small ones here.
 */
static void look_ahead(struct op *op, const struct node *dir)
{
	struct object_ref wanted[AHEAD_MAX];
	const struct cached *o;
	struct tree_node node;
	struct tree_entry e;
	size_t n = 0;

	if (object_id_is_zero(&dir->dir.base) ||
	    op_object(op, OBJECT_TREE, &dir->dir.base, &o) < 0 ||
	    tree_node_open(o->data, o->len, &node, NULL) < 0 || node.level > 0)
		return;
	for (uint32_t i = 0; i < node.n && n < AHEAD_MAX; i++) {
		if (tree_node_entry(&node, i, &e, NULL) < 0)
			return;
		if (e.form == TREE_DIR)
			wanted[n] = (struct object_ref){ .kind = OBJECT_TREE, .id = e.id };
		else if (e.form == TREE_CHUNK && op->l->reading > 0)
			wanted[n] = (struct object_ref){ .kind = OBJECT_CHUNK, .id = e.id };
		else
			continue;
		/* To wake the thread that loads them costs more than to answer the request. */
		n += !cache_has(op->l->cache, wanted[n].kind, &wanted[n].id);
	}
	op->l->reading -= op->l->reading > 0;
	ahead_want(layers_ahead(op->l->all), wanted, n);
}

static int list(struct giving *g, uint64_t dir_id)
{
	int r = node_get_dir(g->op->l, dir_id, &g->dir);

	if (r < 0 || dir_is_dead(g->op->l, g->dir))
		return r < 0 ? r : 0;
	r = need_listing(g->op, g->dir, g->off);
	if (r < 0)
		return r;
	if (g->off == 0)
		look_ahead(g->op, g->dir);
	note_listing(g);
	g->dir->told = false; /* for its access time */
	return give_dots(g) > 0 ? 0 : give_items(g);
}

int layer_readdir(struct layer *l, const struct layer_call *call, uint64_t dir, uint64_t off,
		  bool plus, layer_fill_fn fill, void *ctx, struct err *err)
{
	CLEANUP(op_end) struct op op = op_begin(l, call, err);
	struct giving g = { .op = &op, .plus = plus, .fill = fill, .ctx = ctx, .off = off };
	int r;

	do
		r = list(&g, dir);
	while (op_again(&op, &r));
	return r < 0 && g.any ? 0 : r;
}
