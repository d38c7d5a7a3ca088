#include <errno.h>

#include "engine/api/upkeep.h"
#include "engine/ask/ask-i.h"
#include "engine/find/upkeep-i.h"

int engine_gc(struct engine *e, const struct engine_gc_options *options, struct engine_gc *ret,
	      struct err *err)
{
	CLEANUP(ask_done) struct ask a;

	ask_begin(&a, e, VERB_GC);
	fields_set(a.options, &wire_gc_options, options);
	return ask_for(&a, e, ASK_STORE, &options->watch, &wire_gc, ret, err);
}

/* A read-only store has no daemon, and a store too damaged for one may still be readable. */
static bool check_ourselves(const struct engine_check_options *options, int r)
{
	return !options->repair && (r == -EROFS || r == -EACCES || r == -EPERM || r == -EBADMSG);
}

int engine_check(struct engine *e, const struct engine_check_options *options,
		 struct engine_check *ret, struct err *err)
{
	CLEANUP(ask_done) struct ask a;
	struct json answer;
	int r;

	ask_begin(&a, e, VERB_CHECK);
	fields_set(a.options, &wire_check_options, options);
	r = ask_daemon(&a, e, ASK_STORE, &options->watch, &answer, err);
	if (check_ourselves(options, r))
		return upkeep_check(e, options, NULL, NULL, ret, err);
	return r < 0 ? r : ask_take(&a, answer, &wire_check, ret, err);
}
