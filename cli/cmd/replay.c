#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/vec.h"
#include "cli/mcp/mask.h"
#include "cli/progress.h"
#include "cli/show/runs.h"

/* What a run wrote: both streams, each for itself. */
struct output {
	struct buf stream[2];
};

static void output_done(struct output *o)
{
	buf_done(&o->stream[0]);
	buf_done(&o->stream[1]);
}

static int collect(bool of_stderr, const void *data, size_t len, void *ctx, struct err *err)
{
	struct output *o = ctx;

	return buf_append(&o->stream[of_stderr], data, len) < 0 ? err_nomem(err) : 0;
}

static int read_output(struct engine *e, const struct engine_run *run, struct output *ret,
		       struct err *err)
{
	const struct engine_log_options options = { .stop_fd = -1 };

	return engine_run_log(e, run, &options, collect, ret, NULL, err);
}

/* --- what came out differently ---------------------------------------------------------- */

#define DIFFERENCES_MAX 8

struct difference {
	const char *what;
	char before[64], now[64];
};

struct comparison {
	struct difference list[DIFFERENCES_MAX];
	size_t n;
};

static void compare_numbers(struct comparison *c, const char *what, long long before, long long now)
{
	struct difference *d = &c->list[c->n];

	if (before == now)
		return;
	d->what = what;
	snprintf(d->before, sizeof(d->before), "%lld", before);
	snprintf(d->now, sizeof(d->now), "%lld", now);
	c->n++;
}

static size_t common_length(const struct buf *a, const struct buf *b)
{
	size_t n = 0;

	while (n < a->len && n < b->len && a->data[n] == b->data[n])
		n++;
	return n;
}

/* The line in which they part, and how long each is. */
static void compare_streams(struct comparison *c, const char *what, const struct buf *before,
			    const struct buf *now)
{
	const size_t same = common_length(before, now);
	struct difference *d = &c->list[c->n];
	size_t line = 1;

	if (same == before->len && same == now->len)
		return;
	for (size_t i = 0; i < same; i++)
		line += before->data[i] == '\n';
	d->what = what;
	snprintf(d->before, sizeof(d->before), "%zu bytes", before->len);
	snprintf(d->now, sizeof(d->now), "%zu bytes, other from line %zu on", now->len, line);
	c->n++;
}

static void compare(const struct engine_run *before, const struct engine_run *now,
		    const struct output *said, const struct output *says, struct comparison *ret)
{
	compare_numbers(ret, "exit code", before->exit_code, now->exit_code);
	if (strcmp(before->limit, now->limit) != 0) {
		struct difference *d = &ret->list[ret->n++];

		d->what = "limit";
		snprintf(d->before, sizeof(d->before), "%s",
			 *before->limit ? before->limit : "none");
		snprintf(d->now, sizeof(d->now), "%s", *now->limit ? now->limit : "none");
	}
	compare_streams(ret, "stdout", &said->stream[0], &says->stream[0]);
	compare_streams(ret, "stderr", &said->stream[1], &says->stream[1]);
	if (!before->compared || !now->compared)
		return;
	compare_numbers(ret, "paths added", (long long)before->added, (long long)now->added);
	compare_numbers(ret, "paths modified", (long long)before->modified,
			(long long)now->modified);
	compare_numbers(ret, "paths deleted", (long long)before->deleted, (long long)now->deleted);
}

/* --- running ---------------------------------------------------------------------------- */

/* Variables that it had from its caller and that are set here; those that sound secret stay so. */
struct names {
	const char **pass, **secret; /* owned, the names borrowed */
	size_t n_pass, n_secret;
};

static void names_done(struct names *n)
{
	free(n->pass);
	free(n->secret);
}

static int choose_names(const struct engine_run *run, struct names *ret, struct err *err)
{
	const struct engine_asked *a = &run->asked;
	const size_t most = a->passed.n + a->secrets.n;

	ret->pass = calloc(most + 1, sizeof(*ret->pass));
	ret->secret = calloc(most + 1, sizeof(*ret->secret));
	if (!ret->pass || !ret->secret)
		return err_nomem(err);
	for (size_t i = 0; i < most; i++) {
		const bool secret = i >= a->passed.n;
		const char *name = secret ? a->secrets.list[i - a->passed.n] : a->passed.list[i];

		if (!getenv(name))
			log_warn("%s was set then and is not now", name);
		else if (secret || mask_is_secret_name(name))
			ret->secret[ret->n_secret++] = name;
		else
			ret->pass[ret->n_pass++] = name;
	}
	/* One of that name here may be another than the run had, and is not given to it. */
	for (size_t i = 0; i < a->set.n; i++)
		log_warn("%s is not set again: its value was not kept", a->set.list[i]);
	return 0;
}

static struct engine_list list_of(const struct strlist *s)
{
	return (struct engine_list){ (const char *const *)s->list, s->n };
}

/* The run that is named; without a word the newest of this project. */
static int find_run(struct invocation *inv, struct engine_run *ret, struct err *err)
{
	const struct engine_runs_options here = { 0 };
	CLEANUP(engine_runs_done) struct engine_runs runs = { 0 };
	int r;

	if (inv->n_words > 0)
		return engine_run_find(inv->engine, inv->words[0], ret, err);
	r = engine_runs(inv->engine, &here, &runs, err);
	if (r < 0)
		return r;
	if (runs.n == 0)
		return err_set(err, -ENOENT, "nothing was run in this project yet");
	*ret = runs.list[0];
	runs.list[0] = (struct engine_run){ 0 };
	return 0;
}

/* The same command on the root as it is now; kept, so that this one can be replayed. */
static void hint_root(struct invocation *inv, const struct engine_run *run)
{
	AUTO_FREE const char **words = calloc(run->argv.n + 3, sizeof(*words));
	char line[64];

	/* A line without the secret that the command had would do something else. */
	if (!words || run->asked.scrubbed)
		return;
	words[0] = run->project;
	words[1] = "--";
	for (size_t i = 0; i < run->argv.n; i++)
		words[i + 2] = run->argv.list[i];
	snprintf(line, sizeof(line), "run --root%s%s --keep", *run->as != '\0' ? " --as " : "",
		 run->as);
	cmd_hint_words(inv, line, words);
}

static int refuse_gone(struct invocation *inv, const struct engine_run *run, struct err *err)
{
	if (!run->made || !run->removed)
		return err_set(err, -ENOENT,
			       "the state that run %s began with has been removed: run its "
			       "command again",
			       run->id);
	if (run->root)
		hint_root(inv, run);
	return err_set(
	    err, -ENOENT,
	    "the state that run %s began with was removed with its throw-away clone: run "
	    "its command again, with '--keep' so that you can replay it",
	    run->id);
}

static int check(struct invocation *inv, const struct engine_run *run, struct err *err)
{
	int r;

	if (run->state == ENGINE_RUN_RUNNING)
		return err_set(err, -EBUSY, "run %s has not ended yet", run->id);
	if (*run->before == '\0')
		return err_set(err, -ENOENT,
			       "the state that run %s began with was not kept (--no-snapshot)",
			       run->id);
	if (!run->asked.known)
		return err_set(err, -ENOENT,
			       "what was hidden from run %s was not kept: an older version ran it",
			       run->id);
	r = engine_run_has_start(inv->engine, run, err);
	if (r <= 0)
		return r < 0 ? r : refuse_gone(inv, run, err);
	if (run->asked.scrubbed)
		log_warn("the command had a secret in it, which was not kept");
	if (run->secret_for.n > 0)
		log_warn("the first run sent secrets to hosts (--secret-for); this one sends none");
	return 0;
}

static int run_again(struct invocation *inv, const struct engine_run *old, struct engine_run *ret,
		     struct err *err)
{
	CLEANUP(names_done) struct names names = { 0 };
	struct engine_run_options options = {
		.from = old->before,
		.root = old->root,
		.as = *old->as != '\0' ? old->as : NULL,
		.argv = (const char *const *)old->argv.list,
		.profile = old->profile,
		.limits = old->limits,
		.net = old->net,
		.workdir = old->cwd,
		.hide = list_of(&old->asked.hide),
		.ro = list_of(&old->asked.ro),
		.rw = list_of(&old->asked.rw),
		.tls_inspect = list_of(&old->tls_inspect),
		.ttl_ms = ENGINE_UNSAID,
		.in_fd = -1,
		.out_fd = -1,
		.err_fd = -1,
		.watch = progress_watch(inv->progress),
	};
	const char *missing[ARRAY_LEN(old->missing.list)];
	int r = choose_names(old, &names, err);

	if (r < 0)
		return r;
	/* What it did without, it may do without again. */
	for (size_t i = 0; i < old->missing.n; i++)
		missing[i] = old->missing.list[i].wall;
	options.allow_missing = (struct engine_list){ missing, old->missing.n };
	options.pass_env = (struct engine_list){ names.pass, names.n_pass };
	options.secrets = (struct engine_list){ names.secret, names.n_secret };
	r = engine_run(inv->engine, &options, ret, err);
	progress_done(inv->progress);
	return r;
}

/* --- telling ---------------------------------------------------------------------------- */

static int print_json(const struct invocation *inv, const struct engine_run *old,
		      const struct engine_run *now, const struct comparison *c, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc), list, one;

	json_set_text(j, "run", now->id);
	json_set_text(j, "of", old->id);
	out_json_id(j, "snapshot", old->before);
	json_set_int(j, "exit_code", now->exit_code);
	json_set_bool(j, "same", c->n == 0);
	list = json_set_array(j, "differences");
	for (size_t i = 0; i < c->n; i++) {
		one = json_add_object(list);
		json_set_text(one, "what", c->list[i].what);
		json_set_text(one, "before", c->list[i].before);
		json_set_text(one, "now", c->list[i].now);
	}
	return json_print(&doc, inv->out, err);
}

static void print_human(const struct invocation *inv, const struct engine_run *old,
			const struct engine_run *now, const struct comparison *c)
{
	fprintf(inv->out, "run %s%s%s  %s as %s\n", out_style(inv, OUT_ID), now->id,
		out_style(inv, OUT_PLAIN), c->n == 0 ? "the same" : "not the same", old->id);
	for (size_t i = 0; i < c->n; i++)
		fprintf(inv->out, "  %-14s  %s, now %s\n", c->list[i].what, c->list[i].before,
			c->list[i].now);
}

static int replay_run(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_run_done) struct engine_run old = { 0 }, now = { 0 };
	CLEANUP(output_done) struct output said = { 0 }, says = { 0 };
	struct comparison c = { 0 };
	int r = find_run(inv, &old, err);

	if (r == -ENOENT || r == -EINVAL)
		cmd_hint(inv, "runs --all");
	if (r < 0)
		return r;
	r = check(inv, &old, err);
	if (r < 0)
		return r;
	r = read_output(inv->engine, &old, &said, err);
	if (r < 0)
		return r;
	r = run_again(inv, &old, &now, err);
	if (r < 0)
		return r;
	r = read_output(inv->engine, &now, &says, err);
	if (r < 0)
		return r;
	compare(&old, &now, &said, &says, &c);
	if (inv->json)
		r = print_json(inv, &old, &now, &c, err);
	else if (inv->quiet)
		fprintf(inv->out, "%s\n", now.id);
	else
		print_human(inv, &old, &now, &c);
	return r < 0 ? r : c.n > 0 ? CMD_DIFFERENT : CMD_OK;
}

const struct command cmd_replay = {
	.name = "replay",
	.group = "Runs",
	.rare = true,
	.summary = "run a command again, and say what came out differently",
	.words = "[RUN]",
	.max_words = 1,
	.details =
	    "Runs the same command on a throw-away clone of the snapshot that was taken before RUN\n"
	    "(without RUN: the project's newest run), with the same profile, limits, network, and\n"
	    "paths shown and hidden. Variables that were passed on have their present values;\n"
	    "variables of --env are not set, as no value is kept; ports are not published again. Exit code,\n"
	    "output and the number of changed paths are compared; 3 means that they differ. -q prints the\n"
	    "id.\n",
	.examples = "replay\nreplay 3f9a --json\n",
	.run = replay_run,
};
