#include "base/spread.h"

#include <sched.h>

#include "tests/lib/test.h"

#define TIMES 100

struct begun {
	int cpu;
	cpu_set_t allowed;
};

static void *look(void *ctx)
{
	struct begun *b = ctx;

	b->cpu = sched_getcpu();
	sched_getaffinity(0, sizeof(b->allowed), &b->allowed);
	return NULL;
}

static struct begun begin(unsigned nth)
{
	struct begun b = { .cpu = -1 };
	struct spread s;

	CHECK_EQ(spread_start(&s, nth, look, &b), 0);
	spread_join(&s);
	CHECK(b.cpu >= 0);
	return b;
}

TEST(each_begins_on_another_processor_and_is_free_to_go)
{
	cpu_set_t all;
	int elsewhere = 0;

	CHECK_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
	if (CPU_COUNT(&all) < 2)
		TEST_SKIP("there is one processor only");
	for (int i = 0; i < TIMES; i++) {
		const int here = sched_getcpu();
		const struct begun b = begin(1);

		CHECK(CPU_EQUAL(&b.allowed, &all));
		elsewhere += b.cpu != here;
	}
	/* It is free by then, and so are we: the kernel may have moved either. */
	CHECK(elsewhere > TIMES / 2);
}

TEST(there_may_be_more_of_them_than_processors)
{
	for (unsigned nth = 0; nth < 64; nth++)
		begin(nth);
}

TEST(who_may_use_one_processor_has_them_all_there)
{
	cpu_set_t all, one;

	CHECK_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	CHECK_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
	for (unsigned nth = 0; nth < 4; nth++) {
		const struct begun b = begin(nth);

		CHECK(CPU_EQUAL(&b.allowed, &one));
	}
	CHECK_EQ(sched_setaffinity(0, sizeof(all), &all), 0);
}

TEST_MAIN("spread")
