/*
 * A large commit beside small ones: it is written in pieces, and others commit in between.
 *
 * The test stops the large one where it asks for the lock of the store, has another batch commit
 * meanwhile, and lets it go on only then.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "cowfs/store/batch-i.h"
#include "tests/lib/damage.h"
#include "tests/lib/stock.h"

#define LARGE  ((size_t)12 << 20) /* less than BATCH_PENDING_MAX: no put writes early */
#define CHUNK  ((size_t)64 << 10)
#define PIECES (LARGE / BATCH_PIECE_MAX)
#define WAIT_S 60 /* until a commit that waits for the wrong thing counts as stuck */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct store *store; /* set while no other thread runs, as is the next */
static bool stops;          /* the large commit, before its second piece */
static pthread_t large;     /* its thread, which counts: */
static unsigned syncs, locked_syncs, asked;
static bool stopped, goes_on, ended; /* guarded by `lock`, as are the next */
static bool came, yielded;           /* a small commit waits; a piece lets it go first */

static void set(bool *what)
{
	pthread_mutex_lock(&lock);
	*what = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

/* False: it did not come. */
static bool await(const bool *what)
{
	struct timespec until;
	int rc = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WAIT_S;
	pthread_mutex_lock(&lock);
	while (!*what && rc == 0)
		rc = pthread_cond_timedwait(&changed, &lock, &until);
	pthread_mutex_unlock(&lock);
	return rc == 0;
}

int __real_db_sync_log(struct db *db, struct err *err);
int __wrap_db_sync_log(struct db *db, struct err *err);
int __wrap_db_sync_log(struct db *db, struct err *err)
{
	if (store && db == store->writer[TABLE_CHUNKS] && pthread_equal(pthread_self(), large)) {
		syncs++;
		/* Fails also if this thread has it. */
		if (pthread_mutex_trylock(&store->write_lock) == 0)
			pthread_mutex_unlock(&store->write_lock);
		else
			locked_syncs++;
	}
	return __real_db_sync_log(db, err);
}

static _Thread_local bool small; /* this thread comes late to the lock that it has asked for */

int __real_pthread_mutex_lock(pthread_mutex_t *m);
int __wrap_pthread_mutex_lock(pthread_mutex_t *m);
int __wrap_pthread_mutex_lock(pthread_mutex_t *m)
{
	if (store && m == &store->write_lock && small) {
		small = false;
		set(&came);
		CHECK(await(&stopped));
	} else if (store && m == &store->write_lock && stops &&
		   pthread_equal(pthread_self(), large) && ++asked == 2) {
		set(&stopped);
		CHECK(await(&goes_on));
	}
	return __real_pthread_mutex_lock(m);
}

int __real_pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m);
int __wrap_pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m);
int __wrap_pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
	if (store && c == &store->commits_passed) {
		set(&yielded);
		set(&stopped);
	}
	return __real_pthread_cond_wait(c, m);
}

static void put_large(struct batch *b)
{
	static unsigned char data[CHUNK];
	uint32_t x = 1;
	struct object_id id;
	struct err err = { 0 };

	for (size_t at = 0; at < LARGE; at += CHUNK) {
		for (size_t i = 0; i < CHUNK; i++) {
			x ^= x << 13;
			x ^= x >> 17;
			x ^= x << 5;
			data[i] = (unsigned char)x; /* does not compress */
		}
		CHECK_OK(batch_put(b, OBJECT_CHUNK, data, CHUNK, &id, &err), &err);
	}
	stock_name(b, REF_TAG, "large", NULL, REF_NEW);
}

static void *commit_large(void *arg)
{
	struct err err = { 0 };

	CHECK_OK(batch_commit(arg, BATCH_DURABLE, &err), &err);
	ended = true;
	set(&stopped);
	return NULL;
}

static void prepare(struct store *s, bool stop)
{
	store = s;
	stops = stop;
	stopped = goes_on = ended = came = yielded = false;
	syncs = locked_syncs = asked = 0;
}

static void begin_large(struct batch *b)
{
	__real_pthread_mutex_lock(&lock);
	CHECK_EQ(pthread_create(&large, NULL, commit_large, b), 0);
	pthread_mutex_unlock(&lock);
}

static void end_large(void)
{
	set(&goes_on);
	CHECK_EQ(pthread_join(large, NULL), 0);
	store = NULL;
}

static const char large_sql[] = "SELECT count(*) FROM ref WHERE hex(name) = hex('large')";

static uint64_t rows(struct store *s)
{
	return (uint64_t)damage_ask(store_path(s), "chunks.db", "SELECT count(*) FROM chunk");
}

TEST(another_commit_is_done_between_two_pieces_of_a_large_one)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("beside"), STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);

	put_large(b);
	prepare(s, true);
	begin_large(b);
	CHECK(await(&stopped) && !ended);
	stock_snapshot(s, "small", "a text of its own");
	CHECK(stock_has_snapshot(s, "small"));
	/* A piece of the large one is there, and no more of it. */
	CHECK(rows(s) <= BATCH_PIECE_MAX / CHUNK + 8);
	CHECK_EQ(damage_ask(store_path(s), "meta.db", large_sql), 0);
	end_large();
	CHECK(rows(s) >= LARGE / CHUNK);
	CHECK_EQ(damage_ask(store_path(s), "meta.db", large_sql), 1);
	stock_check_clean(s);
}

TEST(a_large_commit_waits_for_the_disk_without_the_lock)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("unlocked"), STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);

	put_large(b);
	prepare(s, false);
	begin_large(b);
	end_large();
	CHECK(syncs >= PIECES);
	CHECK_EQ(locked_syncs, 0);
	/* Names after chunks: all of them were on the disk before. */
	CHECK_EQ(s->synced[TABLE_CHUNKS], s->commits[TABLE_CHUNKS]);
	CHECK_EQ(s->synced[TABLE_META], s->commits[TABLE_META]);
}

/* --- commits go before pieces -------------------------------------------------------------- */

static void *commit_small(void *arg)
{
	small = true;
	stock_snapshot(arg, "small", "a text of its own");
	return NULL;
}

TEST(a_commit_that_came_before_a_piece_has_its_turn_first)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("order"), STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	pthread_t other;

	put_large(b);
	prepare(s, false);
	CHECK_EQ(pthread_create(&other, NULL, commit_small, s), 0);
	CHECK(await(&came));
	begin_large(b);
	/* It waits for the other; to have ended without it is wrong. */
	CHECK(await(&stopped));
	CHECK(yielded && !ended && syncs == 0);
	CHECK_EQ(pthread_join(other, NULL), 0);
	end_large();
	CHECK(stock_has_snapshot(s, "small"));
	stock_check_clean(s);
}

TEST(a_large_commit_without_names_waits_for_no_disk)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("nameless"), STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	static unsigned char data[CHUNK];
	struct object_id id;
	struct err err = { 0 };

	prepare(s, false);
	large = pthread_self();
	for (unsigned i = 0; i < 64; i++) {
		for (size_t k = 0; k < CHUNK; k += 2)
			data[k] = (unsigned char)((k * 2654435761u + i * 40503u) >> 7);
		CHECK_OK(batch_put(b, OBJECT_CHUNK, data, CHUNK, &id, &err), &err);
	}
	CHECK_OK(batch_commit(b, BATCH_SAFE, &err), &err);
	CHECK_EQ(syncs, 0);
	store = NULL;
}

TEST_MAIN("batch-pieces")
