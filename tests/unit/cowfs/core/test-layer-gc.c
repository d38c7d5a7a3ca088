/*
 * A gc right behind a commit, before the layer knows of it: nothing reaches what the commit
 * replaced any more, and programs that have it open still need it.
 */
#include <errno.h>

#include "tests/lib/live.h"

static const struct layer_call call = { .uid = 1000, .gid = 1000, .may_wait = true };

static struct store *sweep; /* gc after each commit, if set */

int __real_batch_commit(struct batch *b, enum batch_durability durability, struct err *err);
int __wrap_batch_commit(struct batch *b, enum batch_durability durability, struct err *err);

int __wrap_batch_commit(struct batch *b, enum batch_durability durability, struct err *err)
{
	int r = __real_batch_commit(b, durability, err);

	if (r >= 0 && sweep)
		stock_gc(sweep);
	return r;
}

static void read_back(struct live *v, uint64_t node, const char *text)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;

	live_get_node(v, node, &bytes);
	CHECK_MEM(bytes.data, bytes.len, text, strlen(text));
}

TEST(who_has_a_file_open_keeps_it_through_a_rollback)
{
	CLEANUP(layer_changes_done) struct layer_changes changes = { 0 };
	CLEANUP(live_close) struct live v = { .options.persist_ms = 1000000 };
	struct object_id root;
	uint64_t changed, gone;
	struct err err = { 0 };
	char value[16];

	live_open(&v, "rollback");
	live_put(&v, "changed", "old");
	root = live_persist(&v);
	{
		CLEANUP(batch_end_p) struct batch *b = stock_begin(v.store);

		stock_name(b, REF_SNAPSHOT, "s", &root, REF_NEW);
		stock_commit(b);
	}
	live_put(&v, "changed", "new");
	live_put(&v, "gone", "gone");
	gone = live_hold(&v, "gone");
	CHECK_EQ(layer_setxattr(v.l, &call, gone, "user.a", "value", 5, 0, NULL), 0);
	live_drop(&v, gone);
	live_reopen(&v);
	changed = live_hold(&v, "changed");
	gone = live_hold(&v, "gone");
	sweep = v.store;
	CHECK_OK(live_roll_back(v.l, &root, NULL, NULL, &changes, &err), &err);
	sweep = NULL;
	read_back(&v, changed, "new");
	read_back(&v, gone, "gone");
	CHECK_EQ(layer_getxattr(v.l, &call, gone, "user.a", value, sizeof(value), &err), 5);
	live_drop(&v, changed);
	live_drop(&v, gone);
	stock_check_clean(v.store);
}

TEST(who_has_a_file_open_keeps_it_through_a_persist)
{
	CLEANUP(live_close) struct live v = { .options.persist_ms = 1000000 };
	uint64_t changed, gone, replaced;

	live_open(&v, "persist");
	live_mkdir(&v, "d");
	live_put(&v, "d/changed", "old bytes");
	live_put(&v, "gone", "gone");
	live_put(&v, "replaced", "replaced");
	live_put(&v, "two", "two");
	CHECK_EQ(live_try_link(&v, "two", "d/two"), 0);
	live_reopen(&v);
	changed = live_hold(&v, "d/changed");
	gone = live_hold(&v, "gone");
	replaced = live_hold(&v, "replaced");
	CHECK_EQ(live_try_write(&v, "d/changed", 0, "new", 3), 0);
	CHECK_EQ(live_try_unlink(&v, "gone"), 0);
	CHECK_EQ(live_try_rename(&v, "d/two", "replaced", 0), 0);
	sweep = v.store;
	live_persist(&v);
	live_put(&v, "more", "more");
	live_persist(&v);
	CHECK_EQ(live_try_unlink(&v, "more"), 0);
	sweep = NULL;
	read_back(&v, changed, "new bytes");
	read_back(&v, gone, "gone");
	read_back(&v, replaced, "replaced");
	CHECK(live_has(&v, "replaced", "two"));
	live_drop(&v, changed);
	live_drop(&v, gone);
	live_drop(&v, replaced);
	stock_check_clean(v.store);
}

TEST_MAIN("layer-gc")
