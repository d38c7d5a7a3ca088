#include "tests/lib/test.h"

#include "engine/ask/restarts-i.h"

#define MINUTE ((uint64_t)60000)

/* Let it live so long, time after time, until there is to be no other; how often it died. */
static unsigned die_after(struct restarts *r, uint64_t *now, uint64_t lives_ms, unsigned most,
			  enum restarts_verdict *ret)
{
	unsigned n = 0;

	do {
		const uint64_t born = *now;

		*now += lives_ms;
		*ret = restarts_judge(r, born, *now);
	} while (++n < most && *ret == RESTARTS_AGAIN);
	return n;
}

TEST(one_that_dies_at_once_gets_pauses_that_grow_and_then_no_other)
{
	static const uint64_t pauses[] = { 0, 500, 1000, 2000 };
	enum restarts_verdict verdict = RESTARTS_AGAIN;
	struct restarts r = { 0 };
	uint64_t now = MINUTE;

	for (size_t i = 0; i < ARRAY_LEN(pauses); i++) {
		CHECK_EQ(die_after(&r, &now, 1, 1, &verdict), 1);
		CHECK_EQ(verdict, RESTARTS_AGAIN);
		CHECK_EQ(restarts_pause_ms(&r), pauses[i]);
	}
	die_after(&r, &now, 1, 1, &verdict);
	CHECK_EQ(verdict, RESTARTS_TOO_QUICK);
}

TEST(one_that_dies_just_after_it_counts_as_alive_is_not_started_for_ever)
{
	enum restarts_verdict verdict = RESTARTS_AGAIN;
	struct restarts r = { 0 };
	uint64_t now = MINUTE;

	CHECK_EQ(die_after(&r, &now, RESTARTS_QUICK_MS + 1, 1000, &verdict), RESTARTS_SPAN_MAX);
	CHECK_EQ(verdict, RESTARTS_TOO_MANY);
	CHECK_EQ(restarts_pause_ms(&r), 0);
}

TEST(one_that_dies_now_and_then_is_always_started_again)
{
	enum restarts_verdict verdict = RESTARTS_AGAIN;
	struct restarts r = { 0 };
	uint64_t now = 0;

	CHECK_EQ(die_after(&r, &now, 6 * MINUTE, 1000, &verdict), 1000);
	CHECK_EQ(verdict, RESTARTS_AGAIN);
	/* Those of an hour ago no longer count, whatever came before. */
	now += 61 * MINUTE;
	CHECK_EQ(die_after(&r, &now, MINUTE, 1000, &verdict), RESTARTS_SPAN_MAX);
}

TEST_MAIN("restarts")
