#include "engine/host/recall-i.h"

#include "base/sys.h"
#include "tests/lib/test.h"

static struct signatures *make(size_t bytes)
{
	struct signatures *s = calloc(1, sizeof(*s));

	CHECK(s != NULL);
	CHECK_EQ(buf_append_zero(&s->bytes, bytes), 0);
	return s;
}

static const struct stat file = { .st_dev = 1, .st_ino = 2, .st_size = 3 };

TEST(signatures_are_recalled_for_their_file_and_by_one_at_a_time)
{
	CLEANUP(recall_done) struct recall r;
	CLEANUP(signatures_free_p) struct signatures *s = make(100);
	struct signatures *const given = s;

	recall_init(&r);
	CHECK(recall_take(&r, &file) == NULL);
	recall_give(&r, TAKE_PTR(s), &file);
	s = recall_take(&r, &file);
	CHECK(s == given);
	CHECK(recall_take(&r, &file) == NULL);
}

TEST(of_a_file_that_was_replaced_or_written_nothing_is_recalled)
{
	CLEANUP(recall_done) struct recall r;
	struct stat other[5] = { file, file, file, file, file };

	recall_init(&r);
	recall_give(&r, make(100), &file);
	other[0].st_ino++;
	other[1].st_size++;
	SYS_ST_MTIM(&other[2]).tv_nsec++;
	SYS_ST_CTIM(&other[3]).tv_nsec++;
	other[4].st_dev++;
	for (size_t i = 0; i < ARRAY_LEN(other); i++)
		CHECK(recall_take(&r, &other[i]) == NULL);
}

TEST(what_was_recalled_last_is_kept_unless_it_is_large)
{
	CLEANUP(recall_done) struct recall r;
	CLEANUP(signatures_free_p) struct signatures *s = NULL;
	struct stat other = file;

	other.st_ino++;
	recall_init(&r);
	recall_give(&r, make(100), &file);
	recall_give(&r, make(RECALL_MAX + 1), &other);
	recall_give(&r, NULL, &other);
	CHECK(recall_take(&r, &other) == NULL);
	recall_give(&r, make(RECALL_MAX), &other);
	CHECK(recall_take(&r, &file) == NULL);
	s = recall_take(&r, &other);
	CHECK(s != NULL);
}

TEST_MAIN("recall")
