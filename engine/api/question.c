#include "engine/api/question.h"

#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/vec.h"

void engine_question_done(struct engine_question *q)
{
	free(q->run);
	free(q->kind);
	free(q->what);
	*q = (struct engine_question){ 0 };
}

DEFINE_LIST_DONE(engine_questions_done, struct engine_questions, engine_question_done)

void engine_answers_done(struct engine_answers *a)
{
	for (size_t i = 0; i < a->n; i++) {
		free(a->list[i].kind);
		free(a->list[i].what);
	}
	free(a->list);
	*a = (struct engine_answers){ 0 };
}

const char *engine_answered_by(const char *word)
{
	static const char *const words[] = { "person", "terminal", "nobody", "end" };

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcmp(words[i], word) == 0)
			return words[i];
	return NULL;
}
