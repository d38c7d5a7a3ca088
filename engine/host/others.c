#include "engine/host/others-i.h"

void others_left(struct others *o, uint64_t requests)
{
	o->left += requests;
}

uint64_t others_count(const struct others *o, uint64_t total, uint64_t ours)
{
	const uint64_t own = ours + o->left;

	/* The two are counted one after the other, so they may differ by a few. */
	return total > own ? total - own : 0;
}

bool others_at_work(struct others *o, uint64_t total, uint64_t ours, uint64_t now)
{
	const uint64_t theirs = others_count(o, total, ours);

	if (now - o->at < OTHERS_LOOK_MS)
		return o->busy;
	o->busy = theirs > o->theirs + OTHERS_BUSY;
	o->theirs = theirs;
	o->at = now;
	return o->busy;
}
