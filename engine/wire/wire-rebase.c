#include <errno.h>

#include "engine/api/rebase.h"
#include "engine/find/conflicts-i.h"
#include "engine/wire/wire-i.h"

static int get_rebased(struct json j, struct engine_rebased *r)
{
	int x;

	r->conflicted = json_get_bool(j, "conflicted");
	r->clone = json_get_name(j, "clone");
	r->project = json_get_name(j, "project");
	WIRE_GET_SHORT(j, "from", r->from);
	WIRE_GET_SHORT(j, "onto", r->onto);
	WIRE_GET_SHORT(j, "saved", r->saved);
	r->dry_run = json_get_bool(j, "dry_run");
	r->changed = json_get_uint(j, "changed");
	r->merged = json_get_uint(j, "merged");
	r->elapsed_ms = json_get_uint(j, "elapsed_ms");
	x = conflicts_get(j, &r->conflicts, &r->n_conflicts);
	if (x >= 0)
		x = wire_get_notes(j, "paths", &r->paths, &r->n_paths);
	return x < 0 ? x : wire_get_notes(j, "left", &r->left, &r->n_left);
}

int engine_rebase(struct engine *e, const struct engine_rebase_options *options,
		  struct engine_rebased *ret, struct err *err)
{
	CLEANUP(engine_rebased_done) struct engine_rebased rebased = { 0 };
	CLEANUP(ask_done) struct ask a = { 0 };
	struct json answer;
	int r;

	ask_begin(&a, e, wire_rebase.name);
	json_set_name(a.options, "clone", options->clone);
	json_set_uint(a.options, "on_conflict", options->on_conflict);
	json_set_uint(a.options, "style", options->style);
	json_set_bool(a.options, "dry_run", options->dry_run);
	r = ask_daemon(&a, e, ASK_STORE, &options->watch, &answer, err);
	if (r < 0)
		return r;
	r = get_rebased(answer, &rebased);
	r = r < 0 ? err_nomem(err) : ask_end(&a, err);
	if (r < 0)
		return r;
	*ret = rebased;
	rebased = (struct engine_rebased){ 0 };
	return 0;
}

static int serve_rebase(struct engine *e, const struct engine_watch *watch, struct json options,
			struct json answer, struct err *err)
{
	CLEANUP(engine_rebased_done) struct engine_rebased rebased = { 0 };
	AUTO_FREE char *clone = json_get_name_or_null(options, "clone");
	const struct engine_rebase_options o = {
		.clone = clone,
		.on_conflict = (enum merge_on_conflict)json_get_uint(options, "on_conflict"),
		.style = (enum merge_style)json_get_uint(options, "style"),
		.dry_run = json_get_bool(options, "dry_run"),
		.watch = *watch,
	};
	int r = json_end(options.doc, err);

	if (r >= 0 && (o.on_conflict > MERGE_MARKERS || o.style > MERGE_STYLE_ZDIFF3))
		r = err_set(err, -EINVAL, "there is no such way to merge");
	if (r >= 0)
		r = rebase_do(e, &o, &rebased, err);
	if (r < 0)
		return r;
	json_set_bool(answer, "conflicted", rebased.conflicted);
	json_set_name(answer, "clone", rebased.clone);
	json_set_name(answer, "project", rebased.project);
	wire_set_short(answer, "from", rebased.from);
	wire_set_short(answer, "onto", rebased.onto);
	wire_set_short(answer, "saved", rebased.saved);
	json_set_bool(answer, "dry_run", rebased.dry_run);
	json_set_uint(answer, "changed", rebased.changed);
	json_set_uint(answer, "merged", rebased.merged);
	json_set_uint(answer, "elapsed_ms", rebased.elapsed_ms);
	conflicts_set(answer, rebased.conflicts, rebased.n_conflicts);
	wire_set_notes(answer, "paths", rebased.paths, rebased.n_paths);
	wire_set_notes(answer, "left", rebased.left, rebased.n_left);
	return 0;
}

const struct wire_verb wire_rebase = { "rebase", serve_rebase };
