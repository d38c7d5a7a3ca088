/*
 * Promises by their ids, and those to keep before all others.
 */
#include <errno.h>

#include "base/lock.h"
#include "base/vec.h"
#include "engine/host/host-i.h"
#include "engine/host/promising-i.h"

#define WAIT_MS 100

struct promise *promises_look_up(struct promises *p, const struct object_id *id,
				 struct promising **ret, bool *ret_wait)
{
	const struct object_ref key = { .id = *id, .kind = OBJECT_CHUNK };
	struct promise *one;

	*ret_wait = false;
	for (struct promising *c = p->first; c; c = c->after) {
		if (c->unneeded)
			continue;
		one = c->indexed ? map_get(&c->by_id, &key) : NULL;
		*ret = c;
		if (one)
			return one;
		*ret_wait |= !c->indexed && c->stuck.code == 0;
	}
	return NULL;
}

/* lock held; has a capture no index yet, for a reason that may pass?  A list that is damaged stays so. */
static bool is_index_late(const struct promises *p)
{
	for (const struct promising *c = p->first; c; c = c->after)
		if (promising_is_open(c) && !c->indexed && c->started && c->stuck.code != -EBADMSG)
			return !p->ending;
	return false;
}

bool promises_may_turn_up(struct promises *p, const struct object_id *id)
{
	struct promising *c;
	bool wait;
	LOCKED(&p->lock);

	return !promises_look_up(p, id, &c, &wait) && is_index_late(p);
}

struct promise *promises_find(struct promises *p, const struct object_id *id,
			      struct promising **ret)
{
	const uint64_t until = engine_clock_ms() + PROMISES_PATIENCE_MS;
	struct promise *one;
	bool wait;

	while (!(one = promises_look_up(p, id, ret, &wait)) &&
	       (wait || (is_index_late(p) && engine_clock_ms() < until)))
		promises_wait_ms(p, WAIT_MS);
	return one;
}

/* Without memory for the list it is read in its turn. */
void promising_hurry(struct promising *c, struct promise *one)
{
	if (one->hurried || !VEC_ROOM(c->hurried, c->n_hurried, c->cap_hurried))
		return;
	c->hurried[c->n_hurried++] = one;
	one->hurried = true;
}

struct promise *promising_next_hurried(struct promising *c)
{
	while (c->n_hurried > 0) {
		struct promise *one = c->hurried[--c->n_hurried];

		one->hurried = false;
		if (one->state == PROMISE_OPEN)
			return one;
	}
	return NULL;
}
