/* A view of a root that becomes a clone later. */
#include <errno.h>
#include <sys/xattr.h>

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
static struct live open_spare(struct live *v, const struct object_id *root)
{
	struct live spare = { .store = v->store, .layers = v->layers };
	struct err err = { 0 };

	CHECK_OK(layer_open_spare(v->layers, root, &spare.l, &err), &err);
	return spare;
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

TEST(a_spare_shows_its_root_and_nothing_in_it_can_be_changed)
{
	CLEANUP(live_close) struct live v = { 0 };
	const struct object_id root = fill(&v, "shows");
	struct live spare = open_spare(&v, &root);
	const uint64_t f = live_hold(&spare, "d/f");
	struct layer_found found;
	struct layers_stats stats;
	struct stat st;

	live_put(&v, "d/f", "the clone goes on");
	CHECK(live_has(&spare, "d/f", "hello") && live_has(&spare, "d/b", "one name"));
	CHECK_EQ(live_try_make(&spare, "new", S_IFREG | 0644), -EROFS);
	CHECK_EQ(live_try_symlink(&spare, "x", "new"), -EROFS);
	CHECK_EQ(live_try_write(&spare, "d/f", 0, "x", 1), -EROFS);
	CHECK_EQ(live_try_truncate(&spare, "d/f", 0), -EROFS);
	CHECK_EQ(live_try_unlink(&spare, "d/f"), -EROFS);
	CHECK_EQ(live_try_rmdir(&spare, "d"), -EROFS);
	CHECK_EQ(live_try_rename(&spare, "a", "c", 0), -EROFS);
	CHECK_EQ(live_try_link(&spare, "a", "c"), -EROFS);
	CHECK_EQ(layer_make_nameless(spare.l, &call, LAYER_ROOT, 0600, &found, NULL), -EROFS);
	CHECK_EQ(layer_setattr(spare.l, &call, f, &st, LAYER_SET_MTIME, &st, NULL), -EROFS);
	CHECK_EQ(layer_allocate(spare.l, &call, f, 0, 0, 10, NULL), -EROFS);
	CHECK_EQ(layer_setxattr(spare.l, &call, f, "user.x", "x", 1, 0, NULL), -EROFS);
	CHECK_EQ(layer_copy(spare.l, &call, f, 0, f, 10, 1, NULL), -EROFS);
	CHECK_EQ(layer_sync(spare.l, NULL), 0);
	live_persist(&v);
	layers_stats(v.layers, &stats);
	CHECK_EQ(stats.dirty, 0);
	CHECK(live_has(&spare, "d/f", "hello"));
	live_drop(&spare, f);
	layer_discard(spare.l);
}

TEST(an_adopted_spare_is_the_clone_with_what_is_known_of_it)
{
	CLEANUP(live_close) struct live v = { 0 };
	const struct object_id root = fill(&v, "adopted");
	struct live spare = open_spare(&v, &root);
	const uint64_t f = live_hold(&spare, "d/f");
	struct layer_usage usage;
	struct err err = { 0 };
	struct layer *again;

	put_clone(&v, "second", &root);
	CHECK_OK(layer_adopt(spare.l, "second", &err), &err);
	CHECK_STR(layer_name(spare.l), "second");
	layer_usage(spare.l, &usage);
	CHECK_EQ(usage.quota, 1 << 20);
	CHECK_EQ(live_hold(&spare, "d/f"), f);
	CHECK_EQ(layer_open(v.layers, "second", &again, &err), -EBUSY);
	CHECK_EQ(live_try_write(&spare, "d/f", 0, "HELLO", 5), 0);
	live_put(&spare, "new", "made here");
	CHECK(live_stat(&spare, "new").st_ino > live_stat(&v, "d/f").st_ino);
	live_drop(&spare, f);
	live_drop(&spare, f);
	CHECK_OK(layer_close(spare.l, &err), &err);

	CHECK_OK(layer_open(v.layers, "second", &spare.l, &err), &err);
	CHECK(live_has(&spare, "d/f", "HELLO") && live_has(&spare, "new", "made here"));
	CHECK(live_has(&v, "d/f", "hello"));
	layer_discard(spare.l);
	stock_check_clean(v.store);
}

TEST(a_clone_that_is_another_or_open_is_not_adopted)
{
	CLEANUP(live_close) struct live v = { 0 };
	const struct object_id root = fill(&v, "other");
	struct live spare = open_spare(&v, &root);
	struct err err = { 0 };
	struct object_id later;

	CHECK_EQ(layer_adopt(spare.l, "nobody", &err), -ENOENT);
	CHECK_HAS(err.msg, "nobody");
	CHECK_EQ(layer_adopt(spare.l, "work", &err), -EBUSY);
	live_put(&v, "d/f", "later");
	later = save(&v, "later");
	put_clone(&v, "second", &later);
	CHECK_EQ(layer_adopt(spare.l, "second", &err), -ESTALE);
	CHECK_EQ(live_try_make(&spare, "new", S_IFREG | 0644), -EROFS);
	CHECK(live_has(&spare, "d/f", "hello"));

	put_clone(&v, "second", &root);
	CHECK_OK(layer_adopt(spare.l, "second", &err), &err);
	layer_discard(spare.l);
}

TEST(several_spares_of_one_root_do_not_know_each_other)
{
	CLEANUP(live_close) struct live v = { 0 };
	const struct object_id root = fill(&v, "several");
	struct live a = open_spare(&v, &root), b = open_spare(&v, &root);
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

TEST(a_gc_leaves_the_root_of_a_spare_until_that_is_gone)
{
	CLEANUP(live_close) struct live v = { 0 };
	const struct object_id root = fill(&v, "gc");
	struct live spare = open_spare(&v, &root);
	struct err err = { 0 };
	uint64_t rows;

	CHECK_EQ(live_try_unlink(&v, "d/f"), 0);
	live_persist(&v);
	stock_drop(v.store, "base");
	stock_gc(v.store);
	rows = stock_rows(v.store);
	CHECK(live_has(&spare, "d/f", "hello"));

	put_clone(&v, "second", &root);
	CHECK_OK(layer_adopt(spare.l, "second", &err), &err);
	stock_gc(v.store);
	CHECK_EQ(stock_rows(v.store), rows);
	CHECK_OK(layer_close(spare.l, &err), &err);
	stock_check_clean(v.store);

	spare = open_spare(&v, &root);
	{
		CLEANUP(batch_end_p) struct batch *b = stock_begin(v.store);

		CHECK_OK(ref_delete(b, REF_CLONE, "second", strlen("second"), &err), &err);
		stock_commit(b);
	}
	stock_gc(v.store);
	CHECK_EQ(stock_rows(v.store), rows);
	layer_discard(spare.l);
	stock_gc(v.store);
	CHECK(stock_rows(v.store) < rows);
}

TEST_MAIN("layer-spare")
