/*
 * A gc that runs while a layer is persisted, or right after: nothing goes that somebody still has.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cowfs/store/catalog.h"
#include "cowfs/store/pin.h"
#include "tests/unit/cowfs/core/freeze-fixture.h"

TEST(a_gc_after_a_persist_without_hard_links_leaves_the_next_one_all_it_needs)
{
	CLEANUP(live_close) struct live v = { .options.persist_ms = 1000000 };

	live_open(&v, "no-links");
	live_put(&v, "a", "a");
	live_reopen(&v); /* nothing is in the cache */
	live_put(&v, "a", "A");
	live_persist(&v);
	stock_gc(v.store);
	live_put(&v, "b", "b");
	live_persist(&v);
	CHECK_EQ(live_try_link(&v, "a", "c"), 0);
	live_persist(&v);
	CHECK_EQ(live_try_unlink(&v, "a"), 0);
	CHECK_EQ(live_try_unlink(&v, "c"), 0);
	live_persist(&v);
	stock_gc(v.store);
	CHECK_EQ(live_try_link(&v, "b", "c"), 0);
	live_reopen(&v);
	CHECK(live_has(&v, "c", "b"));
	stock_check_clean(v.store);
}

static struct layer *second; /* of another clone */
static uint64_t nameless;

static void open_second(struct live *v)
{
	CLEANUP(batch_end_p) struct batch *b = stock_begin(v->store);
	struct clone clone = { 0 };
	struct err err = { 0 };

	CHECK_OK(clone_get(v->store, "work", &clone, &err), &err);
	clone.name[0] = 'W';
	CHECK_OK(clone_put(b, &clone, REF_NEW, &err), &err);
	stock_commit(b);
	CHECK_OK(layer_open(v->layers, clone.name, &second, &err), &err);
	clone_done(&clone);
}

static void give_it_a_name(struct live *v)
{
	struct layer_found found;

	CHECK_EQ(layer_link(v->l, &call, nameless, LAYER_ROOT, "named", &found, NULL), 0);
	live_drop(v, found.node);
}

/* MiB: more than three quarters of what may be dirty, so that it is stored without a name. */
#define MUCH 49

static void store_nameless(struct live *v)
{
	static uint8_t block[MIB];
	struct err err = { 0 };

	for (uint64_t i = 0; i < MUCH; i++) {
		memset(block, (int)i + 1, sizeof(block));
		CHECK_OK(layer_write(v->l, &call, nameless, i * MIB, block, MIB, false, &err),
			 &err);
	}
	persist_and(v, give_it_a_name);
}

TEST(a_nameless_file_that_gets_its_name_while_it_is_stored_survives_a_gc)
{
	CLEANUP(live_close) struct live v = { .options = { .dirty_max = 64 * MIB,
							   .persist_ms = 1000000 } };
	struct between bt = { .v = &v, .change = store_nameless };
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	struct layer_state stored;
	struct layer_found found;
	struct err err = { 0 };

	live_open(&v, "tmpfile");
	CHECK_EQ(layer_make_nameless(v.l, &call, LAYER_ROOT, S_IFREG | 0600, &found, NULL), 0);
	nameless = found.node;
	/* The committer wants to store it too, and first waits for the other clone. */
	open_second(&v);
	layer_set_expiry(second, 0);
	CHECK_OK(layer_persist(second, BATCH_SAFE, change_now, &bt, &stored, &err), &err);
	layer_discard(second);
	stock_gc(v.store);
	live_drop(&v, nameless);
	live_persist(&v);
	stock_check_clean(v.store);
	live_crash(&v);
	live_get(&v, "named", &bytes);
	CHECK_EQ(bytes.len, MUCH * MIB);
	CHECK_EQ(bytes.data[(MUCH - 1) * MIB], MUCH);
}

static void rewrite_nameless(struct live *v)
{
	static uint8_t block[MIB];
	struct err err = { 0 };

	for (uint64_t i = 0; i < MUCH; i++)
		CHECK_OK(layer_write(v->l, &call, nameless, i * MIB, block, MIB, false, &err),
			 &err);
}

static void store_and_rewrite(struct live *v)
{
	struct layer_usage usage;

	rewrite_nameless(v);
	persist_and(v, rewrite_nameless);
	layer_usage(v->l, &usage);
	CHECK(usage.changed);
}

TEST(a_nameless_file_that_is_rewritten_while_it_is_stored_is_stored_again)
{
	CLEANUP(live_close) struct live v = { .options = { .dirty_max = 64 * MIB,
							   .persist_ms = 1000000 } };
	struct between bt = { .v = &v, .change = store_and_rewrite };
	struct layer_state stored;
	struct layer_found found;
	struct err err = { 0 };

	live_open(&v, "rewritten");
	CHECK_EQ(layer_make_nameless(v.l, &call, LAYER_ROOT, S_IFREG | 0600, &found, NULL), 0);
	nameless = found.node;
	open_second(&v);
	layer_set_expiry(second, 0);
	CHECK_OK(layer_persist(second, BATCH_SAFE, change_now, &bt, &stored, &err), &err);
	layer_discard(second);
	live_drop(&v, nameless);
}

TEST(a_clone_is_open_once)
{
	CLEANUP(live_close) struct live v = { 0 };
	struct err err = { 0 };

	live_open(&v, "once");
	CHECK_EQ(layer_open(v.layers, "work", &second, &err), -EBUSY);
	CHECK_STR(err.msg, "clone 'work' is open already");
}

static uint64_t orphan, copy;

static void copy_orphan(struct live *v)
{
	struct err err = { 0 };

	CHECK_EQ(live_try_truncate(v, "copy", 0), 0);
	CHECK_EQ(layer_copy(v->l, &call, orphan, 0, copy, 0, MIB, &err), 6);
	live_drop(v, orphan);
}

static void check_copy(const char *name, const char *before, change_fn change)
{
	CLEANUP(live_close) struct live v = { .options.persist_ms = 1000000 };

	live_open(&v, name);
	live_put(&v, "from", "orphan");
	live_persist(&v);
	orphan = live_hold(&v, "from");
	CHECK_EQ(live_try_unlink(&v, "from"), 0);
	live_persist(&v);
	live_put(&v, "copy", before);
	copy = live_hold(&v, "copy");
	persist_and(&v, change);
	stock_gc(v.store);
	live_drop(&v, copy);
	live_persist(&v);
	stock_check_clean(v.store);
	live_crash(&v);
	CHECK(live_has(&v, "copy", "orphan"));
}

TEST(a_copy_of_a_nameless_file_made_meanwhile_survives_a_gc)
{
	check_copy("copy-empty", "", copy_orphan);
	check_copy("copy-over", "something", copy_orphan);
}

static void copy_another(struct live *v)
{
	struct err err = { 0 };

	copy_orphan(v);
	CHECK_EQ(live_try_truncate(v, "copy", 0), 0);
	live_put(v, "another", "orphan");
	orphan = live_hold(v, "another");
	CHECK_EQ(layer_copy(v->l, &call, orphan, 0, copy, 0, MIB, &err), 6);
	live_drop(v, orphan);
}

TEST(a_copy_over_a_copy_is_the_second)
{
	check_copy("copy-twice", "", copy_another);
}

TEST(the_attributes_of_a_nameless_file_survive_a_gc)
{
	CLEANUP(live_close) struct live v = { .options.persist_ms = 1000000 };
	static const char *const paths[] = { "file", "dir", "link" };
	uint64_t nodes[ARRAY_LEN(paths)];
	char value[16];

	live_open(&v, "xattrs");
	live_put(&v, "file", "file");
	live_mkdir(&v, "dir");
	CHECK_EQ(live_try_symlink(&v, "x", "link"), 0);
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		set_xattr(&v, paths[i], "trusted.a", paths[i]);
	live_reopen(&v);
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		nodes[i] = live_hold(&v, paths[i]);
	CHECK_EQ(live_try_unlink(&v, "file"), 0);
	CHECK_EQ(live_try_rmdir(&v, "dir"), 0);
	CHECK_EQ(live_try_unlink(&v, "link"), 0);
	live_persist(&v);
	stock_gc(v.store);
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		struct err err = { 0 };
		ssize_t len =
		    layer_getxattr(v.l, &call, nodes[i], "trusted.a", value, sizeof(value), &err);

		CHECK_OK((int)len, &err);
		CHECK_MEM(value, (size_t)len, paths[i], strlen(paths[i]));
		live_drop(&v, nodes[i]);
	}
	live_persist(&v);
	CHECK(stock_gc(v.store).swept > 0);
}

TEST_MAIN("freeze-gc")
