#include "engine/host/others-i.h"

void others_left(struct others *o, uint64_t requests)
{
	o->left += requests;
}

bool others_at_work(struct others *o, uint64_t total, uint64_t ours, uint64_t now)
{
	const uint64_t own = ours + o->left;
	/* The two are counted one after the other, so they may differ by a few. */
	const uint64_t theirs = total > own ? total - own : 0;

	if (now - o->at < OTHERS_LOOK_MS)
		return o->busy;
	o->busy = theirs > o->theirs + OTHERS_BUSY;
	o->theirs = theirs;
	o->at = now;
	return o->busy;
}
