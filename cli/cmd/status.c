#include <inttypes.h>
#include <string.h>

#include "base/size.h"
#include "cli/progress.h"
#include "cli/show/clones.h"
#include "cli/show/overlaps.h"
#include "cli/show/runs.h"
#include "cli/unborn.h"

struct status_args {
	bool fail_if_stale, others;
};

static const struct opt status_opts[] = {
	OPT_FLAG(0, "fail-if-stale", struct status_args, fail_if_stale,
		 "exit with 6 if the project changed, or if snap cannot find out"),
	OPT_FLAG(0, "others", struct status_args, others,
		 "which other clones touch the same paths, and whether they would conflict"),
	OPT_END,
};
_Static_assert(sizeof(struct status_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

#define JSON_PATHS_MAX 1000 /* of what changed in the clone or project itself */
#define SHOWN_PATHS    10
#define SHOWN_COMMAND  60 /* bytes */

/* --- for programs ----------------------------------------------------------------------- */

static const char *path_name(const struct engine_path *p)
{
	return out_path(p->path);
}

static void set_changed(struct json j, bool known, uint64_t added, uint64_t modified,
			uint64_t deleted, const struct engine_paths *paths)
{
	struct json part, one;

	if (!known) {
		json_set_null(j, "changed");
		json_set_null(j, "changed_paths");
		json_set_bool(j, "truncated", false);
		return;
	}
	part = json_set_object(j, "changed");
	json_set_uint(part, "added", added);
	json_set_uint(part, "modified", modified);
	json_set_uint(part, "deleted", deleted);
	part = json_set_array(j, "changed_paths");
	for (size_t i = 0; i < paths->n && i < JSON_PATHS_MAX; i++) {
		one = json_add_object(part);
		json_set_name(one, "path", path_name(&paths->list[i]));
		json_set_text(one, "status", out_status(paths->list[i].status));
	}
	json_set_bool(j, "truncated", paths->truncated || paths->n > JSON_PATHS_MAX);
}

/* A name that is listed twice, because something else took its place, is printed once. */
static bool is_repeated(const struct engine_paths *paths, size_t i)
{
	return i > 0 && strcmp(paths->list[i].path, paths->list[i - 1].path) == 0;
}

static void set_stale(struct json j, const struct engine_stale *s)
{
	struct json stale, all, both;

	if (!s->known) {
		json_set_null(j, "stale");
		return;
	}
	stale = json_set_object(j, "stale");
	json_set_uint(stale, "behind_ms", s->behind_ms);
	json_set_uint(stale, "changed", s->paths);
	all = json_set_array(stale, "paths");
	both = json_set_array(stale, "both");
	for (size_t i = 0; i < s->in_project.n; i++) {
		if (is_repeated(&s->in_project, i))
			continue;
		json_add_name(all, path_name(&s->in_project.list[i]));
		if (s->in_project.list[i].both)
			json_add_name(both, path_name(&s->in_project.list[i]));
	}
	json_set_bool(stale, "truncated", s->in_project.truncated);
	out_json_time(stale, "as_of", s->as_of);
}

static void set_last_run(struct json j, const struct engine_runs *runs)
{
	struct json last;

	if (runs->n == 0) {
		json_set_null(j, "last_run");
		return;
	}
	last = json_set_object(j, "last_run");
	runs_set_json(last, &runs->list[0]);
	runs_set_changed(last, &runs->list[0]);
}

/* What a remote did not give when it was needed. */
static void set_unread(struct json j, const struct engine_clone *c)
{
	struct json list = json_set_array(j, "unread");

	for (size_t i = 0; i < c->unread.n; i++)
		json_add_name(list, c->unread.list[i].path);
	json_set_text(j, "stuck", c->stuck);
}

static int print_clone_json(const struct invocation *inv, const struct engine_clone *c,
			    const struct engine_runs *runs, const struct engine_overlaps *overlaps,
			    struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc);

	clones_set_json(j, c);
	set_changed(j, c->compared, c->added, c->modified, c->deleted, &c->changed);
	set_stale(j, &c->stale);
	set_unread(j, c);
	json_set_uint(j, "used", c->used);
	clones_set_own(j, c);
	set_last_run(j, runs);
	if (overlaps)
		overlaps_set_json(j, overlaps);
	return json_print(&doc, inv->out, err);
}

/* What a project has no answer to yet is null. */
static int print_project_json(const struct invocation *inv, const struct engine_overview *o,
			      const struct engine_overlaps *overlaps, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc);

	json_set_null(j, "clone");
	json_set_name(j, "project", o->path);
	out_json_id(j, "base", o->newest);
	set_changed(j, o->compared, o->added, o->modified, o->deleted, &o->changed);
	json_set_null(j, "stale");
	json_set_null(j, "quota");
	json_set_null(j, "used");
	json_set_null(j, "own");
	json_set_uint(j, "snapshots", o->snapshots);
	json_set_uint(j, "clones", o->clones);
	json_set_uint(j, "mounted", o->mounted);
	json_set_bool(j, "complete", !o->capturing.open);
	json_set_uint(j, "captured", engine_captured_percent(&o->capturing));
	if (overlaps)
		overlaps_set_json(j, overlaps);
	return json_print(&doc, inv->out, err);
}

/* --- for people ------------------------------------------------------------------------- */

static void print_field(const struct invocation *inv, const char *name)
{
	fprintf(inv->out, "%s%-9s%s", out_style(inv, OUT_DIM), name, out_style(inv, OUT_PLAIN));
}

static void print_name_field(const struct invocation *inv, const char *field, const char *name)
{
	print_field(inv, field);
	out_name_line(inv->out, name);
}

/* "3 paths changed in the project, 1 of them also here; the base is 14m 2s old" */
static void print_stale(const struct invocation *inv, const struct engine_stale *s)
{
	char behind[DURATION_TEXT_MAX], count[OUT_COUNT_MAX];

	print_field(inv, "behind");
	if (!s->known) {
		fputs("not known\n", inv->out);
		return;
	}
	if (s->paths == 0) {
		fputs("nothing, the project is as it was\n", inv->out);
		return;
	}
	out_plural(inv->out, s->paths, "path", "paths");
	fputs(" changed in the project", inv->out);
	if (s->both > 0)
		fprintf(inv->out, ", %s of them also here", out_count(s->both, count));
	fprintf(inv->out, "; the base is %s old\n", duration_format(s->behind_ms, behind));
}

/* How many lie in the same folder of git's own; 1 for all that is not. */
static size_t count_run(const struct engine_paths *paths, size_t at, bool *ret_both)
{
	size_t n = 0;

	*ret_both = false;
	do {
		*ret_both |= paths->list[at + n].both;
		n++;
	} while (at + n < paths->n &&
		 out_same_git_folder(paths->list[at].path, paths->list[at + n].path));
	return n;
}

/* One line, for a path or for all that changed in a folder of git's own; how many that were. */
static size_t print_path(const struct invocation *inv, const struct engine_paths *paths, size_t at)
{
	const struct engine_path *p = &paths->list[at];
	char count[OUT_COUNT_MAX];
	bool both;
	const size_t n = count_run(paths, at, &both);
	const char status = n > 1 ? 'M' : p->status;
	const enum out_style style = status == 'A' ? OUT_GOOD : status == 'D' ? OUT_OLD : OUT_ID;
	AUTO_FREE char *folder = n > 1 ? strndup(p->path, out_git_folder(p->path)) : NULL;

	fprintf(inv->out, "  %s%c%s  ", out_style(inv, style), status, out_style(inv, OUT_PLAIN));
	out_name(inv->out, folder ? folder : path_name(p));
	if (n > 1)
		fprintf(inv->out, "  (%s paths)", out_count(n, count));
	fputs(both ? "  (in both)\n" : "\n", inv->out);
	return n;
}

/* The first of them, those that changed on both sides marked. */
static void print_paths(const struct invocation *inv, const char *title,
			const struct engine_paths *paths, uint64_t total)
{
	char count[OUT_COUNT_MAX];
	size_t at = 0, run;

	if (paths->n == 0)
		return;
	fprintf(inv->out, "\n%s\n", title);
	for (unsigned n = 0; n < SHOWN_PATHS && at < paths->n; n++, at += run) {
		run = print_path(inv, paths, at);
	}
	if (total > at)
		fprintf(inv->out, "  and %s more\n", out_count(total - at, count));
}

static void print_last_run(const struct invocation *inv, const struct engine_runs *runs)
{
	char when[OUT_TIME_MAX], outcome[OUT_COUNT_MAX];

	if (runs->n == 0)
		return;
	print_field(inv, "last run");
	fprintf(inv->out, "%s, %s, %s: ", runs->list[0].id, out_when(runs->list[0].started, when),
		runs_outcome(&runs->list[0], outcome));
	runs_print_command(inv->out, &runs->list[0], SHOWN_COMMAND);
	fputc('\n', inv->out);
}

static void print_lost(const struct invocation *inv, const struct engine_clone *c)
{
	if (c->capturing.lost == 0)
		return;
	print_paths(inv, "lost: changed in the project before they were captured", &c->lost,
		    c->capturing.lost);
	fprintf(inv->out, "'rebase %s' takes what the project has now\n", c->name);
}

static void print_capturing(const struct invocation *inv, const struct engine_capturing *c)
{
	if (!c->open)
		return;
	print_field(inv, c->remote ? "fetched" : "captured");
	fprintf(inv->out, "%s %u %%\n", c->remote ? "fetching" : "capturing",
		engine_captured_percent(c));
}

static void print_unread(const struct invocation *inv, const struct engine_clone *c)
{
	if (c->stuck) {
		print_field(inv, "stuck");
		fprintf(inv->out, "%s\n", c->stuck);
	}
	if (c->unread.n > 0)
		print_paths(inv, "not fetched when they were needed", &c->unread, c->unread.n);
}

static void print_clone(const struct invocation *inv, const struct engine_clone *c,
			const struct engine_runs *runs)
{
	char when[OUT_TIME_MAX], expiry[CLONES_EXPIRY_MAX], size[SIZE_TEXT_MAX];
	char quota[SIZE_TEXT_MAX];

	print_name_field(inv, "clone", c->name);
	print_name_field(inv, "path", c->path);
	print_name_field(inv, "project", c->project);
	if (c->part)
		print_name_field(inv, "only", c->part);
	print_field(inv, "base");
	fprintf(inv->out, "%s%.*s%s\n", out_style(inv, OUT_ID), OUT_SHORT_ID, c->base,
		out_style(inv, OUT_PLAIN));
	print_field(inv, "created");
	fputs(out_when(c->created, when), inv->out);
	clones_print_maker(inv->out, c);
	fputc('\n', inv->out);
	print_field(inv, "expires");
	fprintf(inv->out, "%s\n", clones_expiry(c, expiry));
	print_field(inv, "mounted");
	fprintf(inv->out, "%s%s\n", c->mounted ? "yes" : "no",
		c->no_xattrs ? ", for root alone, without extended attributes"
		: c->private ? ", for root alone"
			     : "");
	print_field(inv, "changed");
	clones_print_changes(inv->out, c);
	fputc('\n', inv->out);
	print_field(inv, "its own");
	fprintf(inv->out, "%s\n", c->compared ? size_format(c->own, size) : "?");
	print_field(inv, "quota");
	if (c->quota > 0)
		fprintf(inv->out, "grown by %s of %s\n", size_format(c->used, size),
			size_format(c->quota, quota));
	else
		fputs("none\n", inv->out);
	if (c->allow)
		print_name_field(inv, "allow", c->allow);
	print_capturing(inv, &c->capturing);
	print_stale(inv, &c->stale);
	print_last_run(inv, runs);
	print_paths(inv, "changed here", &c->changed, c->added + c->modified + c->deleted);
	print_paths(inv, "changed in the project", &c->stale.in_project, c->stale.paths);
	print_lost(inv, c);
	print_unread(inv, c);
}

static void print_project(const struct invocation *inv, const struct engine_overview *o)
{
	const struct engine_clone counts = {
		.compared = o->compared,
		.added = o->added,
		.modified = o->modified,
		.deleted = o->deleted,
	};
	char when[OUT_TIME_MAX];

	print_name_field(inv, "project", o->path);
	print_field(inv, "newest");
	fprintf(inv->out, "%s%.*s%s, %s\n", out_style(inv, OUT_ID), OUT_SHORT_ID, o->newest,
		out_style(inv, OUT_PLAIN), out_when(o->newest_time, when));
	print_field(inv, "has");
	out_plural(inv->out, o->snapshots, "snapshot", "snapshots");
	fputs(", ", inv->out);
	out_plural(inv->out, o->clones, "clone", "clones");
	fputs(", ", inv->out);
	fprintf(inv->out, "%llu mounted\n", (unsigned long long)o->mounted);
	print_capturing(inv, &o->capturing);
	print_field(inv, "changed");
	clones_print_changes(inv->out, &counts);
	fputs(o->compared ? " since the newest\n" : "\n", inv->out);
	print_paths(inv, "changed since the newest snapshot", &o->changed,
		    o->added + o->modified + o->deleted);
}

static int status_run(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_clone_done) struct engine_clone clone = { 0 };
	CLEANUP(engine_overview_done) struct engine_overview project = { 0 };
	const struct status_args *args = inv->args;
	CLEANUP(engine_runs_done) struct engine_runs runs = { 0 };
	CLEANUP(engine_overlaps_done) struct engine_overlaps found = { 0 };
	const struct engine_overlaps *overlaps = args->others ? &found : NULL;
	struct engine_runs_options of_clone = { 0 };
	struct engine_watch watch;
	bool stale;
	int r;

	watch = progress_watch(inv->progress);
	r = engine_status(inv->engine, inv->n_words > 0 ? inv->words[0] : NULL, &watch, &clone,
			  &project, err);
	progress_done(inv->progress);
	clones_hint(inv, r, NULL, NULL);
	if (inv->n_words == 0) {
		r = unborn_or(inv, r, "no clones yet", &project.path, err);
		if (r > 0)
			return CMD_OK;
	}
	if (r < 0)
		return r;
	if (clone.name) {
		of_clone.clone = clone.name;
		r = engine_runs(inv->engine, &of_clone, &runs, err);
		if (r < 0)
			return r;
		/* Of another clone that had its name nothing is said here. */
		if (runs_count(&runs, &clone) == 0)
			engine_runs_done(&runs);
	}
	if (r < 0)
		return r;
	if (overlaps && (clone.name || *project.newest != '\0'))
		r = engine_overlaps(inv->engine, clone.name, &found, err);
	if (r < 0)
		return r;
	if (inv->json)
		r = clone.name ? print_clone_json(inv, &clone, &runs, overlaps, err)
			       : print_project_json(inv, &project, overlaps, err);
	else if (clone.name)
		print_clone(inv, &clone, &runs);
	else
		print_project(inv, &project);
	if (!inv->json && overlaps)
		overlaps_print(inv, overlaps, clone.name);
	stale = clone.name && (!clone.stale.known || clone.stale.paths > 0);
	return r < 0 ? r : args->fail_if_stale && stale ? CMD_STALE : CMD_OK;
}

const struct command cmd_status = {
	.name = "status",
	.group = "Clones",
	.summary = "say what changed, and how far a clone is behind its project",
	.words = "[CLONE]",
	.max_words = 1,
	.opts = status_opts,
	.details =
	    "Without CLONE: the clone that holds the current directory, else the project since\n"
	    "its newest snapshot. Compares with the project as it is now and takes no snapshot.\n"
	    "`(in both)` marks what changed in the clone and in the project.\n"
	    "\n"
	    "With --others: `same` means that two clones changed a path in the same way, `apart`\n"
	    "that both changes can be merged, `overlap` that they would conflict. If the clones\n"
	    "have different bases, the older base counts: what the project changed between the\n"
	    "two is then a change of the younger clone.\n",
	.examples = "status idea\nstatus idea --fail-if-stale --json\nstatus idea --others\n",
	.run = status_run,
};
