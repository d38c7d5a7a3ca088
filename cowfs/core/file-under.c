#include <errno.h>
#include <inttypes.h>

#include "cowfs/core/file-i.h"

void under_done(struct under *u)
{
	cached_unref(u->node);
	u->node = NULL;
}

static int get(struct under *u, enum object_kind kind, const struct object_id *id,
	       const struct cached **ret)
{
	if (!u->need)
		return cache_load(u->cache, kind, id, ret, u->err);
	*ret = cache_find(u->cache, kind, id);
	return *ret ? 0 : need_object(u->need, kind, id);
}

size_t under_len(const struct under *u, uint64_t number)
{
	return block_below(number, u->base->size);
}

/* Hold the node `number` of a level, and see that it can be that node. */
static int take_node(struct under *u, unsigned level, uint64_t number, const struct object_id *id)
{
	const uint64_t last = u->base->size - 1;
	CLEANUP(cached_unref_p) const struct cached *node = NULL;
	char hex[OBJECT_HEX_SIZE];
	struct recipe_view v;
	int r = get(u, OBJECT_RECIPE, id, &node);

	if (r < 0)
		return r;
	r = recipe_view(node->data, node->len, &v, u->err);
	if (r < 0)
		return err_wrap(u->err, r, "recipe %s", object_id_hex(id, hex));
	if (v.level != level)
		return err_set(u->err, -EBADMSG, "recipe %s has level %u where %u belongs",
			       object_id_hex(id, hex), v.level, level);
	if (number == recipe_node_number(level, last) && v.n > recipe_slot_number(level, last) + 1)
		return err_set(u->err, -EBADMSG,
			       "recipe %s goes beyond the end of a file of %" PRIu64 " bytes",
			       object_id_hex(id, hex), u->base->size);
	under_done(u);
	u->node = TAKE_PTR(node);
	u->view = v;
	u->number = number;
	return 0;
}

/* Hold the node whose slot decides about `off`: it names the chunk, or is the hole around it. */
static int locate(struct under *u, uint64_t off)
{
	unsigned level = recipe_level(u->base->size);
	struct object_id id = u->base->id;
	int r;

	if (u->node && u->view.level == 0 && u->number == recipe_node_number(0, off))
		return 0;
	for (;; level--) {
		r = take_node(u, level, recipe_node_number(level, off), &id);
		if (r < 0)
			return r;
		id = recipe_view_id(&u->view, recipe_slot_number(level, off));
		if (level == 0 || object_id_is_zero(&id))
			return 0;
	}
}

static int check_plausible(const struct under *u)
{
	if (content_plausible(u->base))
		return 0;
	return err_set(u->err, -EBADMSG, "content of form %d does not fit %" PRIu64 " bytes",
		       (int)u->base->form, u->base->size);
}

int under_find(struct under *u, uint64_t number, struct object_id *ret)
{
	const uint64_t off = block_start(number);
	int r = check_plausible(u);

	if (r < 0)
		return r;
	if (u->base->form != CONTENT_RECIPE) {
		*ret = u->base->id;
		return 0;
	}
	r = locate(u, off);
	if (r < 0)
		return r;
	*ret = recipe_view_id(&u->view, recipe_slot_number(u->view.level, off));
	return 0;
}

int under_load(struct under *u, uint64_t number, const struct cached **ret)
{
	CLEANUP(cached_unref_p) const struct cached *chunk = NULL;
	char hex[OBJECT_HEX_SIZE];
	struct object_id id;
	int r = under_find(u, number, &id);

	if (r < 0)
		return r;
	if (!object_id_is_zero(&id)) {
		r = get(u, OBJECT_CHUNK, &id, &chunk);
		if (r < 0)
			return r;
		if (chunk->len != under_len(u, number))
			return err_set(u->err, -EBADMSG, "chunk %s has %zu bytes where %zu belong",
				       object_id_hex(&id, hex), chunk->len, under_len(u, number));
	}
	*ret = TAKE_PTR(chunk);
	return 0;
}

/* Is the slot of the node that is held a hole? */
static bool is_hole(const struct under *u, unsigned slot)
{
	const struct object_id id = recipe_view_id(&u->view, slot);

	return object_id_is_zero(&id);
}

int under_run(struct under *u, uint64_t number, bool *ret_hole, uint64_t *ret_next)
{
	const uint64_t off = block_start(number);
	unsigned slot, end;
	uint64_t span;
	int r = check_plausible(u);

	if (r < 0)
		return r;
	if (u->base->form != CONTENT_RECIPE || u->base->data == u->base->size) {
		*ret_hole = u->base->form == CONTENT_HOLE;
		*ret_next = blocks_of(u->base->size);
		return 0;
	}
	r = locate(u, off);
	if (r < 0)
		return r;

	slot = end = recipe_slot_number(u->view.level, off);
	*ret_hole = is_hole(u, slot);
	while (end < RECIPE_FANOUT && is_hole(u, end) == *ret_hole)
		end++;
	span = recipe_slot_span(u->view.level) / FILE_BLOCK;
	*ret_next = (number / span + (end - slot)) * span;
	return 0;
}
