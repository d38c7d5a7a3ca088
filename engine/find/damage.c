#include <string.h>

#include "engine/find/upkeep-i.h"

int upkeep_take_finding(struct check_finding *f, struct engine_damage *d, struct err *err)
{
	d->object = strdup(f->what);
	d->why = strdup(f->why);
	if (!d->object || !d->why)
		return err_nomem(err);
	d->paths = TAKE_PTR(f->paths);
	d->n_paths = f->n_kept;
	d->n_paths_all = f->n_paths;
	f->n_kept = 0;
	return 0;
}

static void on_check(uint64_t done, uint64_t total, void *ctx)
{
	const struct engine_watch *watch = ctx;
	struct engine_progress p = { .doing = "checking", .done = done, .total = total };

	watch->fn(&p, watch->ctx);
}

int upkeep_look(struct store *s, const struct engine_watch *watch, struct check_report *ret,
		struct err *err)
{
	struct engine_watch w = *watch;

	return check_store(s, w.fn ? on_check : NULL, &w, ret, err);
}
