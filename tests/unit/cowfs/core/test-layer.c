#include "tests/lib/live.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "cowfs/store/catalog.h"

static const struct layer_call call = { .uid = 1000, .gid = 1000, .may_wait = true };

TEST(what_is_made_is_found_and_listed)
{
	CLEANUP(live_close) struct live v = { 0 };
	AUTO_FREE char *names = NULL;

	live_open(&v, "made");
	live_mkdir(&v, "d");
	live_put(&v, "d/f", "hello");
	CHECK_EQ(live_try_symlink(&v, "../x", "d/s"), 0);
	CHECK(live_has(&v, "d/f", "hello"));
	names = live_names(&v, "d");
	CHECK_STR(names, " f s");
	CHECK_EQ(live_stat(&v, "").st_nlink, 3);
	CHECK_EQ(live_stat(&v, "d").st_nlink, 2);
	CHECK_EQ(live_stat(&v, "d/f").st_uid, 1000);
}

TEST(a_name_is_there_once_and_must_be_one)
{
	CLEANUP(live_close) struct live v = { 0 };
	char longest[257];

	live_open(&v, "once");
	live_mkdir(&v, "d");
	CHECK_EQ(live_try_make(&v, "d", S_IFREG | 0644), -EEXIST);
	CHECK_EQ(live_try_make(&v, "no/f", S_IFREG | 0644), -ENOENT);
	memset(longest, 'x', 256);
	longest[256] = '\0';
	CHECK_EQ(live_try_make(&v, longest, S_IFREG | 0644), -ENAMETOOLONG);
	longest[255] = '\0';
	CHECK_EQ(live_try_make(&v, longest, S_IFREG | 0644), 0);
	CHECK_EQ(live_try_rmdir(&v, longest), -ENOTDIR);
	CHECK_EQ(live_try_unlink(&v, "d"), -EISDIR);
	live_put(&v, "d/f", "x");
	CHECK_EQ(live_try_rmdir(&v, "d"), -ENOTEMPTY);
	CHECK_EQ(live_try_unlink(&v, "d/f"), 0);
	CHECK_EQ(live_try_rmdir(&v, "d"), 0);
	CHECK_EQ(live_try_unlink(&v, "d"), -ENOENT);
}

TEST(a_persisted_layer_comes_back_as_it_was)
{
	CLEANUP(live_close) struct live v = { 0 };
	CLEANUP(buf_done) struct buf before = BUF_INIT, after = BUF_INIT;

	live_open(&v, "back");
	live_mkdir(&v, "d");
	live_mkdir(&v, "d/e");
	live_put(&v, "d/f", "hello");
	CHECK_EQ(live_try_link(&v, "d/f", "d/e/g"), 0);
	CHECK_EQ(live_try_symlink(&v, "target", "s"), 0);
	live_dump(&v, &before, true);
	live_persist(&v);
	live_dump(&v, &after, true);
	CHECK_STR((char *)after.data, (char *)before.data);
	live_crash(&v);
	live_dump(&v, &after, true);
	CHECK_STR((char *)after.data, (char *)before.data);
	stock_check_clean(v.store);
}

TEST(what_was_not_persisted_is_lost_whole)
{
	CLEANUP(live_close) struct live v = { .options.persist_ms = 1000000 };
	CLEANUP(buf_done) struct buf before = BUF_INIT, after = BUF_INIT;

	live_open(&v, "lost");
	live_put(&v, "a", "one");
	live_persist(&v);
	live_dump(&v, &before, true);
	live_put(&v, "a", "two");
	live_put(&v, "b", "three");
	live_crash(&v);
	live_dump(&v, &after, true);
	CHECK_STR((char *)after.data, (char *)before.data);
}

TEST(a_file_without_a_name_lives_as_long_as_somebody_has_it)
{
	CLEANUP(live_close) struct live v = { 0 };
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	struct layers_stats stats;
	struct stat st;
	uint64_t node;

	live_open(&v, "nameless");
	live_put(&v, "f", "kept");
	live_persist(&v);
	node = live_hold(&v, "f");
	CHECK_EQ(live_try_unlink(&v, "f"), 0);
	live_persist(&v);
	stock_gc(v.store);
	CHECK_EQ(layer_getattr(v.l, node, &st, NULL), 0);
	CHECK_EQ(st.st_nlink, 0);
	live_get_node(&v, node, &bytes);
	CHECK_MEM(bytes.data, bytes.len, "kept", 4);
	live_drop(&v, node);
	CHECK_EQ(layer_getattr(v.l, node, &st, NULL), -ESTALE);
	layers_stats(v.layers, &stats);
	CHECK_EQ(stats.nodes, 2);
	CHECK_EQ(stats.dirty, 0);
}

TEST(a_file_with_several_names_is_one_file)
{
	CLEANUP(live_close) struct live v = { 0 };

	live_open(&v, "links");
	live_put(&v, "a", "one");
	live_mkdir(&v, "d");
	CHECK_EQ(live_try_link(&v, "a", "d/b"), 0);
	live_reopen(&v);
	CHECK_EQ(live_try_write(&v, "d/b", 0, "ONE", 3), 0);
	CHECK(live_has(&v, "a", "ONE"));
	CHECK_EQ(live_stat(&v, "a").st_ino, live_stat(&v, "d/b").st_ino);
	CHECK_EQ(live_stat(&v, "a").st_nlink, 2);
	live_reopen(&v);
	CHECK(live_has(&v, "a", "ONE"));
	CHECK_EQ(live_try_unlink(&v, "a"), 0);
	CHECK_EQ(live_stat(&v, "d/b").st_nlink, 1);
	live_reopen(&v);
	CHECK(live_has(&v, "d/b", "ONE"));
	CHECK_EQ(live_stat(&v, "d/b").st_nlink, 1);
	CHECK_EQ(live_try_unlink(&v, "d/b"), 0);
	live_reopen(&v);
	CHECK_EQ(live_try_stat(&v, "d/b", &(struct stat){ 0 }), -ENOENT);
	stock_check_clean(v.store);
}

TEST(nothing_stays_in_memory_that_nobody_needs)
{
	CLEANUP(live_close) struct live v = { 0 };
	CLEANUP(buf_done) struct buf dump = BUF_INIT;
	struct layers_stats stats;
	char path[32];

	live_open(&v, "memory");
	for (int d = 0; d < 20; d++) {
		snprintf(path, sizeof(path), "d%d", d);
		live_mkdir(&v, path);
		for (int f = 0; f < 20; f++) {
			snprintf(path, sizeof(path), "d%d/f%d", d, f);
			live_put(&v, path, path);
		}
	}
	live_persist(&v);
	layers_stats(v.layers, &stats);
	CHECK_EQ(stats.nodes, 2); /* the top and the links */
	CHECK_EQ(stats.dirty, 0);
	live_dump(&v, &dump, false);
	layers_stats(v.layers, &stats);
	CHECK_EQ(stats.nodes, 2);
}

TEST(what_would_wait_says_so_and_changes_nothing)
{
	const struct layer_call no_wait = { .uid = 1, .gid = 1 };
	CLEANUP(live_close) struct live v = { .options.quick_us = 1 };
	struct layer_found found;

	live_open(&v, "wait");
	live_mkdir(&v, "d");
	live_put(&v, "d/f", "x");
	live_reopen(&v);
	CHECK_EQ(layer_lookup(v.l, &no_wait, LAYER_ROOT, "d", &found, NULL), -EAGAIN);
	CHECK_EQ(layer_make(v.l, &no_wait, LAYER_ROOT, "g", S_IFREG, 0, &found, NULL), -EAGAIN);
	CHECK_EQ(layer_lookup(v.l, &call, LAYER_ROOT, "d", &found, NULL), 0);
	CHECK_EQ(layer_lookup(v.l, &no_wait, LAYER_ROOT, "d", &found, NULL), 0);
	layer_forget(v.l, found.node, 2);
}

TEST(a_change_while_another_is_persisted_is_not_lost)
{
	CLEANUP(live_close) struct live v = { .options.persist_ms = 1 };
	CLEANUP(buf_done) struct buf before = BUF_INIT, after = BUF_INIT;
	char path[32], text[32];

	live_open(&v, "beside");
	for (int i = 0; i < 400; i++) {
		snprintf(path, sizeof(path), "f%d", i % 37);
		snprintf(text, sizeof(text), "text %d", i);
		live_put(&v, path, text);
		if (i % 11 == 0)
			CHECK_EQ(live_try_rename(&v, path, "moved", 0), 0);
	}
	live_dump(&v, &before, true);
	live_persist(&v);
	live_crash(&v);
	live_dump(&v, &after, true);
	CHECK_STR((char *)after.data, (char *)before.data);
	stock_check_clean(v.store);
}

TEST(a_directory_is_not_moved_while_its_name_is_held)
{
	CLEANUP(live_close) struct live v = { 0 };

	live_open(&v, "held");
	live_mkdir(&v, "d");
	live_mkdir(&v, "e");
	live_put(&v, "f", "");
	layer_hold_names(v.l, 600000);
	layer_hold_names(v.l, 1);
	layer_release_names(v.l);
	CHECK_EQ(live_try_rename(&v, "d", "x", 0), -EBUSY);
	CHECK_EQ(live_try_rename(&v, "d", "e/d", 0), -EBUSY);
	CHECK_EQ(live_try_rename(&v, "f", "e", LAYER_RENAME_EXCHANGE), -EBUSY);
	CHECK_EQ(live_try_rename(&v, "f", "d/g", 0), 0);
	layer_release_names(v.l);
	CHECK_EQ(live_try_rename(&v, "d", "x", 0), 0);
}

TEST(names_are_held_no_longer_than_was_asked_for)
{
	CLEANUP(live_close) struct live v = { 0 };
	uint64_t began;

	live_open(&v, "held-long");
	live_mkdir(&v, "d");
	began = clock_ms();
	layer_hold_names(v.l, 100);
	CHECK_EQ(live_try_rename(&v, "d", "e", 0), 0);
	CHECK(clock_ms() >= began + 100);
	CHECK_EQ(live_try_rename(&v, "e", "f", 0), 0);
	layer_release_names(v.l);
}

TEST(a_rename_does_what_posix_says)
{
	CLEANUP(live_close) struct live v = { 0 };

	live_open(&v, "rename");
	live_put(&v, "a", "a");
	live_put(&v, "b", "b");
	live_mkdir(&v, "d");
	live_mkdir(&v, "d/e");
	live_mkdir(&v, "x");
	CHECK_EQ(live_try_rename(&v, "a", "b", LAYER_RENAME_NOREPLACE), -EEXIST);
	CHECK_EQ(live_try_rename(&v, "a", "d", 0), -EISDIR);
	CHECK_EQ(live_try_rename(&v, "d", "a", 0), -ENOTDIR);
	CHECK_EQ(live_try_rename(&v, "x", "d", 0), -ENOTEMPTY);
	CHECK_EQ(live_try_rename(&v, "d", "d/e/f", 0), -EINVAL);
	CHECK_EQ(live_try_rename(&v, "no", "b", 0), -ENOENT);
	CHECK_EQ(live_try_rename(&v, "a", "no", LAYER_RENAME_EXCHANGE), -ENOENT);
	CHECK_EQ(live_try_rename(&v, "a", "d", LAYER_RENAME_EXCHANGE), 0);
	CHECK(live_has(&v, "d", "a"));
	CHECK_EQ(live_stat(&v, "a/e").st_nlink, 2);
	CHECK_EQ(live_try_rename(&v, "x", "a/e", 0), 0);
	CHECK_EQ(live_stat(&v, "").st_nlink, 3);
	CHECK_EQ(live_stat(&v, "a").st_nlink, 3);
	CHECK_EQ(live_try_rename(&v, "d", "b", 0), 0);
	CHECK(live_has(&v, "b", "a"));
	CHECK_EQ(live_try_link(&v, "b", "c"), 0);
	CHECK_EQ(live_try_rename(&v, "b", "c", 0), 0);
	CHECK(live_has(&v, "b", "a"));
	live_reopen(&v);
	CHECK(live_has(&v, "c", "a"));
	stock_check_clean(v.store);
}

static bool synced; /* a test waited for the disk */

int __real_store_harden(struct store *s, struct err *err);
int __wrap_store_harden(struct store *s, struct err *err);
int __wrap_store_harden(struct store *s, struct err *err)
{
	synced = true;
	return __real_store_harden(s, err);
}

static void make_strict(struct live *v)
{
	CLEANUP(clone_done) struct clone clone = { 0 };
	CLEANUP(batch_end_p) struct batch *b = stock_begin(v->store);
	struct err err = { 0 };

	CHECK_OK(clone_get(v->store, "work", &clone, &err), &err);
	clone.strict = 1;
	CHECK_OK(clone_put(b, &clone, REF_REPLACE, &err), &err);
	stock_commit(b);
}

TEST(a_strict_clone_waits_for_the_disk_and_others_do_not)
{
	CLEANUP(live_close) struct live v = { .options.persist_ms = 1000000 };
	struct err err = { 0 };

	live_open(&v, "strict");
	live_put(&v, "f", "one");
	CHECK_OK(layer_sync(v.l, LAYER_ROOT, &err), &err);
	CHECK(!synced);
	make_strict(&v);
	live_crash(&v);
	live_put(&v, "f", "two");
	CHECK_OK(layer_sync(v.l, LAYER_ROOT, &err), &err);
	CHECK(synced);
	live_put(&v, "f", "three");
	synced = false;
	live_persist(&v); /* as the committer does */
	CHECK(!synced);
	CHECK_OK(layer_sync(v.l, LAYER_ROOT, &err), &err);
	CHECK(synced);
	synced = false;
	CHECK_OK(layer_sync(v.l, LAYER_ROOT, &err), &err); /* nothing left to do */
	CHECK(!synced);
	live_reopen(&v);
	CHECK(live_has(&v, "f", "three"));
}

TEST(a_clone_that_goes_with_its_run_is_persisted_for_no_sync)
{
	CLEANUP(live_close) struct live v = { .options.persist_ms = 1000000 };
	struct err err = { 0 };

	live_open(&v, "passing");
	live_put(&v, "f", "one");
	CHECK_OK(layer_sync(v.l, LAYER_ROOT, &err), &err);
	layer_set_passing(v.l, true);
	live_put(&v, "f", "two");
	CHECK_OK(layer_sync(v.l, LAYER_ROOT, &err), &err);
	CHECK(live_has(&v, "f", "two"));
	live_crash(&v);
	CHECK(live_has(&v, "f", "one"));
	/* Whoever opens it next knows nothing of that run. */
	live_put(&v, "f", "three");
	CHECK_OK(layer_sync(v.l, LAYER_ROOT, &err), &err);
	live_crash(&v);
	CHECK(live_has(&v, "f", "three"));
	layer_set_passing(v.l, true);
	layer_leave_run(v.l);
	live_put(&v, "f", "four");
	CHECK_OK(layer_sync(v.l, LAYER_ROOT, &err), &err);
	live_crash(&v);
	CHECK(live_has(&v, "f", "four"));
}

TEST_MAIN("layer")
