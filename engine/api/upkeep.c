#include "engine/api/upkeep.h"

#include <stdlib.h>

#include "base/vec.h"

void engine_stats_done(struct engine_stats *s)
{
	for (size_t i = 0; i < s->n_shares; i++) {
		free(s->shares[i].clone);
		free(s->shares[i].project);
	}
	free(s->shares);
	*s = (struct engine_stats){ 0 };
}

static void free_damage(struct engine_damage *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct engine_damage *d = &list[i];

		VEC_FREE(it, d->paths, d->n_paths, free(*it));
		free(d->object);
		free(d->why);
		free(d->from);
	}
	free(list);
}

void engine_check_done(struct engine_check *c)
{
	free_damage(c->damage, c->n_damage);
	free_damage(c->restored, c->n_restored);
	*c = (struct engine_check){ 0 };
}

void engine_gc_done(struct engine_gc *gc)
{
	engine_history_done(&gc->forgotten);
	*gc = (struct engine_gc){ 0 };
}
