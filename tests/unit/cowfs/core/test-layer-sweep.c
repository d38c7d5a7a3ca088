/*
 * Garbage that goes by itself: what a clone writes again and again does not fill the disk.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "cowfs/store/catalog.h"
#include "cowfs/store/upkeep/check.h"
#include "cowfs/store/upkeep/gc.h"
#include "tests/lib/damage.h"
#include "tests/lib/live.h"

#define MIB ((uint64_t)1 << 20)

static void fill_noise(uint8_t *data, size_t len, struct test_rng *rng)
{
	for (size_t i = 0; i + 8 <= len; i += 8) {
		uint64_t v = test_rand(rng);

		memcpy(data + i, &v, 8);
	}
}

static uint64_t stored(struct live *v)
{
	struct store_sizes sizes;
	struct err err = { 0 };

	CHECK_OK(store_sizes(v->store, &sizes, &err), &err);
	return sizes.chunk_bytes;
}

/* A MiB that is another each time. */
static int try_rewrite(struct live *v, const char *path, struct test_rng *rng)
{
	static uint8_t block[MIB];
	struct err err = { 0 };
	int r;

	fill_noise(block, sizeof(block), rng);
	r = live_try_write(v, path, 0, block, sizeof(block));
	return r < 0 ? r : layer_sync(v->l, LAYER_ROOT, &err);
}

static void rewrite(struct live *v, const char *path, struct test_rng *rng)
{
	CHECK_EQ(try_rewrite(v, path, rng), 0);
}

static void check_store_is_sound(struct live *v)
{
	CLEANUP(check_report_done) struct check_report report = { 0 };
	struct err err = { 0 };

	CHECK_OK(check_store(v->store, NULL, NULL, &report, &err), &err);
	CHECK_EQ(report.n_findings, 0);
}

TEST(who_has_a_limit_leaves_no_more_garbage_than_that)
{
	CLEANUP(live_close) struct live v = { .options.garbage_min = 4 * MIB,
					      .options.persist_ms = 1000000 };
	struct test_rng rng = { .s = 3 };
	struct layers_stats stats;

	live_open(&v, "limit");
	layer_set_ceiling(v.l, 2 * MIB);
	live_put(&v, "f", "");
	for (int i = 0; i < 60; i++) {
		rewrite(&v, "f", &rng);
		/* What the sweep under way has not taken yet, as much since it began, and the file. */
		CHECK(stored(&v) <= 10 * MIB);
	}
	layers_stats(v.layers, &stats);
	CHECK(stats.sweeps >= 8);
	CHECK(stats.sweeps <= 15); /* one for each 4 MiB, not two */
	check_store_is_sound(&v);
}

/* A hostile clone with a small limit must not make the daemon read a large store all the time. */
TEST(the_larger_the_store_the_fewer_sweeps)
{
	CLEANUP(live_close) struct live v = { .options.garbage_min = MIB,
					      .options.persist_ms = 1000000 };
	CLEANUP(batch_end_p) struct batch *b = NULL;
	struct test_rng rng = { .s = 8 };
	struct layers_stats before, after;
	struct err err = { 0 };
	struct object_id root;
	char name[16];

	live_open(&v, "large");
	for (int i = 0; i < 64; i++) {
		snprintf(name, sizeof(name), "kept%d", i);
		live_put(&v, name, "");
		rewrite(&v, name, &rng);
	}
	root = live_persist(&v);
	b = stock_begin(v.store);
	stock_name(b, REF_SNAPSHOT, "kept", &root, REF_REPLACE);
	stock_commit(b);
	for (int i = 0; i < 64; i++) {
		snprintf(name, sizeof(name), "kept%d", i);
		CHECK_EQ(live_try_unlink(&v, name), 0);
	}
	CHECK_OK(store_checkpoint(v.store, &err), &err);
	layer_set_ceiling(v.l, 2 * MIB);
	live_put(&v, "f", "");
	layers_stats(v.layers, &before);
	for (int i = 0; i < 60; i++)
		rewrite(&v, "f", &rng);
	layers_stats(v.layers, &after);
	CHECK(after.sweeps - before.sweeps >= 4);
	CHECK(after.sweeps - before.sweeps <=
	      15); /* for each sixteenth of 64 MiB, not for each 2 */
	CHECK(stored(&v) <= (64 + 8) * MIB);
	check_store_is_sound(&v);
}

TEST(without_one_it_goes_when_nothing_else_is_to_be_done)
{
	CLEANUP(live_close) struct live v = { .options.garbage_min = 8 * MIB,
					      .options.persist_ms = 50 };
	struct test_rng rng = { .s = 4 };

	live_open(&v, "idle");
	live_put(&v, "f", "");
	for (int i = 0; i < 20; i++)
		rewrite(&v, "f", &rng);
	WAIT_FOR(stored(&v) <= 9 * MIB);
	check_store_is_sound(&v);
}

/* It was there at the last gc, so nothing of it is new. */
TEST(what_is_removed_goes_though_nothing_was_appended)
{
	CLEANUP(live_close) struct live v = { .options.garbage_min = 8 * MIB,
					      .options.persist_ms = 50 };
	struct test_rng rng = { .s = 9 };
	struct layers_stats stats;
	char name[16];

	live_open(&v, "removed");
	for (int i = 0; i < 12; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		live_put(&v, name, "");
		rewrite(&v, name, &rng);
	}
	/* All that was appended is accounted for. */
	do {
		usleep(200000);
		layers_stats(v.layers, &stats);
	} while (stats.sweeps == 0);
	CHECK(stored(&v) >= 12 * MIB);
	for (int i = 0; i < 12; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		CHECK_EQ(live_try_unlink(&v, name), 0);
	}
	live_persist(&v);
	WAIT_FOR(stored(&v) <= MIB);
	check_store_is_sound(&v);
}

/* What a removed clone had in memory is not kept for nobody, be it ever so little. */
TEST(a_sweep_leaves_nothing_of_it_in_the_cache)
{
	CLEANUP(live_close) struct live v = { .options.garbage_min = 4 * MIB,
					      .options.persist_ms = 50 };
	struct test_rng rng = { .s = 6 };
	struct layers_stats stats;
	char name[16];

	live_open(&v, "cached");
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		live_put(&v, name, name);
	}
	for (int i = 0; i < 4; i++)
		rewrite(&v, "f0", &rng);
	layers_stats(v.layers, &stats);
	CHECK(stats.cache.meta_bytes > 0);
	do {
		usleep(1000);
		layers_stats(v.layers, &stats);
	} while (stats.sweeps == 0 || stats.cache.meta_bytes + stats.cache.chunk_bytes > 0);
}

TEST(what_somebody_names_or_has_open_stays)
{
	CLEANUP(live_close) struct live v = { .options.garbage_min = 4 * MIB,
					      .options.persist_ms = 20 };
	CLEANUP(buf_done) struct buf open_one = BUF_INIT, bytes = BUF_INIT, named = BUF_INIT;
	CLEANUP(layer_changes_done) struct layer_changes changes = { 0 };
	CLEANUP(batch_end_p) struct batch *b = NULL;
	struct test_rng rng = { .s = 5 };
	struct object_id root;
	struct err err = { 0 };
	uint64_t node;

	live_open(&v, "named");
	layer_set_ceiling(v.l, 4 * MIB);
	live_put(&v, "f", "");
	live_put(&v, "gone", "");
	rewrite(&v, "f", &rng);
	rewrite(&v, "gone", &rng);
	live_get(&v, "gone", &open_one);
	live_get(&v, "f", &named);
	root = live_persist(&v);
	b = stock_begin(v.store);
	stock_name(b, REF_SNAPSHOT, "kept", &root, REF_REPLACE);
	stock_commit(b);
	node = live_hold(&v, "gone");
	CHECK_EQ(live_try_unlink(&v, "gone"), 0);
	for (int i = 0; i < 30; i++)
		rewrite(&v, "f", &rng);
	live_get_node(&v, node, &bytes);
	CHECK_MEM(bytes.data, bytes.len, open_one.data, open_one.len);
	live_drop(&v, node);
	CHECK_OK(live_roll_back(v.l, &root, NULL, NULL, &changes, &err), &err);
	buf_reset(&bytes);
	live_get(&v, "f", &bytes);
	CHECK_MEM(bytes.data, bytes.len, named.data, named.len);
	check_store_is_sound(&v);
}

/* A persist that is under way until the test ends it. */
struct long_persist {
	struct layer *l;
	_Atomic bool begun, end;
};

static int last_long(struct batch *b, const struct layer_state *state, void *ctx, struct err *err)
{
	struct long_persist *p = ctx;

	p->begun = true;
	while (!p->end)
		usleep(1000);
	return 0;
}

static void *persist_for_long(void *ctx)
{
	struct long_persist *p = ctx;
	struct layer_state state;
	struct err err = { 0 };

	CHECK_OK(layer_persist(p->l, BATCH_SAFE, last_long, p, &state, &err), &err);
	return NULL;
}

static void put_clone(struct live *v, char *name)
{
	const struct clone clone = { .name = name, .root = live_persist(v) };
	struct batch *b = stock_begin(v->store);
	struct err err = { 0 };

	CHECK_OK(clone_put(b, &clone, REF_NEW, &err), &err);
	stock_commit(b);
	batch_end(b);
}

/* Else the mount would seem to hang, and be ended. */
TEST(an_fsync_does_not_wait_for_ever)
{
	CLEANUP(live_close) struct live v = { .options.garbage_min = 4 * MIB,
					      .options.persist_ms = 1,
					      .options.sweep_ms = 20 };
	struct live other = { 0 };
	struct test_rng rng = { .s = 7 };
	struct long_persist p = { 0 };
	struct err err = { 0 };
	pthread_t thread;

	live_open(&v, "long");
	layer_set_ceiling(v.l, 4 * MIB);
	live_put(&v, "f", "");
	other = v;
	put_clone(&v, (char[]){ "other" });
	CHECK_OK(layer_open(v.layers, "other", &other.l, &err), &err);
	p.l = other.l;
	CHECK_EQ(pthread_create(&thread, NULL, persist_for_long, &p), 0);
	WAIT_FOR(p.begun);
	/* Once it is due, the committer waits for its turn. */
	live_put(&other, "g", "");
	for (int i = 0; i < 12; i++)
		rewrite(&v, "f", &rng);
	p.end = true;
	pthread_join(thread, NULL);
	layer_discard(other.l);
	check_store_is_sound(&v);
}

/* As often as it can, while no gc can be done: what it leaves has an end. */
static void rewrite_until_refused(struct live *v, struct test_rng *rng)
{
	int r = 0;

	for (int i = 0; i < 60 && r == 0; i++)
		r = try_rewrite(v, "f", rng);
	CHECK_EQ(r, -ENOSPC);
	CHECK(stored(v) >= 16 * MIB); /* four times what causes a gc */
	CHECK(stored(v) <= 20 * MIB);
	/* Nor by what the committer persists, or by names alone. */
	for (int i = 0; i < 60; i++)
		CHECK_EQ(try_rewrite(v, "f", rng), -ENOSPC);
	CHECK_EQ(live_try_make(v, "other", S_IFREG | 0644), -ENOSPC);
	CHECK(stored(v) <= 20 * MIB);
}

TEST(what_no_gc_can_remove_now_has_an_end)
{
	CLEANUP(live_close) struct live v = { .options.garbage_min = 4 * MIB,
					      .options.persist_ms = 5,
					      .options.sweep_ms = 20 };
	struct test_rng rng = { .s = 10 };
	struct err err = { 0 };
	struct gc *g = NULL;

	live_open(&v, "busy");
	layer_set_ceiling(v.l, 2 * MIB);
	live_put(&v, "f", "");
	/* As a long `check`: the gc of the committer has to wait. */
	CHECK_OK(gc_begin(v.store, &g, &err), &err);
	rewrite_until_refused(&v, &rng);
	gc_end(g);
	/* The first attempts ask for a gc, and need not wait for it. */
	WAIT_FOR(try_rewrite(&v, "f", &rng) == 0);
	for (int i = 0; i < 20; i++)
		rewrite(&v, "f", &rng);
	CHECK(stored(&v) <= 10 * MIB);
	check_store_is_sound(&v);
}

/* A tree that cannot be read hides what it reaches, so nothing is removed. */
TEST(garbage_that_a_damaged_store_keeps_has_an_end)
{
	CLEANUP(live_close) struct live v = { .options.garbage_min = 4 * MIB,
					      .options.persist_ms = 5,
					      .options.sweep_ms = 20 };
	CLEANUP(batch_end_p) struct batch *b = NULL;
	struct test_rng rng = { .s = 11 };
	struct object_id root;

	live_open(&v, "damaged");
	live_put(&v, "kept", "");
	root = live_persist(&v);
	b = stock_begin(v.store);
	stock_name(b, REF_SNAPSHOT, "kept", &root, REF_REPLACE);
	stock_commit(b);
	live_put(&v, "f", "");
	layer_set_ceiling(v.l, 2 * MIB);
	damage_object(store_path(v.store), OBJECT_TREE, &root);
	rewrite_until_refused(&v, &rng);
}

static uint64_t stored_after_sync(struct live *v)
{
	struct err err = { 0 };

	CHECK_OK(layer_sync(v->l, LAYER_ROOT, &err), &err);
	return stored(v);
}

TEST(what_a_failed_gc_leaves_is_removed_by_the_next)
{
	CLEANUP(live_close) struct live v = { .options.garbage_min = 4 * MIB,
					      .options.persist_ms = 1000000,
					      .options.sweep_ms = 20 };
	struct test_rng rng = { .s = 12 };
	struct layers_stats stats;
	struct err err = { 0 };
	struct gc *g = NULL;

	live_open(&v, "later");
	layer_set_ceiling(v.l, 2 * MIB);
	live_put(&v, "f", "");
	CHECK_OK(gc_begin(v.store, &g, &err), &err);
	for (int i = 0; i < 6; i++)
		rewrite(&v, "f", &rng);
	WAIT_FOR((layers_stats(v.layers, &stats), stats.sweeps > 0));
	gc_end(g);
	/* Nothing more is written. */
	WAIT_FOR(stored_after_sync(&v) <= 2 * MIB);
}

struct keeper {
	struct store *store;
	_Atomic bool stop;
	unsigned gcs;
};

static void *gc_all_the_time(void *ctx)
{
	struct keeper *k = ctx;
	struct gc_progress progress;
	struct err err = { 0 };

	while (!k->stop) {
		CHECK_OK(gc_run(k->store, &progress, &err), &err);
		k->gcs++;
	}
	return NULL;
}

TEST(who_wants_a_gc_of_his_own_has_it)
{
	CLEANUP(live_close) struct live v = { .options.garbage_min = MIB, .options.persist_ms = 1 };
	struct test_rng rng = { .s = 6 };
	struct keeper k = { 0 };
	pthread_t thread;

	live_open(&v, "own");
	layer_set_ceiling(v.l, 2 * MIB);
	k.store = v.store;
	CHECK_EQ(pthread_create(&thread, NULL, gc_all_the_time, &k), 0);
	live_put(&v, "f", "");
	for (int i = 0; i < 60; i++)
		rewrite(&v, "f", &rng);
	k.stop = true;
	pthread_join(thread, NULL);
	CHECK(k.gcs > 0);
	check_store_is_sound(&v);
}

TEST_MAIN("layer-sweep")
