/*
 * Every worker answers a question by itself; numbers and finished tickets come from the streams.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fields.h"
#include "base/text.h"
#include "base/vec.h"
#include "engine/worker/status-i.h"
#include "engine/worker/ticket.h"

#define WAIT_MS     UINT64_C(500)
#define WORKERS_MAX 4096

static const struct field job_fields[] = {
	FIELD(FIELD_NAME, struct engine_worker_job, ticket),
	FIELD(FIELD_NAME, struct engine_worker_job, command),
	FIELD(FIELD_NAME_OR_NULL, struct engine_worker_job, experiment),
	FIELD(FIELD_NAME_OR_NULL, struct engine_worker_job, arm),
	FIELD(FIELD_UINT, struct engine_worker_job, attempt),
	FIELD(FIELD_UINT, struct engine_worker_job, running_ms),
};
static const struct fields job_table = FIELDS(struct engine_worker_job, job_fields);

static const struct field state_fields[] = {
	FIELD(FIELD_NAME, struct engine_worker_state, name),
	FIELD(FIELD_NAME, struct engine_worker_state, host),
	FIELD(FIELD_INT, struct engine_worker_state, pid),
	FIELD(FIELD_INT, struct engine_worker_state, started),
	FIELD(FIELD_UINT, struct engine_worker_state, jobs),
	FIELD(FIELD_UINT, struct engine_worker_state, done),
	FIELD(FIELD_UINT, struct engine_worker_state, failed),
	FIELD(FIELD_UINT, struct engine_worker_state, refused),
	FIELD(FIELD_UINT | FIELD_LATER, struct engine_worker_state, up_ms),
	FIELD(FIELD_UINT | FIELD_LATER, struct engine_worker_state, busy_ms),
	FIELD(FIELD_UINT | FIELD_LATER, struct engine_worker_state, fetched),
	FIELD(FIELD_UINT | FIELD_LATER, struct engine_worker_state, pushed),
	FIELD(FIELD_UINT | FIELD_LATER, struct engine_worker_state, mem),
	FIELD(FIELD_UINT | FIELD_LATER, struct engine_worker_state, cpus_milli),
	FIELD(FIELD_BOOL, struct engine_worker_state, draining),
	FIELD_LIST_OF(FIELD_NAMES, struct engine_worker_state, "labels", labels, n_labels, NULL),
	FIELD_LIST_OF(FIELD_LIST, struct engine_worker_state, "running", running, n_running,
		      &job_table),
};
static const struct fields state_table = FIELDS(struct engine_worker_state, state_fields);

int status_encode(const struct engine_worker_state *s, struct buf *out, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };

	fields_set(json_begin(&doc), &state_table, s);
	return json_append(&doc, out, err);
}

void status_done(struct engine_worker_state *s)
{
	fields_done(&state_table, s);
}

int status_decode(const char *text, size_t len, struct engine_worker_state *ret, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct engine_worker_state one = { 0 };
	struct json j;
	int r = len > STATUS_MAX ? err_set(err, -EINVAL, "the answer of a worker is too long")
				 : json_parse(&doc, text, len, &j, err);

	if (r == 0)
		r = fields_read(j, &state_table, &one, err);
	if (r < 0) {
		status_done(&one);
		return r;
	}
	*ret = one;
	return 0;
}

static void done_done(struct engine_worker_done *d)
{
	free(d->ticket);
	free(d->outcome);
	free(d->worker);
	free(d->host);
	free(d->command);
	free(d->experiment);
	free(d->arm);
}

void engine_worker_status_done(struct engine_worker_status *s)
{
	VEC_FREE(it, s->workers, s->n_workers, status_done(it));
	VEC_FREE(it, s->done, s->n_done, done_done(it));
	free(s->queue);
	*s = (struct engine_worker_status){ 0 };
}

/* An answer that is none is passed over: anybody may send one. */
static int on_answer(const char *text, size_t len, void *ctx)
{
	struct engine_worker_status *s = ctx;
	struct engine_worker_state one = { 0 };
	struct err ignored = { 0 };

	if (s->n_workers == WORKERS_MAX || status_decode(text, len, &one, &ignored) < 0)
		return 0;
	if (!VEC_ONE_MORE(s->workers, s->n_workers)) {
		status_done(&one);
		return -ENOMEM;
	}
	s->workers[s->n_workers++] = one;
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const struct engine_worker_state *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int add_done(struct engine_worker_status *s, const struct buf *text, struct err *err)
{
	CLEANUP(result_done) struct result res = { 0 };
	struct err ignored = { 0 };

	if (result_decode(text, &res, &ignored) < 0)
		return 0;
	if (!VEC_ONE_MORE(s->done, s->n_done))
		return err_nomem(err);
	s->done[s->n_done++] = (struct engine_worker_done){
		.ticket = TAKE_PTR(res.ticket),
		.outcome = TAKE_PTR(res.outcome),
		.worker = TAKE_PTR(res.worker),
		.host = TAKE_PTR(res.host),
		.command = TAKE_PTR(res.command),
		.experiment = TAKE_PTR(res.experiment),
		.arm = TAKE_PTR(res.arm),
		.code = res.code,
		.attempt = res.attempt,
		.duration_ms = res.duration_ms,
		.fetched = res.fetched,
		.pushed = res.pushed,
		.ended = res.ended,
	};
	return 0;
}

int engine_worker_status(struct engine *e, const struct engine_worker_status_options *options,
			 struct engine_worker_status *ret, struct err *err)
{
	const struct queue_config config = { .url = options->queue,
					     .creds = options->creds,
					     .insecure = options->insecure,
					     .client = "snap worker status" };
	CLEANUP(engine_worker_status_done) struct engine_worker_status s = { 0 };
	CLEANUP(queue_close_p) struct queue *q = NULL;
	struct queue_numbers n = { 0 };
	int r = queue_open(&config, &q, err);

	if (r == 0)
		r = text_set(&s.queue, err, "%s", queue_name(q));
	if (r == 0)
		r = queue_numbers(q, &n, err);
	if (r == 0)
		r = queue_ask(q, options->wait_ms > 0 ? options->wait_ms : WAIT_MS, on_answer, &s,
			      err);
	for (uint64_t at = n.last_result;
	     r >= 0 && at > 0 && s.n_done < options->max && n.last_result - at < 4 * options->max;
	     at--) {
		CLEANUP(buf_done) struct buf text = BUF_INIT;

		r = queue_result_at(q, at, &text, err);
		if (r > 0)
			r = add_done(&s, &text, err);
	}
	if (r < 0)
		return r;
	VEC_SORT(s.workers, s.n_workers, by_name);
	s.waiting = n.waiting;
	s.taken = n.taken;
	s.redelivered = n.redelivered;
	s.results = n.results;
	*ret = TAKE_STRUCT(s);
	return 0;
}
