#include "engine/worker/on-clone-i.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/log.h"
#include "base/text.h"
#include "engine/api/rollback.h"
#include "engine/worker/on-i.h"
#include "engine/worker/on-trust.h"
#include "engine/worker/posted-i.h"

#define LOST_CODE   125              /* whatever the result says */
#define PATIENCE_MS UINT64_C(120000) /* with a server that restarts */
#define PAUSE_MS    1000
#define TURNS_MAX   64

struct errand {
	const struct on_clone *on;
	struct engine_performing *p;
	struct target target;
	struct strlist labels;
	struct strlist command; /* borrowed */
	char *workdir;          /* owned */
	struct buf text;        /* of the ticket */
	char id[QUEUE_ID_SIZE];
	unsigned turn;
	bool is_gone; /* the remote no longer has what the command left */
	struct posted posted;
};

static void errand_done(struct errand *d)
{
	posted_done(&d->posted);
	target_done(&d->target);
	strlist_done(&d->labels);
	free(d->workdir);
	buf_done(&d->text);
}

/* --- the ticket --------------------------------------------------------------------------- */

/* The same for the same turn of the same arm, whoever asks and when. */
static int make_nonce(const struct errand *d, char nonce[33], struct err *err)
{
	char hex[SHA256_HEX_SIZE];
	AUTO_FREE char *key = NULL;
	struct digest sum;
	int r = text_set(&key, err, "%016" PRIx64 " %u %s", d->on->owner, d->turn, d->on->arm);

	if (r < 0)
		return r;
	sum = digest_of(key, strlen(key));
	snprintf(nonce, 33, "%.32s", hex_encode(sum.b, sizeof(sum.b), hex));
	return 0;
}

static int write_ticket(struct errand *d, struct err *err)
{
	const struct engine_run_options *o = d->p->options;
	char nonce[33];
	const struct ticket t = {
		.snapshot = (char *)(uintptr_t)d->on->manifest,
		.name = (char *)(uintptr_t)d->on->name,
		.remote = d->target.url,
		.profile = (char *)(uintptr_t)o->profile,
		.command = d->command,
		.workdir = d->workdir,
		.env = on_names(&o->env),
		.pass_env = on_names(&o->pass_env),
		.limits = on_limits(&o->limits),
		.deadline = d->on->deadline,
		.labels = d->labels,
		.experiment = (char *)(uintptr_t)d->on->experiment,
		.arm = (char *)(uintptr_t)d->on->arm,
		.nonce = nonce,
	};
	int r = make_nonce(d, nonce, err);

	if (r == 0)
		r = ticket_encode(&t, &d->text, err);
	if (r == 0)
		ticket_id(&d->text, d->id);
	return r;
}

static int prepare(struct errand *d, struct err *err)
{
	const struct engine_run_options *o = d->p->options;
	int r = on_choose_remote(d->p->engine, d->on->place->queue, d->on->place->remote,
				 &d->on->place->trust, &d->target, err);

	d->command.list = (char **)(uintptr_t)o->argv;
	while (o->argv[d->command.n])
		d->command.n++;
	if (r == 0)
		r = on_workdir(d->p->engine, o->workdir, &d->workdir, err);
	return r < 0 ? r : on_labels(&d->on->place->labels, &d->labels, err);
}

/* --- following ---------------------------------------------------------------------------- */

static int on_output(bool of_stderr, const void *data, size_t len, void *ctx, struct err *err)
{
	struct errand *d = ctx;

	d->p->output(d->p, of_stderr, data, len);
	return 0;
}

/* The log has the output of all attempts, with a line between them. */
static void on_again(uint64_t attempt, void *ctx)
{
	struct errand *d = ctx;
	char line[80];
	const int n = snprintf(line, sizeof(line),
			       "snap: the command begins again (attempt %" PRIu64 ")\n", attempt);

	d->p->output(d->p, true, line, (size_t)n);
}

static void set_machine(struct engine_machine *m, const char *worker, const char *host,
			uint64_t attempt)
{
	char *name = worker ? strdup(worker) : NULL, *where = host ? strdup(host) : NULL;

	free(m->worker);
	free(m->host);
	m->worker = name;
	m->host = where;
	m->attempt = attempt;
}

static void on_taken(const char *worker, const char *host, uint64_t attempt, void *ctx)
{
	struct errand *d = ctx;

	set_machine(&d->p->run->machine, worker, host, attempt);
	d->p->note(d->p);
}

/* Another turn would have the same deadline. */
static bool is_expired(const struct result *res)
{
	return strcmp(res->outcome, RESULT_EXPIRED) == 0;
}

static bool is_usable(const struct result *res)
{
	return strcmp(res->outcome, RESULT_EXIT) == 0 || strcmp(res->outcome, RESULT_TIME) == 0 ||
	       strcmp(res->outcome, RESULT_LOST) == 0 || is_expired(res);
}

static int check_signer(struct errand *d, struct err *err)
{
	AUTO_FREE char *ignored = NULL;

	return on_trust_check(d->p->engine, &d->target, &d->on->place->trust, d->id,
			      &d->posted.result, &ignored, err);
}

/* The first ticket that has no result yet, or one that is of use. */
static int choose_turn(struct errand *d, struct err *err)
{
	struct err why = { 0 };
	int r;

	for (; d->turn <= TURNS_MAX; d->turn++) {
		r = write_ticket(d, err);
		if (r == 0)
			r = posted_find(&d->posted, d->id, &d->text, err);
		if (r == -ECANCELED)
			continue;
		if (r <= 0)
			return r;
		r = is_usable(&d->posted.result) ? check_signer(d, &why) : -ECANCELED;
		if (r != -ECANCELED)
			return r < 0 ? err_set(err, r, "%s", why.msg) : 1;
	}
	return err_set(err, -ELOOP, "it was tried %d times: start another experiment", TURNS_MAX);
}

static int follow(struct errand *d, struct err *err)
{
	struct engine_machine *m = &d->p->run->machine;
	int r = choose_turn(d, err);

	if (r < 0)
		return r;
	memcpy(m->ticket, d->id, sizeof(m->ticket));
	/* Before it is posted. */
	d->p->note(d->p);
	return r > 0 ? posted_catch_up(&d->posted, d->id, &d->text, err)
		     : posted_follow(&d->posted, d->id, &d->labels, &d->text, err);
}

static int post(struct errand *d, struct err *err)
{
	const struct on_place *place = d->on->place;
	const struct posted_options options = { .queue = place->queue,
						.creds = place->creds,
						.insecure = place->insecure,
						.remote = d->target.url,
						.client = "snap experiment",
						.stop_fd = d->p->stop_fd,
						.patience_ms = PATIENCE_MS,
						.output = on_output,
						.again = on_again,
						.taken = on_taken,
						.ctx = d };
	int r = posted_begin(&d->posted, &options, err);

	if (r == 0)
		r = follow(d, err);
	posted_end(&d->posted);
	return r;
}

/* --- what it left ------------------------------------------------------------------------- */

static void drop(struct errand *d, const char *tag)
{
	char id[ENGINE_ID_SIZE];
	struct err why = { 0 };

	if (engine_remove_snapshot(d->p->engine, tag, true, id, &why) < 0)
		log_warn("%s, continuing", why.msg);
}

static bool is_transient(int r)
{
	return r == -EAGAIN || r == -ECONNREFUSED || r == -ECONNRESET || r == -EHOSTUNREACH ||
	       r == -ENETUNREACH || r == -ETIMEDOUT;
}

/* False if we are asked to end. */
static bool pause_before_try(const struct errand *d)
{
	struct pollfd fd = { .fd = d->p->stop_fd, .events = POLLIN };

	return poll(&fd, 1, PAUSE_MS) == 0;
}

/* Patient with a remote that is away for a while, as with the queue. */
static int fetch(struct errand *d, const char *tag, struct engine_fetched *ret, struct err *err)
{
	const uint64_t began = engine_clock_ms();
	AUTO_FREE char *from = NULL;
	struct engine_fetch_options f = { .trust = d->on->place->trust,
					  .tag = tag,
					  .manifest = d->posted.result.snapshot,
					  .base_manifest = d->on->manifest,
					  .base_snapshot = d->on->snapshot };
	int r = text_set(&from, err, "%s:result-%.32s", target_remote(&d->target), d->id);

	if (r < 0)
		return r;
	f.from = from;
	do
		r = engine_fetch(d->p->engine, &f, ret, err);
	while (is_transient(r) && engine_clock_ms() - began < PATIENCE_MS && pause_before_try(d));
	return r;
}

/* The clone holds it then, and needs neither the snapshot nor what the remote has of it. */
static int fill_clone(struct errand *d, const char *tag, const char *snapshot, struct err *err)
{
	CLEANUP(engine_rolled_done) struct engine_rolled rolled = { 0 };
	const struct engine_rollback_options o = { .first = d->p->run->clone,
						   .second = snapshot,
						   .clone_only = true };
	int r = engine_rollback(d->p->engine, &o, &rolled, err);

	drop(d, tag);
	if (r < 0)
		return r;
	on_forget(&d->target, d->id, d->posted.result.snapshot, d->on->manifest);
	return 0;
}

static bool is_death(int r)
{
	return r == -ECONNRESET || r == -EIO || r == -EPIPE;
}

/* What can be had when the arm is tried again: the ticket has its result, and does not run once more. */
static int lose(struct errand *d, const struct err *why, struct err *err)
{
	d->p->run->state = ENGINE_RUN_LOST;
	return text_set(&d->p->run->problem, err, "%s", why->msg);
}

static int take(struct errand *d, struct err *err)
{
	CLEANUP(engine_fetched_done) struct engine_fetched got = { 0 };
	struct engine_run *run = d->p->run;
	AUTO_FREE char *tag = NULL;
	struct err why = { 0 };
	int r;

	if (!d->posted.result.snapshot) {
		run->compared = true;
		return 0;
	}
	r = text_set(&tag, err, "run/%.12s", d->id);
	if (r < 0)
		return r;
	r = fetch(d, tag, &got, &why);
	d->is_gone = r == -ENOENT;
	if (r < 0)
		return is_transient(r) || is_death(r) ? lose(d, &why, err)
						      : err_set(err, r, "%s", why.msg);
	run->machine.received = got.bytes_received;
	r = fill_clone(d, tag, got.snapshot.id, &why);
	/* -ENOENT: somebody removed the clone. */
	if (r < 0)
		return r == -ENOENT || is_death(r) ? lose(d, &why, err)
						   : err_set(err, r, "%s", why.msg);
	run->compared = true;
	return 0;
}

/* --- how it ended ------------------------------------------------------------------------- */

static int fill(struct errand *d, struct err *err)
{
	const struct result *res = &d->posted.result;
	struct engine_run *run = d->p->run;

	run->exit_code = (int)res->code;
	run->signal = (int)res->signal;
	run->timed_out = strcmp(res->outcome, RESULT_TIME) == 0;
	run->duration_ms = res->duration_ms;
	run->cpu_ms = res->cpu_ms;
	run->max_rss = res->max_rss;
	run->added = res->added;
	run->modified = res->modified;
	run->deleted = res->deleted;
	run->truncated = d->posted.missing > 0;
	run->machine.worker_received = res->fetched;
	run->machine.worker_sent = res->pushed;
	run->machine.lost = strcmp(res->outcome, RESULT_LOST) == 0;
	set_machine(&run->machine, res->worker, res->host, res->attempt);
	snprintf(run->limit, sizeof(run->limit), "%s",
		 is_expired(res)  ? "deadline"
		 : res->limit     ? res->limit
		 : run->timed_out ? "time"
				  : "");
	return res->problem ? text_set(&run->problem, err, "%s", res->problem) : 0;
}

/* What came of the ticket, as a run has it. */
static int judge(struct errand *d, struct err *err)
{
	const struct result *res = &d->posted.result;
	struct engine_run *run = d->p->run;
	int r = fill(d, err);

	if (r < 0)
		return r;
	if (strcmp(res->outcome, RESULT_REFUSED) == 0)
		return err_set(err, -ENOTSUP, "%s%s%s", res->worker ? res->worker : "",
			       res->worker ? " refuses it: " : "",
			       res->problem ? res->problem : "no reason is given");
	if (strcmp(res->outcome, RESULT_CANCELLED) == 0) {
		run->state = ENGINE_RUN_CANCELLED;
		run->exit_code = ENGINE_RUN_CANCELLED_CODE;
		return 0;
	}
	if (run->machine.lost) {
		run->exit_code = LOST_CODE;
		run->compared = true;
		return 0;
	}
	if (!is_usable(res)) {
		run->state = ENGINE_RUN_LOST;
		return 0;
	}
	r = check_signer(d, err);
	run->machine.distrusted = r == -ECANCELED;
	return r < 0 ? r : take(d, err);
}

static int perform(struct engine_performing *p, void *ctx, struct err *err)
{
	CLEANUP(errand_done) struct errand d = { .on = ctx, .p = p, .turn = 1 };
	int r = prepare(&d, err);

	while (r == 0) {
		r = post(&d, err);
		if (r == 0)
			r = judge(&d, err);
		if (!d.is_gone)
			break;
		posted_done(&d.posted);
		d.posted = (struct posted){ 0 };
		d.is_gone = false;
		d.turn++;
		r = 0;
	}
	return r;
}

int on_clone_start(struct engine *e, const struct engine_run_options *options,
		   const struct on_clone *on, struct engine_run *ret, struct err *err)
{
	struct engine_run_options o = *options;

	o.perform = perform;
	o.perform_ctx = (void *)(uintptr_t)on;
	return engine_run_start(e, &o, ret, err);
}
