/* A view of a root that becomes a clone later. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/xattr.h>
#include <time.h>

#include "cowfs/store/catalog.h"
#include "tests/lib/live.h"

static const struct layer_call call = { .uid = 1000, .gid = 1000, .may_wait = true };

/* Name what the layer shows, as a snapshot. */
static struct object_id save(struct live *v, const char *name)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	struct object_id root = live_persist(v);

	b = stock_begin(v->store);
	stock_name(b, REF_SNAPSHOT, name, &root, REF_REPLACE);
	stock_commit(b);
	return root;
}

static void put_clone(struct live *v, const char *name, const struct object_id *root)
{
	CLEANUP(batch_end_p) struct batch *b = stock_begin(v->store);
	AUTO_FREE char *own = strdup(name);
	const struct clone clone = { .name = own, .root = *root, .quota = 1 << 20 };
	struct err err = { 0 };

	CHECK_OK(clone_put(b, &clone, REF_REPLACE, &err), &err);
	stock_commit(b);
}

/* One beside `v`, in the same store. */
static struct live open_warm(struct live *v, const struct object_id *root)
{
	struct live warm = { .store = v->store, .layers = v->layers };
	struct err err = { 0 };

	CHECK_OK(layer_open_warm(v->layers, root, &warm.l, &err), &err);
	return warm;
}

static struct object_id fill(struct live *v, const char *name)
{
	live_open(v, name);
	live_mkdir(v, "d");
	live_put(v, "d/f", "hello");
	live_put(v, "a", "one name");
	CHECK_EQ(live_try_link(v, "a", "d/b"), 0);
	return save(v, "base");
}

TEST(a_warm_clone_shows_its_root_and_nothing_in_it_can_be_changed)
{
	CLEANUP(live_close) struct live v = { 0 };
	const struct object_id root = fill(&v, "shows");
	struct live warm = open_warm(&v, &root);
	const uint64_t f = live_hold(&warm, "d/f");
	struct layer_found found;
	struct layers_stats stats;
	struct stat st;

	live_put(&v, "d/f", "the clone goes on");
	CHECK(live_has(&warm, "d/f", "hello") && live_has(&warm, "d/b", "one name"));
	CHECK_EQ(live_try_make(&warm, "new", S_IFREG | 0644), -EROFS);
	CHECK_EQ(live_try_symlink(&warm, "x", "new"), -EROFS);
	CHECK_EQ(live_try_write(&warm, "d/f", 0, "x", 1), -EROFS);
	CHECK_EQ(live_try_truncate(&warm, "d/f", 0), -EROFS);
	CHECK_EQ(live_try_unlink(&warm, "d/f"), -EROFS);
	CHECK_EQ(live_try_rmdir(&warm, "d"), -EROFS);
	CHECK_EQ(live_try_rename(&warm, "a", "c", 0), -EROFS);
	CHECK_EQ(live_try_link(&warm, "a", "c"), -EROFS);
	CHECK_EQ(layer_make_nameless(warm.l, &call, LAYER_ROOT, 0600, &found, NULL), -EROFS);
	CHECK_EQ(layer_setattr(warm.l, &call, f, &st, LAYER_SET_MTIME, &st, NULL), -EROFS);
	CHECK_EQ(layer_allocate(warm.l, &call, f, 0, 0, 10, NULL), -EROFS);
	CHECK_EQ(layer_setxattr(warm.l, &call, f, "user.x", "x", 1, 0, NULL), -EROFS);
	CHECK_EQ(layer_copy(warm.l, &call, f, 0, f, 10, 1, NULL), -EROFS);
	CHECK_EQ(layer_sync(warm.l, LAYER_ROOT, NULL), 0);
	live_persist(&v);
	layers_stats(v.layers, &stats);
	CHECK_EQ(stats.dirty, 0);
	CHECK(live_has(&warm, "d/f", "hello"));
	live_drop(&warm, f);
	layer_discard(warm.l);
}

TEST(an_adopted_warm_clone_is_the_clone_with_what_is_known_of_it)
{
	CLEANUP(live_close) struct live v = { 0 };
	const struct object_id root = fill(&v, "adopted");
	struct live warm = open_warm(&v, &root);
	const uint64_t f = live_hold(&warm, "d/f");
	struct layer_usage usage;
	struct err err = { 0 };
	struct layer *again;

	put_clone(&v, "second", &root);
	CHECK_OK(layer_adopt(warm.l, "second", &err), &err);
	CHECK_STR(layer_name(warm.l), "second");
	layer_usage(warm.l, &usage);
	CHECK_EQ(usage.quota, 1 << 20);
	CHECK_EQ(live_hold(&warm, "d/f"), f);
	CHECK_EQ(layer_open(v.layers, "second", &again, &err), -EBUSY);
	CHECK_EQ(live_try_write(&warm, "d/f", 0, "HELLO", 5), 0);
	live_put(&warm, "new", "made here");
	CHECK(live_stat(&warm, "new").st_ino > live_stat(&v, "d/f").st_ino);
	live_drop(&warm, f);
	live_drop(&warm, f);
	CHECK_OK(layer_close(warm.l, &err), &err);

	CHECK_OK(layer_open(v.layers, "second", &warm.l, &err), &err);
	CHECK(live_has(&warm, "d/f", "HELLO") && live_has(&warm, "new", "made here"));
	CHECK(live_has(&v, "d/f", "hello"));
	layer_discard(warm.l);
	stock_check_clean(v.store);
}

TEST(a_clone_that_is_another_or_open_is_not_adopted)
{
	CLEANUP(live_close) struct live v = { 0 };
	const struct object_id root = fill(&v, "other");
	struct live warm = open_warm(&v, &root);
	struct err err = { 0 };
	struct object_id later;

	CHECK_EQ(layer_adopt(warm.l, "nobody", &err), -ENOENT);
	CHECK_HAS(err.msg, "nobody");
	CHECK_EQ(layer_adopt(warm.l, "work", &err), -EBUSY);
	live_put(&v, "d/f", "later");
	later = save(&v, "later");
	put_clone(&v, "second", &later);
	CHECK_EQ(layer_adopt(warm.l, "second", &err), -ESTALE);
	CHECK_EQ(live_try_make(&warm, "new", S_IFREG | 0644), -EROFS);
	CHECK(live_has(&warm, "d/f", "hello"));

	put_clone(&v, "second", &root);
	CHECK_OK(layer_adopt(warm.l, "second", &err), &err);
	layer_discard(warm.l);
}

TEST(several_warm_clones_of_one_root_do_not_know_each_other)
{
	CLEANUP(live_close) struct live v = { 0 };
	const struct object_id root = fill(&v, "several");
	struct live a = open_warm(&v, &root), b = open_warm(&v, &root);
	struct err err = { 0 };

	put_clone(&v, "first", &root);
	put_clone(&v, "second", &root);
	CHECK_OK(layer_adopt(a.l, "first", &err), &err);
	CHECK_EQ(layer_adopt(b.l, "first", &err), -EBUSY);
	CHECK_OK(layer_adopt(b.l, "second", &err), &err);
	live_put(&a, "d/f", "in the first");
	CHECK(live_has(&b, "d/f", "hello"));
	layer_discard(a.l);
	layer_discard(b.l);
}

TEST(a_gc_leaves_the_root_of_a_warm_clone_until_that_is_gone)
{
	CLEANUP(live_close) struct live v = { 0 };
	const struct object_id root = fill(&v, "gc");
	struct live warm = open_warm(&v, &root);
	struct err err = { 0 };
	uint64_t rows;

	CHECK_EQ(live_try_unlink(&v, "d/f"), 0);
	live_persist(&v);
	stock_drop(v.store, "base");
	stock_gc(v.store);
	rows = stock_rows(v.store);
	CHECK(live_has(&warm, "d/f", "hello"));

	put_clone(&v, "second", &root);
	CHECK_OK(layer_adopt(warm.l, "second", &err), &err);
	stock_gc(v.store);
	CHECK_EQ(stock_rows(v.store), rows);
	CHECK_OK(layer_close(warm.l, &err), &err);
	stock_check_clean(v.store);

	warm = open_warm(&v, &root);
	{
		CLEANUP(batch_end_p) struct batch *b = stock_begin(v.store);

		CHECK_OK(ref_delete(b, REF_CLONE, "second", strlen("second"), &err), &err);
		stock_commit(b);
	}
	stock_gc(v.store);
	CHECK_EQ(stock_rows(v.store), rows);
	layer_discard(warm.l);
	stock_gc(v.store);
	CHECK(stock_rows(v.store) < rows);
}

/* --- with many nodes ------------------------------------------------------------------------ */

/* What the linker puts in its place (--wrap): others than the test's thread wait while they are held. */
void __real_layer_destroy(struct layer *l);
void __wrap_layer_destroy(struct layer *l);

static struct {
	pthread_mutex_t lock;
	pthread_cond_t freed;
	pthread_t test;
	bool held;
} others = { .lock = PTHREAD_MUTEX_INITIALIZER, .freed = PTHREAD_COND_INITIALIZER };

void __wrap_layer_destroy(struct layer *l)
{
	pthread_mutex_lock(&others.lock);
	while (others.held && !pthread_equal(pthread_self(), others.test))
		pthread_cond_wait(&others.freed, &others.lock);
	pthread_mutex_unlock(&others.lock);
	__real_layer_destroy(l);
}

static void hold_others(bool held)
{
	pthread_mutex_lock(&others.lock);
	others.test = pthread_self();
	others.held = held;
	pthread_cond_broadcast(&others.freed);
	pthread_mutex_unlock(&others.lock);
}

#define MANY 600 /* more than closing one waits for */

static struct object_id fill_many(struct live *v, const char *name)
{
	char path[32];

	live_open(v, name);
	for (int i = 0; i < MANY; i++) {
		snprintf(path, sizeof(path), "%d", i);
		live_put(v, path, path);
	}
	return save(v, "base");
}

static struct live open_known(struct live *v, const struct object_id *root)
{
	struct live warm = open_warm(v, root);
	char path[32];

	for (int i = 0; i < MANY; i++) {
		snprintf(path, sizeof(path), "%d", i);
		live_hold(&warm, path);
	}
	return warm;
}

static uint64_t count_nodes(struct live *v)
{
	struct layers_stats stats;

	layers_stats(v->layers, &stats);
	return stats.nodes;
}

TEST(the_memory_of_a_large_one_is_freed_after_it_was_closed)
{
	CLEANUP(live_close) struct live v = { 0 };
	const struct object_id root = fill_many(&v, "large");
	const uint64_t own = count_nodes(&v);
	const struct timespec moment = { .tv_nsec = 1000000 };

	hold_others(true);
	for (int i = 0; i < 20; i++) {
		struct live warm = open_known(&v, &root);

		CHECK(count_nodes(&v) >= own + MANY);
		layer_discard(warm.l);
		CHECK(count_nodes(&v) <= own + MANY + 2); /* and not of two of them */
	}
	CHECK(count_nodes(&v) >= own + MANY);
	hold_others(false);
	while (count_nodes(&v) > own)
		nanosleep(&moment, NULL);
	layer_discard(open_known(&v, &root).l); /* and all ends at once */
}

TEST(what_a_large_one_pinned_is_free_when_it_was_closed)
{
	CLEANUP(live_close) struct live v = { 0 };
	const struct object_id root = fill_many(&v, "large-gc");
	struct live warm = open_known(&v, &root);
	uint64_t rows;

	for (int i = 0; i < MANY; i++) {
		char path[32];

		snprintf(path, sizeof(path), "%d", i);
		CHECK_EQ(live_try_unlink(&v, path), 0);
	}
	live_persist(&v);
	stock_drop(v.store, "base");
	stock_gc(v.store);
	rows = stock_rows(v.store);
	hold_others(true);
	layer_discard(warm.l);
	stock_gc(v.store);
	CHECK(stock_rows(v.store) < rows);
	hold_others(false);
}

TEST(a_large_one_that_was_changed_leaves_no_dirty_memory_when_it_was_closed)
{
	CLEANUP(live_close) struct live v = { 0 };
	const struct object_id root = fill_many(&v, "large-dirty");
	const uint64_t own = count_nodes(&v);
	struct live warm = open_known(&v, &root);
	struct layers_stats stats;
	struct err err = { 0 };

	put_clone(&v, "second", &root);
	CHECK_OK(layer_adopt(warm.l, "second", &err), &err);
	live_put(&warm, "7", "dirty");
	layers_stats(v.layers, &stats);
	CHECK(stats.dirty > 0);
	hold_others(true);
	layer_discard(warm.l);
	layers_stats(v.layers, &stats);
	CHECK_EQ(stats.dirty, 0);
	CHECK_EQ(stats.nodes, own);
	hold_others(false);
}

TEST_MAIN("layer-warm")
