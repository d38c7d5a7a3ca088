#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "base/strlist.h"
#include "cli/cmd/cpus.h"
#include "cli/show/worker-chart.h"
#include "engine/api/worker.h"

#define SHORT_TICKET 12

struct worker_args {
	const char *queue, *remote, *labels, *creds, *name, *ticket, *sign, *identity, *cpus;
	struct opt_list profile, pass_env, encrypt_to;
	uint64_t jobs, lease, tickets, count, mem;
	bool once, insecure;
};

static const struct opt worker_opts[] = {
	OPT_STR(0, "queue", "QUEUE", struct worker_args, queue, "nats://HOST[:PORT][/NAME]"),
	OPT_STR(0, "remote", "REMOTE", struct worker_args, remote,
		"the remote that states travel through"),
	OPT_STR(0, "labels", "A,B", struct worker_args, labels,
		"also take tickets with these labels (at most 4)"),
	OPT_U64('j', "jobs", "N", struct worker_args, jobs, "tickets at once (1)"),
	OPT_SIZE(0, "mem", "SIZE", struct worker_args, mem,
		 "memory for all tickets that ask for some (the machine's)"),
	OPT_STR(0, "cpus", "N", struct worker_args, cpus,
		"processors for all tickets that ask for some (the machine's)"),
	OPT_LIST(0, "profile", "PROFILE", struct worker_args, profile,
		 "profile that tickets may use; the first is the default"),
	OPT_LIST(0, "pass-env", "NAME", struct worker_args, pass_env,
		 "variable of this worker that tickets may use"),
	OPT_STR(0, "sign", "KEY", struct worker_args, sign,
		"SSH key that signs results, as for `push`"),
	OPT_STR(0, "identity", "FILE", struct worker_args, identity,
		"your private key, if states are encrypted"),
	OPT_LIST(0, "encrypt-to", "KEY", struct worker_args, encrypt_to,
		 "key that results are encrypted for, as for `push`"),
	OPT_STR(0, "creds", "FILE", struct worker_args, creds, "NATS credentials file"),
	OPT_FLAG(0, "insecure", struct worker_args, insecure,
		 "allow a server elsewhere without credentials"),
	OPT_STR(0, "name", "NAME", struct worker_args, name, "name of the worker (HOST-PID)"),
	OPT_DURATION(0, "lease", "TIME", struct worker_args, lease,
		     "hand a ticket on after this time without a heartbeat (30s)"),
	OPT_STR(0, "ticket", "FILE", struct worker_args, ticket,
		"do this one and exit, for `run --on slurm`"),
	OPT_U64(0, "tickets", "N", struct worker_args, tickets, "exit after N tickets"),
	OPT_FLAG(0, "once", struct worker_args, once, "exit when no ticket is waiting"),
	OPT_U64('n', "count", "N", struct worker_args, count,
		"status: the last N finished tickets (10)"),
	OPT_END,
};
_Static_assert(sizeof(struct worker_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

static struct engine_worker_keys keys_of(const struct worker_args *args)
{
	return (struct engine_worker_keys){ .sign = args->sign,
					    .identity = args->identity,
					    .encrypt_to = cmd_values(&args->encrypt_to) };
}

/* --- working ------------------------------------------------------------------------------ */

static void print_event(const struct invocation *inv, const struct engine_worker_event *ev)
{
	if (ev->ticket)
		fprintf(inv->out, "%.*s  ", SHORT_TICKET, ev->ticket);
	fputs(ev->outcome ? ev->outcome : ev->what, inv->out);
	if (ev->outcome && strcmp(ev->outcome, "exit") == 0)
		fprintf(inv->out, " %" PRIu64, ev->code);
	if (ev->attempt > 1)
		fprintf(inv->out, "  attempt %" PRIu64, ev->attempt);
	if (ev->text) {
		fputs("  ", inv->out);
		out_name(inv->out, ev->text);
	}
	fputc('\n', inv->out);
}

static void set_event(const struct invocation *inv, const struct engine_worker_event *ev,
		      struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc);

	json_set_text(j, "act", "work");
	json_set_text(j, "event", ev->what);
	json_set_text(j, "ticket", ev->ticket);
	json_set_text(j, "outcome", ev->outcome);
	json_set_uint(j, "code", ev->code);
	json_set_uint(j, "attempt", ev->attempt);
	json_set_name(j, "text", ev->text);
	IGNORE_RESULT(json_print(&doc, inv->out, err), "the worker goes on without a reader");
}

static void tell(const struct engine_worker_event *ev, void *ctx)
{
	const struct invocation *inv = ctx;
	struct err ignored = { 0 };

	if (inv->json)
		set_event(inv, ev, &ignored);
	else if (!inv->quiet)
		print_event(inv, ev);
	fflush(inv->out);
}

static int split_labels(const char *text, struct strlist *ret, struct err *err)
{
	for (const char *at = text; at && *at != '\0';) {
		const size_t len = strcspn(at, ",");

		if (strlist_take(ret, strndup(at, len)) < 0)
			return err_nomem(err);
		at += len + (at[len] == ',');
	}
	return 0;
}

static int work(struct invocation *inv, struct err *err)
{
	const struct worker_args *args = inv->args;
	CLEANUP(strlist_done) struct strlist labels = { 0 };
	struct engine_worker_options o = {
		.queue = args->queue,
		.creds = args->creds,
		.insecure = args->insecure,
		.remote = args->remote,
		.name = args->name,
		.profiles = cmd_values(&args->profile),
		.pass_env = cmd_values(&args->pass_env),
		.keys = keys_of(args),
		.jobs = args->jobs,
		.mem = args->mem,
		.lease_ms = args->lease,
		.tickets = args->tickets,
		.once = args->once,
		.tell = tell,
		.ctx = inv,
	};
	int r;

	if (!args->remote) {
		cmd_hint(inv, "remote list");
		return err_set(err, -EINVAL,
			       "'worker' needs --remote: the remote that states travel through");
	}
	r = split_labels(args->labels, &labels, err);
	if (r == 0)
		r = cpus_read(args->cpus, &o.cpus_milli, err);
	if (r < 0)
		return r;
	o.labels = (struct engine_list){ (const char *const *)labels.list, labels.n };
	r = engine_worker(inv->engine, &o, err);
	return r < 0 ? r : CMD_OK;
}

/* --- looking ------------------------------------------------------------------------------ */

static void print_labels(const struct invocation *inv, const struct engine_worker_state *w)
{
	for (size_t i = 0; i < w->n_labels; i++) {
		fputs(i > 0 ? "," : "  ", inv->out);
		out_name(inv->out, w->labels[i]);
	}
}

/* The most that a ticket may ask for. */
static void print_offer(const struct invocation *inv, const struct engine_worker_state *w)
{
	char mem[SIZE_TEXT_MAX];

	if (w->mem > 0 && w->cpus_milli > 0)
		fprintf(inv->out, "  up to %s, %g cpus", size_format(w->mem, mem),
			(double)w->cpus_milli / 1000);
}

static void print_worker(const struct invocation *inv, const struct engine_worker_state *w)
{
	char up[DURATION_TEXT_MAX], fetched[SIZE_TEXT_MAX], pushed[SIZE_TEXT_MAX];
	const double share = worker_chart_share(w);

	out_name(inv->out, w->name);
	fprintf(inv->out, "  %zu of %" PRIu64 " busy, %" PRIu64 " done, %" PRIu64 " failed",
		w->n_running, w->jobs, w->done, w->failed);
	if (w->refused > 0)
		fprintf(inv->out, ", %" PRIu64 " refused", w->refused);
	if (share >= 0)
		fprintf(inv->out, ", busy %.0f %% of %s, in %s, out %s", share * 100,
			duration_format(w->up_ms, up), size_format(w->fetched, fetched),
			size_format(w->pushed, pushed));
	print_labels(inv, w);
	print_offer(inv, w);
	fputs(w->draining ? "  draining\n" : "\n", inv->out);
}

/* What the chart has no column for. */
static void print_rest(const struct invocation *inv, const struct engine_worker_state *w)
{
	if (w->refused == 0 && w->n_labels == 0)
		return;
	out_name(inv->out, w->name);
	if (w->refused > 0)
		fprintf(inv->out, "  %" PRIu64 " refused", w->refused);
	print_labels(inv, w);
	fputc('\n', inv->out);
}

/* Tickets at hand; below a chart each with its worker. */
static void print_running(const struct invocation *inv, const struct engine_worker_state *w,
			  bool named)
{
	for (size_t i = 0; i < w->n_running; i++) {
		const struct engine_worker_job *j = &w->running[i];
		char time[DURATION_TEXT_MAX];

		fprintf(inv->out, "  %.*s  for %s  ", SHORT_TICKET, j->ticket,
			duration_format(j->running_ms, time));
		if (named) {
			out_name(inv->out, w->name);
			fputs("  ", inv->out);
		}
		out_name_line(inv->out, j->command);
	}
}

static void print_done(const struct invocation *inv, const struct engine_worker_done *d)
{
	char time[DURATION_TEXT_MAX], fetched[SIZE_TEXT_MAX], pushed[SIZE_TEXT_MAX];

	fprintf(inv->out, "%.*s  %-9s %3" PRIu64 "  ", SHORT_TICKET, d->ticket, d->outcome,
		d->code);
	out_name(inv->out, d->worker ? d->worker : "-");
	fprintf(inv->out, "  %s, in %s, out %s  ", duration_format(d->duration_ms, time),
		size_format(d->fetched, fetched), size_format(d->pushed, pushed));
	out_name_line(inv->out, d->command ? d->command : "-");
}

/* A chart of the workers on a terminal, a line for each in a pipe. */
static void print_status(const struct invocation *inv, const struct engine_worker_status *s)
{
	const int fd = fileno(inv->out);
	const size_t columns = isatty(fd) ? out_columns(fd, 80) : 0;

	fprintf(inv->out,
		"queue %s: %" PRIu64 " waiting, %" PRIu64 " taken, %" PRIu64 " of them again\n",
		s->queue, s->waiting, s->taken, s->redelivered);
	if (columns > 0)
		worker_chart_print(inv, s, columns);
	for (size_t i = 0; i < s->n_workers; i++) {
		if (columns > 0)
			print_rest(inv, &s->workers[i]);
		else
			print_worker(inv, &s->workers[i]);
		print_running(inv, &s->workers[i], columns > 0);
	}
	if (s->n_workers == 0)
		fputs("no worker answers\n", inv->out);
	for (size_t i = 0; i < s->n_done; i++)
		print_done(inv, &s->done[i]);
}

static void set_worker(struct json j, const struct engine_worker_state *w)
{
	const double share = worker_chart_share(w);
	struct json list;

	json_set_name(j, "name", w->name);
	json_set_name(j, "host", w->host);
	json_set_int(j, "pid", w->pid);
	out_json_time(j, "started", w->started);
	json_set_uint(j, "jobs", w->jobs);
	json_set_uint(j, "done", w->done);
	json_set_uint(j, "failed", w->failed);
	json_set_uint(j, "refused", w->refused);
	json_set_uint(j, "up_ms", w->up_ms);
	json_set_uint(j, "busy_ms", w->busy_ms);
	if (share < 0)
		json_set_null(j, "busy_share");
	else
		json_set_double(j, "busy_share", share, 4);
	json_set_uint(j, "fetched", w->fetched);
	json_set_uint(j, "pushed", w->pushed);
	json_set_uint_if(j, "mem", w->mem > 0, w->mem);
	if (w->cpus_milli > 0)
		json_set_double(j, "cpus", (double)w->cpus_milli / 1000, 3);
	else
		json_set_null(j, "cpus");
	json_set_bool(j, "draining", w->draining);
	json_set_names(j, "labels", w->labels, w->n_labels);
	list = json_set_array(j, "running");
	for (size_t i = 0; i < w->n_running; i++) {
		struct json one = json_add_object(list);

		json_set_name(one, "ticket", w->running[i].ticket);
		json_set_name(one, "command", w->running[i].command);
		json_set_name(one, "experiment", w->running[i].experiment);
		json_set_name(one, "arm", w->running[i].arm);
		json_set_uint(one, "attempt", w->running[i].attempt);
		json_set_uint(one, "running_ms", w->running[i].running_ms);
	}
}

static void set_done(struct json j, const struct engine_worker_done *d)
{
	json_set_text(j, "ticket", d->ticket);
	json_set_text(j, "outcome", d->outcome);
	json_set_uint(j, "code", d->code);
	json_set_name(j, "worker", d->worker);
	json_set_name(j, "host", d->host);
	json_set_name(j, "command", d->command);
	json_set_name(j, "experiment", d->experiment);
	json_set_name(j, "arm", d->arm);
	json_set_uint(j, "attempt", d->attempt);
	json_set_uint(j, "duration_ms", d->duration_ms);
	json_set_uint(j, "fetched", d->fetched);
	json_set_uint(j, "pushed", d->pushed);
	out_json_time(j, "ended", d->ended);
}

static int print_json(const struct invocation *inv, const struct engine_worker_status *s,
		      struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc);

	json_set_text(j, "act", "status");
	json_set_text(j, "queue", s->queue);
	json_set_uint(j, "waiting", s->waiting);
	json_set_uint(j, "taken", s->taken);
	json_set_uint(j, "redelivered", s->redelivered);
	json_set_uint(j, "results", s->results);
	JSON_SET_LIST(j, "workers", s->workers, s->n_workers, set_worker);
	JSON_SET_LIST(j, "done", s->done, s->n_done, set_done);
	return json_print(&doc, inv->out, err);
}

static int status(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_worker_status_done) struct engine_worker_status s = { 0 };
	const struct worker_args *args = inv->args;
	const struct engine_worker_status_options o = { .queue = args->queue,
							.creds = args->creds,
							.insecure = args->insecure,
							.max = args->count > 0 ? args->count : 10 };
	int r = engine_worker_status(inv->engine, &o, &s, err);

	if (r < 0)
		return r;
	if (inv->json)
		return print_json(inv, &s, err);
	if (!inv->quiet)
		print_status(inv, &s);
	for (size_t i = 0; inv->quiet && i < s.n_workers; i++)
		fprintf(inv->out, "%s\n", s.workers[i].name);
	return CMD_OK;
}

/* What a job of Slurm is. */
static int do_one(struct invocation *inv, struct err *err)
{
	const struct worker_args *args = inv->args;
	const struct engine_worker_job_options o = { .file = args->ticket,
						     .profiles = cmd_values(&args->profile),
						     .pass_env = cmd_values(&args->pass_env),
						     .keys = keys_of(args) };
	int r;

	if (args->queue || args->remote || args->labels)
		return err_set(err, -EINVAL, "options '--ticket' and '--%s' exclude each other",
			       args->queue    ? "queue"
			       : args->remote ? "remote"
					      : "labels");
	r = engine_worker_job(&o, err);
	return r < 0 ? r : CMD_OK;
}

static int worker_run(struct invocation *inv, struct err *err)
{
	const struct worker_args *args = inv->args;
	const bool looks = inv->n_words == 1 && strcmp(inv->words[0], "status") == 0;
	uint64_t unused;
	int r = cpus_read(args->cpus, &unused, err);

	if (r < 0)
		return r;
	if (inv->n_words > 0 && !looks) {
		cmd_hint(inv, "help worker");
		return err_set(err, -EINVAL, "'worker' takes nothing or 'status', not '%s'",
			       inv->words[0]);
	}
	if (args->ticket && !looks)
		return do_one(inv, err);
	if (!args->queue) {
		cmd_hint(inv, "help worker");
		return err_set(err, -EINVAL, "'worker' needs --queue: nats://HOST[:PORT][/NAME]");
	}
	return looks ? status(inv, err) : work(inv, err);
}

const struct command cmd_worker = {
	.name = "worker",
	.group = "Runs",
	.rare = true,
	.summary = "run commands that a queue hands out",
	.words = "[status]",
	.max_words = 1,
	.opts = worker_opts,
	.details =
	    "Takes tickets of `run --on` from a NATS server with JetStream. For each one it fetches the\n"
	    "state, runs the command in a sandbox with a profile of this machine, and pushes what the\n"
	    "command changed. A ticket can only narrow the profile. One that was sent with --mem or\n"
	    "--cpus waits for a worker that has so much left for it. If a worker dies, another one gets\n"
	    "its ticket, three times at most; each ticket has one result. On SIGTERM a worker finishes\n"
	    "its tickets; on a second SIGTERM it hands them back to the queue. With --sign, callers who\n"
	    "give --allowed-signers know that a result is this worker's. `status` shows what each worker\n"
	    "did since it began, on a terminal as a chart. Jobs of `run --on slurm` start it with\n"
	    "--ticket; you need not type that.\n",
	.examples = "worker --queue nats://127.0.0.1:4222 --remote origin --jobs 2\n"
		    "worker --queue tls://queue.example.com --creds w.creds --remote hub\n"
		    "worker status --queue nats://127.0.0.1:4222\n",
	.run = worker_run,
};
