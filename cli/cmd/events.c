#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/size.h"
#include "cli/out.h"
#include "cli/unborn.h"
#include "engine/api/events.h"

#define SHOWN_EVENTS 20 /* unless more are asked for */

struct events_args {
	uint64_t since, last;
	bool follow, all;
};

static const struct opt events_opts[] = {
	OPT_FLAG('f', "follow", struct events_args, follow, "go on with what happens from now on"),
	OPT_U64(0, "since", "N", struct events_args, since, "only those after event N"),
	OPT_U64('n', "last", "N", struct events_args, last,
		"the last N (default: 20; with --json or --since: all; 0: all)"),
	OPT_FLAG('a', "all", struct events_args, all, "events of every project in the store"),
	OPT_END,
};
_Static_assert(sizeof(struct events_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

static void preset(void *to)
{
	((struct events_args *)to)->last = UINT64_MAX;
}

/* --- for people ------------------------------------------------------------------------- */

static void print_text(FILE *out, struct json data, const char *key)
{
	AUTO_FREE char *text = json_get_name_or_null(data, key);

	if (text)
		out_line(out, text);
}

static void print_id(FILE *out, struct json data, const char *key)
{
	AUTO_FREE char *text = json_get_name_or_null(data, key);

	if (text)
		fprintf(out, "%.*s", OUT_SHORT_ID, text);
}

static void print_words(FILE *out, struct json list, const char *between)
{
	for (size_t i = 0; i < json_length(list); i++) {
		AUTO_FREE char *word = json_at_name(list, i);

		fputs(i > 0 ? between : "", out);
		if (word)
			out_line(out, word);
	}
}

/* "3 paths: a, b, c". */
static void print_paths(FILE *out, struct json data, const char *count)
{
	const uint64_t n = json_get_uint(data, count);
	const struct json list = json_get_array(data, "paths");

	out_plural(out, n, "path", "paths");
	if (json_length(list) > 0)
		fputs(": ", out);
	print_words(out, list, ", ");
	if (n > json_length(list))
		fputs(", ...", out);
}

static void print_end(FILE *out, struct json data)
{
	char time[DURATION_TEXT_MAX];

	print_text(out, data, "state");
	if (!json_has(data, "exit_code"))
		return;
	fprintf(out, " with %d after %s", (int)json_get_int(data, "exit_code"),
		duration_format(json_get_uint(data, "duration_ms"), time));
	if (!json_has(data, "problem"))
		return;
	fputs(": ", out);
	print_text(out, data, "problem");
}

static void print_refusal(FILE *out, struct json data)
{
	const char *flag = json_get_text(data, "flag");

	print_text(out, data, "what");
	if (flag && *flag != '\0') {
		fputs(", allowed by ", out);
		out_line(out, flag);
	}
}

static void print_question(FILE *out, struct json data)
{
	print_text(out, data, "question");
	fputs("  ", out);
	print_text(out, data, "what");
	if (!json_has(data, "answer"))
		return;
	fputs(": ", out);
	print_text(out, data, "answer");
	fputs(" by ", out);
	print_text(out, data, "by");
}

static void print_snapshot(FILE *out, struct json data)
{
	const char *message = json_get_text(data, "message");

	print_text(out, data, "snapshot");
	if (json_get_bool(data, "automatic"))
		fputs(" (automatic)", out);
	if (message && *message != '\0') {
		fputs("  ", out);
		out_line(out, message);
	}
}

static void print_capture(FILE *out, struct json data)
{
	const uint64_t lost = json_get_uint(data, "lost");

	print_text(out, data, "snapshot");
	if (json_has(data, "captured"))
		fprintf(out, "  %" PRIu64 " %%", json_get_uint(data, "captured"));
	if (lost > 0) {
		fputs("  lost ", out);
		print_paths(out, data, "lost");
	}
}

static void print_why(FILE *out, struct json data)
{
	if (!json_has(data, "why"))
		return;
	fputs(": ", out);
	print_text(out, data, "why");
}

/* "3f2a9c1e at dev: a person must approve"; once one has, that is no more a reason. */
static void print_change(FILE *out, const char *kind, struct json data)
{
	print_id(out, data, "change");
	if (json_has(data, "stage")) {
		fputs(" at ", out);
		print_text(out, data, "stage");
	}
	if (strcmp(kind, "change-approved") != 0)
		print_why(out, data);
}

/* "lint (files) shipped as 3f2a9c1e: why"; of a pause the rule, or all of them. */
static void print_watch(FILE *out, struct json data)
{
	if (json_has(data, "rule"))
		print_text(out, data, "rule");
	else
		fputs("all rules", out);
	if (!json_has(data, "firing"))
		return;
	fputs(" (", out);
	print_text(out, data, "trigger");
	fputs(") ", out);
	print_text(out, data, json_has(data, "result") ? "result" : "state");
	if (json_has(data, "change")) {
		fputs(" as ", out);
		print_id(out, data, "change");
	}
	print_why(out, data);
}

/* What a line says for each kind; of a kind without a line here only the kind is shown. */
static void print_data(FILE *out, const char *kind, struct json data)
{
	static const struct {
		const char *kind, *key;
	} plain[] = {
		{ "artifact", "artifact" },
		{ "artifact-removed", "artifact" },
		{ "clone", "base" },
		{ "clone-removed", "why" },
		{ "snapshot-removed", "snapshot" },
		{ "limit", "limit" },
		{ "rebase", "onto" },
		{ "damage", "problem" },
	};
	static const struct {
		const char *kind, *count;
	} counted[] = {
		{ "promotion", "changed" }, { "undo", "changed" },       { "rollback", "changed" },
		{ "held", "held" },         { "conflict", "conflicts" },
	};

	for (size_t i = 0; i < ARRAY_LEN(plain); i++)
		if (strcmp(kind, plain[i].kind) == 0)
			print_text(out, data, plain[i].key);
	for (size_t i = 0; i < ARRAY_LEN(counted); i++)
		if (strcmp(kind, counted[i].kind) == 0)
			print_paths(out, data, counted[i].count);
	if (strcmp(kind, "snapshot") == 0)
		print_snapshot(out, data);
	else if (strcmp(kind, "run-started") == 0)
		print_words(out, json_get_array(data, "command"), " ");
	else if (strcmp(kind, "run-ended") == 0)
		print_end(out, data);
	else if (strcmp(kind, "question") == 0 || strcmp(kind, "answer") == 0)
		print_question(out, data);
	else if (strcmp(kind, "refusal") == 0)
		print_refusal(out, data);
	else if (strcmp(kind, "capturing") == 0 || strcmp(kind, "captured") == 0 ||
		 strcmp(kind, "capture-dropped") == 0)
		print_capture(out, data);
	else if (strncmp(kind, "change-", 7) == 0)
		print_change(out, kind, data);
	else if (strncmp(kind, "watch-", 6) == 0)
		print_watch(out, data);
}

static void print_time(FILE *out, int64_t ns)
{
	const time_t s = (time_t)(ns / 1000000000);
	char text[OUT_TIME_MAX];
	struct tm tm;

	if (localtime_r(&s, &tm) && strftime(text, sizeof(text), "%m-%d %H:%M:%S", &tm) > 0)
		fputs(text, out);
}

static int print_human(const struct invocation *inv, const struct engine_event *e, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	FILE *out = inv->out;
	struct json data;
	int r = json_parse(&doc, e->data, strlen(e->data), &data, err);

	if (r < 0)
		return r;
	fprintf(out, "%s%6" PRIu64 "%s  ", out_style(inv, OUT_ID), e->n, out_style(inv, OUT_PLAIN));
	print_time(out, e->time);
	fprintf(out, "  %-16s  %-16s  ", e->kind, e->clone ? e->clone : ".");
	print_data(out, e->kind, data);
	fputc('\n', out);
	return 0;
}

/* --- either ----------------------------------------------------------------------------- */

static int print_json(const struct invocation *inv, const struct engine_event *e, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc);

	json_set_uint(j, "n", e->n);
	out_json_time(j, "time", e->time);
	json_set_text(j, "kind", e->kind);
	json_set_name(j, "project", e->project);
	json_set_name(j, "clone", e->clone);
	json_set_text(j, "run", e->run);
	if (!json_set_parsed(j, "data", e->data, strlen(e->data)))
		return err_set(err, -EBADMSG, "event %" PRIu64 " is damaged", e->n);
	return json_print(&doc, inv->out, err);
}

struct printing {
	const struct invocation *inv;
	uint64_t since, lost;
};

static void warn_of_lost(struct printing *p)
{
	if (p->since > 0 && p->lost > 0)
		log_warn("%" PRIu64 " events after %" PRIu64 " are no longer kept", p->lost,
			 p->since);
	p->lost = 0;
}

/* A reader who follows wants to see it now. */
static int print_event(const struct engine_event *e, void *ctx, struct err *err)
{
	struct printing *p = ctx;
	const struct invocation *inv = p->inv;
	int r = 0;

	warn_of_lost(p);
	if (inv->json)
		r = print_json(inv, e, err);
	else if (inv->quiet)
		fprintf(inv->out, "%" PRIu64 "\n", e->n);
	else
		r = print_human(inv, e, err);
	if (r >= 0 && fflush(inv->out) == EOF)
		return err_sys(err, "writing to standard output");
	return r;
}

static int events_run(struct invocation *inv, struct err *err)
{
	const struct events_args *args = inv->args;
	const bool fold = args->last == UINT64_MAX;
	const struct engine_events_options options = {
		.since = args->since,
		.last = !fold                                        ? args->last
			: inv->json || inv->quiet || args->since > 0 ? 0
								     : SHOWN_EVENTS,
		.all = args->all,
		.follow = args->follow,
		.stop_fd = -1,
	};
	AUTO_FREE char *unborn = NULL;
	struct printing p = { .inv = inv, .since = args->since };
	int r = engine_events(inv->engine, &options, &p.lost, print_event, &p, err);

	warn_of_lost(&p);
	if (r == -ENXIO)
		r = unborn_or(inv, r, "nothing happened yet", &unborn, err);
	return r < 0 ? r : CMD_OK;
}

const struct command cmd_events = {
	.name = "events",
	.group = "Store",
	.rare = true,
	.summary = "print what happened, oldest first",
	.opts = events_opts,
	.preset = preset,
	.details =
	    "Clones, snapshots, runs and their refusals, promotions, conflicts, damage. Each event\n"
	    "has a number, and --since N continues after event N. With --json each event is an\n"
	    "object on a line of its own. The store keeps the newest 8 MiB.\n",
	.examples = "events\nevents --follow\nevents --json --since 120\n",
	.run = events_run,
};
