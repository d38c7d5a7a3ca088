#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "cli/acts.h"
#include "cli/http/hook.h"
#include "cli/http/token.h"
#include "cli/show/firings.h"

struct watch_args {
	bool foreground, once;
	const char *detail, *listen, *token_file;
};

static const struct opt watch_opts[] = {
	OPT_FLAG(0, "foreground", struct watch_args, foreground,
		 "start: stay here, as a service manager wants it"),
	OPT_FLAG(0, "once", struct watch_args, once, "start: do what is due, wait for it, and end"),
	OPT_STR(0, "detail", "TEXT", struct watch_args, detail,
		"fire: give the action SNAPCOW_TRIGGER_DETAIL"),
	OPT_STR(0, "listen", "ADDRESS:PORT", struct watch_args, listen,
		"hook: listen there; port 0 picks a free port"),
	OPT_STR(0, "token-file", "FILE", struct watch_args, token_file,
		"hook: read the token from FILE, or create it there"),
	OPT_END,
};
_Static_assert(sizeof(struct watch_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

static const char *rule_of(const struct invocation *inv)
{
	return inv->n_words > 1 ? inv->words[1] : NULL;
}

/* --- the process --------------------------------------------------------------------------- */

/* One line for people, or an object with `act` and what else the line says. */
static int answer(struct invocation *inv, const char *key, int64_t value, const char *text,
		  struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j;

	if (!inv->json) {
		if (!inv->quiet)
			fprintf(inv->out, "%s\n", text);
		return CMD_OK;
	}
	j = out_json_begin(inv, &doc);
	json_set_text(j, "act", inv->words[0]);
	json_set_name(j, "rule", rule_of(inv));
	if (key)
		json_set_int(j, key, value);
	return json_print(&doc, inv->out, err);
}

static int start(struct invocation *inv, struct err *err)
{
	const struct watch_args *args = inv->args;
	const struct engine_watch_start_options options = { .foreground = args->foreground,
							    .once = args->once };
	int64_t pid = 0;
	char text[80];
	int r = engine_watch_start(inv->engine, &options, &pid, err);

	if (r == -EBUSY)
		cmd_hint(inv, "watch status");
	if (r < 0)
		return r;
	snprintf(text, sizeof(text),
		 args->foreground || args->once ? "The watch has ended."
						: "Watching, by process %" PRId64 ".",
		 pid);
	return answer(inv, "pid", pid, text, err);
}

static int stop(struct invocation *inv, struct err *err)
{
	int r = engine_watch_stop(inv->engine, err);

	return r < 0 ? r
		     : answer(inv, "stopped", r == 0, r > 0 ? "Nothing was watching." : "Stopped.",
			      err);
}

static int pause_or_resume(struct invocation *inv, bool resume, struct err *err)
{
	int r = engine_watch_pause(inv->engine, rule_of(inv), resume, err);

	return r < 0 ? r : answer(inv, NULL, 0, resume ? "Resumed." : "Paused.", err);
}

static int pause_rules(struct invocation *inv, struct err *err)
{
	return pause_or_resume(inv, false, err);
}

static int resume_rules(struct invocation *inv, struct err *err)
{
	return pause_or_resume(inv, true, err);
}

/* --- firings ------------------------------------------------------------------------------- */

static int need_rule(struct invocation *inv, struct err *err)
{
	if (rule_of(inv))
		return 0;
	cmd_hint(inv, "watch status");
	return err_set(err, -EINVAL, "'watch %s' needs the name of a rule", inv->words[0]);
}

static int fire(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_firing_done) struct engine_firing f = { 0 };
	CLEANUP(json_done) struct json_doc doc = { 0 };
	const struct watch_args *args = inv->args;
	struct json j;
	int r = need_rule(inv, err);

	if (r >= 0)
		r = engine_watch_fire(inv->engine, rule_of(inv), args->detail, &f, err);
	if (r < 0)
		return r;
	if (!inv->json && inv->quiet)
		fprintf(inv->out, "%s\n", f.id);
	else if (!inv->json)
		firings_print(inv, &f);
	if (!inv->json)
		return CMD_OK;
	j = out_json_begin(inv, &doc);
	json_set_text(j, "act", "fire");
	firings_set(json_set_object(j, "firing"), &f);
	return json_print(&doc, inv->out, err);
}

/* --- calls by HTTP ------------------------------------------------------------------------- */

struct hook {
	struct invocation *inv;
	char token[TOKEN_SIZE];
};

static int on_call(const char *name, const char *text, char ret_id[HOOK_ID_MAX], void *ctx,
		   struct err *err)
{
	CLEANUP(engine_firing_done) struct engine_firing f = { 0 };
	const struct hook *h = ctx;
	int r = engine_watch_call(h->inv->engine, name, text, &f, err);

	/* What is in the file of rules is not for callers. */
	if (r == -ENOENT)
		return err_set(err, r, "there is no rule '%.100s' that is called", name);
	snprintf(ret_id, HOOK_ID_MAX, "%s", f.id);
	return r;
}

static void on_ready(const char *url, void *ctx)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	const struct hook *h = ctx;
	struct err ignored = { 0 };
	struct json j;

	if (h->inv->json) {
		j = out_json_begin(h->inv, &doc);
		json_set_text(j, "act", "hook");
		json_set_text(j, "url", url);
		json_set_text(j, "token", h->token);
		IGNORE_RESULT(json_print(&doc, h->inv->out, &ignored), "it serves all the same");
	} else {
		fprintf(h->inv->out, "%sRULE\n", url);
		fprintf(stderr, "token  %s\n", h->token);
	}
	fflush(h->inv->out);
}

static int hook(struct invocation *inv, struct err *err)
{
	const struct watch_args *args = inv->args;
	struct hook h = { .inv = inv };
	const struct hook_options options = {
		.listen = args->listen ? args->listen : "0",
		.token = h.token,
		.call = on_call,
		.on_ready = on_ready,
		.ctx = &h,
	};
	int r = args->token_file ? token_from_file(args->token_file, h.token, err)
				 : token_make(h.token, err);

	return r < 0 ? r : hook_serve(&options, err);
}

static int log_firings(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_firings_done) struct engine_firings l = { 0 };
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j, list;
	int r = engine_watch_log(inv->engine, &l, err);

	if (r < 0)
		return r;
	j = out_json_begin(inv, &doc);
	json_set_text(j, "act", "log");
	list = json_set_array(j, "firings");
	for (size_t i = 0; i < l.n; i++) {
		if (rule_of(inv) && strcmp(rule_of(inv), l.list[i].rule) != 0)
			continue;
		firings_set(json_add_object(list), &l.list[i]);
		if (!inv->json && inv->quiet)
			fprintf(inv->out, "%s\n", l.list[i].id);
		else if (!inv->json)
			firings_print(inv, &l.list[i]);
	}
	return inv->json ? json_print(&doc, inv->out, err) : CMD_OK;
}

/* --- looking ------------------------------------------------------------------------------- */

static int status(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_watch_status_done) struct engine_watch_status s = { 0 };
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j;
	int r = engine_watch_status(inv->engine, &s, err);

	if (r < 0)
		return r;
	for (size_t i = 0; !inv->json && inv->quiet && i < s.n; i++)
		fprintf(inv->out, "%s\n", s.list[i].rule->name);
	if (!inv->json && !inv->quiet)
		firings_print_status(inv, &s);
	if (!inv->json)
		return CMD_OK;
	j = out_json_begin(inv, &doc);
	json_set_text(j, "act", "status");
	firings_set_status(j, &s);
	return json_print(&doc, inv->out, err);
}

static int test_rule(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_watch_test_done) struct engine_watch_test t = { 0 };
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j;
	int r = need_rule(inv, err);

	if (r >= 0)
		r = engine_watch_test(inv->engine, rule_of(inv), &t, err);
	if (r < 0)
		return r;
	if (!inv->json && !inv->quiet)
		firings_print_test(inv, &t);
	if (!inv->json)
		return CMD_OK;
	j = out_json_begin(inv, &doc);
	json_set_text(j, "act", "test");
	firings_set_test(j, &t);
	return json_print(&doc, inv->out, err);
}

static int watch_run(struct invocation *inv, struct err *err)
{
	static const struct act acts[] = {
		{ "status", status },     { "start", start },
		{ "stop", stop },         { "log", log_firings },
		{ "pause", pause_rules }, { "resume", resume_rules },
		{ "test", test_rule },    { "fire", fire },
		{ "hook", hook },         { NULL },
	};

	return acts_run(inv, acts, err);
}

const struct command cmd_watch = {
	.name = "watch",
	.group = "Changes",
	.rare = true,
	.summary = "follow rules that act on events, in clones, and ship what may land",
	.words = "[status|start|stop|log|pause|resume|test|fire|hook [RULE]]",
	.max_words = 2,
	.opts = watch_opts,
	.details =
	    "Rules are in watch.yaml of your configuration: a trigger (files that change, a schedule, a\n"
	    "command that begins to fail, a git ref, a line of a log, little room), an action in the\n"
	    "sandbox on a fresh clone, a decision (report, keep or ship), and a budget. The project's\n"
	    "own .snap/watch.yaml can only narrow them. A rule:\n"
	    "\n"
	    "    rules:\n"
	    "      - name: lint\n"
	    "        project: /home/me/src/shop\n"
	    "        on: {files: [\"*.py\"]}\n"
	    "        run: ruff check --fix .\n"
	    "        then: report\n"
	    "\n"
	    "'start' follows them until 'stop'. 'status' is for the morning: what fired, was tried,\n"
	    "landed, waits, and what it cost. 'test' runs a rule's action and says what would become\n"
	    "of it; nothing lands. 'fire' starts an action now, within its budget. 'resume' also\n"
	    "restarts a rule that failed too often.\n"
	    "\n"
	    "'hook' takes calls by HTTP from this machine until it is ended: POST /hook/RULE with the\n"
	    "token fires a rule that says 'on: webhook', within its budget.\n",
	.examples = "watch start\nwatch\nwatch test lint\nwatch fire lint --detail 'by hand'\n",
	.run = watch_run,
};
