/*
 * Changes that time lets go on: their soak, its health, the stage behind it.
 */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "base/map.h"
#include "engine/pipeline/pipeline-i.h"
#include "engine/watch/watch-i.h"

/* A person, not time, lets the others go on. */
static bool may_go_on(const struct engine_change *c)
{
	return !engine_change_is_over(c->state) && c->state != ENGINE_CHANGE_HELD &&
	       (c->state != ENGINE_CHANGE_WAITING || c->approved_by);
}

/* When a change that soaks is to be looked at; 0: it does not. */
static int64_t due(const struct engine_change *c)
{
	const struct engine_passed *p = c->n_passed > 0 ? &c->passed[c->n_passed - 1] : NULL;

	if (c->state != ENGINE_CHANGE_SOAKING || !p)
		return 0;
	return p->health_next > 0 && p->health_next < p->soak_until ? p->health_next
								    : p->soak_until;
}

int advance_is_due(struct engine *e, int64_t now, bool *ret_by_time, uint64_t *ret_print,
		   int64_t *ret_next, struct err *err)
{
	CLEANUP(engine_changes_done) struct engine_changes all = { 0 };
	int r = engine_changes(e, true, &all, err);

	*ret_by_time = false;
	*ret_print = 0;
	*ret_next = 0;
	for (size_t i = 0; r >= 0 && i < all.n; i++) {
		const struct engine_change *c = &all.list[i];
		const int64_t at = due(c);

		if (!may_go_on(c) || c->alive)
			continue;
		if (at > now && (*ret_next == 0 || at < *ret_next))
			*ret_next = at;
		if (at > 0 && at <= now)
			*ret_by_time = true;
		if (at == 0)
			*ret_print += map_hash_str(c->id) ^ (c->n_passed * 31 + c->state + 1);
	}
	return r;
}

int advance_all(struct engine *e, struct err *err)
{
	CLEANUP(engine_changes_done) struct engine_changes all = { 0 };
	const struct engine_ship_options options = { .by_time = true };
	int failed = 0, r = engine_changes(e, true, &all, err);

	for (size_t i = 0; r >= 0 && i < all.n; i++) {
		CLEANUP(engine_change_done) struct engine_change c = { 0 };
		CLEANUP(engine_promotion_done) struct engine_promotion p = { 0 };
		struct err problem = { 0 };
		int one;

		if (!may_go_on(&all.list[i]))
			continue;
		/* One that fails keeps no other from its health checks. */
		one = engine_ship_on(e, all.list[i].id, &options, &c, &p, &problem);
		if (one < 0 && one != -EBUSY && failed == 0)
			failed = err_set(err, one, "change %s: %s", all.list[i].id, problem.msg);
	}
	return r < 0 ? r : failed;
}
