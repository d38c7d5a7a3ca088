#include "engine/api/since.h"
#include "engine/cowfsd/verbs-i.h"

static DEFINE_FIELDS_DONE(clone_options_done, struct engine_clone_options, wire_clone_options)

int serve_clone(struct task *task, const struct engine_watch *watch, struct json options,
		struct json answer, struct err *err)
{
	CLEANUP(engine_clones_done) struct engine_clones clones = { 0 };
	CLEANUP(clone_options_done) struct engine_clone_options o = { .watch = *watch };
	int r = fields_read(options, &wire_clone_options, &o, err);

	if (r < 0)
		return r;
	return serve_fields(clone_make(task, &o, &clones, err), answer, &wire_clones, &clones);
}

int serve_announce(struct task *task, const struct engine_watch *watch, struct json options,
		   struct json answer, struct err *err)
{
	CLEANUP(clone_options_done) struct engine_clone_options o = { .watch = *watch };
	struct engine_announced announced;
	int r = fields_read(options, &wire_clone_options, &o, err);

	if (r < 0)
		return r;
	return serve_fields(clone_announce(task, &o, &announced, err), answer, &wire_announced,
			    &announced);
}

int serve_list(struct task *task, const struct engine_watch *watch, struct json options,
	       struct json answer, struct err *err)
{
	CLEANUP(engine_clones_done) struct engine_clones clones = { 0 };
	const bool all = json_get_bool(options, "all");
	int r = json_end(options.doc, err);

	if (r < 0)
		return r;
	return serve_fields(clone_list(task, all, &clones, err), answer, &wire_clones, &clones);
}

int serve_status(struct task *task, const struct engine_watch *watch, struct json options,
		 struct json answer, struct err *err)
{
	CLEANUP(engine_clone_done) struct engine_clone c = { 0 };
	CLEANUP(engine_overview_done) struct engine_overview o = { 0 };
	AUTO_FREE char *clone = json_get_name_or_null(options, "clone");
	int r = json_end(options.doc, err);
	struct json j;

	if (r < 0)
		return r;
	r = clone_status(task, clone, watch, &c, &o, err);
	if (r < 0)
		return r;
	if (!c.name) {
		fields_set(json_set_object(answer, "project"), &wire_overview, &o);
		return 0;
	}
	j = json_set_object(answer, "clone");
	fields_set(j, &wire_clone, &c);
	fields_set(j, &wire_clone_more, &c);
	return 0;
}

int serve_since(struct task *task, const struct engine_watch *watch, struct json options,
		struct json answer, struct err *err)
{
	AUTO_FREE char *clone = json_get_name(options, "clone");
	AUTO_FREE char *below = json_get_name(options, "below");
	AUTO_FREE char *token = json_get_name(options, "token");
	CLEANUP(engine_since_done) struct engine_since since = { 0 };
	int r = json_end(options.doc, err);

	if (r < 0)
		return r;
	return serve_fields(clone_since(task, clone, below, token, &since, err), answer,
			    &wire_since, &since);
}

int serve_remove(struct task *task, const struct engine_watch *watch, struct json options,
		 struct json answer, struct err *err)
{
	AUTO_FREE char *clone = json_get_name(options, "clone");
	const bool force = json_get_bool(options, "force");
	struct engine_removed removed;
	int r = json_end(options.doc, err);

	if (r < 0)
		return r;
	return serve_fields(clone_remove(task, clone, force, &removed, err), answer, &wire_removed,
			    &removed);
}

int serve_mount(struct task *task, const struct engine_watch *watch, struct json options,
		struct json answer, struct err *err)
{
	AUTO_FREE char *clone = json_get_name(options, "clone"), *path = NULL;
	int r = json_end(options.doc, err);

	if (r < 0)
		return r;
	r = clone_mount(task, clone, &path, err);
	if (r < 0)
		return r;
	json_set_name(answer, "path", path);
	return r;
}

int serve_umount(struct task *task, const struct engine_watch *watch, struct json options,
		 struct json answer, struct err *err)
{
	AUTO_FREE char *clone = json_get_name(options, "clone");
	const bool force = json_get_bool(options, "force");
	int r = json_end(options.doc, err);

	return r < 0 ? r : clone_umount(task, clone, force, err);
}
