#include "engine/act/repair-i.h"
#include "engine/api/upkeep.h"
#include "engine/cowfsd/verbs-i.h"

int serve_gc(struct task *task, const struct engine_watch *watch, struct json options,
	     struct json answer, struct err *err)
{
	CLEANUP(engine_gc_done) struct engine_gc gc = { 0 };
	struct engine_gc_options o = { .watch = *watch };
	int r = fields_read(options, &wire_gc_options, &o, err);

	if (r < 0)
		return r;
	return serve_fields(upkeep_gc(task, &o, &gc, err), answer, &wire_gc, &gc);
}

static int repair(void *task, const struct engine_watch *watch, struct check_report *report,
		  struct engine_check *c, struct err *err)
{
	return upkeep_repair(task, watch, report, c, err);
}

int serve_check(struct task *task, const struct engine_watch *watch, struct json options,
		struct json answer, struct err *err)
{
	CLEANUP(engine_check_done) struct engine_check check = { 0 };
	struct engine_check_options o = { .watch = *watch };
	int r = fields_read(options, &wire_check_options, &o, err);

	if (r < 0)
		return r;
	return serve_fields(upkeep_check(&task->engine, &o, repair, task, &check, err), answer,
			    &wire_check, &check);
}

/* The caller served here has waited for it. */
int serve_settle(struct task *task, const struct engine_watch *watch, struct json options,
		 struct json answer, struct err *err)
{
	return json_end(options.doc, err);
}
