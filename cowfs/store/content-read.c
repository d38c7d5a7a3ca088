/*
 * The reader holds, per level, the node it went through last, and the chunk it unpacked last. It
 * forgets what it holds before it asks for another, and keeps the other only once that passed every
 * check, so nothing that failed one is ever used.
 */
#include "cowfs/store/content.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* Holding no node or chunk: no file reaches that far. */
#define NOTHING UINT64_MAX

struct held_node {
	struct recipe_node *node; /* owned; made when first needed */
	uint64_t number;          /* which of its level it is, or NOTHING */
};

struct content_reader {
	struct store *s; /* borrowed */
	struct content c;
	struct held_node held[RECIPE_LEVEL_MAX + 1];
	struct buf chunk;
	uint64_t chunk_off; /* where its block starts, or NOTHING */
	struct buf encoded;
};

/* The slot that decides about a block: it names the chunk, or is the hole around it. */
struct place {
	const struct recipe_node *node; /* borrowed until the next node is loaded */
	unsigned slot;
};

bool content_plausible(const struct content *c)
{
	if (c->size > INT64_MAX || object_id_is_zero(&c->id) != (c->form == CONTENT_HOLE))
		return false;
	switch (c->form) {
	case CONTENT_HOLE:
		return true;
	case CONTENT_CHUNK:
		return c->size > 0 && c->size <= CHUNK_SIZE_MAX;
	case CONTENT_RECIPE:
		return c->size > CHUNK_SIZE_MAX;
	case CONTENT_LAZY:
		return false; /* there is nothing to read */
	}
	return false;
}

int content_reader_new(struct store *s, const struct content *c, struct content_reader **ret,
		       struct err *err)
{
	struct content_reader *rd;

	if (c->form == CONTENT_LAZY)
		return err_set(err, -EIO,
			       "it was changed before it was captured, so nobody has it");
	if (!content_plausible(c))
		return err_set(err, -EBADMSG, "content of form %d does not fit %" PRIu64 " bytes",
			       (int)c->form, c->size);
	rd = calloc(1, sizeof(*rd));
	if (!rd)
		return err_nomem(err);
	rd->s = s;
	rd->c = *c;
	rd->chunk_off = NOTHING;
	for (unsigned l = 0; l <= RECIPE_LEVEL_MAX; l++)
		rd->held[l].number = NOTHING;
	*ret = rd;
	return 0;
}

void content_reader_free(struct content_reader *rd)
{
	if (!rd)
		return;
	for (unsigned l = 0; l <= RECIPE_LEVEL_MAX; l++)
		free(rd->held[l].node);
	buf_done(&rd->chunk);
	buf_done(&rd->encoded);
	free(rd);
}

/* Read the node `number` of a level into its place, and see that it can be that node. */
static int load_node(struct content_reader *rd, unsigned level, uint64_t number,
		     const struct object_id *id, struct err *err)
{
	struct held_node *h = &rd->held[level];
	const uint64_t last = rd->c.size - 1;
	char hex[OBJECT_HEX_SIZE];
	int r;

	if (!h->node) {
		h->node = malloc(sizeof(*h->node));
		if (!h->node)
			return err_nomem(err);
	}
	h->number = NOTHING;
	r = store_require(rd->s, OBJECT_RECIPE, id, &rd->encoded, err);
	if (r < 0)
		return r;
	r = recipe_decode(rd->encoded.data, rd->encoded.len, h->node, err);
	if (r < 0)
		return err_wrap(err, r, "recipe %s", object_id_hex(id, hex));
	if (h->node->level != level)
		return err_set(err, -EBADMSG, "recipe %s has level %u where %u belongs",
			       object_id_hex(id, hex), h->node->level, level);
	if (number == recipe_node_number(level, last) &&
	    h->node->n > recipe_slot_number(level, last) + 1)
		return err_set(err, -EBADMSG,
			       "recipe %s goes beyond the end of a file of %" PRIu64 " bytes",
			       object_id_hex(id, hex), rd->c.size);
	h->number = number;
	return 0;
}

static bool is_hole(const struct recipe_node *node, unsigned slot)
{
	return slot >= node->n || object_id_is_zero(&node->id[slot]);
}

/* Find the slot that decides about `off`, starting from the lowest node held that covers it. */
static int locate(struct content_reader *rd, uint64_t off, struct place *ret, struct err *err)
{
	const unsigned top = recipe_level(rd->c.size);
	const struct recipe_node *node;
	unsigned level = 0, slot;
	int r;

	while (level <= top && rd->held[level].number != recipe_node_number(level, off))
		level++;
	if (level > top) {
		level = top;
		r = load_node(rd, top, 0, &rd->c.id, err);
		if (r < 0)
			return r;
	}
	for (;;) {
		node = rd->held[level].node;
		slot = recipe_slot_number(level, off);
		if (level == 0 || is_hole(node, slot))
			break;
		level--;
		r = load_node(rd, level, recipe_node_number(level, off), &node->id[slot], err);
		if (r < 0)
			return r;
	}
	ret->node = node;
	ret->slot = slot;
	return 0;
}

/* Hold the chunk of the block that starts at `start`.  1, or 0 if the block is a hole. */
static int load_block(struct content_reader *rd, uint64_t start, struct err *err)
{
	const uint64_t left = rd->c.size - start;
	const size_t want = left < CHUNK_SIZE_MAX ? (size_t)left : CHUNK_SIZE_MAX;
	const struct object_id *id = &rd->c.id;
	char hex[OBJECT_HEX_SIZE];
	struct place at;
	int r;

	if (rd->chunk_off == start)
		return 1;
	if (rd->c.form == CONTENT_HOLE)
		return 0;
	if (rd->c.form == CONTENT_RECIPE) {
		r = locate(rd, start, &at, err);
		if (r < 0)
			return r;
		if (is_hole(at.node, at.slot))
			return 0;
		id = &at.node->id[at.slot];
	}

	rd->chunk_off = NOTHING;
	r = store_require(rd->s, OBJECT_CHUNK, id, &rd->chunk, err);
	if (r < 0)
		return r;
	if (rd->chunk.len != want)
		return err_set(err, -EBADMSG, "chunk %s has %zu bytes where %zu belong",
			       object_id_hex(id, hex), rd->chunk.len, want);
	rd->chunk_off = start;
	return 1;
}

ssize_t content_reader_read(struct content_reader *rd, uint64_t off, void *data, size_t len,
			    struct err *err)
{
	uint8_t *p = data;
	size_t done = 0;

	if (off >= rd->c.size)
		return 0;
	if (len > rd->c.size - off)
		len = (size_t)(rd->c.size - off);

	while (done < len) {
		const uint64_t at = off + done;
		const size_t in_block = (size_t)(at % CHUNK_SIZE_MAX);
		size_t n = CHUNK_SIZE_MAX - in_block;
		int r;

		if (n > len - done)
			n = len - done;
		r = load_block(rd, at - in_block, err);
		if (r < 0)
			return err_wrap(err, r, "reading at offset %" PRIu64, at);
		if (r > 0)
			memcpy(p + done, rd->chunk.data + in_block, n);
		else
			memset(p + done, 0, n);
		done += n;
	}
	return (ssize_t)done;
}

/* Where the run of holes, or of chunks, ends that `off` lies in, as far as its node knows. */
static uint64_t run_end(const struct place *at, uint64_t off, uint64_t size)
{
	const uint64_t span = recipe_slot_span(at->node->level);
	const bool hole = is_hole(at->node, at->slot);
	unsigned slot = at->slot;

	while (slot < RECIPE_FANOUT && is_hole(at->node, slot) == hole)
		slot++;
	off -= off % span;
	if (slot - at->slot > (size - 1 - off) / span)
		return size;
	return off + (slot - at->slot) * span;
}

/* The next offset from `off` on that lies in a hole, or in data; the size if there is none. */
static int seek(struct content_reader *rd, uint64_t off, bool hole, uint64_t *ret, struct err *err)
{
	struct place at;
	int r;

	if (rd->c.form != CONTENT_RECIPE) {
		*ret = (rd->c.form == CONTENT_HOLE) == hole ? off : rd->c.size;
		return 0;
	}
	if (hole && rd->c.data == rd->c.size)
		off = rd->c.size;
	while (off < rd->c.size) {
		r = locate(rd, off, &at, err);
		if (r < 0)
			return err_wrap(err, r, "looking at offset %" PRIu64, off);
		if (is_hole(at.node, at.slot) == hole)
			break;
		off = run_end(&at, off, rd->c.size);
	}
	*ret = off;
	return 0;
}

int content_reader_seek_data(struct content_reader *rd, uint64_t off, uint64_t *ret,
			     struct err *err)
{
	uint64_t found;
	int r;

	if (off >= rd->c.size)
		return -ENXIO;
	r = seek(rd, off, false, &found, err);
	if (r < 0)
		return r;
	if (found >= rd->c.size)
		return -ENXIO;
	*ret = found;
	return 0;
}

int content_reader_seek_hole(struct content_reader *rd, uint64_t off, uint64_t *ret,
			     struct err *err)
{
	if (off >= rd->c.size)
		return -ENXIO;
	return seek(rd, off, true, ret, err);
}
