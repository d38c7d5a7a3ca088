#include "engine/host/questions-i.h"

#include <errno.h>
#include <string.h>

#include "base/sys.h"
#include "base/vec.h"
#include "engine/find/engine-i.h"

#define LOOK_MS 200 /* how often a waiting thread looks whether its run is still there */

struct open_question {
	const struct question_ask *ask; /* of the waiting thread, as is the next */
	const struct task *task;
	int64_t asked;
	uint64_t deadline; /* engine_clock_ms() */
	struct question_told told;
	struct open_question *next;
};

void questions_init(struct questions *q)
{
	pthread_mutex_init(&q->lock, NULL);
	sys_cond_init(&q->changed);
}

void questions_done(struct questions *q)
{
	pthread_cond_destroy(&q->changed);
	pthread_mutex_destroy(&q->lock);
}

void questions_close(struct questions *q)
{
	LOCKED(&q->lock);
	q->closed = true;
	pthread_cond_broadcast(&q->changed);
}

static int open_question(struct questions *q, struct open_question *o, struct err *err)
{
	struct open_question **last = &q->list;
	int r = 0;

	LOCKED(&q->lock);
	for (; *last; last = &(*last)->next)
		if (strcmp((*last)->ask->id, o->ask->id) == 0)
			r = -EEXIST;
	if (r == 0 && (q->n == QUESTIONS_MAX || q->closed))
		r = -EAGAIN;
	if (r == 0) {
		*last = o;
		q->n++;
	}
	return r < 0 ? err_set(err, r, "no further question can be asked") : 0;
}

static void drop_question(struct questions *q, struct open_question *o)
{
	struct open_question **at = &q->list;

	while (*at != o)
		at = &(*at)->next;
	*at = o->next;
	q->n--;
}

int questions_put(struct questions *q, const struct task *task, const struct question_ask *ask,
		  void (*opened)(const struct task *task, const struct question_ask *ask),
		  struct question_told *ret, struct err *err)
{
	struct open_question o = { .ask = ask,
				   .task = task,
				   .asked = engine_now(),
				   .deadline = engine_clock_ms() + ask->wait_ms };
	int r = open_question(q, &o, err);

	if (r < 0)
		return r;
	opened(task, ask);
	pthread_mutex_lock(&q->lock);
	while (r == 0 && !o.told.answered && !q->closed && engine_clock_ms() < o.deadline) {
		sys_cond_wait_ms(&q->changed, &q->lock, LOOK_MS);
		r = task_wanted(task, err);
	}
	drop_question(q, &o);
	pthread_mutex_unlock(&q->lock);
	*ret = o.told;
	return r;
}

/* A run that has left is noticed by its own thread only after a moment. */
static bool is_open(const struct open_question *o)
{
	return !o->told.answered && task_wanted(o->task, NULL) == 0;
}

static int copy_question(const struct open_question *o, struct engine_question *ret)
{
	const uint64_t now = engine_clock_ms();

	*ret = (struct engine_question){
		.run = strdup(o->ask->run),
		.kind = strdup(o->ask->kind),
		.what = strdup(o->ask->what),
		.asked = o->asked,
		.left_ms = o->deadline > now ? o->deadline - now : 0,
	};
	memcpy(ret->id, o->ask->id, sizeof(ret->id));
	return ret->run && ret->kind && ret->what ? 0 : -ENOMEM;
}

int questions_list(struct questions *q, struct engine_questions *ret, struct err *err)
{
	int r = 0;

	pthread_mutex_lock(&q->lock);
	for (const struct open_question *o = q->list; o && r == 0; o = o->next) {
		if (!is_open(o))
			continue;
		r = VEC_ONE_MORE(ret->list, ret->n) ? copy_question(o, &ret->list[ret->n++])
						    : -ENOMEM;
	}
	pthread_mutex_unlock(&q->lock);
	if (r == 0)
		return 0;
	engine_questions_done(ret);
	return err_nomem(err);
}

/* With the lock: the one that is open and begins so. */
static int find_question(struct questions *q, const char *id, struct open_question **ret,
			 struct err *err)
{
	const size_t len = strlen(id);

	*ret = NULL;
	for (struct open_question *o = q->list; o; o = o->next) {
		if (len == 0 || strncmp(o->ask->id, id, len) != 0 || !is_open(o))
			continue;
		if (*ret)
			return err_set(err, -EINVAL, "several open questions begin with '%s'", id);
		*ret = o;
	}
	return *ret ? 0 : err_set(err, -ENOENT, "no question '%s' is open", id);
}

int questions_answer(struct questions *q, const struct question_answer *answer,
		     struct engine_question *ret, struct err *err)
{
	struct open_question *o;
	int r;

	LOCKED(&q->lock);
	r = find_question(q, answer->id, &o, err);
	if (r == 0 && copy_question(o, ret) < 0) {
		engine_question_done(ret);
		r = err_nomem(err);
	}
	if (r == 0) {
		o->told = (struct question_told){ true, answer->allow, answer->remember };
		pthread_cond_broadcast(&q->changed);
	}
	return r;
}
