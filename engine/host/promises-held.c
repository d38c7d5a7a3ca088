/*
 * Access to held files, for any reader of a promise.
 */
#include <errno.h>

#include "engine/host/holding-i.h"
#include "engine/host/promising-i.h"

struct holding *promises_borrow(struct promises *p)
{
	p->borrowed++;
	return p->holding;
}

void promises_give_back(struct promises *p)
{
	if (--p->borrowed > 0 || !p->taken_away)
		return;
	pthread_mutex_lock(&p->lock);
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
}

int promises_open_held(struct promises *p, const struct object_id *promise)
{
	struct holding *h = promises_borrow(p);
	int fd = h ? holding_open(h, promise) : -ENOENT;

	promises_give_back(p);
	return fd;
}

bool promises_has_held(struct promises *p, const struct object_id *promise)
{
	struct holding *h = promises_borrow(p);
	const bool has = h && holding_has(h, promise);

	promises_give_back(p);
	return has;
}

void promising_drop_held(struct promising *c, struct promise **list, size_t n)
{
	struct holding *h = promises_borrow(c->all);

	for (size_t i = 0; i < n; i++) {
		if (h && list[i]->held)
			holding_drop(h, &list[i]->what.id);
		promising_drop_stash(c, list[i]);
	}
	promises_give_back(c->all);
}
