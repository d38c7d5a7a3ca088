#include <errno.h>
#include <string.h>

#include "engine/act/events-i.h"
#include "engine/cowfsd/verbs-i.h"
#include "engine/find/run-record.h"
#include "engine/host/host-i.h"

static bool is_id(const char *text, size_t len)
{
	return strlen(text) == len && strspn(text, "0123456789abcdef") == len;
}

/* The event is for people, so it says only what a run of ours would. */
static int check_ask(const struct question_ask *ask, struct err *err)
{
	if (!is_id(ask->id, ENGINE_QUESTION_ID_SIZE - 1) ||
	    !is_id(ask->run, ENGINE_RUN_ID_SIZE - 1) ||
	    (strcmp(ask->kind, ENGINE_OF_CONNECTION) != 0 &&
	     strcmp(ask->kind, ENGINE_OF_CALL) != 0) ||
	    strlen(ask->what) > 512 || ask->wait_ms > ENGINE_ASK_MS_MAX)
		return err_set(err, -EINVAL, "this is no question of a run");
	return 0;
}

int serve_question(struct task *task, const struct engine_watch *watch, struct json options,
		   struct json answer, struct err *err)
{
	struct question_ask ask = { 0 };
	struct question_told told = { 0 };
	int r = fields_read(options, &wire_question_ask, &ask, err);

	r = r < 0 ? r : check_ask(&ask, err);
	if (r == 0)
		r = questions_put(&task->host->questions, task, &ask, event_question, &told, err);
	fields_done(&wire_question_ask, &ask);
	return serve_fields(r, answer, &wire_question_told, &told);
}

int serve_questions(struct task *task, const struct engine_watch *watch, struct json options,
		    struct json answer, struct err *err)
{
	CLEANUP(engine_questions_done) struct engine_questions all = { 0 };

	return serve_fields(questions_list(&task->host->questions, &all, err), answer,
			    &wire_questions, &all);
}

int serve_answer(struct task *task, const struct engine_watch *watch, struct json options,
		 struct json answer, struct err *err)
{
	CLEANUP(engine_question_done) struct engine_question was = { 0 };
	struct question_answer given = { 0 };
	int r = fields_read(options, &wire_question_answer, &given, err);

	if (r == 0)
		r = questions_answer(&task->host->questions, &given, &was, err);
	fields_done(&wire_question_answer, &given);
	return serve_fields(r, answer, &wire_question, &was);
}
