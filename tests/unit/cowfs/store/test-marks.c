#include "cowfs/store/marks-i.h"

#include <errno.h>

#include "tests/lib/test.h"

static struct row row_of(enum table t, int64_t seq)
{
	return (struct row){ .table = t, .seq = seq };
}

static struct marks new_marks(int64_t meta, int64_t chunks)
{
	const int64_t limit[TABLES] = { [TABLE_META] = meta, [TABLE_CHUNKS] = chunks };
	struct marks m;
	struct err err = { 0 };

	CHECK_OK(marks_init(&m, limit, &err), &err);
	return m;
}

TEST(a_row_is_marked_alone_and_stays_so)
{
	CLEANUP(marks_done) struct marks m = new_marks(100, 17);

	CHECK(!marks_set(&m, row_of(TABLE_META, 8)));
	CHECK(marks_set(&m, row_of(TABLE_META, 8)));
	for (int64_t seq = 1; seq <= 100; seq++)
		CHECK_EQ(marks_has(&m, row_of(TABLE_META, seq)), seq == 8);
	for (int64_t seq = 1; seq <= 17; seq++)
		CHECK(!marks_has(&m, row_of(TABLE_CHUNKS, seq)));
}

TEST(the_last_row_of_any_number_has_a_mark)
{
	for (int64_t limit = 0; limit <= 40; limit++) {
		CLEANUP(marks_done) struct marks m = new_marks(limit, 0);

		for (int64_t seq = 1; seq <= limit; seq++)
			CHECK(!marks_set(&m, row_of(TABLE_META, seq)));
	}
}

TEST(keeping_a_row_that_was_not_swept_yet_marks_it)
{
	CLEANUP(marks_done) struct marks m = new_marks(10, 10);

	m.swept[TABLE_META] = 4;
	CHECK(marks_keep(&m, row_of(TABLE_META, 5)));
	CHECK(marks_has(&m, row_of(TABLE_META, 5)));
	CHECK(marks_keep(&m, row_of(TABLE_CHUNKS, 4)));
	CHECK(marks_has(&m, row_of(TABLE_CHUNKS, 4)));
}

TEST(a_row_the_sweep_has_passed_is_kept_only_if_it_was_marked_before)
{
	CLEANUP(marks_done) struct marks m = new_marks(10, 10);

	marks_set(&m, row_of(TABLE_META, 2));
	m.swept[TABLE_META] = 3;
	CHECK(marks_keep(&m, row_of(TABLE_META, 2)));
	CHECK(!marks_keep(&m, row_of(TABLE_META, 1)));
	CHECK(!marks_keep(&m, row_of(TABLE_META, 3)));
	CHECK(!marks_has(&m, row_of(TABLE_META, 3)));
}

TEST(a_row_younger_than_the_gc_is_kept_without_a_mark)
{
	CLEANUP(marks_done) struct marks m = new_marks(10, 0);

	CHECK(marks_keep(&m, row_of(TABLE_META, 11)));
	CHECK(marks_keep(&m, row_of(TABLE_CHUNKS, INT64_MAX)));
}

TEST(an_absurd_row_number_is_refused_before_memory_is_taken)
{
	const int64_t limit[TABLES] = { [TABLE_META] = 5, [TABLE_CHUNKS] = (int64_t)1 << 40 };
	struct marks m;
	struct err err = { 0 };

	CHECK_EQ(marks_init(&m, limit, &err), -EBADMSG);
	CHECK_HAS(err.msg, "chunks.db");
}

TEST_MAIN("marks")
