#include <errno.h>

#include "tests/lib/live.h"

static const struct layer_call call = { .uid = 1000, .gid = 1000, .may_wait = true };

static struct object_id save(struct live *v, const char *name)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	struct object_id root = live_persist(v);

	b = stock_begin(v->store);
	stock_name(b, REF_SNAPSHOT, name, &root, REF_REPLACE);
	stock_commit(b);
	return root;
}

static struct layer_changes roll_back(struct live *v, const struct object_id *root)
{
	struct layer_changes changes = { 0 };
	struct err err = { 0 };

	CHECK_OK(live_roll_back(v->l, root, NULL, NULL, &changes, &err), &err);
	return changes;
}

static bool tells(const struct layer_changes *c, uint64_t dir, const char *name)
{
	for (size_t i = 0; i < c->n_names; i++)
		if (c->names[i].dir == dir && strcmp(c->names[i].name, name) == 0)
			return true;
	return false;
}

static bool tells_dir(const struct layer_changes *c, uint64_t dir)
{
	for (size_t i = 0; i < c->n_dirs; i++)
		if (c->dirs[i] == dir)
			return true;
	return false;
}

TEST(exactly_what_differs_is_told)
{
	CLEANUP(live_close) struct live v = { 0 };
	CLEANUP(layer_changes_done) struct layer_changes c = { 0 };
	struct object_id root;
	uint64_t d, other;

	live_open(&v, "told");
	live_mkdir(&v, "d");
	live_mkdir(&v, "other");
	live_put(&v, "d/same", "same");
	live_put(&v, "d/changed", "old");
	live_put(&v, "d/gone", "gone");
	live_put(&v, "other/x", "x");
	root = save(&v, "s");
	d = live_hold(&v, "d");
	other = live_hold(&v, "other");
	live_put(&v, "d/changed", "new");
	live_put(&v, "d/added", "added");
	CHECK_EQ(live_try_unlink(&v, "d/gone"), 0);
	c = roll_back(&v, &root);
	CHECK_EQ(c.n_names, 3);
	CHECK(tells(&c, d, "changed") && tells(&c, d, "added") && tells(&c, d, "gone"));
	CHECK(tells_dir(&c, d) && !tells_dir(&c, other));
	CHECK(live_has(&v, "d/changed", "old") && live_has(&v, "d/gone", "gone"));
	CHECK_EQ(live_try_stat(&v, "d/added", &(struct stat){ 0 }), -ENOENT);
	live_drop(&v, d);
	live_drop(&v, other);
}

TEST(directories_keep_their_node_and_changed_files_get_another)
{
	CLEANUP(live_close) struct live v = { 0 };
	CLEANUP(layer_changes_done) struct layer_changes c = { 0 };
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	uint64_t dir, same, changed, again;
	struct object_id root;
	struct stat before, st;

	live_open(&v, "nodes");
	live_mkdir(&v, "d");
	live_put(&v, "d/same", "same");
	live_put(&v, "d/changed", "old");
	root = save(&v, "s");
	before = live_stat(&v, "d/changed");
	live_put(&v, "d/changed", "newer");
	dir = live_hold(&v, "d");
	same = live_hold(&v, "d/same");
	changed = live_hold(&v, "d/changed");
	c = roll_back(&v, &root);

	again = live_hold(&v, "d");
	CHECK_EQ(again, dir);
	live_drop(&v, again);
	again = live_hold(&v, "d/same");
	CHECK_EQ(again, same);
	live_drop(&v, again);
	again = live_hold(&v, "d/changed");
	CHECK(again != changed);
	CHECK_EQ(live_stat(&v, "d/changed").st_ino, before.st_ino);
	live_drop(&v, again);

	/* A program that has the old one open keeps it, also through a gc. */
	live_persist(&v);
	stock_gc(v.store);
	live_get_node(&v, changed, &bytes);
	CHECK_MEM(bytes.data, bytes.len, "newer", 5);
	CHECK_EQ(layer_getattr(v.l, changed, &st, NULL), 0);
	CHECK_EQ(st.st_nlink, 0);
	live_drop(&v, changed);
	live_drop(&v, same);
	live_drop(&v, dir);
}

TEST(a_removed_directory_comes_back_and_one_that_came_goes_with_all_in_it)
{
	CLEANUP(live_close) struct live v = { 0 };
	CLEANUP(layer_changes_done) struct layer_changes c = { 0 };
	struct layer_found found;
	struct layers_stats stats;
	struct object_id root;
	uint64_t deep;

	live_open(&v, "dirs");
	live_mkdir(&v, "old");
	live_put(&v, "old/f", "f");
	root = save(&v, "s");
	CHECK_EQ(live_try_unlink(&v, "old/f"), 0);
	CHECK_EQ(live_try_rmdir(&v, "old"), 0);
	live_mkdir(&v, "new");
	live_mkdir(&v, "new/a");
	live_mkdir(&v, "new/a/b");
	live_put(&v, "new/a/b/c", "c");
	deep = live_hold(&v, "new/a/b");
	c = roll_back(&v, &root);
	CHECK(live_has(&v, "old/f", "f"));
	CHECK_EQ(live_try_stat(&v, "new", &(struct stat){ 0 }), -ENOENT);
	CHECK_EQ(layer_make(v.l, &call, deep, "x", S_IFREG | 0644, 0, &found, NULL), -ENOENT);
	live_drop(&v, deep);
	live_persist(&v);
	layers_stats(v.layers, &stats);
	CHECK_EQ(stats.nodes, 2);
}

TEST(a_file_with_several_names_goes_back_under_each_of_them)
{
	CLEANUP(live_close) struct live v = { 0 };
	CLEANUP(layer_changes_done) struct layer_changes c = { 0 };
	struct object_id root;
	uint64_t a, b;

	live_open(&v, "links");
	live_mkdir(&v, "d");
	live_put(&v, "a", "old");
	CHECK_EQ(live_try_link(&v, "a", "d/b"), 0);
	root = save(&v, "s");
	a = live_hold(&v, "a");
	b = live_hold(&v, "d/b");
	CHECK_EQ(a, b);
	CHECK_EQ(live_try_write(&v, "d/b", 0, "new", 3), 0);
	c = roll_back(&v, &root);
	CHECK(tells(&c, LAYER_ROOT, "a"));
	CHECK_EQ(c.n_names >= 2, true);
	CHECK(live_has(&v, "a", "old") && live_has(&v, "d/b", "old"));
	CHECK_EQ(live_stat(&v, "a").st_nlink, 2);
	live_drop(&v, a);
	live_drop(&v, b);
	stock_check_clean(v.store);
}

static int refuse(struct batch *b, const struct layer_state *state, void *ctx, struct err *err)
{
	return err_set(err, -EIO, "no");
}

TEST(a_rollback_that_fails_changes_nothing)
{
	CLEANUP(live_close) struct live v = { 0 };
	CLEANUP(buf_done) struct buf before = BUF_INIT, after = BUF_INIT;
	CLEANUP(layer_changes_done) struct layer_changes c = { 0 };
	struct object_id root;
	struct err err = { 0 };

	live_open(&v, "fails");
	live_put(&v, "f", "old");
	root = save(&v, "s");
	live_put(&v, "f", "new");
	live_dump(&v, &before, true);
	CHECK_EQ(live_roll_back(v.l, &root, refuse, NULL, &c, &err), -EIO);
	live_dump(&v, &after, true);
	CHECK_STR((char *)after.data, (char *)before.data);
	live_put(&v, "g", "and on");
	live_reopen(&v);
	CHECK(live_has(&v, "f", "new") && live_has(&v, "g", "and on"));
}

TEST(it_survives_a_crash_right_after)
{
	CLEANUP(live_close) struct live v = { 0 };
	CLEANUP(layer_changes_done) struct layer_changes c = { 0 };
	struct object_id root;

	live_open(&v, "crash");
	live_put(&v, "f", "old");
	root = save(&v, "s");
	live_put(&v, "f", "new");
	c = roll_back(&v, &root);
	live_crash(&v);
	CHECK(live_has(&v, "f", "old"));
}

TEST_MAIN("rollback")
