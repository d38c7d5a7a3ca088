#include "tests/lib/test.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/crew.h"

#define MANY 1000

struct job {
	pthread_t caller;
	_Atomic int times[MANY];
	_Atomic unsigned at_once[CREW_MAX]; /* calls of one member */
	_Atomic bool crowded, stranger;
	_Atomic size_t last; /* one more than the number that was taken last */
	size_t fails;        /* from that number on */
};

static int count(unsigned member, size_t i, void *ctx, struct err *err)
{
	struct job *j = ctx;

	if (member >= CREW_MAX || j->at_once[member]++ != 0)
		j->crowded = true;
	if ((member == 0) != (pthread_equal(pthread_self(), j->caller) != 0))
		j->stranger = true;
	j->times[i]++;
	j->last = i + 1;
	j->at_once[member]--;
	return i >= j->fails ? err_set(err, -EIO, "number %zu", i) : 0;
}

static struct job *job_new(size_t fails)
{
	static struct job j;

	j = (struct job){ .caller = pthread_self(), .fails = fails };
	return &j;
}

TEST(each_is_done_once_by_however_many)
{
	for (unsigned threads = 0; threads <= 2 * CREW_MAX; threads++) {
		struct job *j = job_new(MANY);
		struct err err = { 0 };

		CHECK_OK(crew_each(threads, MANY, count, j, &err), &err);
		for (size_t i = 0; i < MANY; i++)
			CHECK_EQ(j->times[i], 1);
		CHECK(!j->crowded);
		CHECK(!j->stranger);
	}
}

TEST(nothing_to_do_is_done)
{
	CHECK_EQ(crew_each(CREW_MAX, 0, count, job_new(MANY), NULL), 0);
}

TEST(alone_they_come_in_order_and_end_with_the_first_failure)
{
	struct job *j = job_new(7);
	struct err err = { 0 };

	CHECK_EQ(crew_each(1, MANY, count, j, &err), -EIO);
	CHECK_EQ(err.code, -EIO);
	CHECK_STR(err.msg, "number 7");
	CHECK_EQ(j->last, 8);
}

TEST(a_failure_is_told_once_and_leaves_what_nobody_has_taken)
{
	struct job *j = job_new(0);
	struct err err = { 0 };
	int done = 0;

	CHECK_EQ(crew_each(CREW_MAX, MANY, count, j, &err), -EIO);
	CHECK_EQ(strncmp(err.msg, "number ", 7), 0);
	for (size_t i = 0; i < MANY; i++)
		done += j->times[i];
	CHECK(done >= 1 && done <= CREW_MAX);
	CHECK_EQ(crew_each(CREW_MAX, MANY, count, job_new(0), NULL), -EIO);
}

TEST(few_things_are_no_work_for_two)
{
	CHECK_EQ(crew_size(0), 1);
	CHECK_EQ(crew_size(1), 1);
	CHECK_EQ(crew_size(32), 1);
	CHECK(crew_size((size_t)1 << 40) >= 1 && crew_size((size_t)1 << 40) <= CREW_MAX);
}

/* --- where no thread can be had ----------------------------------------------------------- */

static bool refuses;
static unsigned refused_after; /* from then on: one that is refused is asked for once more */

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			  void *arg);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			  void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			  void *arg)
{
	if (refuses && refused_after == 0)
		return EAGAIN;
	refused_after--;
	return __real_pthread_create(thread, attr, fn, arg);
}

TEST(who_cannot_be_started_is_not_missed)
{
	for (unsigned after = 0; after < CREW_MAX; after++) {
		struct job *j = job_new(MANY);
		struct err err = { 0 };

		refused_after = after;
		refuses = true;
		CHECK_OK(crew_each(CREW_MAX, MANY, count, j, &err), &err);
		refuses = false;
		for (size_t i = 0; i < MANY; i++)
			CHECK_EQ(j->times[i], 1);
	}
}

TEST_MAIN("crew")
