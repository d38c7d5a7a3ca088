#include "cowfs/fuse/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "cowfs/fuse/thread.h"
#include "tests/lib/test.h"

#define MANY 100

/* --- threads that begin when they are let --- */

static struct gate {
	pthread_mutex_t lock;
	pthread_cond_t change;
	int came, let; /* so many may begin */
} gate = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 1 << 20 };

struct start {
	void *(*run)(void *);
	void *arg;
};

static void *begin_if_let(void *ctx)
{
	const struct start s = *(struct start *)ctx;
	int number;

	free(ctx);
	pthread_mutex_lock(&gate.lock);
	number = gate.came++;
	while (number >= gate.let)
		pthread_cond_wait(&gate.change, &gate.lock);
	pthread_mutex_unlock(&gate.lock);
	return s.run(s.arg);
}

int __real_thread_start(pthread_t *ret, const char *name, size_t stack, void *(*run)(void *),
			void *arg);
int __wrap_thread_start(pthread_t *ret, const char *name, size_t stack, void *(*run)(void *),
			void *arg);

int __wrap_thread_start(pthread_t *ret, const char *name, size_t stack, void *(*run)(void *),
			void *arg)
{
	struct start *s = malloc(sizeof(*s));

	*s = (struct start){ run, arg };
	return __real_thread_start(ret, name, stack, begin_if_let, s);
}

static void let_begin(int n)
{
	pthread_mutex_lock(&gate.lock);
	gate.let = n;
	pthread_cond_broadcast(&gate.change);
	pthread_mutex_unlock(&gate.lock);
}

/* --- jobs --- */

/* The jobs of a test: how many began and ended; some wait while it is shut. */
struct board {
	pthread_mutex_t lock;
	pthread_cond_t open;
	bool shut;
	atomic_int started, done;
};

struct task {
	struct job job;
	struct board *board;
	bool waits;
};

static void run_task(struct job *j)
{
	struct task *t = (struct task *)j;
	struct board *b = t->board;

	b->started++;
	pthread_mutex_lock(&b->lock);
	while (t->waits && b->shut)
		pthread_cond_wait(&b->open, &b->lock);
	pthread_mutex_unlock(&b->lock);
	b->done++;
}

/* By a member of their own, which then leaves. */
static void add(struct pool *p, struct board *b, struct task *list, int n, enum pool_lane lane,
		bool waits)
{
	struct pool_member *m = NULL;

	CHECK_EQ(pool_join(p, &m), 0);
	for (int i = 0; i < n; i++) {
		list[i] = (struct task){ .job.run = run_task, .board = b, .waits = waits };
		pool_add(m, lane, &list[i].job);
	}
	pool_leave(m);
}

static void board_init(struct board *b, bool shut)
{
	*b = (struct board){ .shut = shut };
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->open, NULL);
}

static void board_open(struct board *b)
{
	pthread_mutex_lock(&b->lock);
	b->shut = false;
	pthread_cond_broadcast(&b->open);
	pthread_mutex_unlock(&b->lock);
}

static bool reaches(atomic_int *count, int want)
{
	const struct timespec nap = { .tv_nsec = 1000000 };

	for (int i = 0; i < 10000 && *count < want; i++)
		nanosleep(&nap, NULL);
	return *count >= want;
}

static struct pool *open_pool(void)
{
	struct pool *p = NULL;
	struct err err = { 0 };

	CHECK_OK(pool_new(&p, &err), &err);
	return p;
}

TEST(what_was_added_is_run_before_the_pool_is_gone)
{
	struct pool *p = open_pool();
	struct task shorts[MANY / 2], patient[MANY / 2];
	struct board b;

	board_init(&b, false);
	add(p, &b, shorts, MANY / 2, POOL_SHORT, false);
	add(p, &b, patient, MANY / 2, POOL_PATIENT, false);
	pool_free(p);
	CHECK_EQ(b.done, MANY);
}

TEST(patient_jobs_run_beside_each_other)
{
	struct pool *p = open_pool();
	struct task list[10];
	struct board b;

	board_init(&b, true);
	add(p, &b, list, 10, POOL_PATIENT, true);
	CHECK(reaches(&b.started, 10));
	CHECK_EQ(b.done, 0);
	board_open(&b);
	pool_free(p);
	CHECK_EQ(b.done, 10);
}

TEST(a_short_job_finds_a_thread_however_many_patient_ones_wait)
{
	struct pool *p = open_pool();
	struct task patient[MANY - 10], shorts[10];
	struct board b;

	board_init(&b, true);
	add(p, &b, patient, MANY - 10, POOL_PATIENT, true);
	CHECK(reaches(&b.started, 10));
	add(p, &b, shorts, 10, POOL_SHORT, false);
	CHECK(reaches(&b.done, 10));
	board_open(&b);
	pool_free(p);
	CHECK_EQ(b.done, MANY);
}

TEST(a_short_job_that_waits_does_not_hold_up_patient_ones)
{
	struct pool *p = open_pool();
	struct task patient[10], shorts[20];
	struct board b;

	board_init(&b, true);
	add(p, &b, shorts, 20, POOL_SHORT, true);
	add(p, &b, patient, 10, POOL_PATIENT, false);
	CHECK(reaches(&b.done, 10));
	board_open(&b);
	pool_free(p);
	CHECK_EQ(b.done, 30);
}

TEST(a_member_finds_a_thread_however_many_jobs_of_others_wait)
{
	struct pool *p = open_pool();
	struct task hostile[4][MANY], patient[10], shorts[10];
	struct board b, honest;

	board_init(&b, true);
	board_init(&honest, false);
	for (int i = 0; i < 4; i++) {
		add(p, &b, hostile[i], MANY / 2, POOL_PATIENT, true);
		add(p, &b, hostile[i] + MANY / 2, MANY / 2, POOL_SHORT, true);
	}
	add(p, &honest, patient, 10, POOL_PATIENT, false);
	add(p, &honest, shorts, 10, POOL_SHORT, false);
	CHECK(reaches(&honest.done, 20));
	CHECK_EQ(b.done, 0);
	board_open(&b);
	pool_free(p);
	CHECK_EQ(b.done, 4 * MANY);
}

/* All threads for patient jobs but one work when another comes, and those to come are late. */
TEST(a_member_finds_a_thread_also_if_others_take_those_that_were_begun_for_it)
{
	struct task many[2][MANY / 2], one;
	struct board b, honest;
	struct pool *p;

	gate.came = 0;
	let_begin(27);
	p = open_pool();
	board_init(&b, true);
	board_init(&honest, false);
	for (int i = 0; i < 2; i++)
		add(p, &b, many[i], MANY / 2, POOL_PATIENT, true);
	CHECK(reaches(&b.started, 27));
	add(p, &honest, &one, 1, POOL_PATIENT, false);
	let_begin(1 << 20);
	CHECK(reaches(&honest.done, 1));
	board_open(&b);
	pool_free(p);
	CHECK_EQ(b.done, MANY);
}

TEST(a_member_leaves_threads_to_another_that_waits_too)
{
	struct pool *p = open_pool();
	struct task many[MANY], few[5];
	struct board b, other;

	board_init(&b, true);
	board_init(&other, true);
	add(p, &b, many, MANY, POOL_PATIENT, true);
	CHECK(reaches(&b.started, 10));
	add(p, &other, few, 5, POOL_PATIENT, true);
	CHECK(reaches(&other.started, 5));
	board_open(&b);
	board_open(&other);
	pool_free(p);
	CHECK_EQ(b.done + other.done, MANY + 5);
}

TEST(a_pool_without_work_ends_at_once)
{
	pool_free(open_pool());
	pool_free(NULL);
}

TEST_MAIN("pool")
