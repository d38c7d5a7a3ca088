#include "engine/api/curve.h"

#include "engine/find/curve-i.h"
#include "tests/lib/test.h"

/* A run that is looked at as often as its curve asks for, until it is that old. */
static void grow(struct engine_curve *c, uint64_t until_ms)
{
	uint64_t at = ENGINE_CURVE_EVERY_MS;

	while (at <= until_ms) {
		const struct engine_sample s = {
			.at_ms = at,
			.cpu_ms = at / 2,
			.memory = at == 10 * ENGINE_CURVE_EVERY_MS ? 1000 : 10,
			.written = at * 3,
			.processes = at == 11 * ENGINE_CURVE_EVERY_MS ? 70 : 2,
		};

		engine_curve_add(c, &s);
		at += c->every_ms;
	}
}

TEST(however_long_a_run_takes_its_curve_is_short_and_keeps_its_peaks)
{
	const uint64_t day = 86400000;
	struct engine_curve c = { 0 };
	uint64_t memory = 0, processes = 0;

	grow(&c, day);
	CHECK(c.n >= ENGINE_CURVE_MAX / 2 - 1 && c.n <= ENGINE_CURVE_MAX);
	CHECK(c.list[c.n - 1].at_ms > day - day / 50);
	for (size_t i = 0; i < c.n; i++) {
		memory = c.list[i].memory > memory ? c.list[i].memory : memory;
		processes = c.list[i].processes > processes ? c.list[i].processes : processes;
		if (i > 0)
			CHECK(c.list[i].at_ms > c.list[i - 1].at_ms &&
			      c.list[i].written > c.list[i - 1].written);
	}
	CHECK_EQ(memory, 1000);
	CHECK_EQ(processes, 70);
}

TEST(a_short_run_keeps_every_sample)
{
	struct engine_curve c = { 0 };

	grow(&c, 2500);
	CHECK_EQ(c.n, 10);
	CHECK_EQ(c.every_ms, ENGINE_CURVE_EVERY_MS);
	CHECK(engine_curve_processors(NULL, &c.list[0]) == 0.5);
	CHECK(engine_curve_processors(&c.list[3], &c.list[4]) == 0.5);
}

TEST(samples_come_back_from_their_text)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct engine_curve c = { 0 }, back = { 0 };

	grow(&c, 2500);
	for (size_t i = 0; i < c.n; i++)
		CHECK_EQ(curve_append(&text, &c.list[i]), 0);
	curve_read(buf_str(&text), &back);
	CHECK_EQ(back.n, c.n);
	CHECK_EQ(memcmp(back.list, c.list, c.n * sizeof(c.list[0])), 0);
}

TEST(what_is_no_sample_is_passed_over)
{
	struct engine_curve c = { 0 };

	curve_read("250 1 2 3 4\nnonsense\n250 9 9 9 9\n500 0 2 3 4\n500 5 6 7 8\n750 5 6", &c);
	CHECK_EQ(c.n, 2);
	CHECK_EQ(c.list[1].at_ms, 500);
	CHECK_EQ(c.list[1].processes, 8);
}

TEST_MAIN("curve")
