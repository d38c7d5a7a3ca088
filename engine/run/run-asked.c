#include "engine/run/run-asked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "engine/find/run-record.h"

static int add_name(struct strlist *to, const char *given)
{
	return strlist_take(to, strndup(given, strcspn(given, "=")));
}

static int add_paths(struct strlist *to, const char *dir, const struct engine_list *paths)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < paths->n; i++)
		r = strlist_take(to, path_clean(dir, paths->items[i]));
	return r;
}

/* Only what comes from the caller's environment can come from there again. */
static int add_variables(struct engine_asked *a, const struct engine_run_options *o)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < o->pass_env.n; i++)
		if (getenv(o->pass_env.items[i]))
			r = strlist_add(&a->passed, o->pass_env.items[i]);
	for (size_t i = 0; r >= 0 && i < o->env.n; i++)
		r = add_name(&a->set, o->env.items[i]);
	for (size_t i = 0; r >= 0 && i < o->secrets.n; i++)
		r = add_name(strchr(o->secrets.items[i], '=') ? &a->set : &a->secrets,
			     o->secrets.items[i]);
	return r;
}

int run_asked_id(const struct engine_run_options *o, char ret[ENGINE_RUN_ID_SIZE], struct err *err)
{
	if (!o->id)
		return run_record_pick(ret, err);
	snprintf(ret, ENGINE_RUN_ID_SIZE, "%s", o->id);
	return 0;
}

int run_asked_fill(struct engine_asked *a, const struct engine_run_options *o, const char *dir,
		   struct err *err)
{
	a->known = true;
	if (add_variables(a, o) < 0 || add_paths(&a->hide, dir, &o->hide) < 0 ||
	    add_paths(&a->ro, dir, &o->ro) < 0 || add_paths(&a->rw, dir, &o->rw) < 0)
		return err_nomem(err);
	return 0;
}
