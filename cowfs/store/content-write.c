/*
 * The writer holds one block that is being filled, the id of the block put last, and per level the
 * node that is being filled. Every node it holds covers the block put last, so the start of that
 * block gives the number of each.
 *
 * A hole only moves the position. Nodes that do not reach the next block are put when that block
 * comes, one per level however far away it is, and a node exists only once it has content. So a
 * file of one block has none.
 */
#include "cowfs/store/content.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* Not an offset of a block: no file reaches that far. */
#define NOWHERE UINT64_MAX

struct content_writer {
	struct batch *b;          /* borrowed */
	uint64_t size;            /* of all that was added and skipped */
	uint64_t data;            /* in the blocks that were put */
	uint64_t last;            /* where the block put last starts, or NOWHERE */
	struct object_id last_id; /* its chunk, not yet in a node */
	uint8_t *block;           /* owned; made when first needed; the block `size` lies in */
	size_t filled;            /* bytes of it that are known; 0: a hole so far */
	struct recipe_node *node[RECIPE_LEVEL_MAX + 1]; /* owned; as `block`; n == 0: not in use */
	struct buf encoded;
	int failed; /* what an earlier call for this file returned */
};

bool content_equal(const struct content *a, const struct content *b)
{
	return a->form == b->form && a->size == b->size && a->data == b->data &&
	       object_id_equal(&a->id, &b->id);
}

static void writer_init(struct content_writer *w, struct batch *b)
{
	*w = (struct content_writer){ .b = b, .last = NOWHERE };
}

static void writer_done(struct content_writer *w)
{
	for (unsigned l = 0; l <= RECIPE_LEVEL_MAX; l++)
		free(w->node[l]);
	free(w->block);
	buf_done(&w->encoded);
}

/* Forget the file, keep the memory. */
static void writer_reset(struct content_writer *w)
{
	for (unsigned l = 0; l <= RECIPE_LEVEL_MAX; l++)
		if (w->node[l])
			w->node[l]->n = 0;
	w->size = 0;
	w->data = 0;
	w->last = NOWHERE;
	w->filled = 0;
	w->failed = 0;
}

int content_writer_new(struct batch *b, struct content_writer **ret, struct err *err)
{
	struct content_writer *w = malloc(sizeof(*w));

	if (!w)
		return err_nomem(err);
	writer_init(w, b);
	*ret = w;
	return 0;
}

void content_writer_free(struct content_writer *w)
{
	if (!w)
		return;
	writer_done(w);
	free(w);
}

/* Name an object in the node being filled, where it covers the block put last. */
static int set_slot(struct content_writer *w, unsigned level, const struct object_id *id,
		    struct err *err)
{
	const unsigned slot = recipe_slot_number(level, w->last);
	struct recipe_node *node = w->node[level];

	if (!node) {
		node = malloc(sizeof(*node));
		if (!node)
			return err_nomem(err);
		node->level = level;
		node->n = 0;
		w->node[level] = node;
	}
	assert(slot >= node->n && slot < RECIPE_FANOUT);
	memset(&node->id[node->n], 0, (slot - node->n) * sizeof(node->id[0]));
	node->id[slot] = *id;
	node->n = slot + 1;
	return 0;
}

/* Put the node being filled; it is then not in use. */
static int put_node(struct content_writer *w, unsigned level, struct object_id *ret_id,
		    struct err *err)
{
	int r;

	if (recipe_encode(w->node[level], &w->encoded) < 0)
		return err_nomem(err);
	r = batch_put(w->b, OBJECT_RECIPE, w->encoded.data, w->encoded.len, ret_id, err);
	if (r < 0)
		return r;
	w->node[level]->n = 0;
	return 0;
}

/* Put the node being filled and name it in the one above. */
static int close_node(struct content_writer *w, unsigned level, struct err *err)
{
	struct object_id id;
	int r = put_node(w, level, &id, err);

	if (r < 0)
		return r;
	return set_slot(w, level + 1, &id, err);
}

/* Put the chunk of the block that starts at `off`, behind all that were put before. */
static int put_block(struct content_writer *w, uint64_t off, const void *data, size_t len,
		     struct err *err)
{
	struct object_id id;
	int r = batch_put(w->b, OBJECT_CHUNK, data, len, &id, err);

	if (r < 0)
		return r;

	if (w->last != NOWHERE) {
		r = set_slot(w, 0, &w->last_id, err);
		if (r < 0)
			return r;
		for (unsigned l = 0; recipe_node_number(l, w->last) != recipe_node_number(l, off);
		     l++) {
			r = close_node(w, l, err);
			if (r < 0)
				return r;
		}
	}
	w->last = off;
	w->last_id = id;
	w->data += len;
	return 0;
}

/* Make the first `len` bytes of the block being filled known. */
static void pad_block(struct content_writer *w, size_t len)
{
	memset(w->block + w->filled, 0, len - w->filled);
	w->filled = len;
}

/* Put the block being filled, which ends at `end`, unless it is a hole. */
static int flush_block(struct content_writer *w, uint64_t end, struct err *err)
{
	uint64_t off;
	int r;

	if (w->filled == 0)
		return 0;
	off = (end - 1) / CHUNK_SIZE_MAX * CHUNK_SIZE_MAX;
	pad_block(w, (size_t)(end - off));
	r = put_block(w, off, w->block, w->filled, err);
	if (r < 0)
		return r;
	w->filled = 0;
	return 0;
}

/* Take bytes that end within the block being filled, or with it. */
static int fill_block(struct content_writer *w, const void *data, size_t len, struct err *err)
{
	if (!w->block) {
		w->block = malloc(CHUNK_SIZE_MAX);
		if (!w->block)
			return err_nomem(err);
	}
	pad_block(w, (size_t)(w->size % CHUNK_SIZE_MAX));
	memcpy(w->block + w->filled, data, len);
	w->filled += len;
	w->size += len;
	return w->filled < CHUNK_SIZE_MAX ? 0 : flush_block(w, w->size, err);
}

static int add_bytes(struct content_writer *w, const uint8_t *p, size_t len, struct err *err)
{
	int r;

	while (len > 0) {
		const size_t room = CHUNK_SIZE_MAX - (size_t)(w->size % CHUNK_SIZE_MAX);
		const size_t n = len < room ? len : room;

		if (n == CHUNK_SIZE_MAX) {
			r = put_block(w, w->size, p, n, err);
			w->size += n;
		} else {
			r = fill_block(w, p, n, err);
		}
		if (r < 0)
			return r;
		p += n;
		len -= n;
	}
	return 0;
}

/* May `more` bytes follow? */
static int check_room(const struct content_writer *w, uint64_t more, struct err *err)
{
	if (w->failed < 0)
		return err_set(err, w->failed, "an earlier part of the file could not be stored");
	if (more > INT64_MAX - w->size)
		return err_set(err, -EFBIG, "a file may have %" PRId64 " bytes at most", INT64_MAX);
	return 0;
}

int content_writer_add(struct content_writer *w, const void *data, size_t len, struct err *err)
{
	int r = check_room(w, len, err);

	if (r < 0)
		return r;
	w->failed = add_bytes(w, data, len, err);
	return w->failed;
}

int content_writer_skip(struct content_writer *w, uint64_t hole, struct err *err)
{
	uint64_t room;
	int r = check_room(w, hole, err);

	if (r < 0)
		return r;
	room = CHUNK_SIZE_MAX - w->size % CHUNK_SIZE_MAX;
	if (hole >= room)
		w->failed = flush_block(w, w->size + room, err);
	w->size += hole;
	return w->failed;
}

/* Put what is left of the nodes; the one on top names the file. */
static int put_top(struct content_writer *w, struct object_id *ret_id, struct err *err)
{
	const unsigned top = recipe_level(w->size);
	int r = set_slot(w, 0, &w->last_id, err);

	if (r < 0)
		return r;
	for (unsigned l = 0; l < top; l++) {
		r = close_node(w, l, err);
		if (r < 0)
			return r;
	}
	return put_node(w, top, ret_id, err);
}

static int finish(struct content_writer *w, struct content *ret, struct err *err)
{
	struct content c = { .form = CONTENT_HOLE, .size = w->size };
	int r = check_room(w, 0, err);

	if (r < 0)
		return r;
	r = flush_block(w, w->size, err);
	if (r < 0)
		return r;

	c.data = w->data;
	if (w->last != NOWHERE && w->size <= CHUNK_SIZE_MAX) {
		c.form = CONTENT_CHUNK;
		c.id = w->last_id;
	} else if (w->last != NOWHERE) {
		c.form = CONTENT_RECIPE;
		r = put_top(w, &c.id, err);
		if (r < 0)
			return r;
	}
	*ret = c;
	return 0;
}

int content_writer_finish(struct content_writer *w, struct content *ret, struct err *err)
{
	int r = finish(w, ret, err);

	writer_reset(w);
	return r;
}

int content_put(struct batch *b, const void *data, size_t len, struct content *ret, struct err *err)
{
	CLEANUP(writer_done) struct content_writer w;
	const uint8_t *p = data;
	int r;

	writer_init(&w, b);
	r = check_room(&w, len, err);
	if (r < 0)
		return r;
	for (; w.size < len; w.size += CHUNK_SIZE_MAX) {
		const size_t left = len - (size_t)w.size;

		r = put_block(&w, w.size, p + w.size, left < CHUNK_SIZE_MAX ? left : CHUNK_SIZE_MAX,
			      err);
		if (r < 0)
			return r;
	}
	w.size = len;
	return finish(&w, ret, err);
}
