#include "tests/lib/test.h"

#include <pthread.h>
#include <stdatomic.h>

#include "engine/host/turns.h"

#define THREADS 6
#define ROUNDS  300

struct crowd {
	struct turns turns;
	atomic_int inside[2]; /* by name */
	int count[2];         /* guarded by the turn of that name alone */
	atomic_bool crowded;
};

static void *take_many(void *arg)
{
	static const char *const names[] = { "one", "two" };
	struct crowd *c = arg;

	for (int i = 0; i < ROUNDS; i++) {
		struct err err = { 0 };
		struct turn *turn = NULL;
		const int which = i & 1;

		if (turns_take(&c->turns, names[which], &turn, &err) < 0 ||
		    atomic_fetch_add(&c->inside[which], 1) != 0)
			c->crowded = true;
		c->count[which]++;
		atomic_fetch_sub(&c->inside[which], 1);
		turn_give(turn);
	}
	return NULL;
}

TEST(of_one_name_there_is_one_at_a_time)
{
	pthread_t threads[THREADS];
	struct crowd c = { 0 };

	turns_init(&c.turns);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, take_many, &c), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	CHECK(!c.crowded);
	CHECK_EQ(c.count[0], THREADS * ROUNDS / 2);
	CHECK_EQ(c.count[1], THREADS * ROUNDS / 2);
	turns_done(&c.turns);
}

TEST(other_names_do_not_wait)
{
	struct turn *a = NULL, *b = NULL;
	struct err err = { 0 };
	struct turns t;
	char name[] = "a";

	turns_init(&t);
	CHECK_OK(turns_take(&t, name, &a, &err), &err);
	name[0] = 'b'; /* the name was copied */
	CHECK_OK(turns_take(&t, name, &b, &err), &err);
	turn_give(a);
	turn_give(b);
	turn_give(NULL);
	turns_done(&t);
}

TEST_MAIN("turns")
