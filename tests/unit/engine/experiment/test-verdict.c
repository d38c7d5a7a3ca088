/*
 * Who wins: by score and direction, ties within the spread, and nobody without a pass.
 */
#include "tests/lib/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/experiment/experiment-i.h"

#define ARMS_MAX 4

/* Arms "a", "b", ... that passed with these scores; a spread below 0: it did not pass; NaN score: no score. */
struct given {
	double score, spread;
};

static struct engine_experiment decide(const struct given *given, size_t n, enum engine_score score,
				       bool higher)
{
	struct engine_experiment x = { .n_arms = n, .score = score, .higher = higher, .repeat = 1 };
	struct err err = { 0 };

	x.arms = calloc(n + 1, sizeof(*x.arms));
	CHECK(x.arms != NULL);
	for (size_t i = 0; i < n; i++) {
		struct engine_arm *arm = &x.arms[i];

		if (asprintf(&arm->name, "%c", (char)('a' + i)) < 0)
			fail_msg("no memory");
		arm->state = given[i].spread < 0 ? ENGINE_ARM_CHECK_FAILED : ENGINE_ARM_PASSED;
		arm->scored = given[i].spread >= 0 && !isnan(given[i].score);
		arm->score = given[i].score;
		arm->spread = given[i].spread;
	}
	CHECK_OK(verdict_find(&x, &err), &err);
	return x;
}

/* Names of those that tie, "" if none do. */
static const char *tied(const struct engine_experiment *x)
{
	static char text[ARMS_MAX + 1];

	CHECK(x->n_tie <= ARMS_MAX);
	memset(text, 0, sizeof(text));
	for (size_t i = 0; i < x->n_tie && i < ARMS_MAX; i++)
		text[i] = x->tie[i][0];
	return text;
}

TEST(the_best_score_wins_in_the_direction_that_was_asked_for)
{
	static const struct {
		struct given arms[ARMS_MAX];
		size_t n;
		bool higher;
		const char *winner, *tie;
	} table[] = {
		{ { { 1, 0 }, { 2, 0 } }, 2, false, "a", "" },
		{ { { 1, 0 }, { 2, 0 } }, 2, true, "b", "" },
		{ { { 3, 0 }, { -2, 0 }, { 2, 0 } }, 3, false, "b", "" },
		{ { { 3, 0 }, { -2, 0 }, { 2, 0 } }, 3, true, "a", "" },
		{ { { 1, 0 }, { 1, 0 } }, 2, false, NULL, "ab" },
		{ { { 1, 0 }, { 1, 0 }, { 5, 0 } }, 3, true, "c", "" },
		/* Just within the sum of both spreads, and just outside. */
		{ { { 10, 0.5 }, { 11, 0.5 } }, 2, false, NULL, "ab" },
		{ { { 10, 0.5 }, { 11.01, 0.5 } }, 2, false, "a", "" },
		{ { { 10, 0.5 }, { 11, 0.5 } }, 2, true, NULL, "ba" },
		/* The third is worse than the best by more than the spread, if not than the second. */
		{ { { 10, 0.5 }, { 11, 0.5 }, { 11.5, 0.9 } }, 3, false, NULL, "ab" },
		/* One far away that knows nothing ties all the same. */
		{ { { 10, 0 }, { 20, 15 } }, 2, false, NULL, "ab" },
		/* Who did not pass has no say, however good. */
		{ { { 1, -1 }, { 5, 0 }, { 6, 0 } }, 3, false, "b", "" },
		{ { { 1, -1 }, { 5, 0 } }, 2, false, "b", "" },
		{ { { 1, -1 }, { 2, -1 } }, 2, false, NULL, "" },
		{ { { 1e-9, 0 }, { 2e-9, 0 } }, 2, false, "a", "" },
		{ { { -1e15, 0 }, { 1e15, 0 } }, 2, true, "b", "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		CLEANUP(engine_experiment_done)
		struct engine_experiment x =
		    decide(table[i].arms, table[i].n, ENGINE_SCORE_COMMAND, table[i].higher);

		if (strcmp(x.winner ? x.winner : "-", table[i].winner ? table[i].winner : "-") !=
			0 ||
		    strcmp(tied(&x), table[i].tie) != 0)
			fail_msg("row %zu: winner %s, tie '%s': %s", i, x.winner ? x.winner : "-",
				 tied(&x), x.verdict);
	}
}

TEST(without_a_score_all_that_pass_tie_and_a_single_one_wins)
{
	const struct given three[] = { { NAN, 0 }, { NAN, -1 }, { NAN, 0 } };
	CLEANUP(engine_experiment_done)
	struct engine_experiment x = decide(three, 3, ENGINE_SCORE_NONE, false);
	CLEANUP(engine_experiment_done)
	struct engine_experiment one = decide(three, 2, ENGINE_SCORE_NONE, false);

	CHECK(!x.winner);
	CHECK_STR(tied(&x), "ac");
	CHECK_HAS(x.verdict, "no score tells them apart");
	CHECK_STR(one.winner, "a");
	CHECK_HAS(one.verdict, "the only arm that passed");
}

TEST(an_arm_without_a_score_does_not_beat_one_that_has_one)
{
	const struct given two[] = { { NAN, 0 }, { 3, 0 } };
	CLEANUP(engine_experiment_done)
	struct engine_experiment x = decide(two, 2, ENGINE_SCORE_COMMAND, false);

	CHECK_STR(x.winner, "b");
}

TEST(the_verdict_says_why)
{
	const struct given far[] = { { 100, 5 }, { 2000, 5 } }, near[] = { { 100, 5 }, { 104, 5 } },
			   none[] = { { 1, -1 } };
	CLEANUP(engine_experiment_done)
	struct engine_experiment x = decide(far, 2, ENGINE_SCORE_TIME, false);
	CLEANUP(engine_experiment_done)
	struct engine_experiment y = decide(near, 2, ENGINE_SCORE_TIME, false);
	CLEANUP(engine_experiment_done)
	struct engine_experiment z = decide(none, 1, ENGINE_SCORE_TIME, false);

	CHECK_STR(x.verdict, "'a' wins: its time is 100ms; the next best, 'b', has 2s");
	CHECK_HAS(y.verdict, "a tie of 2 arms: 'a' has 100ms and 'b' 104ms");
	CHECK_HAS(y.verdict, "within the spread of 10ms");
	CHECK_STR(z.verdict, "no arm passed");
}

TEST(the_verdict_names_an_arm_that_ties_though_another_is_nearer)
{
	const struct given arms[] = { { 151, 45 }, { 96, 14 }, { 141, 20 } };
	CLEANUP(engine_experiment_done)
	struct engine_experiment x = decide(arms, 3, ENGINE_SCORE_TIME, false);

	CHECK_STR(tied(&x), "ba");
	CHECK_STR(x.verdict, "a tie of 2 arms: 'b' has 96ms and 'a' 151ms, which is within the "
			     "spread of 59ms");
}

TEST(a_verdict_that_is_found_again_is_the_same)
{
	const struct given near[] = { { 100, 5 }, { 104, 5 } };
	CLEANUP(engine_experiment_done)
	struct engine_experiment x = decide(near, 2, ENGINE_SCORE_TIME, false);
	struct err err = { 0 };

	CHECK_OK(verdict_find(&x, &err), &err);
	CHECK_EQ(x.n_tie, 2);
	x.arms[1].score = 2000;
	CHECK_OK(verdict_find(&x, &err), &err);
	CHECK_EQ(x.n_tie, 0);
	CHECK_STR(x.winner, "a");
}

TEST_MAIN("verdict")
