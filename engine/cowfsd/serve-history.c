#include <errno.h>

#include "engine/api/tag.h"
#include "engine/cowfsd/verbs-i.h"

static DEFINE_FIELDS_DONE(take_options_done, struct engine_take_options, wire_take_options)

int serve_take(struct task *task, const struct engine_watch *watch, struct json options,
	       struct json answer, struct err *err)
{
	CLEANUP(engine_taken_done) struct engine_taken taken = { 0 };
	CLEANUP(take_options_done) struct engine_take_options o = { .watch = *watch };
	int r = fields_read(options, &wire_take_options, &o, err);

	if (r < 0)
		return r;
	if (o.dir && o.dir[0] != '/')
		return err_set(err, -EINVAL, "'project' is not absolute");
	return serve_fields(take_snapshot(task, &o, false, &taken, err), answer, &wire_taken,
			    &taken);
}

int serve_tag(struct task *task, const struct engine_watch *watch, struct json options,
	      struct json answer, struct err *err)
{
	CLEANUP(engine_tags_done) struct engine_tags tags = { 0 };
	AUTO_FREE char *name = json_get_name(options, "tag");
	AUTO_FREE char *state = json_get_name_or_null(options, "state");
	struct store *unused;
	int r = json_end(options.doc, err);

	if (r < 0)
		return r;
	r = engine_store(&task->engine, STORE_WRITE, &unused, err);
	if (r < 0)
		return r;
	r = state ? tag_add(task, name, state, &tags, err) : tag_delete(task, name, &tags, err);
	if (r < 0)
		return r;
	json_set_name(answer, "project", tags.project);
	fields_set(answer, &wire_tag, &tags.list[0]);
	return 0;
}

int serve_remove_snapshot(struct task *task, const struct engine_watch *watch, struct json options,
			  struct json answer, struct err *err)
{
	AUTO_FREE char *state = json_get_name(options, "state");
	const bool force = json_get_bool(options, "force");
	char id[ENGINE_ID_SIZE];
	int r = json_end(options.doc, err);

	if (r < 0)
		return r;
	r = snapshot_remove(task, state, force, id, err);
	if (r < 0)
		return r;
	json_set_text(answer, "snapshot", id);
	return r;
}

/* Moves the project to `path`, or forgets it if there is none. */
int serve_project(struct task *task, const struct engine_watch *watch, struct json options,
		  struct json answer, struct err *err)
{
	AUTO_FREE char *id = json_get_name(options, "project");
	AUTO_FREE char *path = json_get_name_or_null(options, "path");
	const bool force = json_get_bool(options, "force");
	int r = json_end(options.doc, err);

	if (r < 0)
		return r;
	if (path && path[0] != '/')
		return err_set(err, -EINVAL, "'path' is not absolute");
	return path ? project_move(task, id, path, force, err)
		    : project_forget(task, id, force, err);
}
