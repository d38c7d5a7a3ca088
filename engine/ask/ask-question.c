#include <errno.h>

#include "engine/api/question.h"
#include "engine/ask/ask-i.h"

int engine_questions(struct engine *e, struct engine_questions *ret, struct err *err)
{
	CLEANUP(ask_done) struct ask a;
	struct json answer;
	int r;

	ask_begin(&a, e, VERB_QUESTIONS);
	r = ask_daemon(&a, e, ASK_RUNNING, NULL, &answer, err);
	if (r == -ESRCH) {
		*ret = (struct engine_questions){ 0 };
		return 0;
	}
	return r < 0 ? r : ask_take(&a, answer, &wire_questions, ret, err);
}

int engine_answer(struct engine *e, const char *id, bool allow, bool remember,
		  struct engine_question *ret, struct err *err)
{
	const struct question_answer given = { .id = (char *)(uintptr_t)id, allow, remember };
	CLEANUP(ask_done) struct ask a;
	struct json answer;
	int r;

	ask_begin(&a, e, VERB_ANSWER);
	fields_set(a.options, &wire_question_answer, &given);
	r = ask_daemon(&a, e, ASK_RUNNING, NULL, &answer, err);
	if (r == -ESRCH)
		return err_set(err, -ENOENT, "no question '%s' is open", id);
	return r < 0 ? r : ask_take(&a, answer, &wire_question, ret, err);
}
