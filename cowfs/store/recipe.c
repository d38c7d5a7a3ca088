#include "cowfs/store/recipe.h"

#include <assert.h>
#include <errno.h>

#include "base/le.h"

#define RECIPE_MAGIC       'R'
#define RECIPE_VERSION     1
#define RECIPE_HEADER_SIZE 8

#define FANOUT_BITS 9

_Static_assert(1U << FANOUT_BITS == RECIPE_FANOUT, "the fan-out is a power of two");
_Static_assert(sizeof(struct object_id) == OBJECT_ID_SIZE, "ids stand side by side on disk");

uint64_t recipe_slot_span(unsigned level)
{
	assert(level <= RECIPE_LEVEL_MAX);
	return (uint64_t)CHUNK_SIZE_MAX << FANOUT_BITS * level;
}

unsigned recipe_level(uint64_t size)
{
	unsigned level = 0;

	assert(size > CHUNK_SIZE_MAX);
	while (level < RECIPE_LEVEL_MAX && recipe_slot_span(level + 1) < size)
		level++;
	return level;
}

uint64_t recipe_node_number(unsigned level, uint64_t off)
{
	return off / recipe_slot_span(level) / RECIPE_FANOUT;
}

unsigned recipe_slot_number(unsigned level, uint64_t off)
{
	return (unsigned)(off / recipe_slot_span(level) % RECIPE_FANOUT);
}

int recipe_encode(const struct recipe_node *node, struct buf *out)
{
	const size_t ids = (size_t)node->n * OBJECT_ID_SIZE;
	uint8_t *p;

	assert(node->level <= RECIPE_LEVEL_MAX);
	assert(node->n >= 1 && node->n <= RECIPE_FANOUT);
	assert(!object_id_is_zero(&node->id[node->n - 1]));

	buf_reset(out);
	p = buf_extend(out, RECIPE_HEADER_SIZE + ids);
	if (!p)
		return -ENOMEM;
	p[0] = RECIPE_MAGIC;
	p[1] = RECIPE_VERSION;
	p[2] = (uint8_t)node->level;
	p[3] = 0;
	le32_store(p + 4, node->n);
	memcpy(p + RECIPE_HEADER_SIZE, node->id, ids);
	return 0;
}

int recipe_view(const void *data, size_t len, struct recipe_view *ret, struct err *err)
{
	static const struct object_id hole;
	const uint8_t *p = data;
	unsigned level;
	uint32_t n;

	if (len < RECIPE_HEADER_SIZE || p[0] != RECIPE_MAGIC || p[3] != 0)
		return err_set(err, -EBADMSG, "these %zu bytes are no recipe", len);
	if (p[1] != RECIPE_VERSION)
		return err_set(err, -EBADMSG, "recipe of version %u, not %u", p[1], RECIPE_VERSION);
	level = p[2];
	if (level > RECIPE_LEVEL_MAX)
		return err_set(err, -EBADMSG, "recipe of level %u, above %u", level,
			       RECIPE_LEVEL_MAX);
	n = le32_load(p + 4);
	if (n < 1 || n > RECIPE_FANOUT)
		return err_set(err, -EBADMSG, "recipe of %u slots, not 1 to %u", n, RECIPE_FANOUT);
	if (len != RECIPE_HEADER_SIZE + (size_t)n * OBJECT_ID_SIZE)
		return err_set(err, -EBADMSG, "recipe of %u slots in %zu bytes", n, len);
	if (memcmp(p + len - OBJECT_ID_SIZE, hole.b, OBJECT_ID_SIZE) == 0)
		return err_set(err, -EBADMSG, "recipe ends in a hole");

	*ret = (struct recipe_view){ .level = level, .n = n, .ids = p + RECIPE_HEADER_SIZE };
	return 0;
}

int recipe_decode(const void *data, size_t len, struct recipe_node *ret, struct err *err)
{
	struct recipe_view v = { 0 };
	int r = recipe_view(data, len, &v, err);

	if (r < 0)
		return r;
	ret->level = v.level;
	ret->n = v.n;
	if (v.n > 0)
		memcpy(ret->id, v.ids, (size_t)v.n * OBJECT_ID_SIZE);
	return 0;
}
