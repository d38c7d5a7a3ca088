#include "cli/show/promotions.h"

#include <errno.h>
#include <string.h>

#include "base/size.h"
#include "cli/fail.h"
#include "cli/out.h"
#include "cli/progress.h"
#include "cli/screen.h"
#include "cli/show/conflicts.h"
#include "cli/show/held.h"

#define SHOWN_MAX 20 /* paths of each sort that people are shown */

/* --- for programs ----------------------------------------------------------------------- */

void promotions_set_paths(struct json j, const char *key, const struct engine_rolled_path *list,
			  size_t n, const char *why)
{
	struct json array = json_set_array(j, key), at;

	for (size_t i = 0; i < n; i++) {
		at = json_add_object(array);
		json_set_name(at, "path", out_path(list[i].path));
		if (list[i].status != '!')
			json_set_text(at, "status", out_status(list[i].status));
		if (why)
			json_set_text(at, why, list[i].why);
		if (list[i].detail)
			json_set_name(at, "target", list[i].detail);
	}
}

void promotions_set_warnings(struct json j, const struct engine_rolled_path *list, size_t n)
{
	struct json array = json_set_array(j, "warnings"), at;

	for (size_t i = 0; i < n; i++) {
		at = json_add_object(array);
		json_set_name(at, "path", out_path(list[i].path));
		json_set_text(at, "status", out_status(list[i].status));
		json_set_text(at, "rule", list[i].why);
		json_set_name(at, "detail", list[i].detail);
	}
}

static void set_commits(struct json j, const struct engine_commits *c)
{
	struct json array = json_set_array(j, "git"), at;

	for (size_t i = 0; i < c->n; i++) {
		at = json_add_object(array);
		json_set_name(at, "repository", c->list[i].repository);
		json_set_name(at, "ref", c->list[i].ref);
		json_set_name(at, "commit", c->list[i].commit);
	}
}

void promotions_set_json(struct json j, const void *ctx)
{
	const struct engine_promotion *p = ctx;

	out_json_id(j, "promotion", p->id);
	if (p->undone[0] != '\0')
		json_set_text(j, "undone", p->undone);
	json_set_name(j, "clone", p->clone);
	json_set_name(j, "project", p->project);
	if (p->to)
		json_set_name(j, "to", p->to);
	out_json_id(j, "before", p->before);
	out_json_id(j, "after", p->after);
	out_json_id(j, "sha256", p->sha256);
	out_json_id(j, "plan", p->plan);
	json_set_bool(j, "dry_run", p->dry_run);
	promotions_set_paths(j, "changed", p->paths, p->n_paths, NULL);
	json_set_bool(j, "truncated", p->n_paths < p->changed);
	json_set_uint(j, "merged", p->merged);
	conflicts_set_json(j, p->conflicts, p->n_conflicts);
	promotions_set_paths(j, "held", p->held, p->n_held, "rule");
	promotions_set_warnings(j, p->warned, p->n_warned);
	promotions_set_paths(j, "meanwhile", p->meanwhile, p->n_meanwhile, "why");
	promotions_set_paths(j, "left", p->left, p->n_left, NULL);
	fields_set_list(j, "checks", &engine_checked_fields, p->checks, p->n_checks);
	if (p->git)
		set_commits(j, &p->commits);
	json_set_uint(j, "elapsed_ms", p->elapsed_ms);
}

/* --- for people ------------------------------------------------------------------------- */

static void print_target(const struct invocation *inv, const char *target)
{
	if (!target)
		return;
	fputs(" -> ", inv->out);
	out_name(inv->out, target);
}

void promotions_print_paths(const struct invocation *inv, const struct engine_rolled_path *list,
			    size_t n)
{
	static const char style[] = { 'A', 'M', 'D' };
	static const enum out_style styles[] = { OUT_GOOD, OUT_PLAIN, OUT_BAD };

	size_t i = 0, run;

	for (unsigned lines = 0; i < n && lines < SHOWN_MAX; lines++, i += run) {
		const struct engine_rolled_path *p = &list[i];
		AUTO_FREE char *folder = NULL;
		char status;
		const char *at;

		for (run = 1; i + run < n && out_same_git_folder(p->path, p[run].path); run++)
			;
		if (run > 1)
			folder = strndup(p->path, out_git_folder(p->path));
		status = run > 1 ? 'M' : p->status;
		at = memchr(style, status, sizeof(style));
		fprintf(inv->out, "  %s%c ", out_style(inv, at ? styles[at - style] : OUT_PLAIN),
			status);
		out_name(inv->out, folder ? folder : out_path(p->path));
		if (run > 1)
			fprintf(inv->out, "  (%zu paths)", run);
		fputs(out_style(inv, OUT_PLAIN), inv->out);
		print_target(inv, run > 1 ? NULL : p->detail);
		fputc('\n', inv->out);
	}
	if (n > i)
		fprintf(inv->out, "  and %zu more\n", n - i);
}

static void print_head(const struct invocation *inv, const struct engine_promotion *p)
{
	const bool undo = p->undone[0] != '\0';
	char time[DURATION_TEXT_MAX];

	if (p->dry_run)
		fputs(undo ? "would undo  " : "would promote  ", inv->out);
	else
		out_id(inv, undo ? "undone  " : "promoted  ", undo ? p->undone : p->id);
	fputs(p->dry_run ? "" : "  ", inv->out);
	out_plural(inv->out, p->changed, "path", "paths");
	if (p->merged > 0) {
		fputs(", ", inv->out);
		out_plural(inv->out, p->merged, "text", "texts");
		fputs(" merged from both sides", inv->out);
	}
	if (p->to) {
		fputs(undo ? " of " : " to ", inv->out);
		out_name(inv->out, p->to);
	}
	fprintf(inv->out, ", in %s\n", duration_format(p->elapsed_ms, time));
}

void promotions_print_warnings(const struct invocation *inv, const struct engine_rolled_path *list,
			       size_t n)
{
	for (size_t i = 0; i < n && i < SHOWN_MAX; i++) {
		fprintf(inv->out, "  %swarning:%s ", out_style(inv, OUT_BAD),
			out_style(inv, OUT_PLAIN));
		out_name(inv->out, list[i].path);
		fputs(": ", inv->out);
		if (list[i].detail) {
			out_name(inv->out, list[i].detail);
			fputs(": ", inv->out);
		}
		fprintf(inv->out, "%s (%s)\n", held_why(list[i].why), list[i].why);
	}
	if (n > SHOWN_MAX)
		fprintf(inv->out, "  and %zu more warnings\n", n - SHOWN_MAX);
}

void promotions_print_saved(const struct invocation *inv, const char *saved, const char *clone,
			    const char *receipt)
{
	const bool undo = *receipt != '\0';
	char id[OUT_SHORT_ID + 1];
	AUTO_FREE char *back = NULL;

	snprintf(id, sizeof(id), "%.*s", OUT_SHORT_ID, undo ? receipt : saved);
	if (undo || !clone)
		back = cmd_line(inv, undo ? "undo" : "rollback", (const char *[]){ id, NULL });
	else
		back = cmd_line(inv, "rollback", (const char *[]){ clone, id, NULL });
	out_id(inv, "  the state before is snapshot ", saved);
	if (back)
		fprintf(inv->out, "; to return: %s", back);
	fputc('\n', inv->out);
}

/* Of a dry run: what would stand in the way. */
void promotions_print_obstacles(const struct invocation *inv, const struct engine_promotion *p)
{
	conflicts_print(inv, inv->out, p->to ? NULL : p->clone, p->conflicts, p->n_conflicts);
	held_print(inv, inv->out, p->held, p->n_held);
	promotions_print_warnings(inv, p->warned, p->n_warned);
}

static void print_left(const struct invocation *inv, const struct engine_promotion *p)
{
	/* Only this command knows --git, and not with --to. */
	const bool may_bring = !p->git && !p->to && strcmp(inv->command->name, "promote") == 0;

	for (size_t i = 0; i < p->n_left; i++) {
		const char *why = p->left[i].why;

		fputs("  left alone: ", inv->out);
		out_name(inv->out, p->left[i].path);
		fprintf(inv->out, ", which %s%s\n", why ? why : "is git's own",
			!why && may_bring ? "; 'promote --git' brings commits" : "");
	}
}

static void print_human(const struct invocation *inv, const struct engine_promotion *p)
{
	if (p->changed == 0 && p->undone[0] && !p->dry_run) {
		out_id(inv, "counts as undone  ", p->undone);
		fputs(", none of its changes are left\n", inv->out);
	} else if (p->changed == 0) {
		fputs(p->undone[0] ? "nothing to undo\n" : "nothing to promote\n", inv->out);
	} else {
		print_head(inv, p);
		promotions_print_paths(inv, p->paths, p->n_paths);
	}
	if (p->dry_run || p->n_conflicts > 0)
		promotions_print_obstacles(inv, p);
	else
		promotions_print_warnings(inv, p->warned, p->n_warned);
	print_left(inv, p);
	for (size_t i = 0; i < p->commits.n; i++) {
		fputs(p->dry_run ? "  would bring " : "  brought ", inv->out);
		out_name(inv->out, p->commits.list[i].ref);
		fprintf(inv->out, " at %.12s", p->commits.list[i].commit);
		if (*p->commits.list[i].repository) {
			fputs(" in submodule ", inv->out);
			out_name(inv->out, p->commits.list[i].repository);
		}
		fputc('\n', inv->out);
	}
	if (p->git && p->commits.n == 0)
		fputs("  no commit that the project lacks\n", inv->out);
	if (p->undone[0] != '\0' && p->id[0] != '\0') {
		out_id(inv, "  this undo is promotion ", p->id);
		fputs(", and can be undone too\n", inv->out);
	}
	if (p->before[0] != '\0' && p->changed > 0) {
		out_id(inv, "  snapshots: ", p->before);
		out_id(inv, " before it, ", p->after);
		fputs(" after it\n", inv->out);
	}
}

/* --- checks ----------------------------------------------------------------------------- */

#define TAIL_LINES 20

/* Its last lines, as they came. */
static void print_tail(const struct invocation *inv, const struct buf *said)
{
	CLEANUP(screen_done) struct screen screen = { 0 };
	const char *text = (const char *)said->data;
	size_t from = said->len, lines = 0;
	struct err err = { 0 };

	while (from > 0 && (text[from - 1] != '\n' || from == said->len || ++lines < TAIL_LINES))
		from--;
	screen_begin(&screen, inv);
	for (size_t n; from < said->len; from += n) {
		const char *end = memchr(text + from, '\n', said->len - from);

		n = end ? (size_t)(end - (text + from)) + 1 : said->len - from;
		fprintf(inv->out, "  %s|%s ", out_style(inv, OUT_DIM), out_style(inv, OUT_PLAIN));
		if (screen_write(&screen, text + from, n - (end != NULL), &err) < 0 ||
		    screen_flush(&screen, &err) < 0)
			return; /* finish_output() in main.c tells it */
		fputc('\n', inv->out);
	}
}

void promotions_on_check(const char *command, const struct engine_run *run, void *ctx)
{
	struct invocation *inv = ctx;
	char time[DURATION_TEXT_MAX];

	progress_done(inv->progress);
	if (!run)
		progress_show_check(inv->progress, command);
	if (!run || inv->json || inv->quiet)
		return;
	fprintf(inv->out, "%s%s%s  ", out_style(inv, run->exit_code ? OUT_BAD : OUT_GOOD),
		run->exit_code ? "✗" : "✓", out_style(inv, OUT_PLAIN));
	out_name(inv->out, command);
	fprintf(inv->out, "  %s\n", duration_format(run->duration_ms, time));
	if (run->exit_code != 0)
		print_tail(inv, &run->out);
	fflush(inv->out);
}

/* --- what stood in the way -------------------------------------------------------------- */

/* A promotion of the clone that is left must be no less careful. */
static void hint_again(struct invocation *inv, const struct engine_promotion *p, const char *option,
		       const char *value)
{
	static const char *const careful[] = { "check", "allow", "conflict", "markers", NULL };
	struct hint_again again = { .option = option, .value = value };

	if (inv->command->leaves_clone) {
		again.command = "promote";
		again.only = careful;
		again.word = p->clone;
	} else if (p->undone[0] && inv->n_words == 0) {
		again.word = p->undone;
	}
	cmd_hint_again(inv, &again);
}

static void list_conflicts(const struct invocation *inv, const void *ctx)
{
	const struct engine_promotion *p = ctx;

	const char *clone = p->undone[0] || p->to ? NULL : p->clone; /* that `resolve` is for */

	conflicts_print(inv, stderr, clone, p->conflicts, p->n_conflicts);
}

static void hint_conflicts(struct invocation *inv, const struct engine_promotion *p,
			   const struct engine_conflict *c)
{
	static const char *const sides[] = { "the base: the file before both changes", NULL,
					     "the clone's version" };
	static const char *const undo_sides[] = { "the file after the change to be undone", NULL,
						  "the file before that change" };

	hint_again(inv, p, "conflict", p->to ? "theirs" : "markers");
	cmd_hint_note(inv, p->to ? "take the clone's version"
				 : "put both versions, marked, into the project's files");
	if (!p->undone[0] && !p->to) {
		cmd_hint_words(inv, "resolve", (const char *[]){ p->clone, NULL });
		cmd_hint_note(inv, "list the conflicts and what to type for each");
		cmd_hint_words(inv, "promote", (const char *[]){ "--continue", p->clone, NULL });
		cmd_hint_note(inv, "usual: settle each conflict with resolve, then this");
	}
	if (!p->to)
		conflicts_hint_sides(inv, c, p->undone[0] ? undo_sides : sides);
}

static int print_conflicts(struct invocation *inv, const struct engine_promotion *p)
{
	const char *act = p->undone[0] ? "undone" : "promoted";
	struct err err = { 0 };
	size_t n;
	const struct engine_conflict *c = conflicts_first_open(p->conflicts, p->n_conflicts, &n);
	int r;

	conflicts_say_open(act, p->conflicts, p->n_conflicts, &err);
	inv->print_more = list_conflicts;
	inv->more = p;
	hint_conflicts(inv, p, c);
	r = fail_with(inv, CMD_CONFLICT, &err, promotions_set_json, p);
	inv->print_more = NULL;
	return r;
}

static void list_held(const struct invocation *inv, const void *ctx)
{
	const struct engine_promotion *p = ctx;

	held_print(inv, stderr, p->held, p->n_held);
}

static int print_held(struct invocation *inv, const struct engine_promotion *p)
{
	struct err err = { 0 };
	int r;

	held_say("nothing is promoted:", p->held, p->n_held, &err);
	if (p->n_held > 1)
		inv->print_more = list_held;
	inv->more = p;
	hint_again(inv, p, "allow", p->held[0].path);
	cmd_hint(inv,
		 held_by_system(p->held, p->n_held) ? "promote --rules --root" : "promote --rules");
	r = fail_with(inv, CMD_REFUSED, &err, promotions_set_json, p);
	inv->print_more = NULL;
	return r;
}

static int print_check(struct invocation *inv, const struct engine_promotion *p)
{
	const struct engine_checked *c = &p->checks[p->n_checks - 1];
	struct err err = { 0 };

	err_set(&err, -ECANCELED, "nothing is promoted: check '%.100s' ended with %d", c->command,
		c->exit_code);
	cmd_hint(inv, "logs %s", c->run);
	return fail_with(inv, CMD_CHECK_FAILED, &err, promotions_set_json, p);
}

static int print_moved(struct invocation *inv, const struct engine_promotion *p)
{
	const char *act = p->undone[0] ? "undone" : "promoted";
	struct err err = { 0 };

	if (p->n_meanwhile == 0)
		err_set(&err, -ESTALE, "nothing is %s: %s changes all the time", act,
			p->to ? "what it is taken from" : "the project");
	else if (p->n_meanwhile == 1)
		err_set(&err, -ESTALE, "nothing is %s: '%s' %s", act, p->meanwhile[0].path,
			p->meanwhile[0].why);
	else
		err_set(&err, -ESTALE, "nothing is %s: '%s' %s, and %zu more like it", act,
			p->meanwhile[0].path, p->meanwhile[0].why, p->n_meanwhile - 1);
	hint_again(inv, p, NULL, NULL);
	return fail_with(inv, CMD_CONFLICT, &err, promotions_set_json, p);
}

/* A dry run tells its plan, and ends as the act would. */
static int code_of(const struct engine_promotion *p)
{
	if (!p->dry_run)
		return CMD_OK;
	return p->end == ENGINE_CONFLICTS ? CMD_CONFLICT
	       : p->end == ENGINE_HELD    ? CMD_REFUSED
					  : CMD_OK;
}

int promotions_tell(struct invocation *inv, const struct engine_promotion *p, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	int r = CMD_OK;

	switch (p->dry_run ? ENGINE_PROMOTED : p->end) {
	case ENGINE_CONFLICTS:
		return print_conflicts(inv, p);
	case ENGINE_HELD:
		return print_held(inv, p);
	case ENGINE_CHECK_FAILED:
		return print_check(inv, p);
	case ENGINE_MOVED:
		return print_moved(inv, p);
	case ENGINE_PROMOTED:
		break;
	}
	if (inv->json) {
		promotions_set_json(out_json_begin(inv, &doc), p);
		r = json_print(&doc, inv->out, err);
	} else if (inv->quiet && p->id[0] != '\0') {
		fprintf(inv->out, "%s\n", p->id);
	} else if (!inv->quiet) {
		print_human(inv, p);
	}
	return r < 0 ? r : code_of(p);
}

/* Any command reads the log; only cowfsd ends what was begun. */
void promotions_hint_lost(struct invocation *inv, int r)
{
	if (r != -ECONNRESET)
		return;
	cmd_hint(inv, "start");
	cmd_hint(inv, "log");
}
