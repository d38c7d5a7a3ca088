/*
 * A large file of a clone may be changed before its promise is kept (cowfs/core/partly.c), if it is
 * held: then it cannot change until it is read. The threads of the capture read it next.
 */
#include <errno.h>

#include "engine/host/host-i.h"
#include "engine/host/promising-i.h"

/* lock held; 1 if it is about to be kept */
static int look(struct promises *p, const struct object_id *id, struct promising **ret,
		struct promise **ret_one)
{
	bool wait;
	struct promise *one = promises_look_up(p, id, ret, &wait);

	*ret_one = one;
	if (!one)
		return -ESTALE;
	if (one->state == PROMISE_LOST)
		return -EIO;
	return one->state != PROMISE_KEPT && !(*ret)->record.remote && !p->ending;
}

int promises_hurry(const struct object_id *promise, void *ctx)
{
	struct promises *p = ctx;
	struct promise *one;
	struct promising *c;
	bool held;
	int r;

	pthread_mutex_lock(&p->lock);
	r = look(p, promise, &c, &one);
	pthread_mutex_unlock(&p->lock);
	if (r <= 0)
		return r;
	held = promises_has_held(p, promise);
	pthread_mutex_lock(&p->lock);
	/* One that is not held any more was read a moment ago, or lost. */
	r = look(p, promise, &c, &one);
	held |= r > 0 && one->stashed;
	if (r > 0 && held)
		promising_hurry(c, one);
	pthread_mutex_unlock(&p->lock);
	return r > 0 ? held : r;
}
