#include "cowfs/fuse/pace.h"

#include "tests/lib/test.h"

#define MS    1000000ull
#define START (1000 * MS)

/* Two clones on a machine of two processors: each may have half of one here. */
struct pair {
	struct paces all;
	struct pace greedy, modest;
	char clones[2];            /* only their addresses count */
	_Atomic uint64_t aside[2]; /* spent for each of them, but in no request */
	uint64_t now;
};

/* A look at one that was asked for something of weight. */
static uint64_t ask(struct pace *p, uint64_t now)
{
	pace_spend(p, PACE_HEAVY_NS);
	return pace_look(p, now, true);
}

/* Both have just been asked for something. */
static void begin(struct pair *p)
{
	p->aside[0] = p->aside[1] = 0;
	paces_init(&p->all, 2);
	pace_join(&p->all, &p->greedy, &p->clones[0], &p->aside[0]);
	pace_join(&p->all, &p->modest, &p->clones[1], &p->aside[1]);
	p->now = START;
	CHECK_EQ(ask(&p->modest, p->now), 0);
	CHECK_EQ(ask(&p->greedy, p->now), 0);
}

static void end(struct pair *p)
{
	pace_leave(&p->greedy);
	pace_leave(&p->modest);
	paces_done(&p->all);
}

/* So many milliseconds later it has had so much of a processor. */
static uint64_t look(struct pair *p, struct pace *which, uint64_t ms, uint64_t had_ms, bool crowded)
{
	p->now += ms * MS;
	pace_spend(which, had_ms * MS);
	return pace_look(which, p->now, crowded);
}

TEST(one_that_takes_more_than_its_part_rests_until_that_is_made_up_for)
{
	struct pair p;
	uint64_t rested = 0, ns;

	begin(&p);
	CHECK_EQ(look(&p, &p.greedy, 100, 60, true), PACE_REST_NS);
	while ((ns = pace_look(&p.greedy, p.now, true)) > 0) {
		CHECK(ns <= PACE_REST_NS);
		rested += ns;
		p.now += ns;
	}
	/* It had 10 ms too much, of which PACE_BURST_NS need not be made up for. */
	CHECK_EQ(rested, 2 * (10 * MS - PACE_BURST_NS));
	end(&p);
}

TEST(its_part_and_a_little_more_is_free)
{
	struct pair p;

	begin(&p);
	for (int i = 0; i < 100; i++)
		CHECK_EQ(look(&p, &p.greedy, 10, 5, true), 0);
	CHECK_EQ(look(&p, &p.greedy, 10, 5 + PACE_BURST_NS / MS, true), 0);
	CHECK(look(&p, &p.greedy, 10, 6, true) > 0);
	end(&p);
}

TEST(what_is_spent_for_a_clone_aside_is_its_own_too_and_once)
{
	struct pair p;
	struct pace second;

	begin(&p);
	pace_join(&p.all, &second, &p.clones[0], &p.aside[0]);
	p.aside[0] += 60 * MS;
	p.now += 100 * MS;
	CHECK_EQ(pace_look(&p.modest, p.now, true), 0);
	CHECK_EQ(pace_look(&p.greedy, p.now, true), PACE_REST_NS);
	CHECK_EQ(pace_look(&second, p.now, true), 0);
	CHECK_EQ(p.aside[0], 0);
	pace_leave(&second);
	end(&p);
}

TEST(what_is_stored_of_one_that_is_asked_for_nothing_makes_it_no_rival)
{
	struct pair p;

	begin(&p);
	p.now += PACE_USED_NS;
	p.aside[1] += 10 * MS;
	CHECK_EQ(ask(&p.greedy, p.now), 0);
	CHECK_EQ(pace_look(&p.modest, p.now, true), 0);
	CHECK_EQ(look(&p, &p.greedy, 100, 90, true), 0);
	end(&p);
}

TEST(the_other_one_does_not_rest)
{
	struct pair p;

	begin(&p);
	CHECK(look(&p, &p.greedy, 100, 90, true) > 0);
	CHECK_EQ(look(&p, &p.modest, 100, 20, true), 0);
	end(&p);
}

TEST(nobody_rests_while_processors_are_idle_and_nothing_is_owed_for_it)
{
	struct pair p;

	begin(&p);
	CHECK_EQ(look(&p, &p.greedy, 100, 190, false), 0);
	CHECK_EQ(look(&p, &p.greedy, 10, 5, true), 0);
	end(&p);
}

TEST(nobody_rests_alone)
{
	struct pair p;

	begin(&p);
	CHECK(look(&p, &p.greedy, 100, 90, true) > 0);
	/* The other one asks for nothing any more. */
	p.now += PACE_USED_NS;
	CHECK_EQ(look(&p, &p.greedy, 100, 90, true), 0);
	/* Or has gone. */
	ask(&p.modest, p.now);
	CHECK(look(&p, &p.greedy, 100, 90, true) > 0);
	pace_leave(&p.modest);
	CHECK_EQ(look(&p, &p.greedy, 100, 90, true), 0);
	end(&p);
}

TEST(one_that_asks_now_and_then_is_no_rival)
{
	struct pair p;

	p.aside[0] = p.aside[1] = 0;
	paces_init(&p.all, 2);
	pace_join(&p.all, &p.greedy, &p.clones[0], &p.aside[0]);
	pace_join(&p.all, &p.modest, &p.clones[1], &p.aside[1]);
	p.now = START;
	for (int i = 0; i < 10; i++) {
		pace_spend(&p.modest, PACE_HEAVY_NS / 10);
		CHECK_EQ(pace_look(&p.modest, p.now, true), 0);
		CHECK_EQ(look(&p, &p.greedy, 100, 190, true), 0);
	}
	end(&p);
}

TEST(two_mounts_of_one_clone_are_no_rivals)
{
	struct paces all;
	struct pace a, b, other;
	_Atomic uint64_t aside[2] = { 0 };
	char clones[2];

	paces_init(&all, 2);
	pace_join(&all, &a, &clones[0], &aside[0]);
	pace_join(&all, &b, &clones[0], &aside[0]);
	pace_join(&all, &other, &clones[1], &aside[1]);
	for (uint64_t now = START; now < START + 1000 * MS; now += 100 * MS) {
		CHECK_EQ(pace_look(&b, now, true), 0);
		pace_spend(&a, 100 * MS);
		CHECK_EQ(pace_look(&a, now, true), 0);
	}
	ask(&other, START + 1000 * MS);
	pace_spend(&a, 200 * MS);
	CHECK(pace_look(&a, START + 1100 * MS, true) > 0);
	pace_leave(&b);
	pace_leave(&other);
	pace_leave(&a);
	paces_done(&all);
}

TEST(a_long_piece_of_work_is_not_made_up_for_without_end)
{
	struct pair p;
	uint64_t ns, rested = 0;

	begin(&p);
	for (ns = look(&p, &p.greedy, 100, 60000, true); ns > 0;
	     ns = pace_look(&p.greedy, p.now, true)) {
		rested += ns;
		p.now += ns;
	}
	CHECK_EQ(rested, 2 * (PACE_DEBT_NS - PACE_BURST_NS));
	end(&p);
}

TEST(the_more_are_in_use_the_smaller_the_part)
{
	struct pair p;
	struct pace third;
	_Atomic uint64_t aside = 0;
	char clone;

	begin(&p);
	pace_join(&p.all, &third, &clone, &aside);
	CHECK_EQ(look(&p, &p.greedy, 100, 50, true), 0);
	ask(&third, p.now);
	/* A third of one processor is left of the half: 33 ms of 100. */
	CHECK_EQ(look(&p, &p.greedy, 100, 38, true), 0);
	CHECK(look(&p, &p.greedy, 100, 36, true) > 0);
	pace_leave(&third);
	end(&p);
}

TEST_MAIN("pace")
