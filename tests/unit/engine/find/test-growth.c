#include "engine/find/growth-i.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/fdio.h"
#include "tests/lib/test.h"

#define MINUTE (60 * INT64_C(1000000000))
#define YEAR   (365 * 24 * 60 * MINUTE)

static struct engine_growth_row row_at(int64_t time)
{
	return (struct engine_growth_row){
		.time = time,
		.logical = (uint64_t)time / 7,
		.disk = (uint64_t)time / 11,
		.used = (uint64_t)time / 13,
	};
}

static void add(int64_t time)
{
	const struct engine_growth_row row = row_at(time);
	struct err err = { 0 };

	CHECK_OK(growth_add(test_dir(), &row, &err), &err);
}

static struct engine_growth *read_all(void)
{
	struct engine_growth *g = calloc(1, sizeof(*g));
	struct err err = { 0 };

	CHECK(g);
	CHECK_OK(growth_read(test_dir(), g, &err), &err);
	return g;
}

TEST(a_store_without_notes_has_no_growth)
{
	AUTO_FREE struct engine_growth *g = read_all();

	CHECK_EQ(g->n, 0);
}

TEST(years_of_notes_are_few_rows_and_the_newest_lie_closest)
{
	AUTO_FREE struct engine_growth *g = NULL;
	int64_t now = MINUTE;

	/* Twice a day for five years, then every minute of a day. */
	for (; now < 5 * YEAR; now += 12 * 60 * MINUTE)
		add(now);
	for (int i = 0; i < 1440; i++, now += MINUTE)
		add(now);
	g = read_all();
	CHECK(g->n > 100 && g->n <= ENGINE_GROWTH_MAX);
	CHECK_EQ(g->list[0].time, MINUTE);
	CHECK_EQ(g->list[g->n - 1].time, now - MINUTE);
	CHECK_EQ(g->list[g->n - 2].time, now - 2 * MINUTE);
	for (size_t i = 1; i < g->n; i++)
		CHECK(g->list[i].time > g->list[i - 1].time);
	/* Of each year there is something. */
	for (int64_t year = 0; year < 5; year++) {
		size_t n = 0;

		for (size_t i = 0; i < g->n; i++)
			n += g->list[i].time / YEAR == year;
		CHECK(n >= 2);
	}
}

TEST(what_has_not_changed_is_not_noted_again_but_what_a_gc_found_is)
{
	struct engine_growth_row row = row_at(5);
	AUTO_FREE struct engine_growth *g = NULL;
	struct err err = { 0 };

	add(5);
	row.time = 6;
	CHECK_OK(growth_add(test_dir(), &row, &err), &err);
	row.judged = true;
	row.garbage = 77;
	row.time = 7;
	CHECK_OK(growth_add(test_dir(), &row, &err), &err);
	g = read_all();
	CHECK_EQ(g->n, 2);
	CHECK(!g->list[0].judged);
	CHECK(g->list[1].judged);
	CHECK_EQ(g->list[1].garbage, 77);
}

TEST(a_clock_that_was_set_back_and_lines_that_are_none_do_no_harm)
{
	static const char text[] = "100 1 1 1 -\nnonsense\n900 2 2 2 -\n200 3 3 3 -\n300 4 4";
	AUTO_FREE struct engine_growth *g = NULL;
	AUTO_CLOSE int dir = open(test_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct err err = { 0 };

	CHECK_OK(fdio_replace_file(dir, GROWTH_FILE, text, sizeof(text) - 1, 0600, &err), &err);
	g = read_all();
	CHECK_EQ(g->n, 2);
	CHECK_EQ(g->list[1].time, 200);
}

/* As a full disk leaves it, or a machine that failed; a line that follows must not become part of it. */
static void check_tail(const char *tail, size_t len)
{
	static const char whole[] = "100 1 1 1 -\n";
	AUTO_FREE struct engine_growth *g = NULL;
	AUTO_CLOSE int dir = open(test_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char text[64];
	struct err err = { 0 };

	memcpy(text, whole, strlen(whole));
	memcpy(text + strlen(whole), tail, len);
	CHECK_OK(fdio_replace_file(dir, GROWTH_FILE, text, strlen(whole) + len, 0600, &err), &err);
	add(400);
	add(500);
	g = read_all();
	CHECK_EQ(g->n, 3);
	CHECK_EQ(g->list[0].time, 100);
	for (int i = 1; i < 3; i++) {
		const struct engine_growth_row want = row_at(300 + i * 100);

		CHECK_EQ(g->list[i].time, want.time);
		CHECK_EQ(g->list[i].logical, want.logical);
		CHECK_EQ(g->list[i].disk, want.disk);
		CHECK_EQ(g->list[i].used, want.used);
		CHECK(!g->list[i].judged);
	}
}

TEST(behind_half_a_line_the_next_row_is_whole)
{
	static const char line[] = "300 2000 30 40 567";

	for (size_t len = 1; len < sizeof(line); len++)
		check_tail(line, len);
	check_tail("\0\0\0\0", 4);
}

TEST_MAIN("growth")
