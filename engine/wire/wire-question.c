#include "engine/wire/wire-i.h"

static const struct field wire_question_ask_fields[] = {
	FIELD(FIELD_ID, struct question_ask, id),
	FIELD(FIELD_TEXT, struct question_ask, run),
	FIELD(FIELD_TEXT, struct question_ask, kind),
	FIELD(FIELD_NAME, struct question_ask, what),
	FIELD(FIELD_UINT, struct question_ask, wait_ms),
};
const struct fields wire_question_ask = FIELDS(struct question_ask, wire_question_ask_fields);

static const struct field wire_question_told_fields[] = {
	FIELD(FIELD_BOOL, struct question_told, answered),
	FIELD(FIELD_BOOL, struct question_told, allow),
	FIELD(FIELD_BOOL, struct question_told, remember),
};
const struct fields wire_question_told = FIELDS(struct question_told, wire_question_told_fields);

static const struct field wire_question_answer_fields[] = {
	FIELD(FIELD_TEXT, struct question_answer, id),
	FIELD(FIELD_BOOL, struct question_answer, allow),
	FIELD(FIELD_BOOL, struct question_answer, remember),
};
const struct fields wire_question_answer =
    FIELDS(struct question_answer, wire_question_answer_fields);

static const struct field wire_question_fields[] = {
	FIELD(FIELD_ID, struct engine_question, id),
	FIELD(FIELD_TEXT, struct engine_question, run),
	FIELD(FIELD_TEXT, struct engine_question, kind),
	FIELD(FIELD_NAME, struct engine_question, what),
	FIELD(FIELD_INT, struct engine_question, asked),
	FIELD(FIELD_UINT, struct engine_question, left_ms),
};
const struct fields wire_question = FIELDS(struct engine_question, wire_question_fields);

static const struct field wire_questions_fields[] = {
	FIELD_LIST_OF(FIELD_LIST, struct engine_questions, "questions", list, n, &wire_question),
};
const struct fields wire_questions = FIELDS(struct engine_questions, wire_questions_fields);
