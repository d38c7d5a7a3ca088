/*
 * loop-state-linux.c - what the loop keeps between rounds: when to wake, and its docket.
 */
#include "engine/watch/loop-i.h"

void loop_wake_in(struct loop *l, uint64_t at_ms)
{
	if (l->next_ms == 0 || at_ms < l->next_ms)
		l->next_ms = at_ms;
}

void loop_wake_at(struct loop *l, int64_t at)
{
	if (at > 0 && (l->next == 0 || at < l->next))
		l->next = at;
}

int loop_save(struct loop *l, struct err *err)
{
	const int r = docket_save(l->lock, &watch_kind, WATCH_NAME, &l->state, err);

	l->state.moved &= r < 0;
	return r;
}
