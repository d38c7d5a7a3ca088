/*
 * Several threads on one layer, with a committer that never rests, syncs, and rollbacks; and the
 * order in which they have their turns.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "cowfs/core/persist-i.h"
#include "tests/lib/live.h"

#define THREADS 4
#define ROUNDS  150

struct worker {
	struct live *v;
	unsigned number;
	pthread_t thread;
	bool failed;
};

static bool put_and_look(struct worker *w, unsigned i)
{
	char dir[32], path[64], text[64];
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;

	snprintf(dir, sizeof(dir), "t%u", w->number);
	snprintf(path, sizeof(path), "t%u/f%u", w->number, i % 17);
	snprintf(text, sizeof(text), "%u wrote %u", w->number, i);
	IGNORE_RESULT(live_try_make(w->v, dir, S_IFDIR | 0755), "may be there");
	IGNORE_RESULT(live_try_make(w->v, path, S_IFREG | 0644), "may be there");
	if (live_try_truncate(w->v, path, 0) < 0 ||
	    live_try_write(w->v, path, 0, text, strlen(text)) < 0)
		return false;
	live_get(w->v, path, &bytes);
	return bytes.len == strlen(text) && memcmp(bytes.data, text, bytes.len) == 0;
}

/* In a directory that all share, where anything may fail but nothing may break. */
static void quarrel(struct worker *w, unsigned i)
{
	char a[32], b[32];

	snprintf(a, sizeof(a), "shared/%u", i % 5);
	snprintf(b, sizeof(b), "shared/%u", (i + w->number) % 5);
	IGNORE_RESULT(live_try_make(w->v, a, S_IFREG | 0644), "may be there");
	IGNORE_RESULT(live_try_write(w->v, a, i * 1000, "x", 1), "may be gone");
	IGNORE_RESULT(live_try_rename(w->v, a, b, i % 3), "may be refused");
	IGNORE_RESULT(live_try_link(w->v, b, a), "likewise");
	IGNORE_RESULT(live_try_unlink(w->v, b), "likewise");
	free(live_names(w->v, "shared"));
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct err err = { 0 };

	for (unsigned i = 0; i < ROUNDS && !w->failed; i++) {
		if (!put_and_look(w, i))
			w->failed = true;
		quarrel(w, i);
		if (i % 16 == w->number && layer_sync(w->v->l, LAYER_ROOT, &err) < 0)
			w->failed = true;
	}
	return NULL;
}

static void run_workers(struct live *v)
{
	struct worker workers[THREADS];

	for (unsigned i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ .v = v, .number = i };
		CHECK_EQ(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		CHECK_EQ(pthread_join(workers[i].thread, NULL), 0);
		CHECK(!workers[i].failed);
	}
}

TEST(threads_see_what_they_wrote_and_all_of_it_is_stored)
{
	CLEANUP(buf_done) struct buf before = BUF_INIT, after = BUF_INIT;
	CLEANUP(live_close) struct live v = { .options.persist_ms = 1 };

	live_open(&v, "threads");
	live_mkdir(&v, "shared");
	run_workers(&v);
	live_dump(&v, &before, true);
	live_reopen(&v);
	live_dump(&v, &after, true);
	CHECK_STR((char *)after.data, (char *)before.data);
	stock_check_clean(v.store);
}

struct roller {
	struct live *v;
	struct object_id root;
	bool stop;
	int r;
	struct err err;
};

static void *roll(void *arg)
{
	struct roller *ro = arg;

	while (!__atomic_load_n(&ro->stop, __ATOMIC_ACQUIRE) && ro->r >= 0) {
		CLEANUP(layer_changes_done) struct layer_changes changes = { 0 };

		ro->r = live_roll_back(ro->v->l, &ro->root, NULL, NULL, &changes, &ro->err);
	}
	return NULL;
}

static void *quarrel_only(void *arg)
{
	struct worker *w = arg;

	for (unsigned i = 0; i < ROUNDS; i++)
		quarrel(w, i);
	return NULL;
}

TEST(rollbacks_beside_changes_break_nothing)
{
	CLEANUP(buf_done) struct buf before = BUF_INIT, after = BUF_INIT;
	CLEANUP(live_close) struct live v = { .options.persist_ms = 1 };
	CLEANUP(layer_changes_done) struct layer_changes changes = { 0 };
	struct worker workers[THREADS];
	struct roller roller = { .v = &v };
	struct err err = { 0 };
	pthread_t thread;

	live_open(&v, "rollers");
	live_mkdir(&v, "shared");
	live_put(&v, "shared/0", "zero");
	roller.root = live_persist(&v);
	{
		CLEANUP(batch_end_p) struct batch *b = stock_begin(v.store);

		stock_name(b, REF_SNAPSHOT, "back", &roller.root, REF_NEW);
		stock_commit(b);
	}
	live_dump(&v, &before, true);
	CHECK_EQ(pthread_create(&thread, NULL, roll, &roller), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ .v = &v, .number = i };
		CHECK_EQ(pthread_create(&workers[i].thread, NULL, quarrel_only, &workers[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(workers[i].thread, NULL), 0);
	__atomic_store_n(&roller.stop, true, __ATOMIC_RELEASE);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_OK(roller.r, &roller.err);
	CHECK_OK(live_roll_back(v.l, &roller.root, NULL, NULL, &changes, &err), &err);
	live_dump(&v, &after, true);
	CHECK_STR((char *)after.data, (char *)before.data);
	stock_check_clean(v.store);
}

/* --- turns ------------------------------------------------------------------------------ */

#define SYNCERS 8

struct asker {
	struct live *v;
	pthread_t thread;
	int r;
	struct err err;
};

static void *look_once(void *arg)
{
	struct asker *a = arg;
	struct layer_state state;

	a->r = layer_look(a->v->l, NULL, NULL, &state, &a->err);
	return NULL;
}

static void *sync_once(void *arg)
{
	struct asker *a = arg;

	a->r = layer_sync(a->v->l, LAYER_ROOT, &a->err);
	return NULL;
}

static void ask(struct asker *a, struct live *v, void *(*fn)(void *))
{
	*a = (struct asker){ .v = v };
	CHECK_EQ(pthread_create(&a->thread, NULL, fn, a), 0);
}

static void take_turn(struct live *v)
{
	pthread_mutex_lock(&v->l->lock);
	layer_take_turn(v->l);
	pthread_mutex_unlock(&v->l->lock);
}

static void end_turn(struct live *v)
{
	pthread_mutex_lock(&v->l->lock);
	layer_end_turn(v->l);
	pthread_mutex_unlock(&v->l->lock);
}

static void await_waiting(const struct live *v, unsigned n)
{
	WAIT_FOR(v->l->waiting >= n);
}

static void join(struct asker *a)
{
	CHECK_EQ(pthread_join(a->thread, NULL), 0);
	CHECK_OK(a->r, &a->err);
}

TEST(turns_come_in_the_order_in_which_they_were_asked_for)
{
	CLEANUP(live_close) struct live v = { 0 };
	struct asker looker;
	uint64_t looks;

	live_open(&v, "turns");
	take_turn(&v);
	ask(&looker, &v, look_once);
	await_waiting(&v, 1);
	/* Whoever ends his turn and asks at once for the next is behind the one that waits. */
	pthread_mutex_lock(&v.l->lock);
	layer_end_turn(v.l);
	layer_take_turn(v.l);
	pthread_mutex_unlock(&v.l->lock);
	looks = v.l->freezes;
	end_turn(&v);
	join(&looker);
	CHECK_EQ(looks, 1);
}

TEST(syncs_that_wait_for_a_turn_share_one_persist)
{
	CLEANUP(live_close) struct live v = { .options.persist_ms = 1000 * 1000 };
	struct asker first, syncers[SYNCERS];
	struct layers_stats before, after;

	live_open(&v, "shared-turn");
	live_put(&v, "a", "text");
	take_turn(&v);
	for (unsigned i = 0; i < SYNCERS; i++)
		ask(&syncers[i], &v, sync_once);
	await_waiting(&v, SYNCERS);
	ask(&first, &v, look_once);
	await_waiting(&v, SYNCERS + 1);
	layers_stats(v.layers, &before);
	end_turn(&v);
	for (unsigned i = 0; i < SYNCERS; i++)
		join(&syncers[i]);
	join(&first);
	layers_stats(v.layers, &after);
	CHECK_EQ(after.persists - before.persists, 1);
}

TEST_MAIN("layer-threads")
