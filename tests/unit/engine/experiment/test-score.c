/*
 * What a score is: the number that a command prints, and the median of its rounds with their spread.
 */
#include "tests/lib/test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/experiment/experiment-i.h"

TEST(the_last_line_that_begins_with_a_number_counts)
{
	static const struct {
		const char *text;
		bool is;
		double value;
	} table[] = {
		{ "17", true, 17 },
		{ "17\n", true, 17 },
		{ "1\n2\nthree\n", true, 2 },
		{ "took:\n 3.5 s\ndone\n", true, 3.5 },
		{ "-1e3\r\n", true, -1000 },
		{ "0x10\n", true, 16 },
		{ "1\nnan\n", true, 1 },
		{ "1\ninf\n-inf\n", true, 1 },
		{ "1e308\n", false, 0 },
		{ "-1e15\n", true, -1e15 },
		{ "nan\n", false, 0 },
		{ "12ms\n", false, 0 },
		{ "words\n", false, 0 },
		{ "\n\n", false, 0 },
		{ "", false, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		char text[64];
		double v = 0;
		bool is;

		snprintf(text, sizeof(text), "%s", table[i].text);
		is = score_last_number(text, &v);
		if (is != table[i].is || (is && v != table[i].value))
			fail_msg("'%s': %d, %g", table[i].text, is, v);
	}
}

static void check_sum(const double *values, size_t n, double score, double spread)
{
	struct engine_arm arm = { 0 };
	struct engine_round rounds[16];
	struct err err = { 0 };

	for (size_t i = 0; i < n; i++)
		rounds[i].value = values[i];
	arm.rounds = rounds;
	arm.n_rounds = n;
	CHECK_OK(score_sum_up(&arm, &err), &err);
	CHECK_EQ(arm.scored, n > 0);
	if (n > 0 && (fabs(arm.score - score) > 1e-9 || fabs(arm.spread - spread) > 1e-9))
		fail_msg("%zu rounds: %g +-%g, not %g +-%g", n, arm.score, arm.spread, score,
			 spread);
}

/* The quartiles of two or three rounds would call noise a difference. */
TEST(the_score_is_the_median_and_the_spread_half_of_the_middle)
{
	check_sum(NULL, 0, 0, 0);
	check_sum((const double[]){ 7 }, 1, 7, 0);
	check_sum((const double[]){ 4, 2 }, 2, 3, 1);
	check_sum((const double[]){ 9, 1, 5 }, 3, 5, 4);
	check_sum((const double[]){ 5, 1, 4, 2, 3 }, 5, 3, 1);
	check_sum((const double[]){ -1, -2, -3, -4 }, 4, -2.5, 1.5);
}

TEST(one_wild_round_moves_neither)
{
	check_sum((const double[]){ 10, 10, 10, 10, 1e9 }, 5, 10, 0);
	check_sum((const double[]){ 10, 11, 12, 13, 14 }, 5, 12, 1);
	check_sum((const double[]){ 10, 11, 12, 13, 1e9 }, 5, 12, 1);
}

TEST(rounds_stay_in_the_order_in_which_they_were_taken)
{
	struct engine_round rounds[] = { { 3 }, { 1 }, { 2 } };
	struct engine_arm arm = { .rounds = rounds, .n_rounds = 3 };
	struct err err = { 0 };

	CHECK_OK(score_sum_up(&arm, &err), &err);
	CHECK(rounds[0].value == 3 && rounds[1].value == 1 && rounds[2].value == 2);
}

TEST(the_rate_of_repetitions_lies_in_the_interval_of_wilson)
{
	/* By hand: (p + z²/2n ± z sqrt(p(1-p)/n + z²/4n²)) / (1 + z²/n), z = 1.96. */
	static const struct {
		unsigned passed, runs;
		double low, high;
	} table[] = {
		{ 5, 5, 0.5655, 1 },        { 0, 5, 0, 0.4345 },       { 20, 20, 0.8389, 1 },
		{ 1, 2, 0.0945, 0.9055 },   { 9, 10, 0.5958, 0.9821 }, { 50, 100, 0.4038, 0.5962 },
		{ 1, 100, 0.0018, 0.0545 },
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		static char name[] = "a";
		struct engine_arm arms[104] = { 0 };
		struct engine_experiment x = { .arms = arms, .n_arms = table[i].runs + 3 };
		struct engine_rate rate;

		for (size_t k = 0; k < x.n_arms; k++)
			arms[k] = (struct engine_arm){
				.group = name,
				.state = k < table[i].passed ? ENGINE_ARM_PASSED
							     : ENGINE_ARM_CHECK_FAILED,
			};
		/* These say nothing of the command. */
		arms[table[i].runs].state = ENGINE_ARM_LOST;
		arms[table[i].runs + 1].state = ENGINE_ARM_STOPPED;
		arms[table[i].runs + 2].state = ENGINE_ARM_WAITING;
		CHECK(engine_experiment_rate(&x, 0, &rate));
		CHECK_EQ(rate.runs, table[i].runs);
		CHECK_EQ(rate.passed, table[i].passed);
		if (fabs(rate.low - table[i].low) > 5e-5 || fabs(rate.high - table[i].high) > 5e-5)
			fail_msg("%u of %u: %.4f to %.4f", table[i].passed, table[i].runs, rate.low,
				 rate.high);
		CHECK(!engine_experiment_rate(&x, 1, &rate));
	}
}

TEST_MAIN("score")
