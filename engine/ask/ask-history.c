#include "engine/api/history.h"

#include <errno.h>
#include <stdio.h>

#include "engine/api/projects.h"
#include "engine/ask/ask-i.h"
#include "engine/find/engine-i.h"

/* Check what would go into the store before it is created. */
static int may_begin(struct engine *e, const char *project, struct err *err)
{
	CLEANUP(project_done) struct project unused = { 0 };

	return engine_has_store(e) ? 0 : project_choose(e, NULL, project, &unused, err);
}

/* Ask a running daemon at once; start one only if it would not refuse. */
static int ask_to_take(struct engine *e, struct ask *a, const struct engine_take_options *options,
		       const char *project, struct json *ret, struct err *err)
{
	int r = ask_daemon(a, e, ASK_RUNNING, &options->watch, ret, err);

	if (r != -ESRCH)
		return r;
	if (options->clone)
		return ask_daemon(a, e, ASK_STORE, &options->watch, ret, err);
	r = may_begin(e, project, err);
	return r < 0 ? r : ask_daemon(a, e, ASK_CREATE, &options->watch, ret, err);
}

int engine_take(struct engine *e, const struct engine_take_options *options,
		struct engine_taken *ret, struct err *err)
{
	CLEANUP(ask_done) struct ask a = { 0 };
	struct engine_take_options o = *options;
	AUTO_FREE char *project = NULL;
	struct json answer;
	int r = o.tag ? tag_check_name(o.tag, err) : 0;

	if (r < 0)
		return r;
	if (o.dir)
		r = project_named(e, o.dir, &project, err);
	if (r < 0)
		return r;
	o.dir = project;
	ask_begin(&a, e, VERB_TAKE);
	fields_set(a.options, &wire_take_options, &o);
	r = ask_to_take(e, &a, &o, project, &answer, err);
	return r < 0 ? r : ask_take(&a, answer, &wire_taken, ret, err);
}

int engine_remove_snapshot(struct engine *e, const char *state, bool force,
			   char ret_id[ENGINE_ID_SIZE], struct err *err)
{
	CLEANUP(ask_done) struct ask a;
	struct json answer;
	const char *id;
	int r;

	ask_begin(&a, e, VERB_REMOVE_STATE);
	json_set_name(a.options, "state", state);
	json_set_bool(a.options, "force", force);
	r = ask_daemon(&a, e, ASK_STORE, NULL, &answer, err);
	if (r < 0)
		return r;
	id = json_get_text(answer, "snapshot");
	snprintf(ret_id, ENGINE_ID_SIZE, "%s", id ? id : "");
	return ask_end(&a, err);
}

static int ask_project(struct engine *e, const char *project, const char *path, bool force,
		       struct err *err)
{
	CLEANUP(ask_done) struct ask a;
	struct json answer;

	ask_begin(&a, e, VERB_PROJECT);
	json_set_name(a.options, "project", project);
	json_set_name(a.options, "path", path);
	json_set_bool(a.options, "force", force);
	return ask_daemon(&a, e, ASK_STORE, NULL, &answer, err);
}

int engine_project_forget(struct engine *e, const char *project, bool force, struct err *err)
{
	return ask_project(e, project, NULL, force, err);
}

int engine_project_move(struct engine *e, const char *project, const char *path, bool force,
			char **ret_path, struct err *err)
{
	AUTO_FREE char *real = NULL;
	int r = project_named(e, path, &real, err);

	if (r < 0)
		return r;
	r = ask_project(e, project, real, force, err);
	if (r < 0)
		return r;
	*ret_path = TAKE_PTR(real);
	return r;
}

static int find_open(const struct lazy *l, void *ctx, struct err *err)
{
	return l->ended == 0;
}

bool ask_is_capturing(struct engine *e)
{
	struct store *s;

	/* What cannot be read is reported by what needs it. */
	return engine_has_store(e) && engine_store(e, STORE_READ, &s, NULL) >= 0 &&
	       lazy_each(s, find_open, NULL, NULL) > 0;
}

static int ask_to_settle(struct engine *e, const char *state, const struct engine_watch *watch,
			 struct err *err)
{
	CLEANUP(ask_done) struct ask a;

	ask_begin(&a, e, VERB_SETTLE);
	if (state)
		json_set_name(a.options, "state", state);
	return ask_for(&a, e, ASK_STORE, watch, NULL, NULL, err);
}

int engine_settle(struct engine *e, const char *state, const struct engine_watch *watch,
		  struct err *err)
{
	return ask_is_capturing(e) ? ask_to_settle(e, state, watch, err) : 0;
}
