#include <errno.h>
#include <string.h>

#include "engine/act/stage-i.h"
#include "engine/wire/wire-i.h"

/* --- stage ------------------------------------------------------------------------------ */

/* Only who captures the project may find that there is no store yet. */
static int may_begin(struct engine *e, const struct stage_options *o, enum ask_start *ret,
		     struct err *err)
{
	CLEANUP(project_done) struct project unused = { 0 };

	*ret = o->clone ? ASK_STORE : ASK_CREATE;
	return o->clone || engine_has_store(e) ? 0 : project_choose(e, NULL, NULL, &unused, err);
}

static int get_stage(const struct ask *a, struct json answer, struct stage *ret, struct err *err)
{
	CLEANUP(stage_done) struct stage stage = { 0 };
	int r;

	stage.clone = json_get_name(answer, "clone");
	stage.path = json_get_name(answer, "path");
	stage.project = json_get_name(answer, "project");
	WIRE_GET_SHORT(answer, "before", stage.before);
	r = ask_end(a, err);
	if (r < 0)
		return r;
	*ret = stage;
	stage = (struct stage){ 0 };
	return 0;
}

void stage_asking_done(struct stage_asking *a)
{
	ask_done(&a->ask);
	*a = (struct stage_asking){ 0 };
}

void stage_ask_ahead(struct engine *e, const struct stage_options *o, struct control *c,
		     struct stage_asking *asking)
{
	struct ask *a = &asking->ask;

	ask_begin(a, e, wire_stage.name);
	json_set_text(a->options, "run", o->run);
	json_set_name(a->options, "clone", o->clone);
	json_set_name(a->options, "from", o->from);
	json_set_bool(a->options, "keep", o->keep);
	json_set_bool(a->options, "wait", o->wait);
	json_set_bool(a->options, "remove", o->remove);
	json_set_bool(a->options, "no_snapshot", o->no_snapshot);
	json_set_uint(a->options, "disk", o->disk);
	json_set_uint(a->options, "ttl_ms", o->ttl_ms);
	asking->sent = ask_ahead(a, e, &o->watch, c);
}

int stage_ask(struct engine *e, const struct stage_options *o, struct stage_asking *asking,
	      struct control *c, struct stage *ret, struct err *err)
{
	struct ask *a = &asking->ask;
	enum ask_start start;
	struct json answer;
	int r = -ESHUTDOWN;

	if (asking->sent)
		r = ask_hear(a, e, c, &o->watch, &answer, err);
	if (r == -ESHUTDOWN)
		r = ask_keeping(a, e, ASK_RUNNING, &o->watch, c, &answer, err);
	if (r == -ESRCH) {
		r = may_begin(e, o, &start, err);
		if (r >= 0)
			r = ask_keeping(a, e, start, &o->watch, c, &answer, err);
	}
	return r < 0 ? r : get_stage(a, answer, ret, err);
}

static int serve_stage(struct engine *e, const struct engine_watch *watch, struct json options,
		       struct json answer, struct err *err)
{
	CLEANUP(stage_done) struct stage stage = { 0 };
	AUTO_FREE char *clone = json_get_name_or_null(options, "clone");
	AUTO_FREE char *from = json_get_name_or_null(options, "from");
	const struct stage_options o = {
		.run = json_get_text(options, "run"),
		.clone = clone,
		.from = from,
		.keep = json_get_bool(options, "keep"),
		.wait = json_get_bool(options, "wait"),
		.remove = json_get_bool(options, "remove"),
		.no_snapshot = json_get_bool(options, "no_snapshot"),
		.disk = json_get_uint(options, "disk"),
		.ttl_ms = json_get_uint(options, "ttl_ms"),
		.watch = *watch,
	};
	int r = json_end(options.doc, err);

	if (r >= 0 && (strlen(o.run) != STAGE_RUN_SIZE - 1 ||
		       strspn(o.run, "0123456789abcdef") != STAGE_RUN_SIZE - 1))
		r = err_set(err, -EINVAL, "'%s' is no id of a run", o.run);
	if (r >= 0)
		r = stage_begin(e, &o, &stage, err);
	if (r < 0)
		return r;
	json_set_name(answer, "clone", stage.clone);
	json_set_name(answer, "path", stage.path);
	json_set_name(answer, "project", stage.project);
	wire_set_short(answer, "before", stage.before);
	return 0;
}

const struct wire_verb wire_stage = { "stage", serve_stage };

/* --- stage_end -------------------------------------------------------------------------- */

int stage_ask_end(struct engine *e, struct control *c, struct stage_end *ret, struct err *err)
{
	CLEANUP(ask_done) struct ask a = { 0 };
	CLEANUP(stage_end_done) struct stage_end end = { 0 };
	struct json answer;
	int r, paths;

	ask_begin(&a, e, wire_stage_end.name);
	r = ask_again(&a, e, c, &answer, err);
	if (r < 0)
		return r;
	end.compared = json_get_bool(answer, "compared");
	end.added = json_get_uint(answer, "added");
	end.modified = json_get_uint(answer, "modified");
	end.deleted = json_get_uint(answer, "deleted");
	end.full = json_get_bool(answer, "full");
	end.removed = json_get_bool(answer, "removed");
	paths = wire_get_paths(answer, "changed", &end.changed);
	r = paths == -ENOMEM ? err_nomem(err) : ask_end(&a, err);
	if (r < 0)
		return r;
	*ret = end;
	end = (struct stage_end){ 0 };
	return 0;
}

static int serve_stage_end(struct engine *e, const struct engine_watch *watch, struct json options,
			   struct json answer, struct err *err)
{
	CLEANUP(stage_end_done) struct stage_end end = { 0 };
	int r = json_end(options.doc, err);

	(void)watch;
	if (r >= 0)
		r = stage_end(e, &end, err);
	if (r < 0)
		return r;
	json_set_bool(answer, "compared", end.compared);
	json_set_uint(answer, "added", end.added);
	json_set_uint(answer, "modified", end.modified);
	json_set_uint(answer, "deleted", end.deleted);
	json_set_bool(answer, "full", end.full);
	json_set_bool(answer, "removed", end.removed);
	wire_set_paths(answer, "changed", &end.changed);
	return 0;
}

const struct wire_verb wire_stage_end = { "stage-end", serve_stage_end };

/* --- stage_settle ----------------------------------------------------------------------- */

int stage_ask_settle(struct engine *e, struct control *c, bool keep, struct err *err)
{
	CLEANUP(ask_done) struct ask a = { 0 };
	struct json answer;
	int r;

	ask_begin(&a, e, wire_stage_settle.name);
	json_set_bool(a.options, "keep", keep);
	r = ask_again(&a, e, c, &answer, err);
	return r < 0 ? r : ask_end(&a, err);
}

static int serve_stage_settle(struct engine *e, const struct engine_watch *watch,
			      struct json options, struct json answer, struct err *err)
{
	const bool keep = json_get_bool(options, "keep");
	int r = json_end(options.doc, err);

	(void)watch;
	(void)answer;
	return r < 0 ? r : stage_settle(e, keep, err);
}

const struct wire_verb wire_stage_settle = { "stage-settle", serve_stage_settle };

/* --- stage_stay ------------------------------------------------------------------------- */

int stage_ask_stay(struct engine *e, const char *clone, struct err *err)
{
	CLEANUP(ask_done) struct ask a = { 0 };
	struct json answer;
	int r;

	ask_begin(&a, e, wire_stage_stay.name);
	json_set_name(a.options, "clone", clone);
	r = ask_daemon(&a, e, ASK_STORE, NULL, &answer, err);
	return r < 0 ? r : ask_end(&a, err);
}

static int serve_stage_stay(struct engine *e, const struct engine_watch *watch, struct json options,
			    struct json answer, struct err *err)
{
	AUTO_FREE char *clone = json_get_name(options, "clone");
	int r = json_end(options.doc, err);

	(void)watch;
	(void)answer;
	return r < 0 ? r : stage_stay(e, clone, err);
}

const struct wire_verb wire_stage_stay = { "stage-stay", serve_stage_stay };
