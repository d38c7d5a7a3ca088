/*
 * questions-i.h - questions of runs that wait for an answer (engine/api/question.h).
 *
 * The thread of a run's connection waits here, until the thread of an answering client wakes it. A
 * question is gone when its run has left, so an answer never reaches a run that is over.
 */
#pragma once

#include "engine/api/question.h"
#include "engine/host/task-i.h"
#include "engine/wire/wire-i.h"

#include "base/lock.h"

#define QUESTIONS_MAX 256 /* open at once, of all runs */

struct open_question;

struct questions {
	pthread_mutex_t lock;   /* guards what follows; no other is taken while it is held */
	pthread_cond_t changed; /* something was answered, or all of it ends */
	struct open_question *list;
	size_t n;
	bool closed;
};

void questions_init(struct questions *q);
void questions_done(struct questions *q);

/* No question is open any more, nor will one be. */
void questions_close(struct questions *q);

/*
 * Put it, and tell about it by `opened` once it can be answered; then wait until it is answered, its
 * time is up or the task's caller has left, which is -ECONNABORTED.  -EAGAIN: too many are open.
 */
NODISCARD int questions_put(struct questions *q, const struct task *task,
			    const struct question_ask *ask,
			    void (*opened)(const struct task *task, const struct question_ask *ask),
			    struct question_told *ret, struct err *err);

/* The open ones; -ENOMEM. */
NODISCARD int questions_list(struct questions *q, struct engine_questions *ret, struct err *err);

/* As engine_answer() has it. */
NODISCARD int questions_answer(struct questions *q, const struct question_answer *answer,
			       struct engine_question *ret, struct err *err);
