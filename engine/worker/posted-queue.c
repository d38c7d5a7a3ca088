/*
 * A ticket that goes through a queue: streams hold everything that counts, and messages only wake
 * us up.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/vec.h"
#include "engine/find/engine-i.h"
#include "engine/worker/posted-i.h"
#include "engine/worker/status-i.h"

#define LOOK_MS    1000
#define ASK_MS     UINT64_C(5000)  /* between two questions what workers offer */
#define SHORT_MS   UINT64_C(10000) /* then nobody offers enough; a worker may have been restarted */
#define ANSWER_MS  300
#define POST_TRIES 3
#define PAUSE_MS   500 /* between two tries to reach a server */

static void end(struct posted *p)
{
	queue_close(TAKE_PTR(p->queue));
}

/* A command may write faster than anybody reads: a signal ends the reading, and the caller finds it. */
static int read_logs(struct posted *p, const char *id, struct err *err)
{
	CLEANUP(buf_done) struct buf none = BUF_INIT;
	struct queue_log log = { .data = none };
	int r;

	while ((r = queue_log_next(p->queue, id, &p->log_at, &log, err)) > 0) {
		r = posted_pass(p, &log, err);
		if (r < 0 || posted_is_interrupted(p, 0))
			break;
	}
	buf_done(&log.data);
	return r;
}

/* --- following ---------------------------------------------------------------------------- */

static int look(struct posted *p, const char *id, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	/* The result first: what was said before it is there when it is. */
	int over = queue_result_get(p->queue, id, &text, err), r;

	if (over < 0)
		return over;
	r = read_logs(p, id, err);
	if (r < 0 || over == 0)
		return r;
	r = posted_take_result(p, &text, err);
	p->is_over = r == 0;
	if (r == 0)
		posted_count_missing(p);
	return r;
}

/*
 * Whoever takes it later finds that it has a result; whoever has it stops.  1, or 0 if it has a result already;
 * a negative errno says that a worker may run it.
 */
static int end_ticket(struct posted *p, const char *id, const char *outcome, const char *why,
		      struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	const struct result res = { .ticket = (char *)(uintptr_t)id,
				    .outcome = (char *)(uintptr_t)outcome,
				    .problem = (char *)(uintptr_t)why,
				    .code = why ? 125 : 130,
				    .started = engine_now(),
				    .ended = engine_now() };
	int r = result_encode(&res, &text, err);

	if (r == 0)
		r = queue_result_put(p->queue, id, &text, err);
	queue_cancel(p->queue, id);
	if (p->place > 0)
		queue_withdraw(p->queue, p->place);
	return r;
}

static int withdraw(struct posted *p, const char *id, struct err *err)
{
	int r = end_ticket(p, id, RESULT_CANCELLED, NULL, err);

	p->cancelled = r > 0;
	return r;
}

static int cancel(struct posted *p, const char *id, struct err *err)
{
	struct err why = { 0 };
	int r = withdraw(p, id, &why);

	if (r > 0)
		return err_set(err, -EINTR, "interrupted: the ticket is cancelled");
	/* Somebody's result was first: it counts. */
	if (r == 0)
		r = look(p, id, &why);
	if (r == 0 && !p->is_over)
		r = err_set(&why, -EPROTO, "the ticket has a result that cannot be found");
	if (r == 0)
		return posted_settle(p, err);
	log_warn("%s: a worker may still run the command", why.msg);
	return err_set(err, -EINTR, "interrupted: the ticket could not be cancelled");
}

/* --- one that nobody takes ---------------------------------------------------------------- */

struct offers {
	const struct strlist *labels;
	const struct queue_need *need;
	struct queue_need most;
	bool any, enough;
};

static bool has_labels(const struct engine_worker_state *s, const struct strlist *labels)
{
	for (size_t i = 0; i < labels->n; i++)
		if (!VEC_HAS(it, s->labels, s->n_labels, strcmp(*it, labels->list[i]) == 0))
			return false;
	return true;
}

static int on_offer(const char *text, size_t len, void *ctx)
{
	struct engine_worker_state s = { 0 };
	struct offers *o = ctx;
	struct err ignored = { 0 };

	if (status_decode(text, len, &s, &ignored) < 0)
		return 0;
	if (!s.draining && has_labels(&s, o->labels)) {
		const struct queue_need offer = { s.mem, s.cpus_milli };

		o->any = true;
		o->enough |= queue_need_fits(o->need, &offer);
		if (offer.mem > o->most.mem)
			o->most.mem = offer.mem;
		if (offer.cpus_milli > o->most.cpus_milli)
			o->most.cpus_milli = offer.cpus_milli;
	}
	status_done(&s);
	return 0;
}

/* "no worker offers 64 GiB of memory (the most is 16 GiB of memory)" */
static int refuse_need(struct posted *p, const char *id, const struct offers *o, struct err *err)
{
	const struct queue_need most = need_part(&o->most, &p->need);
	char wanted[NEED_TEXT_MAX], had[NEED_TEXT_MAX], why[2 * NEED_TEXT_MAX + 40];

	snprintf(why, sizeof(why), "no worker offers %s (the most is %s)",
		 need_text(&p->need, wanted), need_text(&most, had));
	return end_ticket(p, id, RESULT_REFUSED, why, err);
}

/* Without any worker it waits: one may come.  Those that are here would have to change. */
static int look_for_offer(struct posted *p, const char *id, const struct strlist *labels,
			  struct err *err)
{
	const uint64_t now = engine_clock_ms();
	struct offers o = { .labels = labels, .need = &p->need };
	int r;

	if ((p->need.mem == 0 && p->need.cpus_milli == 0) ||
	    (p->asked_ms > 0 && now - p->asked_ms < ASK_MS))
		return 0;
	r = queue_ask(p->queue, ANSWER_MS, on_offer, &o, err);
	if (r < 0)
		return r;
	p->asked_ms = engine_clock_ms();
	if (!o.any || o.enough)
		p->short_ms = 0;
	else if (p->short_ms == 0)
		p->short_ms = now;
	else if (now - p->short_ms >= SHORT_MS)
		return refuse_need(p, id, &o, err);
	return 0;
}

/* Its result is found as any other. */
static int look_whether_taken(struct posted *p, const char *id, const struct strlist *labels,
			      struct err *err)
{
	int r;

	if (p->is_over || p->attempt > 0)
		return 0;
	r = p->deadline > 0 && p->deadline < engine_now()
		? end_ticket(p, id, RESULT_EXPIRED, "no worker took it before its deadline", err)
		: look_for_offer(p, id, labels, err);
	return r < 0 ? r : 0;
}

static int follow(struct posted *p, const char *id, const struct strlist *labels, struct err *err)
{
	bool told = false;

	while (!p->is_over) {
		struct pollfd fds[2] = { { .fd = queue_fd(p->queue), .events = POLLIN },
					 { .fd = p->options->stop_fd, .events = POLLIN } };
		struct queue_msg m = { 0 };
		struct err why = { 0 };
		int r = poll(fds, 2, LOOK_MS);

		if (r < 0 && errno != EINTR)
			return err_sys(err, "waiting");
		if (r > 0 && fds[1].revents != 0)
			return cancel(p, id, err);
		while ((r = queue_next(p->queue, &m, err)) > 0)
			queue_msg_done(&m);
		if (r < 0)
			return r;
		r = look(p, id, &why);
		if (r == 0)
			r = look_whether_taken(p, id, labels, &why);
		if (r < 0 && r != -EAGAIN)
			return err_set(err, r, "%s", why.msg);
		if (r < 0 && !told)
			log_warn("%s, continuing", why.msg);
		told = r < 0;
	}
	return 0;
}

/* --- posting ------------------------------------------------------------------------------ */

/* Is there still time for another try?  Waits a moment before it. */
static bool may_try(const struct posted *p, uint64_t began)
{
	return engine_clock_ms() - began < p->options->patience_ms &&
	       !posted_is_interrupted(p, PAUSE_MS);
}

/* Without an answer it may be there all the same: again, which leaves one, or else nobody is to run it. */
static int send_ticket(struct posted *p, const char *id, const struct strlist *labels,
		       const struct buf *text, struct err *err)
{
	const uint64_t began = engine_clock_ms();
	struct err why = { 0 }, ignored = { 0 };
	int r = -EAGAIN, gone;

	/* -ENOENT: of a server that just started, the streams may come later. */
	for (int tries = 0; (r == -EAGAIN && tries < POST_TRIES) ||
			    ((r == -EAGAIN || r == -ENOENT) && may_try(p, began));
	     tries++)
		r = queue_post(p->queue, id, labels, &p->need, text, &p->place, &why);
	if (r != -EAGAIN)
		return r < 0 ? err_set(err, r, "%s", why.msg) : r;
	gone = withdraw(p, id, &ignored);
	/* One that has a result did arrive. */
	return gone == 0 ? 0
			 : err_set(err, r, "%s: %s", why.msg,
				   gone > 0 ? "the ticket is cancelled"
					    : "a worker may still run the command");
}

static int begin(struct posted *p, struct err *err)
{
	const struct queue_config config = { .url = p->options->queue,
					     .creds = p->options->creds,
					     .insecure = p->options->insecure,
					     .client = p->options->client };
	const uint64_t began = engine_clock_ms();
	int r;

	do
		r = queue_open(&config, &p->queue, err);
	while (r == -EAGAIN && may_try(p, began));
	return r;
}

static int find(struct posted *p, const char *id, const struct buf *ticket, struct err *err)
{
	const uint64_t began = engine_clock_ms();
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	int r;

	do
		r = queue_result_get(p->queue, id, &text, err);
	while (r == -EAGAIN && may_try(p, began));
	if (r <= 0)
		return r;
	r = posted_take_result(p, &text, err);
	return r < 0 ? r : 1;
}

static int catch_up(struct posted *p, const char *id, const struct buf *ticket, struct err *err)
{
	return read_logs(p, id, err);
}

static int post(struct posted *p, const char *id, const struct strlist *labels,
		const struct buf *text, struct err *err)
{
	CLEANUP(ticket_done) struct ticket t = { 0 };
	int r = ticket_decode(text, &t, err);

	p->need = ticket_need(&t);
	p->deadline = t.deadline;
	if (r == 0)
		r = queue_listen(p->queue, id, err);
	if (r == 0)
		r = send_ticket(p, id, labels, text, err);
	return r < 0 ? r : follow(p, id, labels, err);
}

const struct posted_kind posted_by_queue = {
	.begin = begin, .end = end, .find = find, .catch_up = catch_up, .follow = post
};
