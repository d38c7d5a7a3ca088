/*
 * Threads that put, share, delete, read, check and collect in one store.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "cowfs/store/ref.h"
#include "cowfs/store/root.h"
#include "cowfs/store/upkeep/gc.h"
#include "tests/crash/disk.h"
#include "tests/crash/specimen.h"
#include "tests/lib/test.h"

static struct test_rng rng;

static struct store *open_store(const char *name)
{
	struct err err = { 0 };
	struct store *s = NULL;

	CHECK_OK(store_open(test_path(name), STORE_CREATE, &s, &err), &err);
	return s;
}

#define LIVE_MAX    48
#define PUTTERS     2
#define PUTS        100 /* of each putter */
#define SHARED_PUTS 50
#define READERS     2
#define GRAFTS      8

/* A ref that is committed. */
struct live {
	uint64_t number;
	unsigned pins; /* threads that rely on it */
};

struct arena {
	struct store *s;
	uint64_t base;
	atomic_uint next_number, writers;
	atomic_uint reads, sweeps, checks, deletions;

	pthread_mutex_t lock; /* guards what follows */
	struct live live[LIVE_MAX];
	size_t n_live;
	struct err failure; /* the first */
	uint64_t grafted[GRAFTS];
	size_t n_grafted;
};

static struct arena arena = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Checks must not jump out of a thread, so failures are kept for the end. */
static void expect(int r, const struct err *err, const char *doing)
{
	if (r >= 0)
		return;
	pthread_mutex_lock(&arena.lock);
	if (arena.failure.code == 0)
		err_set(&arena.failure, r, "%s: %s", doing, err->code == r ? err->msg : "?");
	pthread_mutex_unlock(&arena.lock);
}

static bool failed(void)
{
	bool any;

	pthread_mutex_lock(&arena.lock);
	any = arena.failure.code != 0;
	pthread_mutex_unlock(&arena.lock);
	return any;
}

static uint64_t new_number(void)
{
	uint64_t n = arena.base + arena.next_number++;

	return n % 3 ? n | SPECIMEN_SMALL : n;
}

/* Wait for room: the deleter makes it. */
static void add_live(uint64_t number)
{
	for (;;) {
		bool added;

		pthread_mutex_lock(&arena.lock);
		added = arena.n_live < LIVE_MAX;
		if (added)
			arena.live[arena.n_live++] = (struct live){ .number = number };
		pthread_mutex_unlock(&arena.lock);
		if (added || failed())
			return;
		sched_yield();
	}
}

/* A random ref that stays until unpin(); false if there is none. */
static bool pin(struct test_rng *r, uint64_t *ret)
{
	bool any;

	pthread_mutex_lock(&arena.lock);
	any = arena.n_live > 0;
	if (any) {
		struct live *l = &arena.live[test_rand(r) % arena.n_live];

		l->pins++;
		*ret = l->number;
	}
	pthread_mutex_unlock(&arena.lock);
	return any;
}

static void unpin(uint64_t number)
{
	pthread_mutex_lock(&arena.lock);
	for (size_t i = 0; i < arena.n_live; i++)
		if (arena.live[i].number == number)
			arena.live[i].pins--;
	pthread_mutex_unlock(&arena.lock);
}

/* A random ref on which nobody relies, no longer among the live ones; false if there is none. */
static bool take_victim(struct test_rng *r, uint64_t *ret)
{
	bool taken = false;

	pthread_mutex_lock(&arena.lock);
	if (arena.n_live > LIVE_MAX / 2) {
		size_t i = test_rand(r) % arena.n_live;

		taken = arena.live[i].pins == 0;
		*ret = arena.live[i].number;
		if (taken)
			arena.live[i] = arena.live[--arena.n_live];
	}
	pthread_mutex_unlock(&arena.lock);
	return taken;
}

/* A new root over the directory of a ref that stays: objects that this batch never put. */
static int graft(struct batch *b, uint64_t number, struct err *err)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	char name[SPECIMEN_NAME_LEN + 1];
	struct root root;
	struct ref ref;
	int r;

	specimen_name(number, name);
	r = ref_get(arena.s, REF_SNAPSHOT, name, SPECIMEN_NAME_LEN, &ref, &hold, err);
	if (r >= 0)
		r = root_get(arena.s, &ref.root, &root, err);
	if (r < 0)
		return r;
	root.top.mtime_s = 12345;
	ref.kind = REF_TAG;
	r = root_put(b, &root, &ref.root, err);
	return r < 0 ? r : ref_put(b, &ref, REF_REPLACE, err);
}

static void graft_one(struct test_rng *r)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	struct err err = { 0 };
	uint64_t number;
	int res;

	if (!pin(r, &number))
		return;
	res = batch_begin(arena.s, &b, &err);
	if (res >= 0)
		res = graft(b, number, &err);
	if (res >= 0)
		res = batch_commit(b, BATCH_SAFE, &err);
	expect(res, &err, "grafting");
	batch_end(TAKE_PTR(b));
	unpin(number);
	pthread_mutex_lock(&arena.lock);
	if (arena.n_grafted < GRAFTS)
		arena.grafted[arena.n_grafted++] = number;
	pthread_mutex_unlock(&arena.lock);
}

static void *putter(void *arg)
{
	struct test_rng r = { *(uint64_t *)arg };

	for (unsigned i = 0; i < PUTS && !failed(); i++) {
		uint64_t number = new_number();
		struct err err = { 0 };

		expect(specimen_commit(arena.s, number, i % 2 ? BATCH_SAFE : BATCH_DURABLE, &err),
		       &err, "putting");
		add_live(number);
		if (i % 25 == 24)
			expect(store_checkpoint(arena.s, &err), &err, "moving the logs");
		if (i % (PUTTERS * PUTS / GRAFTS) == 3)
			graft_one(&r);
	}
	arena.writers--;
	return NULL;
}

struct half {
	struct batch *b;
	uint64_t number;
	struct object_id root;
};

static void *put_half(void *arg)
{
	struct half *h = arg;
	struct err err = { 0 };

	expect(specimen_put_tree(h->b, h->number, &h->root, &err), &err, "putting a half");
	return NULL;
}

/* Two threads, one batch. */
static int put_shared(struct half half[2], struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	pthread_t other;
	int r;

	r = batch_begin(arena.s, &b, err);
	if (r < 0)
		return r;
	half[0].b = half[1].b = b;
	r = -pthread_create(&other, NULL, put_half, &half[1]);
	if (r < 0)
		return r;
	put_half(&half[0]);
	pthread_join(other, NULL);
	if (failed())
		return 0;
	for (int i = 0; i < 2 && r >= 0; i++)
		r = specimen_put_ref(b, half[i].number, &half[i].root, err);
	return r < 0 ? r : batch_commit(b, BATCH_SAFE, err);
}

static void *sharer(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < SHARED_PUTS && !failed(); i++) {
		struct half half[2] = { { .number = new_number() }, { .number = new_number() } };
		struct err err = { 0 };

		expect(put_shared(half, &err), &err, "putting together");
		add_live(half[0].number);
		add_live(half[1].number);
	}
	arena.writers--;
	return NULL;
}

static void *deleter(void *arg)
{
	struct test_rng r = { *(uint64_t *)arg };

	while (arena.writers > 0 && !failed()) {
		struct err err = { 0 };
		uint64_t number;

		if (!take_victim(&r, &number)) {
			sched_yield();
			continue;
		}
		expect(specimen_remove(arena.s, number, &err), &err, "deleting");
		arena.deletions++;
	}
	return NULL;
}

static void *reader(void *arg)
{
	struct test_rng r = { *(uint64_t *)arg };

	while (arena.writers > 0 && !failed()) {
		struct err err = { 0 };
		uint64_t number;
		int found;

		if (!pin(&r, &number)) {
			sched_yield();
			continue;
		}
		found = specimen_find(arena.s, number, &err);
		expect(found == 0 ? -ENOENT : found, &err, "reading");
		unpin(number);
		arena.reads++;
	}
	return NULL;
}

/* One gc in small steps; one in eight is given up half way. */
static void collect(struct test_rng *r)
{
	CLEANUP(gc_end_p) struct gc *g = NULL;
	struct gc_progress progress;
	struct err err = { 0 };
	unsigned steps = 0, most = test_rand(r) % 8 ? UINT32_MAX : 20;
	int res;

	res = gc_begin(arena.s, &g, &err);
	if (res == -EBUSY) {
		sched_yield();
		return;
	}
	while (res >= 0 && steps++ < most) {
		res = gc_step(g, 1 + test_rand(r) % 8, &progress, &err);
		if (res == 0)
			break;
	}
	expect(res, &err, "collecting");
	if (res == 0 && progress.swept > 0)
		arena.sweeps++;
}

static void *collector(void *arg)
{
	struct test_rng r = { *(uint64_t *)arg };

	while (arena.writers > 0 && !failed())
		collect(&r);
	return NULL;
}

/* Now and then: a check keeps gc out while it lasts. */
static void *checker(void *arg)
{
	static const struct timespec pause = { .tv_nsec = 50 * 1000 * 1000 };

	(void)arg;
	while (arena.writers > 0 && !failed()) {
		struct err err = { 0 };
		int r = specimen_store_sound(arena.s, &err);

		if (r == -EBUSY) {
			sched_yield();
			continue;
		}
		expect(r, &err, "checking");
		arena.checks++;
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static void run_threads(void)
{
	static void *(*const roles[])(void *) = { putter, putter, sharer,    deleter,
						  reader, reader, collector, checker };
	pthread_t threads[ARRAY_LEN(roles)];
	uint64_t seeds[ARRAY_LEN(roles)];

	arena.writers = PUTTERS + 1;
	for (size_t i = 0; i < ARRAY_LEN(roles); i++) {
		seeds[i] = test_rand(&rng);
		CHECK_EQ(pthread_create(&threads[i], NULL, roles[i], &seeds[i]), 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(roles); i++)
		pthread_join(threads[i], NULL);
}

static void must_hold_graft(uint64_t number)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	char name[SPECIMEN_NAME_LEN + 1];
	struct err err = { 0 };
	struct ref ref;

	specimen_name(number, name);
	CHECK_OK(ref_get(arena.s, REF_TAG, name, SPECIMEN_NAME_LEN, &ref, &hold, &err), &err);
	CHECK_OK(specimen_verify(arena.s, number, &ref.root, &err), &err);
}

static int drop_tag(const struct ref *ref, void *b, struct err *err)
{
	return ref_delete(b, ref->kind, ref->name, ref->name_len, err);
}

static void drop_all(void)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	struct err err = { 0 };

	CHECK_OK(batch_begin(arena.s, &b, &err), &err);
	CHECK_OK(ref_each(arena.s, REF_TAG, NULL, 0, drop_tag, b, &err), &err);
	CHECK_OK(ref_each(arena.s, REF_SNAPSHOT, NULL, 0, drop_tag, b, &err), &err);
	CHECK_OK(batch_commit(b, BATCH_SAFE, &err), &err);
}

TEST(threads_that_put_share_delete_read_check_and_collect_lose_nothing)
{
	struct err err = { 0 };

	arena.s = open_store("arena");
	arena.base = test_rand(&rng) >> 8;
	run_threads();
	CHECK_OK(arena.failure.code, &arena.failure);
	printf("# %u reads, %u deletions, %u gcs that swept, %u checks\n", arena.reads,
	       arena.deletions, arena.sweeps, arena.checks);

	CHECK_OK(specimen_store_sound(arena.s, &err), &err);
	for (size_t i = 0; i < arena.n_live; i++) {
		CHECK_OK(specimen_find(arena.s, arena.live[i].number, &err), &err);
		CHECK_EQ(specimen_find(arena.s, arena.live[i].number, &err), 1);
	}
	for (size_t i = 0; i < arena.n_grafted; i++)
		must_hold_graft(arena.grafted[i]);
	drop_all();
	CHECK_OK(specimen_store_empties(arena.s, &err), &err);
	store_close(TAKE_PTR(arena.s));
	CHECK(arena.deletions > 0 && arena.sweeps > 0 && arena.reads > 0);
}

int main(void)
{
	rng.s = test_seed();
	disk_install();
	return test_run_all("race");
}
