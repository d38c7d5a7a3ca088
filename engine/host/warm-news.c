#include "engine/host/warm-spares-i.h"

static enum warm_clone_state state_of(const struct spare *one)
{
	if (one->walks == 0)
		return one->due ? WARM_CLONE_WARMING : WARM_CLONE_READY;
	return one->walks == 1 ? WARM_CLONE_READY : WARM_CLONE_WARM;
}

void warm_clone_news(struct warm_clone *s, struct warm_clone_news *ret)
{
	*ret = (struct warm_clone_news){ .state = WARM_CLONE_NONE };
	LOCKED(&s->lock);
	for (size_t i = 0; !warm_is_stale(s) && i < s->n; i++) {
		const enum warm_clone_state state = state_of(&s->spares[i]);

		if (mount_ended(s->spares[i].mount))
			continue;
		ret->state = state > ret->state ? state : ret->state;
		ret->ready += state >= WARM_CLONE_READY;
	}
	ret->taken = s->taken;
}
