/*
 * question.h - a question: something that a run wants and no rule allows, while it waits for an
 * answer.
 *
 * A run that may ask (engine_run_options.ask_ms) puts a question for each connection, and each
 * system call of a short list, that would be refused (docs/reference/questions.md), and waits.
 * cowfsd keeps the open questions; each ends with its answer, its time or its run. Only a process
 * of the same user that cowfsd serves can answer, and no process in a run is one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "engine/api/engine.h"

#define ENGINE_QUESTION_ID_SIZE 9 /* 8 hex digits and a NUL */
#define ENGINE_QUESTION_CODE    4 /* digits of it that an answer on a terminal must repeat */
#define ENGINE_ASK_MS           60000
#define ENGINE_ASK_MS_MAX       ((uint64_t)3600000)

#define ENGINE_OF_CONNECTION "connection"
#define ENGINE_OF_CALL       "call"

/* Strings are owned. */
struct engine_question {
	char id[ENGINE_QUESTION_ID_SIZE];
	char *run, *kind; /* ENGINE_OF_... */
	char *what;       /* "evil.org:443"; "ptrace" */
	int64_t asked;    /* when, as engine_now() has it */
	uint64_t left_ms; /* until it is refused */
};

struct engine_questions {
	struct engine_question *list; /* owned; the oldest first */
	size_t n;
};

void engine_question_done(struct engine_question *q);
void engine_questions_done(struct engine_questions *q);

/* Those that are open, of all runs.  Without a cowfsd there are none. */
NODISCARD int engine_questions(struct engine *e, struct engine_questions *ret, struct err *err);

/*
 * Answer one, by its id or the beginning of it; `remember`: for the rest of its run.  *ret is what it
 * was.  -ENOENT with a sentence if none is open that begins so, -EINVAL if several are.
 */
NODISCARD int engine_answer(struct engine *e, const char *id, bool allow, bool remember,
			    struct engine_question *ret, struct err *err);

/* What became of a question.  Strings but the last are owned. */
struct engine_answered {
	char id[ENGINE_QUESTION_ID_SIZE];
	char *kind, *what;
	bool allowed, remembered;
	const char *by; /* "person", "terminal", "nobody" in time, "end" of the run or of cowfsd */
	uint64_t waited_ms;
};

struct engine_answers {
	struct engine_answered *list; /* owned; in the order in which they were asked */
	size_t n;
	uint64_t unasked; /* refused without a question: too many were open, or had been asked */
};

void engine_answers_done(struct engine_answers *a);
const char *engine_answered_by(
    const char *word); /* the same, that nobody owns; NULL: no such word */
