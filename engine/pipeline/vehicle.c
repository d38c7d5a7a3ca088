#include "engine/pipeline/vehicle-i.h"

#include <stdio.h>

#include "base/via.h"
#include "engine/api/clone.h"

#define CLONE_PREFIX "ship-"

int pipeline_engine(const struct engine *e, const char *dir, struct engine **ret, struct err *err)
{
	return engine_open(&(struct engine_options){ .dir = dir, .store = e->store_path }, ret,
			   err);
}

void vehicle_done(struct vehicle *v)
{
	struct engine_removed removed;

	if (v->made)
		IGNORE_RESULT(engine_remove(v->engine, v->name, true, &removed, NULL),
			      "the next landing removes it");
	engine_close(v->engine);
	checkout_done(&v->checkout);
}

static void vehicle_name(const struct engine_change *c, char name[CLONE_NAME_MAX + 1])
{
	snprintf(name, CLONE_NAME_MAX + 1, CLONE_PREFIX "%s", c->id);
}

int stage_tidy(struct shipping *s, struct err *err)
{
	struct engine_removed removed;
	char name[CLONE_NAME_MAX + 1];

	vehicle_name(s->change, name);
	return engine_has_clone(s->engine, name)
		   ? engine_remove(s->engine, name, true, &removed, err)
		   : 0;
}

int vehicle_make(struct shipping *s, const char *target, struct vehicle *v, struct err *err)
{
	CLEANUP(engine_taken_done) struct engine_taken taken = { 0 };
	CLEANUP(engine_clones_done) struct engine_clones clones = { 0 };
	char via[VIA_MAX + 1];
	const struct engine_clone_options options = {
		.name = v->name,
		.from = s->change->state_id,
		.carry = true,
		.via = via,
	};
	int r = target_is_branch(target) ? checkout_make(s->engine, target, &v->checkout, err) : 0;

	if (r < 0)
		return r;
	target = v->checkout.dir ? v->checkout.dir : target;
	r = pipeline_engine(s->engine, target, &v->engine, err);
	if (r < 0)
		return r;
	vehicle_name(s->change, v->name);
	snprintf(via, sizeof(via), "change:%s", s->change->id);
	/* The target becomes a project of its own. */
	r = engine_take(v->engine,
			&(struct engine_take_options){
			    .dir = target, .automatic = true, .watch = s->options->watch },
			&taken, err);
	if (r < 0)
		return err_wrap(err, r, "the target '%s'", target);
	r = stage_tidy(s, err);
	if (r >= 0)
		r = engine_clone(v->engine, &options, &clones, err);
	v->made = r >= 0;
	return r;
}
