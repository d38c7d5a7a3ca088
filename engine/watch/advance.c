/*
 * Changes that wait for time to pass: their soak, its health, the stage after it.
 */
#include <errno.h>

#include "base/map.h"
#include "engine/pipeline/pipeline-i.h"
#include "engine/watch/watch-i.h"

/* A person, not time, lets the others go on.  What has landed is watched over though it is paused. */
static bool may_go_on(const struct engine_change *c, bool paused)
{
	if (paused)
		return c->state == ENGINE_CHANGE_SOAKING || c->state == ENGINE_CHANGE_UNDOING;
	return !engine_change_is_over(c->state) && c->state != ENGINE_CHANGE_HELD &&
	       (c->state != ENGINE_CHANGE_WAITING || c->approved_by);
}

/* Differs once something happened to the change. */
static uint64_t print_of(const struct engine_change *c)
{
	const struct engine_passed *p = c->n_passed > 0 ? &c->passed[c->n_passed - 1] : NULL;

	return map_hash_str(c->id) ^
	       (c->n_passed * 31 + c->state + 1 + (p ? p->health_runs * 1009 + p->seen_ms : 0));
}

/* By the clock that the soak counts by, which nobody sets. */
void advance_is_due(const struct engine_changes *all, bool paused, bool working, int64_t now,
		    struct advance_due *ret)
{
	*ret = (struct advance_due){ 0 };
	for (size_t i = 0; i < all->n; i++) {
		const struct engine_change *c = &all->list[i];
		const int64_t ms = engine_change_due_ms(c);
		/* Nobody says when another process lets it go. */
		const int64_t wait = c->alive ? NS_PER_S : ms * NS_PER_MS;

		if (!may_go_on(c, paused) || (c->alive && working))
			continue;
		if (wait > 0 && (ret->next == 0 || now + wait < ret->next))
			ret->next = now + wait;
		if (!c->alive && (ms == 0 || c->state == ENGINE_CHANGE_UNDOING))
			ret->health += print_of(c);
		else if (!c->alive && ms < 0)
			ret->others += print_of(c);
	}
}

int advance_all(struct engine *e, bool paused, struct err *err)
{
	CLEANUP(engine_changes_done) struct engine_changes all = { 0 };
	const struct engine_ship_options options = { .by_time = true, .lands_nothing = paused };
	int failed = 0, r = engine_changes(e, true, &all, err);

	for (size_t i = 0; r >= 0 && i < all.n; i++) {
		CLEANUP(engine_change_done) struct engine_change c = { 0 };
		CLEANUP(engine_promotion_done) struct engine_promotion p = { 0 };
		struct err problem = { 0 };
		int one;

		if (!may_go_on(&all.list[i], paused) || all.list[i].alive)
			continue;
		/* One that fails keeps no other from its health checks; one that is busy is tried again. */
		one = engine_ship_on(e, all.list[i].id, &options, &c, &p, &problem);
		if (one < 0 && (failed == 0 || failed == -EBUSY))
			failed = err_set(err, one, "change %s: %s", all.list[i].id, problem.msg);
	}
	return r < 0 ? r : failed;
}
