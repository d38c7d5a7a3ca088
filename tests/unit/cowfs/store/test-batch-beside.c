/*
 * Batches beside each other, and readers beside them.
 */
#include "cowfs/store/batch.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>

#include "tests/unit/cowfs/store/batch-fixture.h"

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

TEST_MAIN("batch-beside")
