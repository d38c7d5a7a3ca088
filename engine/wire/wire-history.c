#include <errno.h>
#include <string.h>

#include "engine/api/history.h"
#include "engine/wire/wire-i.h"

void wire_set_snapshot(struct json j, const struct engine_snapshot *s)
{
	struct json tags;

	wire_set_short(j, "id", s->id);
	wire_set_short(j, "parent", s->parent);
	wire_set_short(j, "project", s->project);
	json_set_name(j, "clone", s->clone);
	json_set_name(j, "message", s->message);
	json_set_int(j, "created", s->created);
	json_set_uint(j, "files", s->files);
	json_set_uint(j, "bytes", s->bytes);
	tags = json_set_array(j, "tags");
	for (size_t i = 0; i < s->n_tags; i++)
		json_add_name(tags, s->tags[i]);
}

int wire_get_snapshot(struct json j, struct engine_snapshot *s)
{
	struct json tags = json_get_array(j, "tags");
	const size_t n = json_length(tags);

	WIRE_GET_SHORT(j, "id", s->id);
	WIRE_GET_SHORT(j, "parent", s->parent);
	WIRE_GET_SHORT(j, "project", s->project);
	s->clone = json_get_name_or_null(j, "clone");
	s->message = json_get_name(j, "message");
	s->created = json_get_int(j, "created");
	s->files = json_get_uint(j, "files");
	s->bytes = json_get_uint(j, "bytes");
	s->tags = n > 0 ? calloc(n, sizeof(*s->tags)) : NULL;
	if (n > 0 && !s->tags)
		return -ENOMEM;
	for (; s->n_tags < n; s->n_tags++)
		s->tags[s->n_tags] = json_at_name(tags, s->n_tags);
	return 0;
}

/* --- take ------------------------------------------------------------------------------- */

static void set_skipped(struct json j, const struct engine_taken *t)
{
	struct json list = json_set_array(j, "skipped"), one;

	for (size_t i = 0; i < t->n_skipped; i++) {
		one = json_add_object(list);
		json_set_name(one, "path", t->skipped[i].path);
		json_set_name(one, "why", t->skipped[i].why);
	}
	json_set_uint(j, "skipped_more", t->skipped_more);
}

static int get_skipped(struct json j, struct engine_taken *t)
{
	struct json list = json_get_array(j, "skipped"), one;
	const size_t n = json_length(list);

	t->skipped_more = json_get_uint(j, "skipped_more");
	t->skipped = n > 0 ? calloc(n, sizeof(*t->skipped)) : NULL;
	if (n > 0 && !t->skipped)
		return -ENOMEM;
	for (; t->n_skipped < n; t->n_skipped++) {
		one = json_at_object(list, t->n_skipped);
		t->skipped[t->n_skipped].path = json_get_name(one, "path");
		t->skipped[t->n_skipped].why = json_get_name(one, "why");
	}
	return 0;
}

static int get_taken(struct json j, struct engine_taken *t)
{
	int r = get_skipped(j, t);

	if (r < 0)
		return r;
	t->project = json_get_name(j, "project");
	t->registered = json_get_bool(j, "registered");
	t->dirs = json_get_uint(j, "dirs");
	t->compared = json_get_bool(j, "compared");
	t->added = json_get_uint(j, "added");
	t->modified = json_get_uint(j, "modified");
	t->deleted = json_get_uint(j, "deleted");
	t->elapsed_ms = json_get_uint(j, "elapsed_ms");
	return wire_get_snapshot(json_get_object(j, "snapshot"), &t->snapshot);
}

/* A store is made only once it is clear what goes into it. */
static int may_begin(struct engine *e, const char *project, struct err *err)
{
	CLEANUP(project_done) struct project unused = { 0 };

	return engine_has_store(e) ? 0 : project_choose(e, NULL, project, &unused, err);
}

/* If one runs, it knows all; if not, a question that would be refused starts none. */
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
	CLEANUP(engine_taken_done) struct engine_taken taken = { 0 };
	CLEANUP(ask_done) struct ask a = { 0 };
	AUTO_FREE char *project = NULL;
	struct json answer;
	int r;

	r = options->tag ? tag_check_name(options->tag, err) : 0;
	if (r >= 0 && options->dir)
		r = project_named(e, options->dir, &project, err);
	if (r < 0)
		return r;
	ask_begin(&a, e, wire_take.name);
	json_set_name(a.options, "project", project);
	json_set_name(a.options, "clone", options->clone);
	json_set_name(a.options, "message", options->message);
	json_set_name(a.options, "tag", options->tag);
	json_set_bool(a.options, "skip_unreadable", options->skip_unreadable);
	r = ask_to_take(e, &a, options, project, &answer, err);
	if (r < 0)
		return r;
	r = get_taken(answer, &taken);
	r = r < 0 ? err_nomem(err) : ask_end(&a, err);
	if (r < 0)
		return r;
	*ret = taken;
	taken = (struct engine_taken){ 0 };
	return 0;
}

static int serve_take(struct engine *e, const struct engine_watch *watch, struct json options,
		      struct json answer, struct err *err)
{
	CLEANUP(engine_taken_done) struct engine_taken taken = { 0 };
	AUTO_FREE char *project = json_get_name_or_null(options, "project");
	AUTO_FREE char *clone = json_get_name_or_null(options, "clone");
	AUTO_FREE char *message = json_get_name_or_null(options, "message");
	AUTO_FREE char *tag = json_get_name_or_null(options, "tag");
	const struct engine_take_options o = {
		.dir = project,
		.clone = clone,
		.message = message,
		.tag = tag,
		.skip_unreadable = json_get_bool(options, "skip_unreadable"),
		.watch = *watch,
	};
	int r = json_end(options.doc, err);

	if (r >= 0 && project && project[0] != '/')
		r = err_set(err, -EINVAL, "'project' is not absolute");
	if (r >= 0)
		r = take_snapshot(e, &o, false, &taken, err);
	if (r < 0)
		return r;
	json_set_name(answer, "project", taken.project);
	json_set_bool(answer, "registered", taken.registered);
	json_set_uint(answer, "dirs", taken.dirs);
	json_set_bool(answer, "compared", taken.compared);
	json_set_uint(answer, "added", taken.added);
	json_set_uint(answer, "modified", taken.modified);
	json_set_uint(answer, "deleted", taken.deleted);
	json_set_uint(answer, "elapsed_ms", taken.elapsed_ms);
	set_skipped(answer, &taken);
	wire_set_snapshot(json_set_object(answer, "snapshot"), &taken.snapshot);
	return 0;
}

const struct wire_verb wire_take = { "take", serve_take };
