#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "base/size.h"
#include "cli/acts.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/show/changes.h"
#include "cli/show/promotions.h"
#include "engine/api/desk.h"

struct pipeline_args {
	bool all;
	const char *at;
};

static const struct opt pipeline_opts[] = {
	OPT_FLAG('a', "all", struct pipeline_args, all,
		 "changes of all projects, and those that are over"),
	OPT_STR(0, "at", "DIR", struct pipeline_args, at,
		"serve: directory of the socket (default: /tmp/snapcow-UID)"),
	OPT_END,
};
_Static_assert(sizeof(struct pipeline_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

/* --- stages -------------------------------------------------------------------------------- */

static void set_stage(struct json j, const struct engine_stage *s)
{
	json_set_name(j, "name", s->name);
	json_set_name(j, "target", s->target);
	json_set_text(j, "approve", s->approve);
	json_set_uint(j, "soak_ms", s->soak_ms);
	json_set_names(j, "checks", s->checks, s->n_checks);
	json_set_names(j, "health", s->health, s->n_health);
}

static void print_stage(struct invocation *inv, const struct engine_stage *s)
{
	char soak[DURATION_TEXT_MAX];

	fprintf(inv->out, "%-12s ", s->name);
	out_name(inv->out, s->target ? s->target : "-");
	fprintf(inv->out, ", approve: %s", s->approve);
	if (s->n_checks > 0) {
		fputs(", ", inv->out);
		out_plural(inv->out, s->n_checks, "check", "checks");
	}
	if (s->soak_ms > 0)
		fprintf(inv->out, ", soaks %s", duration_format(s->soak_ms, soak));
	fputc('\n', inv->out);
}

static int stages(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_pipeline_done) struct engine_pipeline p = { 0 };
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j;
	int r = engine_pipeline(inv->engine, &p, err);

	if (r < 0)
		return r;
	for (size_t i = 0; !inv->json && i < p.n; i++)
		if (inv->quiet)
			fprintf(inv->out, "%s\n", p.list[i].name);
		else
			print_stage(inv, &p.list[i]);
	if (!inv->json)
		return CMD_OK;
	j = out_json_begin(inv, &doc);
	json_set_text(j, "act", "stages");
	json_set_name(j, "file", p.file);
	JSON_SET_LIST(j, "stages", p.list, p.n, set_stage);
	return json_print(&doc, inv->out, err);
}

/* --- changes ------------------------------------------------------------------------------- */

/* Without --all only what is on its way. */
static void keep_open(struct engine_changes *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++)
		if (engine_change_is_over(l->list[i].state))
			engine_change_done(&l->list[i]);
		else
			l->list[n++] = l->list[i];
	l->n = n;
}

static int print_changes(struct invocation *inv, const char *act, const struct engine_changes *l,
			 struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	AUTO_FREE char *address = inv->json ? engine_desk_find(inv->engine) : NULL;
	struct json j;

	for (size_t i = 0; inv->quiet && !inv->json && i < l->n; i++)
		fprintf(inv->out, "%s\n", l->list[i].id);
	if (!inv->quiet && !inv->json)
		changes_print_list(inv, l);
	if (!inv->json)
		return CMD_OK;
	j = out_json_begin(inv, &doc);
	json_set_text(j, "act", act);
	json_set_name(j, "address", address);
	JSON_SET_LIST(j, "changes", l->list, l->n, changes_set);
	return json_print(&doc, inv->out, err);
}

static int load(struct invocation *inv, struct engine_changes *ret, struct err *err)
{
	const struct pipeline_args *args = inv->args;
	int r;

	if (inv->n_words < 2)
		return engine_changes(inv->engine, args->all, ret, err);
	ret->list = calloc(1, sizeof(*ret->list));
	if (!ret->list)
		return err_nomem(err);
	r = engine_change_find(inv->engine, inv->words[1], &ret->list[0], err);
	ret->n = r >= 0;
	return r;
}

static int status(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_changes_done) struct engine_changes l = { 0 };
	const struct pipeline_args *args = inv->args;
	int r = load(inv, &l, err);

	if (r < 0)
		return r;
	if (inv->n_words < 2 && !args->all)
		keep_open(&l);
	return print_changes(inv, "status", &l, err);
}

/* Take everything further that can go on; what another process works on goes on there. */
static int advance(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_changes_done) struct engine_changes l = { 0 };
	const struct engine_ship_options options = {
		.by_time = true,
		.checking = promotions_on_check,
		.ctx = inv,
		.watch = progress_watch(inv->progress),
	};
	struct err ignored = { 0 };
	int failed = 0, r = load(inv, &l, err);

	if (r < 0)
		return r;
	keep_open(&l);
	for (size_t i = 0; i < l.n; i++) {
		CLEANUP(engine_change_done) struct engine_change c = { 0 };
		CLEANUP(engine_promotion_done) struct engine_promotion p = { 0 };

		/* A person, not time, lets these go on. */
		if (l.list[i].state == ENGINE_CHANGE_HELD ||
		    (l.list[i].state == ENGINE_CHANGE_WAITING && !l.list[i].approved_by))
			continue;
		/* One that fails keeps no other from its health checks. */
		r = engine_ship_on(inv->engine, l.list[i].id, &options, &c, &p,
				   failed < 0 ? &ignored : err);
		if (r < 0 && r != -EBUSY && failed == 0)
			failed = r;
		if (r >= 0) {
			engine_change_done(&l.list[i]);
			l.list[i] = TAKE_STRUCT(c);
		}
	}
	progress_done(inv->progress);
	return failed < 0 ? failed : print_changes(inv, "advance", &l, err);
}

static int verify(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_changes_done) struct engine_changes l = { 0 };
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc), list;
	size_t bad = 0;
	int r = load(inv, &l, err);

	json_set_text(j, "act", "verify");
	list = json_set_array(j, "changes");
	for (size_t i = 0; i < l.n && r >= 0; i++) {
		AUTO_FREE char *why = NULL;
		const struct json one = json_add_object(list);

		r = engine_change_verify(inv->engine, &l.list[i], &why, err);
		changes_set(one, &l.list[i]);
		json_set_bool(one, "sound", r == 0);
		json_set_text(one, "damage", why);
		bad += r > 0;
		if (r < 0 || inv->json || (inv->quiet && r == 0))
			continue;
		fprintf(inv->out, "%.*s %s", OUT_SHORT_ID, l.list[i].id, r == 0 ? "is sound" : "");
		if (why)
			out_line(inv->out, why);
		fputc('\n', inv->out);
	}
	if (r < 0)
		return r;
	r = inv->json ? json_print(&doc, inv->out, err) : 0;
	return r < 0 ? r : bad > 0 ? CMD_DAMAGED : CMD_OK;
}

/* --- approvals of others ------------------------------------------------------------------- */

static int print_address(struct invocation *inv, const char *address, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j;
	int r = 0;

	if (!inv->json) {
		fprintf(inv->out, inv->quiet ? "%s\n" : "taking approvals at %s\n", address);
	} else {
		j = out_json_begin(inv, &doc);
		json_set_text(j, "act", "serve");
		json_set_name(j, "address", address);
		r = json_print(&doc, inv->out, err);
	}
	/* It runs on, and the user who started it wants to know where. */
	if (r >= 0 && fflush(inv->out) != 0)
		return err_sys(err, "printing the address");
	return r;
}

static int serve(struct invocation *inv, struct err *err)
{
	static const int ending[] = { SIGINT, SIGTERM, SIGHUP };
	CLEANUP(engine_desk_close_p) struct engine_desk *desk = NULL;
	const struct pipeline_args *args = inv->args;
	struct pollfd fds[ENGINE_DESK_FDS + 1] = { { .events = POLLIN } };
	int r = interrupt_catch(ending, ARRAY_LEN(ending), err);

	if (r < 0)
		return r;
	fds[0].fd = r;
	r = engine_desk_open(inv->engine, args->at, &desk, err);
	if (r >= 0)
		r = print_address(inv, engine_desk_address(desk), err);
	if (r < 0)
		return r;
	for (;;) {
		const size_t n = engine_desk_fds(desk, fds + 1);

		if (poll(fds, n + 1, engine_desk_timeout(desk)) < 0 && errno != EINTR)
			return err_sys(err, "waiting for approvals");
		if (fds[0].revents != 0)
			return CMD_OK;
		engine_desk_serve(desk);
	}
}

static int pipeline_run(struct invocation *inv, struct err *err)
{
	static const struct act acts[] = {
		{ "status", status }, { "stages", stages }, { "advance", advance },
		{ "verify", verify }, { "serve", serve },   { NULL },
	};

	return acts_run(inv, acts, err);
}

const struct command cmd_pipeline = {
	.name = "pipeline",
	.group = "Changes",
	.rare = true,
	.summary = "show changes on their way, take them further, verify receipts",
	.words = "[status|stages|advance|verify [CHANGE] | serve]",
	.max_words = 2,
	.opts = pipeline_opts,
	.details =
	    "Stages are in pipeline.yaml of your configuration: what to check, where to land, who must\n"
	    "approve, how long to watch. .snap/pipeline.yaml of the project can only narrow them.\n"
	    "'advance' takes every change further that waits for no person; a timer or `watch` calls\n"
	    "it. 'verify' checks content and receipts against the store and exits with 12 if one was\n"
	    "changed. 'serve' lets the users and groups that a stage or a rule names approve from\n"
	    "their own accounts, for as long as it runs.\n",
	.examples = "pipeline\npipeline stages\npipeline verify --all\n",
	.run = pipeline_run,
};
