/*
 * What a worker reports: events to its caller, results and acknowledgements to the queue.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/worker/worker-i.h"

void worker_tell(struct worker *w, const struct engine_worker_event *ev)
{
	if (w->options->tell)
		w->options->tell(ev, w->options->ctx);
}

void worker_tell_ticket(struct worker *w, const struct slot *s, const char *what, const char *text)
{
	worker_tell(w, &(struct engine_worker_event){
			   .what = what, .ticket = s->id, .text = text, .attempt = s->attempt });
}

void worker_sign(struct worker *w, const struct slot *s)
{
	CLEANUP(buf_done) struct buf names = BUF_INIT;
	struct queue_log note = { .attempt = s->attempt, .is_note = true };
	struct err ignored = { 0 };

	if (buf_printf(&names, "%s\n%s", w->name, w->host) < 0)
		return;
	note.data = names;
	IGNORE_RESULT(queue_log_put(w->queue, s->id, &note, &ignored), "the result has it, too");
}

int worker_note(struct worker *w, int r, const struct err *why)
{
	if (r >= 0 && w->away) {
		w->away = false;
		worker_tell(w, &(struct engine_worker_event){ .what = "back" });
	}
	if (r != -EAGAIN && r != -ENOENT)
		return r;
	if (!w->away)
		worker_tell(w, &(struct engine_worker_event){ .what = "lost", .text = why->msg });
	w->away = true;
	return 0;
}

int worker_serve(struct worker *w, struct err *err)
{
	return queue_serve(w->queue, &w->labels, &w->most, w->lease_ms, err);
}

static void clear(struct slot *s)
{
	const struct slot kept = *s;

	ticket_done(&s->ticket);
	buf_done(&s->result);
	free(s->reply);
	*s = (struct slot){ .state = SLOT_IDLE,
			    .pid = kept.pid,
			    .sock = kept.sock,
			    .out = kept.out,
			    .err = kept.err };
}

void worker_release(struct worker *w, struct slot *s)
{
	if (s->began > 0)
		w->busy_ms += engine_clock_ms() - s->began;
	s->began = 0;
	if (s->sock < 0 || !s->ended) {
		s->state = s->sock < 0 ? SLOT_DEAD : SLOT_LEAVING;
		return;
	}
	clear(s);
	w->look = 0;
}

static void count(struct worker *w, const struct result *res)
{
	w->fetched += res->fetched;
	w->pushed += res->pushed;
	if (strcmp(res->outcome, RESULT_REFUSED) == 0)
		w->refused++;
	else if (strcmp(res->outcome, RESULT_EXIT) == 0)
		w->done++;
	else
		w->failed++;
}

/* A result that counts, and then the acknowledgement.  1 if both are done, 0: later. */
static int store(struct worker *w, const char *id, const char *reply, const struct buf *text,
		 struct err *err)
{
	struct err why = { 0 };
	int r = queue_result_put(w->queue, id, text, &why);
	bool stored = r >= 0;

	if (stored) {
		r = queue_ack(w->queue, reply, &why);
		/* A server that has lost the ticket hands it out no more. */
		stored = r >= 0 || r == -ENOENT;
	} else if (r == -ENOENT) {
		r = worker_serve(w, &why);
	}
	if (stored)
		return 1;
	r = worker_note(w, r, &why);
	return r < 0 ? err_set(err, r, "%s", why.msg) : 0;
}

int worker_store_slot(struct worker *w, struct slot *s, struct err *err)
{
	CLEANUP(result_done) struct result res = { 0 };
	int r = store(w, s->id, s->reply, &s->result, err);

	if (r <= 0)
		return r;
	r = result_decode(&s->result, &res, err);
	if (r < 0)
		return r;
	count(w, &res);
	worker_tell(w, &(struct engine_worker_event){ .what = "done",
						      .ticket = s->id,
						      .outcome = res.outcome,
						      .code = res.code,
						      .text = res.problem,
						      .attempt = s->attempt });
	worker_release(w, s);
	return 0;
}

int worker_answer_at_once(struct worker *w, const struct queue_taken *t, const char *id,
			  const char *outcome, const char *why, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	const struct result res = { .ticket = (char *)(uintptr_t)id,
				    .outcome = (char *)(uintptr_t)outcome,
				    .worker = w->name,
				    .host = w->host,
				    .problem = (char *)(uintptr_t)why,
				    .attempt = t->attempt,
				    .code = 125,
				    .started = engine_now(),
				    .ended = engine_now() };
	int r = result_encode(&res, &text, err);

	if (r == 0)
		r = store(w, id, t->reply, &text, err);
	if (r <= 0)
		return r;
	count(w, &res);
	worker_tell(w, &(struct engine_worker_event){ .what = "done",
						      .ticket = id,
						      .outcome = outcome,
						      .code = 125,
						      .text = why,
						      .attempt = t->attempt });
	return 0;
}
