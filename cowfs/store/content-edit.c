/*
 * content-edit.c - descend the old recipe where something changed, and put that path anew.
 *
 * Nodes are known here by their height: a block has 0, a node of recipe level n has n + 1. If the
 * file becomes higher, its old top is slot 0 of nodes that do not exist; if it becomes lower, the
 * nodes above the new top are read and not put. So both are edited like any other, from the greater
 * height down.
 *
 * The block that `kept` cuts becomes one more change. After that only ids count: a block has the id
 * of its change, or else its old id, or else, after the kept part, none.
 *
 * The number of data bytes is known from the base, less what goes, plus what comes; if little stays
 * of a base with holes, the rest is counted instead. Only for whole subtrees of a file with holes
 * does counting read extra nodes.
 */
#include "cowfs/store/content-edit.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>

#define ALL_BLOCKS UINT64_MAX
#define HEIGHT_MAX (RECIPE_LEVEL_MAX + 1)

struct edit {
	struct batch *b; /* borrowed, as is `cache` */
	struct cache *cache;
	const struct content *base;
	unsigned base_height;
	uint64_t size;
	unsigned height; /* of the result */
	uint64_t whole;  /* blocks of the base that stay where nothing changes, or ALL_BLOCKS */
	const struct content_change *at; /* the next one, of `left` */
	size_t left;
	bool counts_kept; /* `kept_data` is counted, else `gone_data` */
	uint64_t kept_data, gone_data, new_data;
	struct recipe_node *node[HEIGHT_MAX]; /* owned; made when first needed; by height - 1 */
	struct content_change *list;          /* owned; NULL: the caller's will do */
	uint8_t *cut;                         /* owned; the block that `kept` cuts, or NULL */
	struct buf encoded;
};

static void edit_done(struct edit *e)
{
	for (unsigned i = 0; i < HEIGHT_MAX; i++)
		free(e->node[i]);
	free(e->list);
	free(e->cut);
	buf_done(&e->encoded);
}

static unsigned height_of(uint64_t size)
{
	return size <= CHUNK_SIZE_MAX ? 0 : recipe_level(size) + 1;
}

static uint64_t blocks_of(uint64_t size)
{
	return size / CHUNK_SIZE_MAX + (size % CHUNK_SIZE_MAX != 0);
}

/* Blocks that a node of this height covers. */
static uint64_t blocks_in(unsigned height)
{
	return height == 0 ? 1 : recipe_slot_span(height - 1) / CHUNK_SIZE_MAX * RECIPE_FANOUT;
}

/* Bytes of a file this long that lie in `n` blocks from block `first` on. */
static uint64_t bytes_in(uint64_t size, uint64_t first, uint64_t n)
{
	const uint64_t blocks = size / CHUNK_SIZE_MAX;

	if (first > blocks)
		return 0;
	return n <= blocks - first ? n * CHUNK_SIZE_MAX : size - first * CHUNK_SIZE_MAX;
}

/* --- the base ------------------------------------------------------------------------------ */

static int decode_node(struct edit *e, unsigned height, uint64_t first, const struct object_id *id,
		       struct recipe_node *node, struct err *err)
{
	CLEANUP(cached_unref_p) const struct cached *hold = NULL;
	const uint64_t left = bytes_in(e->base->size, first, blocks_in(height));
	char hex[OBJECT_HEX_SIZE];
	int r = cache_load(e->cache, OBJECT_RECIPE, id, &hold, err);

	if (r < 0)
		return r;
	r = recipe_decode(hold->data, hold->len, node, err);
	if (r < 0)
		return err_wrap(err, r, "recipe %s", object_id_hex(id, hex));
	if (node->level != height - 1)
		return err_set(err, -EBADMSG, "recipe %s has level %u where %u belongs",
			       object_id_hex(id, hex), node->level, height - 1);
	if (left == 0 || node->n - 1 > (left - 1) / recipe_slot_span(height - 1))
		return err_set(err, -EBADMSG,
			       "recipe %s goes beyond the end of a file of %" PRIu64 " bytes",
			       object_id_hex(id, hex), e->base->size);
	return 0;
}

/*
 * The slots of the node at a place of the base, zero where it has none.  Each
 * height has one buffer, so one node of each height is in memory at a time.
 */
static int load_node(struct edit *e, unsigned height, uint64_t first, const struct object_id *id,
		     struct recipe_node **ret, struct err *err)
{
	struct recipe_node **node = &e->node[height - 1];
	int r;

	if (!*node) {
		*node = malloc(sizeof(**node));
		if (!*node)
			return err_nomem(err);
	}
	(*node)->n = 0;
	if (!object_id_is_zero(id) && height > e->base_height) {
		(*node)->id[0] = *id;
		(*node)->n = 1;
	} else if (!object_id_is_zero(id)) {
		r = decode_node(e, height, first, id, *node, err);
		if (r < 0)
			return r;
	}
	(*node)->level = height - 1;
	memset(&(*node)->id[(*node)->n], 0, (RECIPE_FANOUT - (*node)->n) * sizeof((*node)->id[0]));
	*ret = *node;
	return 0;
}

/* Add the data below an id of the base to *sum.  Each height calls for the one below it. */
static int count(struct edit *e, unsigned height, uint64_t first, const struct object_id *id,
		 uint64_t *sum, struct err *err)
{
	struct recipe_node *node;
	int r;

	if (object_id_is_zero(id))
		return 0;
	if (height == 0 || e->base->data == e->base->size) {
		*sum += bytes_in(e->base->size, first, blocks_in(height));
		return 0;
	}
	r = load_node(e, height, first, id, &node, err);
	for (unsigned i = 0; r == 0 && i < node->n; i++)
		r = count(e, height - 1, first + i * blocks_in(height - 1), &node->id[i], sum, err);
	return r;
}

/* The chunk of a block of the base; zero for a hole. */
static int find_block(struct edit *e, uint64_t block, struct object_id *ret, struct err *err)
{
	struct object_id id = e->base->id;
	struct recipe_node *node;
	int r;

	for (unsigned height = e->base_height; height > 0 && !object_id_is_zero(&id); height--) {
		r = load_node(e, height, block - block % blocks_in(height), &id, &node, err);
		if (r < 0)
			return r;
		id = node->id[block / blocks_in(height - 1) % RECIPE_FANOUT];
	}
	*ret = id;
	return 0;
}

/* --- the changes --------------------------------------------------------------------------- */

static uint64_t change_end(const struct content_change *c)
{
	return c->first + c->n;
}

static bool has_bytes(const struct content_change *c)
{
	return c->data || c->chunk;
}

static bool list_fits(const struct content_change *list, size_t n, uint64_t size)
{
	const uint64_t blocks = blocks_of(size);
	uint64_t at = 0;

	for (size_t i = 0; i < n; i++) {
		if (list[i].n == 0 || list[i].first < at || list[i].first > blocks ||
		    list[i].n > blocks - list[i].first || (has_bytes(&list[i]) && list[i].n != 1))
			return false;
		at = change_end(&list[i]);
	}
	return true;
}

/* Is there a change from block `first` on and before `end`?  If so it is e->at. */
static bool is_changed(struct edit *e, uint64_t first, uint64_t end)
{
	while (e->left > 0 && change_end(e->at) <= first) {
		e->at++;
		e->left--;
	}
	return e->left > 0 && e->at->first < end;
}

/* Put one change more between those of the caller, before number `i` of them. */
static int add_change(struct edit *e, size_t i, const struct content_change *more, struct err *err)
{
	const size_t n = e->left;

	e->list = reallocarray(NULL, n + 1, sizeof(*e->list));
	if (!e->list)
		return err_nomem(err);
	if (i > 0)
		memcpy(e->list, e->at, i * sizeof(*e->list));
	e->list[i] = *more;
	if (i < n)
		memcpy(e->list + i + 1, e->at + i, (n - i) * sizeof(*e->list));
	e->at = e->list;
	e->left = n + 1;
	return 0;
}

/* Read `len` bytes of a block of the base into e->cut, zeros behind them.  1, or 0 for a hole. */
static int read_part(struct edit *e, uint64_t block, size_t len, struct err *err)
{
	CLEANUP(cached_unref_p) const struct cached *hold = NULL;
	const uint64_t want = bytes_in(e->base->size, block, 1);
	char hex[OBJECT_HEX_SIZE];
	struct object_id id;
	int r = find_block(e, block, &id, err);

	if (r < 0 || object_id_is_zero(&id))
		return r;
	r = cache_load(e->cache, OBJECT_CHUNK, &id, &hold, err);
	if (r < 0)
		return r;
	if (hold->len != want)
		return err_set(err, -EBADMSG, "chunk %s has %zu bytes where %" PRIu64 " belong",
			       object_id_hex(&id, hex), hold->len, want);
	e->cut = calloc(1, CHUNK_SIZE_MAX);
	if (!e->cut)
		return err_nomem(err);
	memcpy(e->cut, hold->data, len);
	return 1;
}

/* If `kept` cuts a block, or the block that it ends in gets another length, change that block. */
static int cut_block(struct edit *e, uint64_t kept, struct err *err)
{
	struct content_change cut = { .first = kept / CHUNK_SIZE_MAX, .n = 1 };
	const size_t len = (size_t)(kept % CHUNK_SIZE_MAX);
	size_t i = 0;
	int r;

	if (len == 0 || (len == bytes_in(e->base->size, cut.first, 1) &&
			 len == bytes_in(e->size, cut.first, 1)))
		return 0;
	while (i < e->left && change_end(&e->at[i]) <= cut.first)
		i++;
	if (i < e->left && e->at[i].first <= cut.first)
		return 0;
	r = read_part(e, cut.first, len, err);
	if (r <= 0)
		return r;
	cut.data = e->cut;
	return add_change(e, i, &cut, err);
}

/* --- the result ---------------------------------------------------------------------------- */

/* What an id of the base names stays. */
static int keep_id(struct edit *e, unsigned height, uint64_t first, const struct object_id *id,
		   struct err *err)
{
	return e->counts_kept ? count(e, height, first, id, &e->kept_data, err) : 0;
}

/* What an id of the base names goes; the id is then zero. */
static int drop(struct edit *e, unsigned height, uint64_t first, struct object_id *id,
		struct err *err)
{
	int r = e->counts_kept ? 0 : count(e, height, first, id, &e->gone_data, err);

	*id = (struct object_id){ 0 };
	return r;
}

static int put_block(struct edit *e, const struct content_change *c, struct object_id *ret_id,
		     struct err *err)
{
	const size_t len = (size_t)bytes_in(e->size, c->first, 1);
	int r;

	if (c->chunk) {
		*ret_id = *c->chunk;
	} else {
		r = batch_put(e->b, OBJECT_CHUNK, c->data, len, ret_id, err);
		if (r < 0)
			return r;
	}
	e->new_data += len;
	return 0;
}

/* Put a node without the holes at its end; one that has nothing else is the zero id. */
static int put_node(struct edit *e, struct recipe_node *node, struct object_id *ret_id,
		    struct err *err)
{
	int r;

	while (node->n > 0 && object_id_is_zero(&node->id[node->n - 1]))
		node->n--;
	if (node->n == 0) {
		*ret_id = (struct object_id){ 0 };
		return 0;
	}
	if (recipe_encode(node, &e->encoded) < 0)
		return err_nomem(err);
	r = batch_put(e->b, OBJECT_RECIPE, e->encoded.data, e->encoded.len, ret_id, err);
	if (r < 0)
		return r;
	cache_add(e->cache, OBJECT_RECIPE, ret_id, e->encoded.data, e->encoded.len);
	return 0;
}

static int edit_id(struct edit *e, unsigned height, uint64_t first, struct object_id *id,
		   struct err *err);

static int edit_slots(struct edit *e, unsigned height, uint64_t first, struct object_id *id,
		      struct err *err)
{
	const uint64_t span = blocks_in(height - 1), end = first + blocks_in(height);
	struct recipe_node *node;
	int r = load_node(e, height, first, id, &node, err);

	if (r < 0)
		return r;
	for (unsigned i = 0; i < RECIPE_FANOUT; i++) {
		const uint64_t block = first + i * span;

		if (i >= node->n && !is_changed(e, block, end))
			break;
		r = edit_id(e, height - 1, block, &node->id[i], err);
		if (r < 0)
			return r;
	}
	node->n = RECIPE_FANOUT;
	if (height <= e->height)
		return put_node(e, node, id, err);
	*id = node->id[0];
	return 0;
}

/* Turn an id of the base into that of the result.  Each height calls for the one below it. */
static int edit_id(struct edit *e, unsigned height, uint64_t first, struct object_id *id,
		   struct err *err)
{
	const uint64_t end = first + blocks_in(height);
	const bool changed = is_changed(e, first, end);
	const struct content_change *c = e->at;
	const bool covered = changed && c->first <= first && change_end(c) >= end;
	int r;

	if (covered || first >= e->whole) {
		r = drop(e, height, first, id, err);
		if (r < 0)
			return r;
	}
	if (covered)
		return has_bytes(c) ? put_block(e, c, id, err) : 0;
	if (!changed && (object_id_is_zero(id) || (end <= e->whole && height <= e->base_height)))
		return keep_id(e, height, first, id, err);
	return edit_slots(e, height, first, id, err);
}

static int sum_up(const struct edit *e, const struct object_id *id, struct content *ret,
		  struct err *err)
{
	struct content c = { .id = *id, .size = e->size };

	if (!object_id_is_zero(id))
		c.form = e->height == 0 ? CONTENT_CHUNK : CONTENT_RECIPE;
	c.data = (e->counts_kept ? e->kept_data : e->base->data - e->gone_data) + e->new_data;
	if ((c.form == CONTENT_HOLE) != (c.data == 0) || c.data > c.size ||
	    (c.form == CONTENT_CHUNK && c.data < c.size))
		return err_set(err, -EBADMSG,
			       "a file of %" PRIu64 " bytes has not %" PRIu64
			       " bytes of data, as was recorded",
			       e->base->size, e->base->data);
	*ret = c;
	return 0;
}

int content_edit(struct batch *b, struct cache *c, const struct content *base, uint64_t kept,
		 uint64_t size, const struct content_change *list, size_t n, struct content *ret,
		 struct err *err)
{
	CLEANUP(edit_done) struct edit e = {
		.b = b,
		.cache = c,
		.base = base,
		.size = size,
		.height = height_of(size),
		.base_height = height_of(base->size),
		.whole = ALL_BLOCKS,
		.at = list,
		.left = n,
	};
	struct object_id id = base->id;
	int r;

	if (!content_plausible(base))
		return err_set(err, -EBADMSG, "content of form %d does not fit %" PRIu64 " bytes",
			       (int)base->form, base->size);
	assert(kept <= base->size && kept <= size && size <= INT64_MAX);
	assert(list_fits(list, n, size));

	if (blocks_of(kept) < blocks_of(base->size)) {
		e.whole = kept / CHUNK_SIZE_MAX;
		e.counts_kept = base->data < base->size && e.whole < blocks_of(base->size) / 2;
	}
	r = cut_block(&e, kept, err);
	if (r < 0)
		return r;
	r = edit_id(&e, e.base_height > e.height ? e.base_height : e.height, 0, &id, err);
	if (r < 0)
		return r;
	return sum_up(&e, &id, ret, err);
}
