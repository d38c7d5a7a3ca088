/*
 * Promises by their ids, and those to keep before all others.
 */
#include "base/vec.h"
#include "engine/host/promising-i.h"

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

struct promise *promises_find(struct promises *p, const struct object_id *id,
			      struct promising **ret)
{
	struct promise *one;
	bool wait;

	while (!(one = promises_look_up(p, id, ret, &wait)) && wait)
		pthread_cond_wait(&p->changed, &p->lock);
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
