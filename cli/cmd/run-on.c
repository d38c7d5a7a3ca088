#include "cli/cmd/run-on.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/size.h"
#include "cli/cmd/run-words.h"
#include "cli/out.h"
#include "cli/progress.h"
#include "cli/show/runs.h"
#include "engine/api/worker.h"

/* The worker's own rules decide about these, or they belong to this machine. */
static int check(const struct run_args *a, struct err *err)
{
	const struct {
		const char *option;
		bool given;
	} all[] = {
		{ "net", a->net.n > 0 },
		{ "ask", a->ask || a->ask_time != ENGINE_UNSAID },
		{ "publish", a->publish.n > 0 },
		{ "ro", a->ro.n > 0 },
		{ "rw", a->rw.n > 0 },
		{ "hide", a->hide.n > 0 },
		{ "secret", a->secret.n > 0 },
		{ "secret-for", a->secret_for.n > 0 },
		{ "tls-inspect", a->tls_inspect.n > 0 },
		{ "root", a->root },
		{ "as", a->as != NULL },
		{ "lazy", a->lazy },
		{ "wait", a->wait },
		{ "skip-unreadable", a->skip_unreadable },
		{ "path", a->path != NULL },
		{ "tty", a->tty },
		{ "allow-missing", a->allow_missing.n > 0 },
		{ "artifact", a->artifact.n > 0 },
		{ "durability", a->durability != NULL },
		{ "no-snapshot", a->no_snapshot },
		{ "rm", a->rm },
		{ "detach", a->detach },
	};

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (all[i].given)
			return err_set(err, -EINVAL, "options '--%s' and '--on' exclude each other",
				       all[i].option);
	return 0;
}

static bool is_queue(const char *on)
{
	return strncmp(on, "ssh:", 4) != 0 && strcmp(on, "slurm") != 0 &&
	       strncmp(on, "slurm:", 6) != 0;
}

/* A machine and a cluster have neither labels nor credentials of NATS. */
static int check_no_queue(const struct run_args *a, struct err *err)
{
	const char *option = a->label.n > 0 ? "label"
			     : a->creds     ? "creds"
			     : a->insecure  ? "insecure"
					    : NULL;

	return option ? err_set(err, -EINVAL, "option '--%s' is for a queue, and '%s' is a %s",
				option, a->on, a->on[1] == 's' ? "machine" : "cluster")
		      : 0;
}

/* --- printing ----------------------------------------------------------------------------- */

/* What is known of it in the form that every run has. */
static int as_run(const struct engine_on *on, const struct strlist *words, struct engine_run *run,
		  struct err *err)
{
	snprintf(run->id, sizeof(run->id), "%.12s", on->ticket);
	run->state = strcmp(on->outcome, "cancelled") == 0 ? ENGINE_RUN_CANCELLED
		     : strcmp(on->outcome, "refused") == 0 ? ENGINE_RUN_REFUSED
		     : strcmp(on->outcome, "lost") == 0    ? ENGINE_RUN_LOST
							   : ENGINE_RUN_ENDED;
	for (size_t i = 0; i < words->n; i++)
		if (strlist_add(&run->argv, words->list[i]) < 0)
			return err_nomem(err);
	run->exit_code = on->code;
	run->timed_out = strcmp(on->outcome, "time") == 0;
	run->duration_ms = on->duration_ms;
	run->cpu_ms = on->cpu_ms;
	run->max_rss = on->max_rss;
	run->compared = true;
	run->added = on->added;
	run->modified = on->modified;
	run->deleted = on->deleted;
	snprintf(run->limit, sizeof(run->limit), "%s", on->limit ? on->limit : "");
	return 0;
}

static void set_on(struct json j, const struct engine_on *on, const char *clone)
{
	json_set_text(j, "ticket", on->ticket);
	json_set_text(j, "outcome", on->outcome);
	json_set_name(j, "worker", on->worker);
	json_set_name(j, "host", on->host);
	json_set_text(j, "problem", on->problem);
	json_set_name(j, "signer", on->signer);
	json_set_uint(j, "attempt", on->attempt);
	json_set_name(j, "pushed", on->pushed);
	out_json_id(j, "snapshot", on->snapshot);
	json_set_name(j, "tag", on->tag);
	json_set_name(j, "clone", clone);
	json_set_uint(j, "bytes_sent", on->sent);
	json_set_uint(j, "bytes_skipped", on->skipped);
	json_set_uint(j, "bytes_received", on->received);
	json_set_uint(j, "worker_received", on->worker_received);
	json_set_uint(j, "worker_sent", on->worker_sent);
	json_set_uint(j, "output_missing", on->missing);
	json_set_uint(j, "elapsed_ms", on->elapsed_ms);
}

static int print_json(const struct invocation *inv, const struct engine_on *on,
		      const struct strlist *words, const char *clone, struct err *err)
{
	CLEANUP(engine_run_done) struct engine_run run = { 0 };
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc);
	int r = as_run(on, words, &run, err);

	if (r < 0)
		return r;
	runs_set_json(j, &run);
	json_set_text_len(j, "stdout", (const char *)on->out.data, on->out.len);
	json_set_text_len(j, "stderr", (const char *)on->err.data, on->err.len);
	runs_set_changed(j, &run);
	set_on(json_set_object(j, "on"), on, clone);
	return json_print(&doc, inv->out, err);
}

/* "worker-1  exit 0 in 1.2 s, sent 1.1 KiB, 84 MiB were there, received 300 B" */
static void tell(const struct invocation *inv, const struct engine_on *on, const char *clone)
{
	char time[DURATION_TEXT_MAX], sent[SIZE_TEXT_MAX], there[SIZE_TEXT_MAX],
	    received[SIZE_TEXT_MAX];

	if (on->problem)
		log_error("%s%s%s", on->worker ? on->worker : "", on->worker ? ": " : "",
			  on->problem);
	if (on->missing > 0)
		log_warn("%" PRIu64 " bytes of output did not arrive", on->missing);
	if (inv->quiet)
		return;
	fprintf(stderr, "%s  %s in %s, sent %s, %s were there, received %s\n",
		on->worker ? on->worker : "no worker", on->outcome,
		duration_format(on->elapsed_ms, time), size_format(on->sent, sent),
		size_format(on->skipped, there), size_format(on->received, received));
	if (clone)
		fprintf(stderr, "clone %s\n", clone);
	else if (on->tag)
		fprintf(stderr, "changed: see %s diff . %s\n", inv->program, on->tag);
}

/* --- the command -------------------------------------------------------------------------- */

/* With --keep the result is a clone, too. */
static int keep(struct invocation *inv, const struct engine_on *on, struct engine_clones *ret,
		struct err *err)
{
	const struct run_args *args = inv->args;
	const struct engine_clone_options o = {
		.from = on->snapshot,
		.count = 1,
		.ttl_ms = args->ttl == ENGINE_UNSAID ? 0 : args->ttl,
		.watch = progress_watch(inv->progress),
	};

	return args->keep && on->snapshot[0] != '\0' ? engine_clone(inv->engine, &o, ret, err) : 0;
}

static int finish(struct invocation *inv, struct engine_on *on, const struct strlist *words,
		  struct err *err)
{
	CLEANUP(engine_clones_done) struct engine_clones kept = { 0 };
	const char *clone;
	int r = keep(inv, on, &kept, err);

	progress_done(inv->progress);
	if (r < 0)
		return r;
	clone = kept.n > 0 ? kept.list[0].name : NULL;
	if (inv->json)
		r = print_json(inv, on, words, clone, err);
	else
		tell(inv, on, clone);
	return r < 0 ? r : on->code;
}

static void hint(struct invocation *inv, const struct engine_on *on, int r)
{
	const struct run_args *args = inv->args;

	/* What was sent may run; typed once more without its name, it would run twice. */
	if (r < 0 && !on->cancelled && on->ticket[0] != '\0')
		cmd_hint_again(inv, &(struct hint_again){ .option = "ticket",
							  .value = on->ticket,
							  .without = "ticket" });
	if (!is_queue(args->on))
		return;
	if (r == -EINVAL && !args->remote)
		cmd_hint(inv, "remote list");
	if (r == -EAGAIN)
		cmd_hint_words(inv, "worker status --queue", (const char *[]){ args->on, NULL });
}

int run_on(struct invocation *inv, const struct engine_run_limits *limits, struct err *err)
{
	const struct run_args *args = inv->args;
	CLEANUP(strlist_done) struct strlist words = { 0 };
	CLEANUP(engine_on_done) struct engine_on on = { 0 };
	struct engine_on_options o = {
		.queue = args->on,
		.creds = args->creds,
		.insecure = args->insecure,
		.remote = args->remote,
		.trust = { .required = args->signed_only, .signers = args->signers },
		.sign = args->sign,
		.state = inv->n_before > 0 ? inv->words[0] : NULL,
		.profile = args->profile,
		.limits = *limits,
		.env = cmd_values(&args->env),
		.pass_env = cmd_values(&args->pass_env),
		.labels = cmd_values(&args->label),
		.workdir = args->workdir,
		.deadline_ms = args->deadline,
		.ticket = args->ticket,
		.out_fd = inv->json ? -1 : fileno(inv->out),
		.err_fd = inv->json ? -1 : STDERR_FILENO,
		.watch = progress_watch(inv->progress),
	};
	int r = check(args, err);

	if (r == 0 && !is_queue(args->on))
		r = check_no_queue(args, err);
	if (r == 0)
		r = run_words(inv, &words, err);
	if (r < 0)
		return r;
	o.argv = (const char *const *)words.list;
	fflush(inv->out);
	r = engine_run_on(inv->engine, &o, &on, err);
	hint(inv, &on, r);
	return r < 0 ? r : finish(inv, &on, &words, err);
}
