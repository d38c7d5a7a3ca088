#include <errno.h>
#include <string.h>

#include "engine/api/rollback.h"
#include "engine/wire/wire-i.h"

void wire_set_notes(struct json j, const char *key, const struct engine_rolled_path *list, size_t n)
{
	struct json array = json_set_array(j, key), at;
	char status[2] = "";

	for (size_t i = 0; i < n; i++) {
		at = json_add_object(array);
		status[0] = list[i].status;
		json_set_name(at, "path", list[i].path);
		json_set_text(at, "status", status);
		json_set_text(at, "why", list[i].why);
	}
}

int wire_get_notes(struct json j, const char *key, struct engine_rolled_path **ret, size_t *ret_n)
{
	struct json array = json_get_array(j, key), at;
	const size_t n = json_length(array);
	const char *status, *why;

	*ret = n > 0 ? calloc(n, sizeof(**ret)) : NULL;
	if (n > 0 && !*ret)
		return -ENOMEM;
	for (; *ret_n < n; (*ret_n)++) {
		at = json_at_object(array, *ret_n);
		status = json_get_text(at, "status");
		why = json_get_text_or_null(at, "why");
		(*ret)[*ret_n].path = json_get_name(at, "path");
		(*ret)[*ret_n].status = status ? status[0] : '?';
		(*ret)[*ret_n].why = why ? strdup(why) : NULL;
	}
	return 0;
}

static int get_rolled(struct json j, struct engine_rolled *r)
{
	r->clone = json_get_name_or_null(j, "clone");
	r->project = json_get_name(j, "project");
	WIRE_GET_SHORT(j, "to", r->to);
	WIRE_GET_SHORT(j, "saved", r->saved);
	WIRE_GET_SHORT(j, "receipt", r->receipt);
	r->dry_run = json_get_bool(j, "dry_run");
	r->changed = json_get_uint(j, "changed");
	r->elapsed_ms = json_get_uint(j, "elapsed_ms");
	if (wire_get_notes(j, "paths", &r->paths, &r->n_paths) < 0)
		return -ENOMEM;
	return wire_get_notes(j, "conflicts", &r->conflicts, &r->n_conflicts);
}

int engine_rollback(struct engine *e, const struct engine_rollback_options *options,
		    struct engine_rolled *ret, struct err *err)
{
	CLEANUP(engine_rolled_done) struct engine_rolled rolled = { 0 };
	CLEANUP(ask_done) struct ask a = { 0 };
	struct json answer;
	int r;

	ask_begin(&a, e, wire_rollback.name);
	json_set_name(a.options, "first", options->first);
	json_set_name(a.options, "second", options->second);
	json_set_bool(a.options, "no_git", options->no_git);
	json_set_bool(a.options, "skip_unreadable", options->skip_unreadable);
	json_set_bool(a.options, "dry_run", options->dry_run);
	r = ask_daemon(&a, e, ASK_STORE, &options->watch, &answer, err);
	if (r < 0)
		return r;
	r = get_rolled(answer, &rolled);
	r = r < 0 ? err_nomem(err) : ask_end(&a, err);
	if (r < 0)
		return r;
	*ret = rolled;
	rolled = (struct engine_rolled){ 0 };
	return 0;
}

static int serve_rollback(struct engine *e, const struct engine_watch *watch, struct json options,
			  struct json answer, struct err *err)
{
	CLEANUP(engine_rolled_done) struct engine_rolled rolled = { 0 };
	AUTO_FREE char *first = json_get_name_or_null(options, "first");
	AUTO_FREE char *second = json_get_name_or_null(options, "second");
	const struct engine_rollback_options o = {
		.first = first,
		.second = second,
		.no_git = json_get_bool(options, "no_git"),
		.skip_unreadable = json_get_bool(options, "skip_unreadable"),
		.dry_run = json_get_bool(options, "dry_run"),
		.watch = *watch,
	};
	int r = json_end(options.doc, err);

	if (r >= 0 && second && !first)
		r = err_set(err, -EINVAL, "'second' comes after 'first'");
	if (r >= 0)
		r = rollback_do(e, &o, &rolled, err);
	if (r < 0)
		return r;
	json_set_name(answer, "clone", rolled.clone);
	json_set_name(answer, "project", rolled.project);
	wire_set_short(answer, "to", rolled.to);
	wire_set_short(answer, "saved", rolled.saved);
	wire_set_short(answer, "receipt", rolled.receipt);
	json_set_bool(answer, "dry_run", rolled.dry_run);
	json_set_uint(answer, "changed", rolled.changed);
	json_set_uint(answer, "elapsed_ms", rolled.elapsed_ms);
	wire_set_notes(answer, "paths", rolled.paths, rolled.n_paths);
	wire_set_notes(answer, "conflicts", rolled.conflicts, rolled.n_conflicts);
	return 0;
}

const struct wire_verb wire_rollback = { "rollback", serve_rollback };
