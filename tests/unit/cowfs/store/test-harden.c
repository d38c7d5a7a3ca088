/*
 * Group commit: callers that wait for the disk at the same time share one sync.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include "cowfs/store/store-i.h"
#include "tests/lib/stock.h"

#define CALLERS 8

/* A disk that syncs when it is let, and fails when it must. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool held;        /* guarded by `lock`, as are the next */
static unsigned syncs;   /* that were begun */
static unsigned waiting; /* callers that wait for somebody else's */
static int failure;      /* of the next sync */
static struct store *store;

int __real_db_sync_log(struct db *db, struct err *err);
int __wrap_db_sync_log(struct db *db, struct err *err);
int __wrap_db_sync_log(struct db *db, struct err *err)
{
	int r;

	pthread_mutex_lock(&lock);
	syncs++;
	pthread_cond_broadcast(&changed);
	while (held)
		pthread_cond_wait(&changed, &lock);
	r = failure;
	failure = 0;
	pthread_mutex_unlock(&lock);
	return r < 0 ? err_set(err, r, "as the test has it") : __real_db_sync_log(db, err);
}

int __real_pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m);
int __wrap_pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m);
int __wrap_pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
	if (store && c == &store->sync_ended) {
		pthread_mutex_lock(&lock);
		waiting++;
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&lock);
	}
	return __real_pthread_cond_wait(c, m);
}

static void hold_disk(struct store *s)
{
	store = s;
	held = true;
	syncs = waiting = 0;
}

/* Or until somebody else syncs beside the one that is held, which is wrong. */
static void await(const unsigned *n, unsigned at_least)
{
	pthread_mutex_lock(&lock);
	while (*n < at_least && syncs < 2)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static void release_disk(int fails)
{
	pthread_mutex_lock(&lock);
	held = false;
	failure = fails;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

struct caller {
	pthread_t thread;
	char name[16];
	int r;
};

static void *harden(void *arg)
{
	struct caller *c = arg;
	struct err err = { 0 };

	c->r = store_harden(store, &err);
	return NULL;
}

/* Each commits something of its own and asks that it be on the disk. */
static void begin(struct caller *c, unsigned i)
{
	snprintf(c->name, sizeof(c->name), "s%u", i);
	stock_snapshot(store, c->name, c->name);
	CHECK_EQ(pthread_create(&c->thread, NULL, harden, c), 0);
}

TEST(callers_that_wait_for_the_disk_share_one_sync)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("shared"), STORE_CREATE);
	struct caller callers[CALLERS];

	hold_disk(s);
	begin(&callers[0], 0);
	await(&syncs, 1);
	for (unsigned i = 1; i < CALLERS; i++)
		begin(&callers[i], i);
	await(&waiting, CALLERS - 1);
	release_disk(0);
	for (unsigned i = 0; i < CALLERS; i++) {
		CHECK_EQ(pthread_join(callers[i].thread, NULL), 0);
		CHECK_EQ(callers[i].r, 0);
	}
	/* The first was under way when the others committed, so they need one more, and no other. */
	CHECK_EQ(syncs, 2);
	CHECK_EQ(s->synced[TABLE_META], s->commits[TABLE_META]);
	store = NULL;
}

TEST(a_sync_that_fails_is_no_answer_to_anybody)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("failed"), STORE_CREATE);
	struct caller callers[2];

	hold_disk(s);
	begin(&callers[0], 0);
	await(&syncs, 1);
	begin(&callers[1], 1);
	await(&waiting, 1);
	release_disk(-EIO);
	for (unsigned i = 0; i < 2; i++)
		CHECK_EQ(pthread_join(callers[i].thread, NULL), 0);
	CHECK_EQ(callers[0].r, -EIO);
	/* It syncs anew, or learns that the store refuses: never a success that nobody had. */
	CHECK(callers[1].r < 0 || syncs == 2);
	store = NULL;
}

TEST_MAIN("harden")
