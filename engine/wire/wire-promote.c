#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/act/land-i.h"
#include "engine/act/promote-i.h"
#include "engine/find/conflicts-i.h"
#include "engine/find/rules-i.h"
#include "engine/verb/commits-i.h"
#include "engine/wire/wire-i.h"

#define TRIES 3 /* as often what is checked may be overtaken by somebody's edits */

/* --- what travels ----------------------------------------------------------------------- */

static void set_promotion(struct json j, const struct engine_promotion *p, int64_t now)
{
	json_set_uint(j, "end", p->end);
	json_set_name(j, "clone", p->clone);
	json_set_name(j, "project", p->project);
	wire_set_short(j, "id", p->id);
	wire_set_short(j, "undone", p->undone);
	wire_set_short(j, "before", p->before);
	wire_set_short(j, "after", p->after);
	wire_set_short(j, "sha256", p->sha256);
	json_set_bool(j, "dry_run", p->dry_run);
	json_set_uint(j, "changed", p->changed);
	json_set_uint(j, "merged", p->merged);
	json_set_uint(j, "elapsed_ms", p->elapsed_ms);
	json_set_int(j, "now", now);
	conflicts_set(j, p->conflicts, p->n_conflicts);
	wire_set_notes(j, "paths", p->paths, p->n_paths);
	wire_set_notes(j, "held", p->held, p->n_held);
	wire_set_notes(j, "meanwhile", p->meanwhile, p->n_meanwhile);
	wire_set_notes(j, "left", p->left, p->n_left);
}

static int get_promotion(struct json j, struct engine_promotion *p, int64_t *now)
{
	int r;

	p->end = (enum engine_promote_end)json_get_uint(j, "end");
	p->clone = json_get_name_or_null(j, "clone");
	p->project = json_get_name(j, "project");
	WIRE_GET_SHORT(j, "id", p->id);
	WIRE_GET_SHORT(j, "undone", p->undone);
	WIRE_GET_SHORT(j, "before", p->before);
	WIRE_GET_SHORT(j, "after", p->after);
	WIRE_GET_SHORT(j, "sha256", p->sha256);
	p->dry_run = json_get_bool(j, "dry_run");
	p->changed = json_get_uint(j, "changed");
	p->merged = json_get_uint(j, "merged");
	p->elapsed_ms = json_get_uint(j, "elapsed_ms");
	*now = json_get_int(j, "now");
	r = conflicts_get(j, &p->conflicts, &p->n_conflicts);
	if (r >= 0)
		r = wire_get_notes(j, "paths", &p->paths, &p->n_paths);
	if (r >= 0)
		r = wire_get_notes(j, "held", &p->held, &p->n_held);
	if (r >= 0)
		r = wire_get_notes(j, "meanwhile", &p->meanwhile, &p->n_meanwhile);
	return r < 0 ? r : wire_get_notes(j, "left", &p->left, &p->n_left);
}

static void set_list(struct json j, const char *key, const struct engine_list *list)
{
	struct json array = json_set_array(j, key);

	for (size_t i = 0; i < list->n; i++)
		json_add_name(array, list->items[i]);
}

static int get_list(struct json j, const char *key, struct engine_strings *ret)
{
	struct json array = json_get_array(j, key);
	const size_t n = json_length(array);

	ret->list = calloc(n + 1, sizeof(*ret->list));
	if (!ret->list)
		return -ENOMEM;
	for (; ret->n < n; ret->n++)
		ret->list[ret->n] = json_at_name(array, ret->n);
	return 0;
}

static void strings_done(struct engine_strings *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->list[i]);
	free(s->list);
}

static struct engine_list as_list(const struct engine_strings *s)
{
	return (struct engine_list){ (const char *const *)s->list, s->n };
}

static void set_options(struct json j, const struct promote_options *o)
{
	const struct engine_promote_options *asked = o->asked;

	json_set_bool(j, "undo", o->undo);
	json_set_name(j, "receipt", o->receipt);
	json_set_name(j, "rules", o->rules);
	json_set_name(j, "clone", asked->clone);
	json_set_uint(j, "on_conflict", asked->on_conflict);
	json_set_uint(j, "style", asked->style);
	json_set_bool(j, "dry_run", asked->dry_run);
	json_set_bool(j, "check", o->check);
	json_set_text(j, "checked", o->checked);
	json_set_text(j, "checks", o->checks);
	json_set_int(j, "now", o->now);
	set_list(j, "paths", &asked->paths);
	set_list(j, "excludes", &asked->excludes);
	set_list(j, "allow", &asked->allow);
}

/* --- asking ----------------------------------------------------------------------------- */

/* `c` NULL: nothing is left open.  One that is open is asked once more. */
static int ask(struct engine *e, const struct promote_options *o, struct control *c, bool again,
	       struct engine_promotion *ret, int64_t *ret_now, struct err *err)
{
	CLEANUP(engine_promotion_done) struct engine_promotion got = { 0 };
	CLEANUP(ask_done) struct ask a = { 0 };
	struct json answer;
	int r;

	ask_begin(&a, e, wire_promote.name);
	set_options(a.options, o);
	if (again)
		r = ask_again(&a, e, c, &answer, err);
	else if (c)
		r = ask_keeping(&a, e, ASK_STORE, &o->asked->watch, c, &answer, err);
	else
		r = ask_daemon(&a, e, ASK_STORE, &o->asked->watch, &answer, err);
	if (r == -ECONNRESET && !o->asked->dry_run && !o->check)
		return err_wrap(
		    err, r, "whether it landed is not known yet, and the next cowfsd settles it");
	if (r < 0)
		return r;
	r = get_promotion(answer, &got, ret_now);
	r = r < 0 ? err_nomem(err) : ask_end(&a, err);
	if (r < 0)
		return r;
	*ret = got;
	got = (struct engine_promotion){ 0 };
	return 0;
}

int engine_undo(struct engine *e, const struct engine_undo_options *options,
		struct engine_promotion *ret, struct err *err)
{
	const struct engine_promote_options asked = {
		.on_conflict = options->on_conflict,
		.style = options->style,
		.dry_run = options->dry_run,
		.watch = options->watch,
	};
	const struct promote_options o = { .asked = &asked,
					   .undo = true,
					   .receipt = options->what };
	int64_t now;

	return ask(e, &o, NULL, false, ret, &now, err);
}

/* --- checks ----------------------------------------------------------------------------- */

static int run_check(struct engine *e, const struct engine_promote_options *o, const char *command,
		     const char *tree, struct engine_promotion *p, struct err *err)
{
	CLEANUP(engine_run_done) struct engine_run run = { 0 };
	const char *const argv[] = { "/bin/sh", "-c", command, NULL };
	struct engine_run_options options = {
		.from = tree,
		.argv = argv,
		.workdir = p->project,
		.in_fd = -1,
		.out_fd = -1,
		.err_fd = -1,
	};
	struct engine_checked *c = &p->checks[p->n_checks];
	int r;

	engine_run_limits_init(&options.limits);
	if (o->checking)
		o->checking(command, NULL, o->checking_ctx);
	r = engine_run(e, &options, &run, err);
	if (r < 0)
		return err_wrap(err, r, "check '%.100s'", command);
	if (o->checking)
		o->checking(command, &run, o->checking_ctx);
	*c = (struct engine_checked){
		.command = strdup(command),
		.exit_code = run.exit_code,
		.duration_ms = run.duration_ms,
	};
	memcpy(c->run, run.id, sizeof(c->run));
	p->n_checks += c->command != NULL;
	return c->command ? run.exit_code : err_nomem(err);
}

/* All of them, up to the first that fails. */
static int run_checks(struct engine *e, const struct engine_promote_options *o,
		      struct engine_promotion *p, struct err *err)
{
	int r = 0;

	p->checks = calloc(o->checks.n + 1, sizeof(*p->checks));
	if (!p->checks)
		return err_nomem(err);
	for (size_t i = 0; i < o->checks.n && r == 0; i++)
		r = run_check(e, o, o->checks.items[i], p->after, p, err);
	if (r > 0)
		p->end = ENGINE_CHECK_FAILED;
	return r;
}

static int checks_json(const struct engine_promotion *p, struct buf *out, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json list = json_set_array(json_begin(&doc), "checks"), at;

	for (size_t i = 0; i < p->n_checks; i++) {
		at = json_add_object(list);
		json_set_name(at, "cmd", p->checks[i].command);
		json_set_int(at, "exit_code", p->checks[i].exit_code);
		json_set_text(at, "run", p->checks[i].run);
		json_set_uint(at, "duration_ms", p->checks[i].duration_ms);
	}
	return json_append(&doc, out, err);
}

/* What was merged is checked, and lands if it is still the same. */
static int land_checked(struct engine *e, struct promote_options *o, struct control *c,
			struct engine_promotion *p, struct err *err)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT;
	struct engine_promotion landed = { 0 };
	char tree[ENGINE_ID_SIZE];
	int r = run_checks(e, o->asked, p, err);

	memcpy(tree, p->after, sizeof(tree));
	p->after[0] = '\0';
	if (r != 0)
		return r < 0 ? r : 0;
	r = checks_json(p, &json, err);
	if (r < 0)
		return r;
	o->check = false;
	o->checked = tree;
	o->checks = buf_str(&json);
	r = ask(e, o, c, true, &landed, &o->now, err);
	o->checked = o->checks = NULL;
	if (r < 0)
		return r;
	landed.checks = TAKE_PTR(p->checks);
	landed.n_checks = p->n_checks;
	p->n_checks = 0;
	engine_promotion_done(p);
	*p = landed;
	return 0;
}

static int promote_once(struct engine *e, const struct engine_promote_options *options,
			struct engine_promotion *ret, struct err *err)
{
	CLEANUP(engine_promotion_done) struct engine_promotion p = { 0 };
	CLEANUP(control_done) struct control c = CONTROL_INIT;
	AUTO_FREE char *rules = rules_of_user(e);
	struct promote_options o = { .asked = options, .rules = rules };
	int r;

	o.check = options->checks.n > 0 && !options->dry_run;
	r = ask(e, &o, o.check ? &c : NULL, false, &p, &o.now, err);
	if (r >= 0 && o.check && p.end == ENGINE_PROMOTED && p.after[0] != '\0')
		r = land_checked(e, &o, &c, &p, err);
	if (r < 0)
		return r;
	*ret = p;
	p = (struct engine_promotion){ 0 };
	return 0;
}

static int promote_files(struct engine *e, const struct engine_promote_options *options,
			 struct engine_promotion *ret, struct err *err)
{
	int r = promote_once(e, options, ret, err);

	for (int i = 1; i < TRIES && r >= 0 && ret->end == ENGINE_MOVED; i++) {
		engine_promotion_done(ret);
		r = promote_once(e, options, ret, err);
	}
	return r;
}

/* What can go wrong with commits does so before anything lands, but for the last step. */
int engine_promote(struct engine *e, const struct engine_promote_options *options,
		   struct engine_promotion *ret, struct err *err)
{
	CLEANUP(commits_done) struct commits commits = COMMITS_INIT;
	int r = options->git ? commits_bundle(e, options->clone, &commits, err) : 0;

	if (r >= 0)
		r = promote_files(e, options, ret, err);
	if (r < 0 || !options->git || ret->end != ENGINE_PROMOTED)
		return r;
	if (!options->dry_run)
		r = commits_fetch(ret->project, ret->clone, &commits, err);
	if (r < 0) {
		engine_promotion_done(ret);
		return err_wrap(err, r, "the files are promoted, but not the commits");
	}
	ret->git = true;
	ret->commits = commits.told;
	commits.told = (struct engine_commits){ 0 };
	return 0;
}

/* --- serving ---------------------------------------------------------------------------- */

static int get_lists(struct json j, struct engine_strings lists[3])
{
	int r = get_list(j, "paths", &lists[0]);

	if (r >= 0)
		r = get_list(j, "excludes", &lists[1]);
	return r < 0 ? r : get_list(j, "allow", &lists[2]);
}

static int serve_promote(struct engine *e, const struct engine_watch *watch, struct json options,
			 struct json answer, struct err *err)
{
	CLEANUP(engine_promotion_done) struct engine_promotion p = { 0 };
	CLEANUP(strings_done) struct engine_strings paths = { 0 }, excludes = { 0 }, allow = { 0 };
	struct engine_strings lists[3] = { { 0 } };
	AUTO_FREE char *clone = json_get_name_or_null(options, "clone");
	AUTO_FREE char *receipt = json_get_name_or_null(options, "receipt");
	AUTO_FREE char *rules = json_get_name_or_null(options, "rules");
	struct engine_promote_options asked = {
		.clone = clone,
		.on_conflict = (enum merge_on_conflict)json_get_uint(options, "on_conflict"),
		.style = (enum merge_style)json_get_uint(options, "style"),
		.dry_run = json_get_bool(options, "dry_run"),
		.watch = *watch,
	};
	const struct promote_options o = {
		.asked = &asked,
		.receipt = receipt,
		.rules = rules,
		.undo = json_get_bool(options, "undo"),
		.check = json_get_bool(options, "check"),
		.checked = json_get_text_or_null(options, "checked"),
		.checks = json_get_text_or_null(options, "checks"),
		.now = json_get_int(options, "now"),
	};
	int64_t now = 0;
	int r = get_lists(options, lists);

	paths = lists[0];
	excludes = lists[1];
	allow = lists[2];
	asked.paths = as_list(&paths);
	asked.excludes = as_list(&excludes);
	asked.allow = as_list(&allow);
	r = r < 0 ? err_nomem(err) : json_end(options.doc, err);
	if (r >= 0 && (asked.on_conflict > MERGE_MARKERS || asked.style > MERGE_STYLE_ZDIFF3))
		r = err_set(err, -EINVAL, "there is no such way to merge");
	if (r >= 0)
		r = promote_do(e, &o, &p, &now, err);
	if (r >= 0)
		set_promotion(answer, &p, now);
	return r;
}

const struct wire_verb wire_promote = { "promote", serve_promote };
