/*
 * A worker: one thread that waits for the queue, for its slots and for signals.  What it knows of a ticket is in
 * the slot; what counts is in the streams, so it can be killed at any point.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "base/text.h"
#include "engine/api/profile.h"
#include "engine/api/worker.h"
#include "engine/experiment/experiment-i.h"
#include "engine/transfer/transfer-i.h"
#include "engine/worker/slot-i.h"
#include "engine/worker/status-i.h"

#define ATTEMPTS_MAX 3
#define LOOK_MS      UINT64_C(1000) /* between two looks for tickets that nobody announced */
#define LATER_MS     UINT64_C(2000) /* before one that could not be done is handed out again */
#define GRACE_MS     UINT64_C(5000) /* for a run that was cancelled */
#define NEVER        UINT64_MAX

#define READS_AT_ONCE 8

struct worker {
	struct engine *e;
	const struct engine_worker_options *options;
	struct queue *queue;
	struct perform_rules rules;
	struct target target;
	char *name, *dir; /* owned */
	char host[256];
	struct strlist labels; /* sorted */
	uint64_t lease_ms;
	struct slot slots[ENGINE_WORKER_JOBS];
	size_t n_slots;
	struct signals signals;
	bool draining, stopped, away; /* away: the server cannot be reached */
	uint64_t look;                /* when to look for tickets */
	uint64_t taken, done, failed, refused;
	int64_t started;
};

static void worker_done(struct worker *w)
{
	/* First, so that nobody else believes that a ticket is being done. */
	slots_end(w->slots, w->n_slots);
	queue_close(w->queue);
	(void)signals_end(&w->signals);
	target_done(&w->target);
	strlist_done(&w->labels);
	free(w->name);
	free(w->dir);
}

static void tell(struct worker *w, const struct engine_worker_event *ev)
{
	if (w->options->tell)
		w->options->tell(ev, w->options->ctx);
}

static void tell_ticket(struct worker *w, const struct slot *s, const char *what, const char *text)
{
	tell(w, &(struct engine_worker_event){
		    .what = what, .ticket = s->id, .text = text, .attempt = s->attempt });
}

/* Say once that the server is gone, and once that it is back.  Returns r unless waiting helps. */
static int note(struct worker *w, int r, const struct err *why)
{
	if (r >= 0 && w->away) {
		w->away = false;
		tell(w, &(struct engine_worker_event){ .what = "back" });
	}
	if (r != -EAGAIN && r != -ENOENT)
		return r;
	if (!w->away)
		tell(w, &(struct engine_worker_event){ .what = "lost", .text = why->msg });
	w->away = true;
	return 0;
}

/* The server has forgotten its streams: they are made again. */
static int serve(struct worker *w, struct err *err)
{
	return queue_serve(w->queue, &w->labels, w->lease_ms, err);
}

/* --- results ------------------------------------------------------------------------------ */

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

/* A slot takes the next ticket when its child has ended: what that says last is of this one. */
static void release(struct worker *w, struct slot *s)
{
	if (s->sock < 0 || !s->ended) {
		s->state = s->sock < 0 ? SLOT_DEAD : SLOT_LEAVING;
		return;
	}
	clear(s);
	w->look = 0;
}

static void count(struct worker *w, const struct result *res)
{
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
		r = serve(w, &why);
	}
	if (stored)
		return 1;
	r = note(w, r, &why);
	return r < 0 ? err_set(err, r, "%s", why.msg) : 0;
}

static int store_slot(struct worker *w, struct slot *s, struct err *err)
{
	CLEANUP(result_done) struct result res = { 0 };
	int r = store(w, s->id, s->reply, &s->result, err);

	if (r <= 0)
		return r;
	r = result_decode(&s->result, &res, err);
	if (r < 0)
		return r;
	count(w, &res);
	tell(w, &(struct engine_worker_event){ .what = "done",
					       .ticket = s->id,
					       .outcome = res.outcome,
					       .code = res.code,
					       .text = res.problem,
					       .attempt = s->attempt });
	release(w, s);
	return 0;
}

/* Of a ticket that does not run. */
static int answer_at_once(struct worker *w, const struct queue_taken *t, const char *id,
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
	tell(w, &(struct engine_worker_event){ .what = "done",
					       .ticket = id,
					       .outcome = outcome,
					       .code = 125,
					       .text = why,
					       .attempt = t->attempt });
	return 0;
}

/* --- taking ------------------------------------------------------------------------------- */

static struct slot *idle(struct worker *w)
{
	for (size_t i = 0; i < w->n_slots; i++)
		if (w->slots[i].state == SLOT_IDLE)
			return &w->slots[i];
	return NULL;
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
	tell_ticket(w, s, "taken", s->ticket.command.list[0]);
	return 0;
}

static int handle(struct worker *w, struct slot *s, struct queue_taken *t, struct err *err)
{
	CLEANUP(ticket_done) struct ticket ticket = { 0 };
	CLEANUP(buf_done) struct buf result = BUF_INIT;
	struct err why = { 0 };
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
		r = note(w, r, &why);
		return r < 0 ? err_set(err, r, "%s", why.msg) : 0;
	}
	if (ticket_decode(&t->text, &ticket, &why) < 0)
		return answer_at_once(w, t, id, RESULT_REFUSED, why.msg, err);
	if (t->attempt > ATTEMPTS_MAX)
		return answer_at_once(w, t, id, RESULT_LOST,
				      "each of the workers that took it died or gave up", err);
	if (ticket.deadline > 0 && ticket.deadline < engine_now())
		return answer_at_once(w, t, id, RESULT_EXPIRED, "its deadline has passed", err);
	return begin(w, s, t, &ticket, id, err);
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
		struct err why = { 0 };

		r = queue_take(w->queue, &t, &why);
		if (r == -ENOENT)
			r = serve(w, &why);
		r = note(w, r, &why);
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
	tell_ticket(w, s, "again", why);
	w->failed++;
	release(w, s);
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
		release(w, s);
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
		return store_slot(w, s, err);
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
	tell(w, &(struct engine_worker_event){ .what = "draining" });
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

static int loop(struct worker *w, struct err *err)
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

/* --- the verb ----------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int sort_labels(const struct engine_list *given, struct strlist *ret, struct err *err)
{
	for (size_t i = 0; i < given->n; i++) {
		if (!queue_word_valid(given->items[i]) || strcmp(given->items[i], "any") == 0)
			return err_set(err, -EINVAL,
				       "'%.80s' cannot be a label: small letters, digits and '-', "
				       "at most %d",
				       given->items[i], QUEUE_NAME_MAX);
		if (!strlist_has(ret, given->items[i]) && strlist_add(ret, given->items[i]) < 0)
			return err_nomem(err);
	}
	if (ret->n > QUEUE_LABELS_MAX)
		return err_set(err, -EINVAL, "a worker has at most %d labels", QUEUE_LABELS_MAX);
	if (ret->n > 1)
		qsort(ret->list, ret->n, sizeof(*ret->list), compare);
	return 0;
}

static int check_profiles(struct worker *w, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < w->rules.profiles.n; i++) {
		CLEANUP(engine_profile_done) struct engine_profile p = { 0 };

		r = engine_profile(w->e, w->rules.profiles.items[i], &p, err);
	}
	return r;
}

/* A project of its own, next to the store: what is fetched belongs to it. */
static int make_dir(struct worker *w, struct err *err)
{
	int r = text_set(&w->dir, err, "%s-worker", w->e->store_path);

	return r < 0 ? r : path_make_dirs(w->dir, 0700, err);
}

static int prepare(struct worker *w, struct err *err)
{
	static const char *const by_itself[] = { "default" };
	const struct engine_worker_options *o = w->options;
	int r;

	if (gethostname(w->host, sizeof(w->host) - 1) < 0)
		return err_sys(err, "the name of this machine");
	r = o->name ? text_set(&w->name, err, "%s", o->name)
		    : text_set(&w->name, err, "%s-%d", w->host, (int)getpid());
	w->lease_ms = o->lease_ms > 0 ? o->lease_ms : ENGINE_WORKER_LEASE;
	if (r == 0 && o->jobs > ENGINE_WORKER_JOBS)
		r = err_set(err, -EINVAL, "a worker does at most %d tickets at once",
			    ENGINE_WORKER_JOBS);
	if (r == 0)
		r = sort_labels(&o->labels, &w->labels, err);
	if (r == 0)
		r = target_find(w->e, o->remote, &w->target, err);
	if (r == 0)
		r = make_dir(w, err);
	w->rules = (struct perform_rules){ .url = w->target.url,
					   .remote = target_remote(&w->target),
					   .worker = w->name,
					   .host = w->host,
					   .profiles = o->profiles,
					   .pass_env = o->pass_env };
	if (w->rules.profiles.n == 0)
		w->rules.profiles = (struct engine_list){ by_itself, 1 };
	return r < 0 ? r : check_profiles(w, err);
}

int engine_worker(struct engine *e, const struct engine_worker_options *options, struct err *err)
{
	AUTO_FREE struct worker *w = calloc(1, sizeof(*w));
	struct slot_config config;
	struct queue_config queue = { .url = options->queue,
				      .creds = options->creds,
				      .insecure = options->insecure };
	int r;

	if (!w)
		return err_nomem(err);
	w->e = e;
	w->options = options;
	w->signals = SIGNALS_INIT;
	w->started = engine_now();
	r = prepare(w, err);
	config = (struct slot_config){ .store = e->store_path, .dir = w->dir, .rules = &w->rules };
	if (r == 0) {
		w->n_slots = options->jobs > 0 ? options->jobs : 1;
		r = slots_start(w->slots, w->n_slots, &config, err);
	}
	if (r == 0)
		r = signals_begin(&w->signals, err);
	queue.client = w->name;
	if (r == 0)
		r = queue_open(&queue, &w->queue, err);
	if (r == 0)
		r = serve(w, err);
	if (r == 0) {
		tell(w, &(struct engine_worker_event){ .what = "ready", .text = w->name });
		r = loop(w, err);
	}
	worker_done(w);
	return r;
}
