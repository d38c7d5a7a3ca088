#include "engine/api/clone.h"

#include <errno.h>
#include <string.h>

#include "base/via.h"
#include "engine/api/since.h"
#include "engine/ask/ask-i.h"
#include "engine/find/engine-i.h"

/* Only a command that captures the project may create the store. */
static int may_begin(struct engine *e, const struct engine_clone_options *options,
		     enum ask_start *ret, struct err *err)
{
	CLEANUP(project_done) struct project unused = { 0 };

	*ret = ASK_STORE;
	if (options->from && strcmp(options->from, ".") != 0)
		return 0;
	*ret = ASK_CREATE;
	return engine_has_store(e) ? 0 : project_choose(e, NULL, NULL, &unused, err);
}

int engine_clone(struct engine *e, const struct engine_clone_options *options,
		 struct engine_clones *ret, struct err *err)
{
	struct engine_clone_options o = *options;
	CLEANUP(ask_done) struct ask a = { 0 };
	enum ask_start start;
	struct json answer;
	int r = options->name ? clone_check_name(options->name, err) : 0;

	if (r < 0)
		return r;
	if (!o.via)
		o.via = via_find();
	ask_begin(&a, e, VERB_CLONE);
	fields_set(a.options, &wire_clone_options, &o);
	r = ask_daemon(&a, e, ASK_RUNNING, &options->watch, &answer, err);
	if (r == -ESRCH) {
		r = may_begin(e, options, &start, err);
		if (r < 0)
			return r;
		r = ask_daemon(&a, e, start, &options->watch, &answer, err);
	}
	return r < 0 ? r : ask_take(&a, answer, &wire_clones, ret, err);
}

int engine_announce(struct engine *e, const char *from, uint64_t count,
		    const struct engine_watch *watch, struct engine_announced *ret, struct err *err)
{
	const struct engine_clone_options options = { .from = from, .expect = count };
	CLEANUP(ask_done) struct ask a = { 0 };
	enum ask_start start;
	int r = may_begin(e, &options, &start, err);

	if (r < 0)
		return r;
	ask_begin(&a, e, VERB_ANNOUNCE);
	fields_set(a.options, &wire_clone_options, &options);
	return ask_for(&a, e, start, watch, &wire_announced, ret, err);
}

static int ask_for_list(struct engine *e, enum ask_start start, bool all, struct engine_clones *ret,
			struct err *err)
{
	CLEANUP(ask_done) struct ask a;

	ask_begin(&a, e, VERB_LIST);
	json_set_bool(a.options, "all", all);
	return ask_for(&a, e, start, NULL, &wire_clones, ret, err);
}

int engine_clone_list(struct engine *e, bool all, struct engine_clones *ret, struct err *err)
{
	int r = ask_for_list(e, ASK_STORE, all, ret, err);

	if (r == -ENOENT && all) {
		*ret = (struct engine_clones){ 0 };
		return 0;
	}
	return r == -ENOENT ? engine_no_project(e, err) : r;
}

int engine_clone_list_running(struct engine *e, struct engine_clones *ret, struct err *err)
{
	return ask_for_list(e, ASK_RUNNING, true, ret, err);
}

/* Fields shared with `list`, then those only `status` sends. */
static int take_status(const struct ask *a, struct json answer, struct engine_clone *ret_clone,
		       struct engine_overview *ret_project, struct err *err)
{
	struct json j;
	int r;

	*ret_clone = (struct engine_clone){ 0 };
	*ret_project = (struct engine_overview){ 0 };
	if (!json_has(answer, "clone"))
		return ask_take(a, json_get_object(answer, "project"), &wire_overview, ret_project,
				err);
	j = json_get_object(answer, "clone");
	r = fields_get(j, &wire_clone, ret_clone);
	r = r < 0 ? r : fields_get(j, &wire_clone_more, ret_clone);
	r = r == -ENOMEM ? err_nomem(err) : ask_end(a, err);
	if (r < 0)
		engine_clone_done(ret_clone);
	return r;
}

int engine_status(struct engine *e, const char *clone, const struct engine_watch *watch,
		  struct engine_clone *ret_clone, struct engine_overview *ret_project,
		  struct err *err)
{
	CLEANUP(ask_done) struct ask a;
	struct json answer;
	int r;

	ask_begin(&a, e, VERB_STATUS);
	json_set_name(a.options, "clone", clone);
	r = ask_daemon(&a, e, ASK_STORE, watch, &answer, err);
	if (r == -ENOENT && !clone)
		return engine_no_project(e, err);
	return r < 0 ? r : take_status(&a, answer, ret_clone, ret_project, err);
}

int engine_since(struct engine *e, const char *token, struct engine_since *ret, struct err *err)
{
	CLEANUP(ask_done) struct ask a = { 0 };
	AUTO_FREE char *clone = clone_here(e), *below = clone ? clone_inside(e) : NULL;

	if (!clone || !below)
		return err_set(err, -EINVAL, "'%s' is in no clone", e->dir);
	ask_begin(&a, e, VERB_SINCE);
	json_set_name(a.options, "clone", clone);
	json_set_name(a.options, "below", below);
	json_set_name(a.options, "token", token);
	return ask_for(&a, e, ASK_STORE, NULL, &wire_since, ret, err);
}

int engine_remove(struct engine *e, const char *clone, bool force, struct engine_removed *ret,
		  struct err *err)
{
	CLEANUP(ask_done) struct ask a;

	ask_begin(&a, e, VERB_REMOVE);
	json_set_name(a.options, "clone", clone);
	json_set_bool(a.options, "force", force);
	return ask_for(&a, e, ASK_STORE, NULL, &wire_removed, ret, err);
}

int engine_mount(struct engine *e, const char *clone, char **ret_path, struct err *err)
{
	CLEANUP(ask_done) struct ask a;
	AUTO_FREE char *path = NULL;
	struct json answer;
	int r;

	ask_begin(&a, e, VERB_MOUNT);
	json_set_name(a.options, "clone", clone);
	r = ask_daemon(&a, e, ASK_STORE, NULL, &answer, err);
	if (r < 0)
		return r;
	path = json_get_name(answer, "path");
	r = ask_end(&a, err);
	if (r < 0)
		return r;
	*ret_path = TAKE_PTR(path);
	return r;
}

int engine_umount(struct engine *e, const char *clone, bool force, struct err *err)
{
	CLEANUP(ask_done) struct ask a;
	struct json answer;

	ask_begin(&a, e, VERB_UMOUNT);
	json_set_name(a.options, "clone", clone);
	json_set_bool(a.options, "force", force);
	return ask_daemon(&a, e, ASK_STORE, NULL, &answer, err);
}
