#include "cli/show/questions.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/log.h"
#include "base/size.h"
#include "cli/out.h"
#include "cli/screen.h"

void questions_print(FILE *out, const struct engine_question *q)
{
	const bool call = strcmp(q->kind, ENGINE_OF_CALL) == 0;

	fprintf(out, "run %s wants to %s '", q->run, call ? "make the system call" : "connect to");
	out_line(out, q->what);
	fputc('\'', out);
}

void questions_set_open(struct json j, const struct engine_question *q)
{
	json_set_text(j, "question", q->id);
	json_set_text(j, "run", q->run);
	json_set_text(j, "kind", q->kind);
	json_set_name(j, "what", q->what);
	out_json_time(j, "asked", q->asked);
	json_set_uint(j, "left_ms", q->left_ms);
}

void questions_set_json(struct json j, const struct engine_answers *a)
{
	const struct json list = json_set_array(j, "questions");

	for (size_t i = 0; i < a->n; i++) {
		const struct engine_answered *one = &a->list[i];
		const struct json at = json_add_object(list);

		json_set_text(at, "question", one->id);
		json_set_text(at, "kind", one->kind);
		json_set_name(at, "what", one->what);
		json_set_text(at, "answer", one->allowed ? "allow" : "deny");
		json_set_text(at, "by", one->by);
		json_set_bool(at, "remember", one->remembered);
		json_set_uint(at, "waited_ms", one->waited_ms);
	}
	json_set_uint(j, "questions_more", a->unasked);
}

static void add_open(struct json list, const struct engine_question *q)
{
	const struct json at = json_add_object(list);

	json_set_text(at, "question", q->id);
	json_set_text(at, "kind", q->kind);
	json_set_name(at, "what", q->what);
	json_set_null(at, "answer");
	json_set_null(at, "by");
	json_set_bool(at, "remember", false);
	json_set_null(at, "waited_ms");
}

void questions_set_now(const struct invocation *inv, struct json j, const struct engine_run *run)
{
	CLEANUP(engine_questions_done) struct engine_questions all = { 0 };
	struct err err = { 0 };
	struct json list;

	if (run->state != ENGINE_RUN_RUNNING) {
		questions_set_json(j, &run->answers);
		return;
	}
	if (engine_questions(inv->engine, &all, &err) < 0)
		log_debug("cannot list the open questions: %s", err.msg);
	list = json_set_array(j, "questions");
	for (size_t i = 0; i < all.n; i++)
		if (strcmp(all.list[i].run, run->id) == 0)
			add_open(list, &all.list[i]);
	json_set_uint(j, "questions_more", 0);
}

/* --- while a run goes on ---------------------------------------------------------------- */

/*
 * The terminal is the run's, which can paint over whatever stands there.  So neither the id nor the
 * target is shown: the user who decides reads them where the run cannot write.
 */
static void point_elsewhere(const struct prompt *asked, const struct engine_question *q)
{
	AUTO_FREE char *line = cmd_line(asked->inv, "answer", (const char *[]){ NULL });

	fprintf(stderr, "\r\nrun %s has a question for you; read it in another terminal\r\n",
		q->run);
	if (line)
		fprintf(stderr, "hint: %s\r\n", line);
}

/*
 * Output of the run stands above, and none follows until the answer (run-questions.h).  So the last
 * question there is a real one, at the beginning of a line, in plain colours.
 */
static void put_question(const struct prompt *asked, const struct engine_question *q)
{
	AUTO_FREE char *line = NULL;
	char left[DURATION_TEXT_MAX];

	if (asked->terminal >= 0)
		screen_reset_below(stderr);
	fprintf(stderr, "question %s: ", q->id);
	questions_print(stderr, q);
	fprintf(stderr, " (%s left)\n", duration_format(q->left_ms, left));
	if (asked->terminal >= 0) {
		fprintf(stderr,
			"type allow %.*s, allow run %.*s, deny or deny run: ", ENGINE_QUESTION_CODE,
			q->id, ENGINE_QUESTION_CODE, q->id);
		return;
	}
	line = cmd_line(asked->inv, "answer", (const char *[]){ q->id, "allow", NULL });
	if (line)
		fprintf(stderr, "hint: %s\n", line);
}

static const char *without_answer(const char *by)
{
	if (strcmp(by, "nobody") == 0)
		return ", nobody answered";
	return strcmp(by, "end") == 0 ? ", the run has ended" : "";
}

/* A question came up, or has its answer. */
static void tell(const struct engine_question *q, const struct engine_answered *a, void *ctx)
{
	const struct prompt *asked = ctx;
	const char *end = asked->raw ? "\r\n" : "\n";

	if (a) {
		if (!asked->inv->quiet)
			fprintf(stderr, "%squestion %s: %s%s%s",
				asked->terminal >= 0 && strcmp(a->by, "terminal") != 0 ? end : "",
				q->id, a->allowed ? "allowed" : "denied", without_answer(a->by),
				end);
		return;
	}
	if (asked->raw)
		point_elsewhere(asked, q);
	else
		put_question(asked, q);
	fflush(stderr);
}

/* A job in the background must not read: it would be stopped. */
static int open_terminal(const struct invocation *inv)
{
	AUTO_CLOSE int fd = -1;

	if (inv->json || inv->by_agent || !isatty(STDERR_FILENO))
		return -1;
	fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	return fd >= 0 && tcgetpgrp(fd) == getpgrp() ? TAKE_FD(fd) : -1;
}

/* With a terminal of the run's own every key is the run's. */
void prompt_begin(struct prompt *q, bool tty, bool detached, struct engine_run_options *o)
{
	if (o->ask_ms == 0 || detached)
		return;
	q->raw = tty;
	q->terminal = tty ? -1 : open_terminal(q->inv);
	o->asks = tell;
	o->asks_ctx = q;
	o->prompts = q->terminal >= 0;
	o->answer_fd = q->terminal;
}

void prompt_done(struct prompt *q)
{
	cleanup_close(&q->terminal);
}
