#include "cowfs/store/batch.h"

#include <errno.h>

#include "cowfs/store/xattrs.h"
#include "tests/unit/cowfs/store/batch-fixture.h"

/* --- putting ---------------------------------------------------------------------------------- */

TEST(a_put_tells_new_bytes_from_known_ones)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("dedup"), STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *a = stock_begin(s), *b = NULL, *c = NULL;

	CHECK(batch_store(a) == s);
	CHECK_EQ(put_text(a, "x"), 1);
	CHECK_EQ(put_text(a, "x"), 0);
	b = stock_begin(s);
	CHECK_EQ(put_text(b, "x"), 0);
	CHECK_EQ(put_text(b, "y"), 1);
	stock_commit(a);
	c = stock_begin(s);
	CHECK_EQ(put_text(c, "x"), 0);
	CHECK_EQ(put_text(c, "y"), 0);
	stock_commit(b);
	CHECK_EQ(put_text(c, "y"), 0);
	stock_commit(c);
	CHECK_EQ(stock_sizes(s).chunks, 2);
}

TEST(what_was_expected_to_be_new_and_is_not_is_stored_once)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("expected"), STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *b = NULL;
	const struct object_id root = stock_snapshot(s, "old", "text");
	const uint64_t rows = stock_rows(s);
	struct object_id again;

	b = stock_begin(s);
	batch_expect_new(b);
	CHECK_EQ(put_text(b, "text"), 1);
	CHECK_EQ(put_text(b, "text"), 0);
	again = stock_put_root(b, "text");
	CHECK(object_id_equal(&again, &root));
	stock_name(b, REF_SNAPSHOT, "new", &again, REF_NEW);
	stock_commit(b);
	CHECK_EQ(stock_rows(s), rows);
	CHECK(stock_root_is_whole(s, &again, "text"));
	stock_check_clean(s);
}

static uint64_t put_zeros(struct batch *b, enum object_kind kind, struct object_id *ret)
{
	static const char zeros[3000];
	const uint64_t before = batch_appended(b);
	struct err err = { 0 };

	CHECK(batch_put(b, kind, zeros, sizeof(zeros), ret, &err) >= 0);
	return batch_appended(b) - before;
}

TEST(trees_that_pass_are_not_compressed_and_nothing_else_differs)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("passing"), STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *b = NULL;
	const struct object_id root = stock_snapshot(s, "old", "text");
	const uint64_t rows = stock_rows(s);
	struct object_id id, again;

	b = stock_begin(s);
	batch_expect_passing_trees(b);
	CHECK(put_zeros(b, OBJECT_TREE, &id) > 3000);
	CHECK(put_zeros(b, OBJECT_CHUNK, &id) < 1000);
	batch_end(TAKE_PTR(b));
	/* One that is there after all stays as it is. */
	b = stock_begin(s);
	batch_expect_passing_trees(b);
	again = stock_put_root(b, "text");
	CHECK(object_id_equal(&again, &root));
	stock_name(b, REF_SNAPSHOT, "new", &again, REF_NEW);
	stock_commit(b);
	CHECK_EQ(stock_rows(s), rows);
	CHECK(stock_root_is_whole(s, &again, "text"));
	batch_end(TAKE_PTR(b));
	/* The same from the beginning. */
	b = stock_begin(s);
	batch_expect_passing_trees(b);
	again = stock_put_root(b, "other");
	stock_name(b, REF_SNAPSHOT, "other", &again, REF_NEW);
	stock_commit(b);
	CHECK(stock_root_is_whole(s, &again, "other"));
	stock_check_clean(s);
}

TEST(equal_bytes_of_two_kinds_are_two_objects)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("kinds"), STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	struct object_id id;
	struct err err = { 0 };

	for (int k = 1; k <= OBJECT_KINDS; k++) {
		CHECK_EQ(batch_put(b, (enum object_kind)k, "same", 4, &id, &err), 1);
		CHECK_EQ(batch_put(b, (enum object_kind)k, "same", 4, &id, &err), 0);
	}
	stock_commit(b);
	CHECK_EQ(stock_sizes(s).chunks, 1);
	CHECK_EQ(stock_sizes(s).objects, OBJECT_KINDS - 1);
}

TEST(objects_of_every_size_come_back_as_they_were)
{
	static const size_t sizes[] = { 0, 1, 63, 64, 4096, CHUNK_SIZE_MAX, OBJECT_SIZE_MAX };
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("sizes"), STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	AUTO_FREE uint8_t *data = calloc(1, OBJECT_SIZE_MAX);
	struct object_id id[ARRAY_LEN(sizes)];
	struct err err = { 0 };

	CHECK(data);
	for (size_t i = 0; i < OBJECT_SIZE_MAX; i++)
		data[i] = (uint8_t)(i * i >> 3);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
		id[i] = stock_put(b, OBJECT_XATTRS, data, sizes[i]);
	stock_commit(b);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		CHECK_OK(store_get(s, OBJECT_XATTRS, &id[i], &out, &err), &err);
		CHECK_MEM(out.data, out.len, data, sizes[i]);
	}
}

/* --- visibility ------------------------------------------------------------------------------- */

TEST(nothing_of_a_batch_is_visible_before_its_commit_and_all_of_it_after)
{
	const char *path = test_path("visible");
	CLEANUP(store_close_p) struct store *s = stock_open(path, STORE_CREATE);
	CLEANUP(store_close_p) struct store *r = stock_open(path, STORE_READ);
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	const struct object_id root = stock_put_root(b, "text"), other = stock_put_root(b, "other");

	stock_name(b, REF_SNAPSHOT, "a", &root, REF_NEW);
	stock_name(b, REF_SNAPSHOT, "b", &other, REF_NEW);
	CHECK(!stock_has_snapshot(r, "a") && !stock_has_snapshot(s, "a"));
	CHECK(!has_text(r, "text") && !has_text(s, "text"));
	stock_commit(b);
	CHECK(stock_has_snapshot(r, "a") && stock_has_snapshot(s, "a"));
	CHECK(stock_has_snapshot(r, "b"));
	CHECK(stock_root_is_whole(r, &root, "text") && stock_root_is_whole(r, &other, "other"));
	stock_check_clean(s);
}

TEST(a_batch_survives_closing_the_store_at_either_durability)
{
	static const enum batch_durability how[] = { BATCH_SAFE, BATCH_DURABLE };
	const char *path = test_path("durable");

	for (size_t i = 0; i < ARRAY_LEN(how); i++) {
		const char *name = i ? "durable" : "safe";
		struct store *s = stock_open(path, STORE_CREATE);
		struct batch *b = stock_begin(s);
		const struct object_id root = stock_put_root(b, name);
		struct err err = { 0 };

		stock_name(b, REF_SNAPSHOT, name, &root, REF_NEW);
		CHECK_OK(batch_commit(b, how[i], &err), &err);
		batch_end(b);
		store_close(s);
		s = stock_open(path, STORE_READ);
		CHECK(stock_has_snapshot(s, name));
		CHECK(stock_root_is_whole(s, &root, name));
		store_close(s);
	}
}

TEST(a_batch_of_nothing_commits)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("nothing"), STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);

	stock_commit(b);
	CHECK_EQ(stock_rows(s), 0);
	batch_end(NULL);
}

TEST(an_abandoned_batch_leaves_nothing)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("abandoned"), STORE_CREATE);
	struct batch *b = stock_begin(s);
	const struct object_id root = stock_put_root(b, "text");

	stock_name(b, REF_SNAPSHOT, "a", &root, REF_NEW);
	batch_end(b);
	CHECK(!stock_has_snapshot(s, "a"));
	CHECK_EQ(stock_rows(s), 0);
	b = stock_begin(s);
	CHECK_EQ(put_text(b, "text"), 1);
	batch_end(b);
}

/* --- more than fits memory -------------------------------------------------------------------- */

#define NOISE_CHUNKS (2 * BATCH_PENDING_MAX / CHUNK_SIZE_MAX + 10)

static void put_noise(struct batch *b, int want)
{
	AUTO_FREE uint8_t *block = malloc(CHUNK_SIZE_MAX);
	struct object_id id;
	struct err err = { 0 };

	CHECK(block);
	for (size_t i = 0; i < NOISE_CHUNKS; i++) {
		stock_noise(block, i);
		CHECK_EQ(batch_put(b, OBJECT_CHUNK, block, CHUNK_SIZE_MAX, &id, &err), want);
	}
}

TEST(attribute_sets_beyond_the_limit_are_written_out_early_too)
{
	const char *path = test_path("early-sets");
	CLEANUP(store_close_p) struct store *s = stock_open(path, STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	AUTO_FREE uint8_t *block = malloc(CHUNK_SIZE_MAX);
	CLEANUP(buf_done) struct buf set = BUF_INIT;
	struct xattr one = { .name = "user.x", .name_len = 6, .value_len = CHUNK_SIZE_MAX };
	struct object_id id;
	struct err err = { 0 };

	CHECK(block);
	for (size_t i = 0; i < NOISE_CHUNKS / 2; i++) {
		stock_noise(block, i);
		one.value = block;
		CHECK_OK(xattrs_put(b, &one, 1, &id, &err), &err);
	}
	CHECK(stock_sizes(s).objects > 0);
	CHECK(stock_sizes(s).objects < NOISE_CHUNKS / 2);
	CHECK_EQ(xattrs_get(s, &id, &set, &err), -EBADMSG); /* the last still waits */
	stock_commit(b);
	CHECK_EQ(stock_sizes(s).objects, NOISE_CHUNKS / 2);
	CHECK_OK(xattrs_get(s, &id, &set, &err), &err);
}

static void check_noise(struct store *s)
{
	AUTO_FREE uint8_t *block = malloc(CHUNK_SIZE_MAX);
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	struct err err = { 0 };

	CHECK(block);
	for (size_t i = 0; i < NOISE_CHUNKS; i++) {
		struct object_id id;

		stock_noise(block, i);
		id = object_id_of(store_key(s), OBJECT_CHUNK, block, CHUNK_SIZE_MAX);
		CHECK_OK(store_get(s, OBJECT_CHUNK, &id, &out, &err), &err);
		CHECK_MEM(out.data, out.len, block, CHUNK_SIZE_MAX);
	}
}

TEST(a_batch_larger_than_memory_allows_is_written_early_and_commits_whole)
{
	const char *path = test_path("large");
	CLEANUP(store_close_p) struct store *s = stock_open(path, STORE_CREATE);
	CLEANUP(store_close_p) struct store *r = stock_open(path, STORE_READ);
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	const struct object_id root = stock_put_root(b, "text");

	stock_name(b, REF_SNAPSHOT, "a", &root, REF_NEW);
	put_noise(b, 1);
	CHECK(stock_sizes(s).chunks > 0);
	CHECK(stock_sizes(s).chunks < NOISE_CHUNKS);
	CHECK_EQ(stock_sizes(s).objects, 0);
	CHECK(!stock_has_snapshot(r, "a"));
	put_noise(b, 0);
	stock_commit(b);
	CHECK_EQ(stock_sizes(s).chunks, NOISE_CHUNKS + 1);
	CHECK(stock_root_is_whole(r, &root, "text"));
	check_noise(r);
}

TEST(a_commit_leaves_a_large_log_to_who_tidies_up_and_that_leaves_small_ones)
{
	const char *path = test_path("tidy");
	CLEANUP(store_close_p) struct store *s = stock_open(path, STORE_CREATE);
	uint64_t log;

	{
		CLEANUP(batch_end_p) struct batch *b = stock_begin(s);

		put_noise(b, 1);
		stock_commit(b);
	}
	log = store_log_bytes(s);
	CHECK(log > (uint64_t)NOISE_CHUNKS * CHUNK_SIZE_MAX);
	store_tidy(s);
	CHECK_EQ(store_log_bytes(s), 0);
	check_noise(s);

	stock_snapshot(s, "a", "text");
	log = store_log_bytes(s);
	CHECK(log > 0);
	store_tidy(s);
	CHECK_EQ(store_log_bytes(s), log);
}

TEST(what_an_abandoned_batch_wrote_early_is_garbage)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("early"), STORE_CREATE);
	struct batch *b = stock_begin(s);
	struct gc_progress progress;

	put_noise(b, 1);
	batch_end(b);
	CHECK(stock_sizes(s).chunks > 0);
	stock_check_clean(s);
	progress = stock_gc(s);
	CHECK(progress.swept > 0);
	CHECK_EQ(stock_rows(s), 0);
}

TEST(what_an_open_batch_wrote_early_is_not_garbage)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("early-open"), STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);

	put_noise(b, 1);
	CHECK_EQ(stock_gc(s).swept, 0);
	stock_commit(b);
	check_noise(s);
}

TEST_MAIN("batch")
