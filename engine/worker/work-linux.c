/*
 * The loop of a worker: it takes tickets, watches its slots and listens to the queue.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/vec.h"
#include "engine/worker/status-i.h"
#include "engine/worker/worker-i.h"

#define ATTEMPTS_MAX 3
#define LOOK_MS      UINT64_C(1000) /* between two looks for tickets that nobody announced */
#define LATER_MS     UINT64_C(2000) /* before one that could not be done is handed out again */
#define GRACE_MS     UINT64_C(5000) /* for a run that was cancelled */
#define NEVER        UINT64_MAX

#define READS_AT_ONCE 8

/* --- taking ------------------------------------------------------------------------------- */

static struct slot *idle(struct worker *w)
{
	return VEC_FIND(at, w->slots, w->n_slots, at->state == SLOT_IDLE);
}

static int begin(struct worker *w, struct slot *s, struct queue_taken *t, struct ticket *ticket,
		 const char *id, struct err *err)
{
	int r = slot_send(s, &t->text, err);

	if (r < 0)
		return r;
	s->state = SLOT_WORKING;
	s->ticket = *ticket;
	*ticket = (struct ticket){ 0 };
	memcpy(s->id, id, sizeof(s->id));
	s->reply = TAKE_PTR(t->reply);
	s->attempt = t->attempt;
	s->began = engine_clock_ms();
	s->beat = s->began + w->lease_ms / 3;
	worker_sign(w, s);
	worker_tell_ticket(w, s, "taken", s->ticket.command.list[0]);
	return 0;
}

/*
 * It was posted without a word in its subject on what it needs, by hand or by an earlier version.
 * Another worker may have that; the number of tries is bounded as that of deaths.
 */
static int pass_on(struct worker *w, const struct queue_taken *t, const char *id,
		   const struct queue_need *need, struct err *err)
{
	const struct queue_need most = need_part(&w->most, need);
	char wanted[NEED_TEXT_MAX], had[NEED_TEXT_MAX], why[2 * NEED_TEXT_MAX + 40];

	snprintf(why, sizeof(why), "it needs %s, and this worker offers %s",
		 need_text(need, wanted), need_text(&most, had));
	if (t->attempt >= ATTEMPTS_MAX)
		return worker_answer_at_once(w, t, id, RESULT_REFUSED, why, err);
	queue_nak(w->queue, t->reply, LATER_MS);
	worker_tell(w, &(struct engine_worker_event){
			   .what = "again", .ticket = id, .text = why, .attempt = t->attempt });
	return 0;
}

static int handle(struct worker *w, struct slot *s, struct queue_taken *t, struct err *err)
{
	CLEANUP(ticket_done) struct ticket ticket = { 0 };
	CLEANUP(buf_done) struct buf result = BUF_INIT;
	struct err why = { 0 };
	struct queue_need need;
	char id[QUEUE_ID_SIZE];
	int r;

	w->taken++;
	ticket_id(&t->text, id);
	/* Somebody finished it and died before the acknowledgement, or it was cancelled. */
	r = queue_result_get(w->queue, id, &result, &why);
	if (r > 0)
		r = queue_ack(w->queue, t->reply, &why);
	else if (r == 0)
		r = 1;
	if (r <= 0) {
		r = worker_note(w, r, &why);
		return r < 0 ? err_set(err, r, "%s", why.msg) : 0;
	}
	if (ticket_decode(&t->text, &ticket, &why) < 0)
		return worker_answer_at_once(w, t, id, RESULT_REFUSED, why.msg, err);
	if (t->attempt > ATTEMPTS_MAX)
		return worker_answer_at_once(
		    w, t, id, RESULT_LOST, "each of the workers that took it died or gave up", err);
	if (ticket.deadline > 0 && ticket.deadline < engine_now())
		return worker_answer_at_once(w, t, id, RESULT_EXPIRED, "its deadline has passed",
					     err);
	need = ticket_need(&ticket);
	return queue_need_fits(&need, &w->most) ? begin(w, s, t, &ticket, id, err)
						: pass_on(w, t, id, &need, err);
}

/* What the tickets at hand leave. */
static struct queue_need room(const struct worker *w)
{
	struct queue_need left = w->total;

	for (size_t i = 0; i < w->n_slots; i++) {
		const struct queue_need need = ticket_need(&w->slots[i].ticket);

		left.mem -= need.mem < left.mem ? need.mem : left.mem;
		left.cpus_milli -=
		    need.cpus_milli < left.cpus_milli ? need.cpus_milli : left.cpus_milli;
	}
	return left;
}

static bool is_enough(const struct worker *w)
{
	return w->options->tickets > 0 && w->taken >= w->options->tickets;
}

static int take(struct worker *w, struct err *err)
{
	struct slot *s;
	int r = 1;

	while (r > 0 && !w->draining && !is_enough(w) && (s = idle(w))) {
		CLEANUP(queue_taken_done) struct queue_taken t = { 0 };
		const struct queue_need left = room(w);
		struct err why = { 0 };

		r = queue_take(w->queue, &left, &t, &why);
		if (r == -ENOENT)
			r = worker_serve(w, &why);
		r = worker_note(w, r, &why);
		if (r < 0)
			return err_set(err, r, "%s", why.msg);
		if (r > 0) {
			r = handle(w, s, &t, err);
			if (r < 0)
				return r;
			r = 1;
		}
	}
	w->look = engine_clock_ms() + LOOK_MS;
	if (r == 0 && !w->away && w->options->once)
		w->draining = true;
	if (is_enough(w))
		w->draining = true;
	return 0;
}

/* --- slots -------------------------------------------------------------------------------- */

/* Heartbeats and signals wait meanwhile, and a command may write for ever: at most so many reads. */
static void pass_output(struct worker *w, struct slot *s, bool of_stderr, unsigned reads)
{
	struct queue_log log = { .attempt = s->attempt, .of_stderr = of_stderr };
	CLEANUP(buf_done) struct buf data = BUF_INIT;
	struct err ignored = { 0 };
	ssize_t n;

	if (!buf_extend(&data, QUEUE_LOG_MAX))
		return;
	for (; reads > 0; reads--) {
		n = read(of_stderr ? s->err : s->out, data.data, QUEUE_LOG_MAX);
		if (n <= 0)
			return;
		data.len = (size_t)n;
		log.at = s->at[of_stderr];
		log.data = data;
		s->at[of_stderr] += (uint64_t)n;
		/* What is lost is missing in the reader's count. */
		if (s->state == SLOT_WORKING)
			IGNORE_RESULT(queue_log_put(w->queue, s->id, &log, &ignored), "see above");
	}
}

/* What only we know goes into the result. */
static int keep_result(struct slot *s, const struct buf *text, struct err *err)
{
	CLEANUP(result_done) struct result res = { 0 };
	int r = result_decode(text, &res, err);

	if (r < 0)
		return r;
	res.attempt = s->attempt;
	res.out = s->at[0];
	res.err = s->at[1];
	r = result_encode(&res, &s->result, err);
	if (r == 0)
		s->state = SLOT_STORING;
	return r;
}

/* Its child ended without a result. */
static int give_back(struct worker *w, struct slot *s, const char *why, struct err *err)
{
	const struct result res = { .ticket = s->id,
				    .outcome = (char *)(uintptr_t)RESULT_CANCELLED,
				    .worker = w->name,
				    .host = w->host,
				    .attempt = s->attempt,
				    .code = 143,
				    .started = engine_now(),
				    .ended = engine_now() };

	if (s->cancelled) {
		s->state = SLOT_STORING;
		return result_encode(&res, &s->result, err);
	}
	queue_nak(w->queue, s->reply, LATER_MS);
	worker_tell_ticket(w, s, "again", why);
	w->failed++;
	worker_release(w, s);
	return 0;
}

static int hear(struct worker *w, struct slot *s, enum slot_word word, struct buf *text,
		struct err *err)
{
	uint32_t pid;

	if (word == SLOT_ENDED) {
		s->ended = true;
		/* The next ticket has the same pipes. */
		pass_output(w, s, false, UINT_MAX);
		pass_output(w, s, true, UINT_MAX);
	}
	if (word == SLOT_ENDED && s->state == SLOT_LEAVING)
		worker_release(w, s);
	if (s->state != SLOT_WORKING)
		return 0;
	switch (word) {
	case SLOT_CHILD:
		if (text->len == sizeof(pid)) {
			memcpy(&pid, text->data, sizeof(pid));
			s->child = (pid_t)pid;
		}
		if (s->cancelled)
			kill(s->child, SIGTERM);
		return 0;
	case SLOT_RESULT:
		pass_output(w, s, false, UINT_MAX);
		pass_output(w, s, true, UINT_MAX);
		return s->cancelled ? 0 : keep_result(s, text, err);
	case SLOT_LATER:
		return s->cancelled ? 0 : give_back(w, s, buf_str(text), err);
	case SLOT_ENDED:
		return give_back(w, s, "the process that did it ended", err);
	}
	return 0;
}

static int read_slot(struct worker *w, struct slot *s, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	enum slot_word word;
	int r;

	while ((r = slot_read(s, &word, &text, err)) > 0) {
		r = hear(w, s, word, &text, err);
		if (r < 0)
			return r;
	}
	if (r != -ECHILD)
		return r;
	close(TAKE_FD(s->sock));
	if (s->state == SLOT_WORKING)
		return give_back(w, s, "the process that did it was killed", err);
	/* A result outlives the process that made it. */
	if (s->state != SLOT_STORING)
		s->state = SLOT_DEAD;
	return 0;
}

static int beat(struct worker *w, struct slot *s, uint64_t now, struct err *err)
{
	CLEANUP(buf_done) struct buf result = BUF_INIT;
	struct err why = { 0 };

	if (s->state == SLOT_STORING)
		return worker_store_slot(w, s, err);
	if (s->state != SLOT_WORKING)
		return 0;
	if (s->kill > 0 && now >= s->kill && s->child > 0) {
		kill(s->child, SIGKILL);
		s->kill = 0;
	}
	if (now < s->beat)
		return 0;
	s->beat = now + w->lease_ms / 3;
	queue_working(w->queue, s->reply);
	/* A message that says so may have been lost. */
	if (!s->cancelled && queue_result_get(w->queue, s->id, &result, &why) > 0) {
		s->cancelled = true;
		s->kill = now + GRACE_MS;
		if (s->child > 0)
			kill(s->child, SIGTERM);
	}
	return 0;
}

/* --- what the queue says ------------------------------------------------------------------ */

static void cancel(struct worker *w, const char *id)
{
	for (size_t i = 0; i < w->n_slots; i++) {
		struct slot *s = &w->slots[i];

		if (s->state != SLOT_WORKING || s->cancelled || strcmp(s->id, id) != 0)
			continue;
		s->cancelled = true;
		s->kill = engine_clock_ms() + GRACE_MS;
		if (s->child > 0)
			kill(s->child, SIGTERM);
	}
}

/* Who we are and what we do. */
static int answer(struct worker *w, const char *reply, struct err *err)
{
	struct engine_worker_job running[ENGINE_WORKER_JOBS];
	struct engine_worker_state s = {
		.name = w->name,
		.host = w->host,
		.pid = getpid(),
		.started = w->started,
		.jobs = w->n_slots,
		.done = w->done,
		.failed = w->failed,
		.refused = w->refused,
		.up_ms = engine_clock_ms() - w->began,
		.busy_ms = w->busy_ms,
		.fetched = w->fetched,
		.pushed = w->pushed,
		.mem = w->most.mem,
		.cpus_milli = w->most.cpus_milli,
		.draining = w->draining,
		.labels = w->labels.list,
		.n_labels = w->labels.n,
		.running = running,
	};
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	int r;

	for (size_t i = 0; i < w->n_slots; i++) {
		struct slot *one = &w->slots[i];

		if (one->state != SLOT_WORKING && one->state != SLOT_STORING)
			continue;
		running[s.n_running++] = (struct engine_worker_job){
			.ticket = one->id,
			.command = one->ticket.command.list[0],
			.experiment = one->ticket.experiment,
			.arm = one->ticket.arm,
			.attempt = one->attempt,
			.running_ms = engine_clock_ms() - one->began,
		};
		s.busy_ms += s.running[s.n_running - 1].running_ms;
	}
	r = status_encode(&s, &text, err);
	if (r == 0)
		queue_answer(w->queue, reply, &text);
	return r;
}

static int hear_queue(struct worker *w, struct err *err)
{
	struct queue_msg m = { 0 };
	int r;

	while ((r = queue_next(w->queue, &m, err)) > 0) {
		if (m.kind == QUEUE_POSTED)
			w->look = 0;
		else if (m.kind == QUEUE_CANCEL)
			cancel(w, m.id);
		else if (m.kind == QUEUE_QUESTION && m.reply)
			r = answer(w, m.reply, err);
		queue_msg_done(&m);
		if (r < 0)
			return r;
	}
	return r;
}

static void hear_signal(struct worker *w)
{
	char c;

	if (read(w->signals.pipe[0], &c, 1) != 1)
		return;
	if (w->draining)
		w->stopped = true;
	w->draining = true;
	worker_tell(w, &(struct engine_worker_event){ .what = "draining" });
}

/* --- the loop ----------------------------------------------------------------------------- */

static uint64_t next_time(const struct worker *w)
{
	uint64_t at = w->draining ? NEVER : w->look;

	for (size_t i = 0; i < w->n_slots; i++) {
		const struct slot *s = &w->slots[i];

		if (s->state == SLOT_STORING && at > LOOK_MS)
			at = engine_clock_ms() + LOOK_MS / 4;
		if (s->state != SLOT_WORKING)
			continue;
		at = s->beat < at ? s->beat : at;
		at = s->kill > 0 && s->kill < at ? s->kill : at;
	}
	return at;
}

static int wait_for(struct worker *w, struct err *err)
{
	struct pollfd p[2 + 3 * ENGINE_WORKER_JOBS];
	const uint64_t now = engine_clock_ms(), at = next_time(w);
	nfds_t n = 0;
	int r;

	p[n++] = (struct pollfd){ .fd = queue_fd(w->queue), .events = POLLIN };
	p[n++] = (struct pollfd){ .fd = w->signals.pipe[0], .events = POLLIN };
	for (size_t i = 0; i < w->n_slots; i++) {
		const struct slot *s = &w->slots[i];
		const bool dead = s->sock < 0;

		p[n++] = (struct pollfd){ .fd = dead ? -1 : s->sock, .events = POLLIN };
		p[n++] = (struct pollfd){ .fd = dead ? -1 : s->out, .events = POLLIN };
		p[n++] = (struct pollfd){ .fd = dead ? -1 : s->err, .events = POLLIN };
	}
	r = poll(p, n,
		 at == NEVER ? 1000
		 : at <= now ? 0
			     : (int)(at - now > 60000 ? 60000 : at - now));
	if (r < 0 && errno != EINTR)
		return err_sys(err, "waiting");
	if (p[1].revents != 0)
		hear_signal(w);
	for (size_t i = 0; i < w->n_slots; i++) {
		struct slot *s = &w->slots[i];

		if (s->sock < 0)
			continue;
		if (p[3 + 3 * i].revents != 0)
			pass_output(w, s, false, READS_AT_ONCE);
		if (p[4 + 3 * i].revents != 0)
			pass_output(w, s, true, READS_AT_ONCE);
		r = read_slot(w, s, err);
		if (r < 0)
			return r;
	}
	return hear_queue(w, err);
}

static size_t count_state(const struct worker *w, enum slot_state state)
{
	size_t n = 0;

	for (size_t i = 0; i < w->n_slots; i++)
		n += w->slots[i].state == state;
	return n;
}

int worker_loop(struct worker *w, struct err *err)
{
	int r = 0;

	while (r >= 0 && !w->stopped) {
		const uint64_t now = engine_clock_ms();

		if (count_state(w, SLOT_DEAD) == w->n_slots)
			return err_set(err, -ECHILD, "the processes that do tickets were killed");
		for (size_t i = 0; r >= 0 && i < w->n_slots; i++)
			r = beat(w, &w->slots[i], now, err);
		if (r >= 0 && !w->draining && now >= w->look)
			r = take(w, err);
		if (r >= 0 && w->draining &&
		    count_state(w, SLOT_IDLE) + count_state(w, SLOT_DEAD) == w->n_slots)
			return 0;
		if (r >= 0)
			r = wait_for(w, err);
	}
	/* What is under way goes to somebody else at once. */
	for (size_t i = 0; i < w->n_slots; i++)
		if (w->slots[i].state == SLOT_WORKING)
			queue_nak(w->queue, w->slots[i].reply, 0);
	return r;
}
