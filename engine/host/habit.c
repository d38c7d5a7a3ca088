#include "engine/host/habit-i.h"

#define MEMORY_SHARE 8 /* what may be in vain takes at most this fraction of what is free */

static void forget_old(struct habit *h, uint64_t now)
{
	if (now - h->most_at > HABIT_KEEP_MS)
		h->most = 0;
	if (now - h->began > HABIT_BURST_MS) {
		h->began = now;
		h->burst = 0;
	}
}

void habit_note(struct habit *h, const struct catalog_id *project, size_t made, uint64_t now)
{
	if (!catalog_id_same(&h->project, project))
		*h = (struct habit){ .project = *project, .began = now, .most_at = now };
	forget_old(h, now);
	h->burst += made;
	if (made == 0 || h->burst < h->most)
		return;
	h->most = h->burst;
	h->most_at = now;
}

size_t habit_expects(const struct habit *h, const struct catalog_id *project, uint64_t now,
		     uint64_t each, uint64_t free_memory)
{
	const uint64_t fit = each > 0 ? free_memory / MEMORY_SHARE / each : HABIT_MAX;
	size_t n = h->most < HABIT_MAX ? h->most : HABIT_MAX;

	if (!catalog_id_same(&h->project, project) || now - h->most_at > HABIT_KEEP_MS)
		return 1;
	if (n > fit)
		n = (size_t)fit;
	return n > 0 ? n : 1;
}
