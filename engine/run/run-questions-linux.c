#include "engine/run/run-questions.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/log.h"
#include "base/sys.h"
#include "base/vec.h"
#include "engine/ask/ask-i.h"
#include "engine/find/engine-i.h"
#include "engine/run/run-events.h"
#include "engine/run/run-refusal.h"
#include "runner/net/loop.h"

#define SLACK_MS 2000 /* that cowfsd may be late in saying that time is up */
#define LINE_MAX 64   /* of an answer on the terminal */

struct run_question {
	struct run_questions *all;
	unsigned number;
	struct engine_question is; /* as people see it: without secrets */
	char *key;                 /* what it is about, in full; owned */
	bool open;
	struct engine_answered told;
	uint64_t asked_at, deadline; /* clock_ms() */
	struct control control;      /* its descriptor belongs to the watch */
	struct loop_watch watch;
	struct ask ask;
};

struct waiting_call {
	unsigned number;
	uint64_t id;
};

struct run_questions {
	struct run_questions_options options;
	struct loop loop;
	struct run_question *list[RUN_QUESTIONS_MAX]; /* owned */
	unsigned n, n_open;
	struct waiting_call calls[RUN_CALLS_MAX];
	unsigned n_calls;
	struct sandbox_calls sandbox;
	struct loop_watch terminal;       /* a descriptor of its own, or -1 */
	bool reads;                       /* the terminal is ours: the run's streams stand still */
	const struct run_question *shown; /* there: what is typed decides this one; or NULL */
	char line[LINE_MAX];
	size_t len;
};

/* --- what was decided --------------------------------------------------------------------- */

static void note(struct run_question *q)
{
	struct engine_answers *a = &q->all->options.into->answers;

	if (!VEC_ONE_MORE(a->list, a->n)) {
		log_warn("out of memory: an answer is not kept, continuing");
		return;
	}
	a->list[a->n++] = q->told;
	q->told.kind = q->told.what = NULL;
}

static struct run_question *oldest(struct run_questions *all)
{
	for (unsigned i = 0; i < all->n; i++)
		if (all->list[i]->open)
			return all->list[i];
	return NULL;
}

/* The terminal is the run's again once no question is open. */
static void share_terminal(struct run_questions *q)
{
	const bool reads = q->terminal.fd >= 0 && q->n_open > 0;

	if (reads == q->reads)
		return;
	q->reads = reads;
	q->len = 0;
	if (loop_watch(&q->loop, &q->terminal, reads ? EPOLLIN : 0) < 0)
		q->reads = false;
}

/* What was typed before a question stood there was for another one, or for the run. */
static void show_oldest(struct run_questions *all)
{
	const struct engine_run_options *o = all->options.run;
	const struct run_question *q = all->reads ? oldest(all) : NULL;

	if (q == all->shown)
		return;
	all->shown = q;
	all->len = 0;
	if (!q)
		return;
	IGNORE_RESULT(tcflush(all->terminal.fd, TCIFLUSH), "what is no terminal has no such bytes");
	if (o->asks)
		o->asks(&q->is, NULL, o->asks_ctx);
}

static void answer_calls(struct run_questions *all, const struct run_question *q)
{
	const uint64_t unused[6] = { 0 };
	unsigned kept = 0;

	for (unsigned i = 0; i < all->n_calls; i++) {
		if (all->calls[i].number != q->number) {
			all->calls[kept++] = all->calls[i];
			continue;
		}
		sandbox_calls_answer(&all->sandbox, all->calls[i].id, q->told.allowed);
		if (!q->told.allowed)
			run_refusals_take_call(&all->options.into->refusals, q->key, unused);
	}
	all->n_calls = kept;
}

static void end_question(struct run_question *q)
{
	struct engine_question *is = &q->is;

	loop_stop(&q->all->loop, &q->watch);
	q->control.fd = -1;
	control_done(&q->control);
	ask_done(&q->ask);
	q->ask = (struct ask){ 0 };
	q->open = false;
	q->all->n_open--;
	q->told.waited_ms = clock_ms() - q->asked_at;
	memcpy(q->told.id, is->id, sizeof(is->id));
	q->told.kind = strdup(is->kind);
	q->told.what = strdup(is->what);
}

/* The answer reaches everything that waits for it. */
static void decide(struct run_question *q, const char *by, bool allow, bool remember)
{
	struct run_questions *all = q->all;
	const struct engine_run_options *o = all->options.run;
	struct proxy *proxy = all->options.net->proxy;

	q->told = (struct engine_answered){ .by = by, .allowed = allow, .remembered = remember };
	end_question(q);
	run_event_answered(all->options.engine->store_path, all->options.into, &q->told);
	if (o->asks)
		o->asks(&q->is, &q->told, o->asks_ctx);
	note(q);
	share_terminal(all);
	if (proxy)
		proxy_decide(proxy, q->number, allow);
	answer_calls(all, q);
	show_oldest(all);
}

/* Nobody is asked again about what nobody answered. */
static void decide_nobody(struct run_question *q)
{
	decide(q, "nobody", false, true);
}

static void on_answer(struct loop_watch *w)
{
	struct run_question *q = w->owner;
	struct question_told told = { 0 };
	struct engine *e = q->all->options.engine;
	struct err err = { 0 };
	struct json answer;
	int r = ask_peek(&q->ask, e, &q->control, &answer, &err);

	if (r == -EAGAIN)
		return;
	if (r == 0)
		r = ask_take(&q->ask, answer, &wire_question_told, &told, &err);
	if (r < 0)
		decide(q, "end", false, false);
	else if (!told.answered)
		decide_nobody(q);
	else
		decide(q, "person", told.allow, told.remember);
}

/* --- the terminal ------------------------------------------------------------------------- */

/* What follows `word` and a space in `line`, "" if nothing does, or NULL. */
static const char *after(const char *line, const char *word)
{
	const size_t n = strlen(word);

	if (strncmp(line, word, n) != 0 || (line[n] != '\0' && line[n] != ' '))
		return NULL;
	return line + n + (line[n] == ' ');
}

/*
 * The first digits of its id.  The run does not know them: a question that it painted itself has
 * others, and an answer to that allows nothing.
 */
static bool is_code(const struct run_question *q, const char *text)
{
	const size_t n = strlen(text);

	return n >= ENGINE_QUESTION_CODE && strncmp(q->is.id, text, n) == 0;
}

/* Whole words only: a key that was meant for the run decides nothing. */
static bool parse_answer(const struct run_question *q, const char *line, bool *ret_allow,
			 bool *ret_remember)
{
	const char *rest = after(line, "allow"), *more;

	*ret_allow = rest != NULL;
	if (!rest)
		rest = after(line, "deny");
	if (!rest)
		return false;
	more = after(rest, "run");
	*ret_remember = more != NULL;
	rest = more ? more : rest;
	return is_code(q, rest) || (!*ret_allow && *rest == '\0');
}

static void take_line(struct run_questions *all, const char *line)
{
	const struct engine_run_options *o = all->options.run;
	struct run_question *q = oldest(all);
	bool allow, remember;

	if (!q || q != all->shown)
		return;
	if (parse_answer(q, line, &allow, &remember))
		decide(q, "terminal", allow, remember);
	else if (o->asks)
		o->asks(&q->is, NULL, o->asks_ctx);
}

static void on_terminal(struct loop_watch *w)
{
	struct run_questions *all = w->owner;
	char c;
	ssize_t n;

	while ((n = read(w->fd, &c, 1)) == 1) {
		if (c != '\n') {
			if (all->len < sizeof(all->line) - 1)
				all->line[all->len++] = c;
			continue;
		}
		all->line[all->len] = '\0';
		all->len = 0;
		take_line(all, all->line);
		if (!all->reads)
			return; /* what follows is the run's */
	}
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		loop_stop(&all->loop, w);
		share_terminal(all);
	}
}

/* --- asking ------------------------------------------------------------------------------- */

static int pick_id(struct engine_question *q)
{
	unsigned char bytes[(ENGINE_QUESTION_ID_SIZE - 1) / 2];
	int r = sys_random(bytes, sizeof(bytes));

	if (r == 0)
		hex_encode(bytes, sizeof(bytes), q->id);
	return r;
}

static void free_question(struct run_question *q)
{
	if (!q)
		return;
	engine_question_done(&q->is);
	free(q->told.kind);
	free(q->told.what);
	free(q->key);
	free(q);
}

static struct run_question *new_question(struct run_questions *all, const char *kind,
					 const char *what)
{
	struct run_question *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	*q = (struct run_question){
		.all = all,
		.control = CONTROL_INIT,
		.watch = { .fd = -1, .ready = on_answer, .owner = q },
		.key = strdup(what),
		.is = { .run = strdup(all->options.into->id),
			.kind = strdup(kind),
			.what = scrub_text(all->options.secrets, what),
			.asked = engine_now(),
			.left_ms = all->options.wait_ms },
	};
	if (q->key && q->is.run && q->is.kind && q->is.what && pick_id(&q->is) == 0)
		return q;
	free_question(q);
	return NULL;
}

/* Send it to cowfsd, and wait beside the run. */
static bool send_question(struct run_question *q)
{
	struct engine *e = q->all->options.engine;
	const struct engine_watch unwatched = { 0 };
	struct question_ask ask = { .run = q->is.run,
				    .kind = q->is.kind,
				    .what = q->is.what,
				    .wait_ms = q->all->options.wait_ms };

	memcpy(ask.id, q->is.id, sizeof(ask.id));
	ask_begin(&q->ask, e, VERB_QUESTION);
	fields_set(q->ask.options, &wire_question_ask, &ask);
	if (!ask_ahead(&q->ask, e, &unwatched, &q->control)) {
		control_done(&q->control);
		ask_done(&q->ask);
		return false;
	}
	q->watch.fd = q->control.fd;
	if (loop_watch(&q->all->loop, &q->watch, EPOLLIN) < 0) {
		loop_stop(&q->all->loop, &q->watch);
		q->control.fd = -1;
		control_done(&q->control);
		ask_done(&q->ask);
		return false;
	}
	q->asked_at = clock_ms();
	q->deadline = q->asked_at + ask.wait_ms + SLACK_MS;
	loop_wake(&q->all->loop, q->deadline);
	return true;
}

static struct run_question *find_question(struct run_questions *all, const char *kind,
					  const char *what)
{
	/* The newest: an answer that is not remembered was for the one before. */
	for (unsigned i = all->n; i > 0; i--) {
		struct run_question *q = all->list[i - 1];

		if (strcmp(q->is.kind, kind) == 0 && strcmp(q->key, what) == 0)
			return q;
	}
	return NULL;
}

/* 1 yes, 0 no, -EAGAIN: the answer to question *ret_number decides. */
static int ask_person(struct run_questions *all, const char *kind, const char *what,
		      unsigned *ret_number)
{
	const struct engine_run_options *o = all->options.run;
	struct run_question *q = find_question(all, kind, what);

	if (q && !q->open && q->told.remembered)
		return q->told.allowed;
	if (!q || !q->open) {
		q = all->n_open < RUN_QUESTIONS_OPEN && all->n < RUN_QUESTIONS_MAX
			? new_question(all, kind, what)
			: NULL;
		if (!q || !send_question(q)) {
			free_question(q);
			all->options.into->answers.unasked++;
			return 0;
		}
		q->number = all->n;
		all->list[all->n++] = q;
		all->n_open++;
		q->open = true;
		share_terminal(all);
		show_oldest(all);
		if (o->asks && !all->reads)
			o->asks(&q->is, NULL, o->asks_ctx);
	}
	*ret_number = q->number;
	return -EAGAIN;
}

static enum net_verdict ask_connection(void *ctx, const struct net_refusal *refusal,
				       unsigned *ret_number)
{
	char what[NET_HOST_SHOWN + 16];
	const int r = ask_person(ctx, ENGINE_OF_CONNECTION,
				 net_refusal_target(refusal, what, sizeof(what)), ret_number);

	return r < 0 ? NET_ASK_WAITS : r > 0 ? NET_ASK_YES : NET_ASK_NO;
}

static enum sandbox_verdict ask_call(void *ctx, const char *call, uint64_t id)
{
	struct run_questions *all = ctx;
	unsigned number;
	int r;

	if (all->n_calls == RUN_CALLS_MAX)
		return SANDBOX_CALL_NO;
	r = ask_person(all, ENGINE_OF_CALL, call, &number);
	if (r >= 0)
		return r > 0 ? SANDBOX_CALL_YES : SANDBOX_CALL_NO;
	all->calls[all->n_calls++] = (struct waiting_call){ number, id };
	return SANDBOX_CALL_WAITS;
}

/* --- life --------------------------------------------------------------------------------- */

static int step(void *ctx, struct err *err)
{
	struct run_questions *all = ctx;
	int r = loop_step(&all->loop, 0, err);
	const uint64_t now = clock_ms();

	for (unsigned i = 0; r >= 0 && i < all->n; i++) {
		struct run_question *q = all->list[i];

		if (q->open && q->deadline <= now)
			decide_nobody(q);
		else if (q->open)
			loop_wake(&all->loop, q->deadline);
	}
	return r < 0 ? r : 0;
}

int run_questions_open(const struct run_questions_options *options, struct sandbox_spec *spec,
		       struct run_questions **ret, struct err *err)
{
	CLEANUP(run_questions_close_p) struct run_questions *q = calloc(1, sizeof(*q));
	int r;

	if (!q)
		return err_nomem(err);
	q->options = *options;
	q->terminal = (struct loop_watch){ .fd = -1, .ready = on_terminal, .owner = q };
	q->sandbox = (struct sandbox_calls){ .ask = ask_call, .ctx = q, .listener = -1 };
	r = loop_open(&q->loop, err);
	if (r < 0)
		return r;
	if (options->run->prompts)
		q->terminal.fd = fcntl(options->run->answer_fd, F_DUPFD_CLOEXEC, 0);
	options->net->ask = ask_connection;
	options->net->ask_ctx = q;
	spec->calls = &q->sandbox;
	spec->hold_streams = &q->reads;
	spec->beside[spec->n_beside++] =
	    (struct sandbox_beside){ .step = step, .ctx = q, .fd = q->loop.fd };
	*ret = TAKE_PTR(q);
	return 0;
}

void run_questions_close(struct run_questions *q)
{
	if (!q)
		return;
	q->n_calls = 0; /* nobody waits any more */
	for (unsigned i = 0; i < q->n; i++) {
		if (q->list[i]->open) {
			q->list[i]->told = (struct engine_answered){ .by = "end" };
			end_question(q->list[i]);
			if (q->list[i] == q->shown && q->options.run->asks)
				q->options.run->asks(&q->list[i]->is, &q->list[i]->told,
						     q->options.run->asks_ctx);
			note(q->list[i]);
		}
		free_question(q->list[i]);
	}
	loop_stop(&q->loop, &q->terminal);
	loop_close(&q->loop);
	free(q);
}
