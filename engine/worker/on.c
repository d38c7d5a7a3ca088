/*
 * A command on some worker: push, post, follow, fetch.  The queue is open only in between, since libnats has
 * threads and the rest may fork.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/hex.h"
#include "base/log.h"
#include "base/path.h"
#include "base/signals.h"
#include "base/sys.h"
#include "base/text.h"
#include "engine/api/worker.h"
#include "engine/transfer/signers-i.h"
#include "engine/worker/ticket.h"

#define LOOK_MS    1000
#define POST_TRIES 3
#define OUTPUT_MAX ((size_t)16 << 20) /* of each stream, in a result that is not passed on */

void engine_on_done(struct engine_on *r)
{
	free(r->outcome);
	free(r->worker);
	free(r->host);
	free(r->problem);
	free(r->limit);
	free(r->pushed);
	free(r->tag);
	buf_done(&r->out);
	buf_done(&r->err);
	*r = (struct engine_on){ 0 };
}

struct on {
	struct engine *e;
	const struct engine_on_options *options;
	struct engine_on *to;
	struct target target;
	struct engine_pushed pushed;
	struct queue *queue;
	struct signals signals;
	struct buf text; /* of the ticket */
	struct strlist labels;
	struct result result;
	uint64_t place, log_at; /* in their streams */
	uint64_t attempt;       /* whose output came last; 0: none did */
	uint64_t next[2];       /* where its output should go on */
	bool is_over;
};

static void on_free(struct on *o)
{
	queue_close(o->queue);
	(void)signals_end(&o->signals);
	target_done(&o->target);
	engine_pushed_done(&o->pushed);
	buf_done(&o->text);
	strlist_done(&o->labels);
	result_done(&o->result);
}

/* --- what is to be done ------------------------------------------------------------------- */

/* Neither the state nor the result is signed: refuse before a worker runs for nothing. */
static int check_signers(struct on *o, struct err *err)
{
	int r = signers_demanded(o->e, &o->target, err);

	return r <= 0
		   ? r
		   : err_set(err, -EINVAL,
			     "remote.%s.signers in config.yaml asks for signatures, and results of "
			     "workers are not signed: use another remote",
			     o->target.remote);
}

static int choose_remote(struct on *o, struct err *err)
{
	CLEANUP(engine_remotes_done) struct engine_remotes all = { 0 };
	int r;

	if (o->options->remote)
		return target_find(o->e, o->options->remote, &o->target, err);
	r = engine_remotes(o->e, &all, err);
	if (r < 0)
		return r;
	if (all.n != 1)
		return err_set(
		    err, -EINVAL,
		    "states travel through a remote, and there %s: name one with --remote",
		    all.n == 0 ? "is none" : "are several");
	return target_find(o->e, all.list[0].name, &o->target, err);
}

/* The project now needs no preparation, as for any run. */
static int take_project(struct on *o, char id[ENGINE_ID_SIZE], struct err *err)
{
	CLEANUP(engine_taken_done) struct engine_taken taken = { 0 };
	const struct engine_take_options t = { .automatic = true, .watch = o->options->watch };
	AUTO_FREE char *clone = clone_here(o->e);
	int r = clone ? 0 : engine_take(o->e, &t, &taken, err);

	if (r == 0 && !clone)
		memcpy(id, taken.snapshot.id, ENGINE_ID_SIZE);
	return r;
}

/* A name for each project of each store moves on, so that a push sends what changed. */
static int push(struct on *o, struct err *err)
{
	AUTO_FREE char *to = NULL, *key = NULL;
	struct engine_push_options p = { .state = o->options->state,
					 .force = true,
					 .watch = o->options->watch };
	char host[256] = "", hex[SHA256_HEX_SIZE], id[ENGINE_ID_SIZE] = "";
	struct digest d;
	int r = p.state ? 0 : take_project(o, id, err);

	if (r < 0)
		return r;
	if (id[0] != '\0')
		p.state = id;
	if (gethostname(host, sizeof(host) - 1) < 0)
		host[0] = '\0';
	r = text_set(&key, err, "%s %s %s", host, o->e->store_path, o->e->dir);
	if (r < 0)
		return r;
	d = digest_of(key, strlen(key));
	hex_encode(d.b, sizeof(d.b), hex);
	r = text_set(&to, err, "%s:queue-%.16s", target_remote(&o->target), hex);
	p.to = to;
	/* Another run of the same project may move it at the same time: then the next try follows it. */
	for (int tries = 0; r == 0 && tries < 8; tries++) {
		r = engine_push(o->e, &p, &o->pushed, err);
		if (r != -ESTALE)
			break;
		r = tries == 7 ? r : 0;
	}
	if (r < 0)
		return r;
	o->to->sent = o->pushed.bytes_sent;
	o->to->skipped = o->pushed.bytes_skipped;
	return text_set(&o->to->pushed, err, "%s", o->pushed.state);
}

static uint64_t said(uint64_t limit)
{
	return limit == ENGINE_UNSAID ? 0 : limit;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int sort_labels(struct on *o, struct err *err)
{
	const struct engine_list *l = &o->options->labels;

	for (size_t i = 0; i < l->n; i++)
		if (!strlist_has(&o->labels, l->items[i]) &&
		    strlist_add(&o->labels, l->items[i]) < 0)
			return err_nomem(err);
	if (o->labels.n > 1)
		qsort(o->labels.list, o->labels.n, sizeof(*o->labels.list), compare);
	return 0;
}

static struct strlist borrowed(const struct engine_list *l)
{
	return (struct strlist){ .list = (char **)(uintptr_t)l->items, .n = l->n };
}

/* From the top of the project: where the caller is, or what was named. */
static int choose_workdir(struct on *o, char **ret, struct err *err)
{
	CLEANUP(project_done) struct project project = { 0 };
	const char *named = o->options->workdir;
	AUTO_FREE char *path = NULL;
	struct store *store;
	int r = engine_project(o->e, &store, &project, err);

	if (r < 0)
		return r;
	path = named && *named != '/' ? path_join(o->e->dir, named)
				      : strdup(named ? named : o->e->dir);
	if (!path)
		return err_nomem(err);
	/* In a clone, paths are the clone's: the top is as good as any. */
	if (!path_is_below(path, project.path))
		return named ? err_set(err, -EINVAL, "'%s' is not in the project", named)
			     : text_set(ret, err, "%s", "");
	named = path + strlen(project.path);
	return text_set(ret, err, "%s", *named == '/' ? named + 1 : named);
}

static int write_ticket(struct on *o, struct err *err)
{
	const struct engine_on_options *p = o->options;
	const struct engine_run_limits *l = &p->limits;
	AUTO_FREE char *workdir = NULL;
	uint8_t random[16];
	char nonce[33];
	struct ticket t = {
		.snapshot = o->pushed.manifest,
		.name = o->pushed.name,
		.remote = o->target.url,
		.profile = (char *)(uintptr_t)p->profile,
		.command = { .list = (char **)(uintptr_t)p->argv },
		.env = borrowed(&p->env),
		.pass_env = borrowed(&p->pass_env),
		.limits = { said(l->mem), said(l->cpus_milli), said(l->pids), said(l->time_ms),
			    said(l->disk), said(l->inodes), said(l->fsize), said(l->nofile),
			    said(l->output), said(l->net_out) },
		.deadline =
		    p->deadline_ms > 0 ? engine_now() + (int64_t)p->deadline_ms * 1000000 : 0,
		.experiment = (char *)(uintptr_t)p->experiment,
		.arm = (char *)(uintptr_t)p->arm,
		.nonce = nonce,
	};
	int r = sys_random(random, sizeof(random));

	if (r < 0)
		return err_set(err, r, "no random bytes");
	hex_encode(random, sizeof(random), nonce);
	while (p->argv[t.command.n])
		t.command.n++;
	r = choose_workdir(o, &workdir, err);
	t.workdir = workdir;
	if (r == 0)
		r = sort_labels(o, err);
	t.labels = o->labels;
	if (r == 0)
		r = ticket_encode(&t, &o->text, err);
	if (r == 0)
		ticket_id(&o->text, o->to->ticket);
	return r;
}

/* --- following ---------------------------------------------------------------------------- */

/* Output of a worker that died stays with those who have seen it; the text of the result is one attempt's. */
static void change_attempt(struct on *o, uint64_t attempt)
{
	if (o->attempt > 0)
		log_warn(
		    "the worker no longer answers, and the command begins again (attempt %llu)",
		    (unsigned long long)attempt);
	buf_reset(&o->to->out);
	buf_reset(&o->to->err);
	o->to->missing = 0;
	o->next[0] = o->next[1] = 0;
	o->attempt = attempt;
}

static int pass(struct on *o, const struct queue_log *log, struct err *err)
{
	const int fd = log->of_stderr ? o->options->err_fd : o->options->out_fd;
	struct buf *text = log->of_stderr ? &o->to->err : &o->to->out;
	size_t len = log->data.len;
	int r;

	/* A worker that was cut off may still talk when its successor does. */
	if (log->attempt < o->attempt)
		return 0;
	if (log->attempt > o->attempt)
		change_attempt(o, log->attempt);
	if (log->at > o->next[log->of_stderr])
		o->to->missing += log->at - o->next[log->of_stderr];
	o->next[log->of_stderr] = log->at + len;
	if (fd < 0) {
		len = text->len < OUTPUT_MAX && len > OUTPUT_MAX - text->len
			  ? OUTPUT_MAX - text->len
		      : text->len < OUTPUT_MAX ? len
					       : 0;
		return buf_append(text, log->data.data, len) < 0 ? err_nomem(err) : 0;
	}
	r = fdio_write(fd, log->data.data, len);
	return r < 0 ? err_set(err, r, "passing output on") : 0;
}

static bool is_interrupted(const struct on *o)
{
	struct pollfd p = { .fd = o->signals.pipe[0], .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

/* A command may write faster than anybody reads: a signal ends the reading, and the caller finds it. */
static int read_logs(struct on *o, struct err *err)
{
	CLEANUP(buf_done) struct buf none = BUF_INIT;
	struct queue_log log = { .data = none };
	int r;

	while ((r = queue_log_next(o->queue, o->to->ticket, &o->log_at, &log, err)) > 0) {
		r = pass(o, &log, err);
		if (r < 0 || is_interrupted(o))
			break;
	}
	buf_done(&log.data);
	return r;
}

static int look(struct on *o, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	/* The result first: what was said before it is there when it is. */
	int over = queue_result_get(o->queue, o->to->ticket, &text, err), r;

	if (over < 0)
		return over;
	r = read_logs(o, err);
	if (r < 0 || over == 0)
		return r;
	r = result_decode(&text, &o->result, err);
	o->is_over = r == 0;
	return r;
}

/*
 * Whoever takes it later finds that it has a result; whoever has it stops.  1, or 0 if it has a result already;
 * a negative errno says that a worker may run it.
 */
static int withdraw(struct on *o, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	const struct result res = { .ticket = o->to->ticket,
				    .outcome = (char *)(uintptr_t)RESULT_CANCELLED,
				    .code = 130,
				    .started = engine_now(),
				    .ended = engine_now() };
	int r = result_encode(&res, &text, err);

	if (r == 0)
		r = queue_result_put(o->queue, o->to->ticket, &text, err);
	queue_cancel(o->queue, o->to->ticket);
	if (o->place > 0)
		queue_withdraw(o->queue, o->place);
	return r;
}

static int cancel(struct on *o, struct err *err)
{
	struct err why = { 0 };

	if (withdraw(o, &why) < 0)
		log_warn("%s: a worker may still run the command", why.msg);
	return err_set(err, -EINTR, "interrupted: the ticket is cancelled");
}

static int follow(struct on *o, struct err *err)
{
	bool told = false;

	while (!o->is_over) {
		struct pollfd p[2] = { { .fd = queue_fd(o->queue), .events = POLLIN },
				       { .fd = o->signals.pipe[0], .events = POLLIN } };
		struct queue_msg m = { 0 };
		struct err why = { 0 };
		int r = poll(p, 2, LOOK_MS);

		if (r < 0 && errno != EINTR)
			return err_sys(err, "waiting");
		if (r > 0 && p[1].revents != 0)
			return cancel(o, err);
		while ((r = queue_next(o->queue, &m, err)) > 0)
			queue_msg_done(&m);
		if (r < 0)
			return r;
		r = look(o, &why);
		if (r < 0 && r != -EAGAIN)
			return err_set(err, r, "%s", why.msg);
		if (r < 0 && !told)
			log_warn("%s, continuing", why.msg);
		told = r < 0;
	}
	return 0;
}

/* Without an answer it may be there all the same: again, which leaves one, or else nobody is to run it. */
static int send_ticket(struct on *o, struct err *err)
{
	struct err why = { 0 }, ignored = { 0 };
	int r = -EAGAIN, gone;

	for (int tries = 0; r == -EAGAIN && tries < POST_TRIES; tries++)
		r = queue_post(o->queue, o->to->ticket, &o->labels, &o->text, &o->place, &why);
	if (r != -EAGAIN)
		return r < 0 ? err_set(err, r, "%s", why.msg) : r;
	gone = withdraw(o, &ignored);
	/* One that has a result did arrive. */
	return gone == 0 ? 0
			 : err_set(err, r, "%s: %s", why.msg,
				   gone > 0 ? "the ticket is cancelled"
					    : "a worker may still run the command");
}

static int post(struct on *o, struct err *err)
{
	const struct queue_config config = { .url = o->options->queue,
					     .creds = o->options->creds,
					     .insecure = o->options->insecure,
					     .client = "snap run" };
	int r = queue_open(&config, &o->queue, err);

	if (r == 0)
		r = queue_listen(o->queue, o->to->ticket, err);
	return r < 0 ? r : send_ticket(o, err);
}

/* --- what came of it ---------------------------------------------------------------------- */

static int fetch(struct on *o, struct err *err)
{
	CLEANUP(engine_fetched_done) struct engine_fetched got = { 0 };
	AUTO_FREE char *from = NULL;
	struct engine_fetch_options f = { .manifest = o->result.snapshot,
					  .base_manifest = o->pushed.manifest,
					  .base_snapshot = o->pushed.state,
					  .watch = o->options->watch };
	int r = text_set(&from, err, "%s:result-%.32s", target_remote(&o->target), o->to->ticket);

	if (r == 0)
		r = o->options->tag ? text_set(&o->to->tag, err, "%s", o->options->tag)
				    : text_set(&o->to->tag, err, "run/%.12s", o->to->ticket);
	if (r < 0)
		return r;
	f.from = from;
	f.tag = o->to->tag;
	r = engine_fetch(o->e, &f, &got, err);
	if (r < 0)
		return r;
	memcpy(o->to->snapshot, got.snapshot.id, sizeof(o->to->snapshot));
	o->to->received = got.bytes_received;
	return 0;
}

static void fill(struct on *o)
{
	struct result *res = &o->result;
	struct engine_on *to = o->to;

	to->outcome = TAKE_PTR(res->outcome);
	to->worker = TAKE_PTR(res->worker);
	to->host = TAKE_PTR(res->host);
	to->problem = TAKE_PTR(res->problem);
	to->limit = TAKE_PTR(res->limit);
	to->code = (int)res->code;
	to->attempt = res->attempt;
	to->duration_ms = res->duration_ms;
	to->cpu_ms = res->cpu_ms;
	to->max_rss = res->max_rss;
	to->added = res->added;
	to->modified = res->modified;
	to->deleted = res->deleted;
	to->worker_received = res->fetched;
	to->worker_sent = res->pushed;
	/* Output after the last that we saw. */
	if (res->attempt == o->attempt || o->attempt == 0) {
		to->missing += res->out > o->next[0] ? res->out - o->next[0] : 0;
		to->missing += res->err > o->next[1] ? res->err - o->next[1] : 0;
	}
}

static int go(struct on *o, struct err *err)
{
	int r = choose_remote(o, err);

	if (r == 0)
		r = check_signers(o, err);
	if (r == 0)
		r = push(o, err);
	if (r == 0)
		r = write_ticket(o, err);
	if (r == 0)
		r = signals_begin(&o->signals, 0, err);
	if (r == 0)
		r = post(o, err);
	if (r == 0)
		r = follow(o, err);
	queue_close(TAKE_PTR(o->queue));
	(void)signals_end(&o->signals);
	if (r == 0 && o->result.snapshot)
		r = fetch(o, err);
	if (r == 0)
		fill(o);
	return r;
}

int engine_run_on(struct engine *e, const struct engine_on_options *options, struct engine_on *ret,
		  struct err *err)
{
	CLEANUP(on_free) struct on o = {
		.e = e, .options = options, .to = ret, .signals = SIGNALS_INIT
	};
	const uint64_t start = engine_clock_ms();
	int r = go(&o, err);

	ret->elapsed_ms = engine_clock_ms() - start;
	return r;
}
