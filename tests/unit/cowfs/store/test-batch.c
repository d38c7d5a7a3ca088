#include "cowfs/store/batch.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>

#include "cowfs/store/xattrs.h"
#include "tests/lib/stock.h"

static int put_text(struct batch *b, const char *text)
{
	struct object_id id;
	struct err err = { 0 };
	int r = batch_put(b, OBJECT_CHUNK, text, strlen(text), &id, &err);

	CHECK_OK(r, &err);
	return r;
}

static bool has_text(struct store *s, const char *text)
{
	const struct object_id id = object_id_of(store_key(s), OBJECT_CHUNK, text, strlen(text));
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	struct err err = { 0 };
	int r = store_get(s, OBJECT_CHUNK, &id, &out, &err);

	CHECK_OK(r == -ENOENT ? 0 : r, &err);
	if (r == 0)
		CHECK_MEM(out.data, out.len, text, strlen(text));
	return r == 0;
}

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

/* --- several batches -------------------------------------------------------------------------- */

TEST(an_object_shared_by_two_batches_outlives_the_end_of_either)
{
	static const struct {
		bool commit_a, commit_b, a_first;
	} cases[] = {
		{ false, true, true },  { false, true, false }, { true, false, true },
		{ true, false, false }, { true, true, true },   { true, true, false },
		{ false, false, true },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char name[16], text[16];
		struct store *s;
		struct batch *a, *b, *first, *second;

		snprintf(name, sizeof(name), "shared-%zu", i);
		snprintf(text, sizeof(text), "text %zu", i);
		s = stock_open(test_path(name), STORE_CREATE);
		a = stock_begin(s);
		b = stock_begin(s);
		CHECK_EQ(put_text(a, text), 1);
		CHECK_EQ(put_text(b, text), 0);
		CHECK_EQ(put_text(a, text), 0);
		CHECK_EQ(put_text(b, text), 0);
		first = cases[i].a_first ? a : b;
		second = cases[i].a_first ? b : a;
		if (first == a ? cases[i].commit_a : cases[i].commit_b)
			stock_commit(first);
		batch_end(first);
		CHECK_EQ(put_text(second, text), 0);
		if (second == a ? cases[i].commit_a : cases[i].commit_b)
			stock_commit(second);
		batch_end(second);
		CHECK_EQ(has_text(s, text), cases[i].commit_a || cases[i].commit_b);
		CHECK_EQ(stock_rows(s), cases[i].commit_a || cases[i].commit_b);
		stock_check_clean(s);
		store_close(s);
	}
}

#define THREADS 4
#define SHARED  200 /* texts that every thread puts */
#define OWN     100 /* texts of each thread alone */

struct putter {
	struct store *store;
	struct batch *batch; /* or NULL: several of its own */
	unsigned number;
	unsigned fresh;
	struct err err; /* code 0: fine */
};

/* A thread must not jump into the test that waits for it. */
static int putter_put(struct putter *p, struct batch *b, const char *text)
{
	struct object_id id;
	int r = batch_put(b, OBJECT_CHUNK, text, strlen(text), &id, &p->err);

	p->fresh += r == 1;
	return r;
}

static int putter_fill(struct putter *p, struct batch *b, unsigned from, unsigned step)
{
	char text[64];
	int r = 0;

	for (unsigned i = from; i < SHARED && r >= 0; i += step) {
		snprintf(text, sizeof(text), "shared by all of them %u", i);
		r = putter_put(p, b, text);
	}
	for (unsigned i = from; i < OWN && r >= 0; i += step) {
		snprintf(text, sizeof(text), "text %u of thread %u alone", i, p->number);
		r = putter_put(p, b, text);
	}
	return r;
}

static int putter_batches(struct putter *p)
{
	static const unsigned n = 5;
	int r = 0;

	for (unsigned i = 0; i < n && r >= 0; i++) {
		CLEANUP(batch_end_p) struct batch *b = NULL;
		char name[32];
		struct ref ref = { .kind = REF_TAG, .name = name };

		snprintf(name, sizeof(name), "%u-%u", p->number, i);
		ref.name_len = strlen(name);
		r = batch_begin(p->store, &b, &p->err);
		if (r >= 0)
			r = putter_fill(p, b, i, n);
		if (r >= 0)
			r = ref_put(b, &ref, REF_NEW, &p->err);
		if (r >= 0)
			r = batch_commit(b, BATCH_SAFE, &p->err);
	}
	return r;
}

static void *putter_run(void *arg)
{
	struct putter *p = arg;
	int r = p->batch ? putter_fill(p, p->batch, 0, 1) : putter_batches(p);

	p->err.code = r < 0 ? r : 0;
	return NULL;
}

static unsigned run_putters(struct store *s, struct batch *b)
{
	struct putter p[THREADS];
	pthread_t t[THREADS];
	unsigned fresh = 0;

	for (unsigned i = 0; i < THREADS; i++) {
		p[i] = (struct putter){ .store = s, .batch = b, .number = i };
		CHECK_EQ(pthread_create(&t[i], NULL, putter_run, &p[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		CHECK_EQ(pthread_join(t[i], NULL), 0);
		CHECK_OK(p[i].err.code, &p[i].err);
		fresh += p[i].fresh;
	}
	return fresh;
}

TEST(many_threads_put_into_one_batch)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("one-batch"), STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);

	CHECK_EQ(run_putters(s, b), SHARED + THREADS * OWN);
	CHECK_EQ(stock_rows(s), 0);
	stock_commit(b);
	CHECK_EQ(stock_sizes(s).chunks, SHARED + THREADS * OWN);
	stock_check_clean(s);
}

TEST(many_threads_commit_batches_of_their_own)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("batches"), STORE_CREATE);

	/* Two that put the same bytes at once may both hear that they are new. */
	CHECK(run_putters(s, NULL) >= SHARED + THREADS * OWN);
	CHECK_EQ(stock_sizes(s).chunks, SHARED + THREADS * OWN);
	stock_check_clean(s);
}

/* --- a reader beside the writer --------------------------------------------------------------- */

#define ROUNDS  20
#define PIECES  8
#define BALLAST 32 /* blocks that make the two commits of a batch lie apart */

static void round_text(unsigned round, unsigned piece, char text[64])
{
	snprintf(text, 64, "round %u piece %u", round, piece);
}

/* Each snapshot of a round says in its value how many there are. */
static void commit_round(struct store *s, unsigned round)
{
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	AUTO_FREE uint8_t *block = malloc(CHUNK_SIZE_MAX);
	const uint8_t pieces = PIECES;
	char name[64], text[64];
	struct err err = { 0 };

	CHECK(block);
	for (unsigned i = 0; i < BALLAST; i++) {
		stock_noise(block, round * BALLAST + i);
		stock_put(b, OBJECT_CHUNK, block, CHUNK_SIZE_MAX);
	}
	for (unsigned i = 0; i < PIECES; i++) {
		struct ref ref = {
			.kind = REF_SNAPSHOT, .name = name, .value = &pieces, .value_len = 1
		};

		round_text(round, i, text);
		ref.root = stock_put_root(b, text);
		snprintf(name, sizeof(name), "%u-%u", round, i);
		ref.name_len = strlen(name);
		CHECK_OK(ref_put(b, &ref, REF_NEW, &err), &err);
	}
	stock_commit(b);
}

/* 1: all of the round.  0: nothing of it yet.  Whatever the reader sees first, it must see the rest. */
static int look_at_round(struct store *s, unsigned round, unsigned first)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct ref ref;
	char name[64], text[64];
	int r;

	for (unsigned i = 0; i < PIECES; i++) {
		const unsigned piece = (first + i) % PIECES;

		snprintf(name, sizeof(name), "%u-%u", round, piece);
		r = ref_get(s, REF_SNAPSHOT, name, strlen(name), &ref, &hold, NULL);
		if (r == -ENOENT && i == 0)
			return 0;
		round_text(round, piece, text);
		if (r < 0 || !stock_root_is_whole(s, &ref.root, text))
			return -EIO;
	}
	return 1;
}

NORETURN static void read_rounds(const char *path, pid_t writer)
{
	struct store *s = stock_open(path, STORE_READ);
	int r = 0;

	for (unsigned round = 0; round < ROUNDS && r >= 0 && getppid() == writer; round += r > 0)
		r = look_at_round(s, round, round % PIECES);
	_exit(r == 1 ? 0 : 1);
}

TEST(a_reader_beside_the_writer_never_sees_half_a_batch)
{
	const char *path = test_path("half");
	const pid_t writer = getpid();
	struct store *s;
	pid_t reader[2];
	int status;

	store_close(stock_open(path, STORE_CREATE));
	for (size_t i = 0; i < ARRAY_LEN(reader); i++) {
		reader[i] = fork();
		CHECK(reader[i] >= 0);
		if (reader[i] == 0)
			read_rounds(path, writer);
	}
	s = stock_open(path, STORE_WRITE);
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct err err = { 0 };

		commit_round(s, round);
		if (round % 8 == 0)
			CHECK_OK(store_checkpoint(s, &err), &err);
	}
	for (size_t i = 0; i < ARRAY_LEN(reader); i++) {
		CHECK_EQ(waitpid(reader[i], &status, 0), reader[i]);
		CHECK(WIFEXITED(status));
		CHECK_EQ(WEXITSTATUS(status), 0);
	}
	stock_check_clean(s);
	store_close(s);
}

TEST_MAIN("batch")
