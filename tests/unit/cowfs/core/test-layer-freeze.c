/*
 * What changes while a layer is persisted: `also` is called when all is frozen and put and
 * before anything is committed, so what a test does there falls right in between.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cowfs/store/catalog.h"
#include "cowfs/store/pin.h"
#include "tests/unit/cowfs/core/freeze-fixture.h"

/* --- any change ------------------------------------------------------------------------- */

static void write_again(struct live *v)
{
	CHECK_EQ(live_try_write(v, "dirty", 1, "DIRTY", 5), 0);
	CHECK_EQ(live_try_write(v, "d/old", 100000, "x", 1), 0);
}

static void empty_and_write(struct live *v)
{
	live_put(v, "dirty", "anew");
	live_put(v, "d/old", "anew");
}

static void cut(struct live *v)
{
	CHECK_EQ(live_try_truncate(v, "dirty", 2), 0);
	CHECK_EQ(live_try_truncate(v, "dirty", 70000), 0);
	CHECK_EQ(live_try_truncate(v, "d/old", 1), 0);
}

static void rename_files(struct live *v)
{
	CHECK_EQ(live_try_rename(v, "dirty", "d/dirty", 0), 0);
	CHECK_EQ(live_try_rename(v, "d/old", "old", 0), 0);
	CHECK_EQ(live_try_rename(v, "fresh/f", "d/old", 0), 0);
}

static void exchange(struct live *v)
{
	CHECK_EQ(live_try_rename(v, "dirty", "d", LAYER_RENAME_EXCHANGE), 0);
	CHECK_EQ(live_try_rename(v, "fresh", "two", LAYER_RENAME_EXCHANGE), 0);
}

static void remove_files(struct live *v)
{
	CHECK_EQ(live_try_unlink(v, "dirty"), 0);
	CHECK_EQ(live_try_unlink(v, "d/old"), 0);
	CHECK_EQ(live_try_unlink(v, "two"), 0);
}

static void remove_dirs(struct live *v)
{
	CHECK_EQ(live_try_unlink(v, "fresh/f"), 0);
	CHECK_EQ(live_try_rmdir(v, "fresh"), 0);
	CHECK_EQ(live_try_unlink(v, "d/old"), 0);
	CHECK_EQ(live_try_unlink(v, "d/e/two"), 0);
	CHECK_EQ(live_try_rmdir(v, "d/e"), 0);
	CHECK_EQ(live_try_rmdir(v, "d"), 0);
}

static void remove_and_make(struct live *v)
{
	remove_dirs(v);
	live_mkdir(v, "fresh");
	live_mkdir(v, "dirt");
	live_put(v, "fresh/f", "another");
	live_put(v, "gone", "is back");
	live_mkdir(v, "d");
	live_put(v, "d/old", "new");
}

static void move_dirs(struct live *v)
{
	CHECK_EQ(live_try_rename(v, "d/e", "fresh/e", 0), 0);
	CHECK_EQ(live_try_rename(v, "d", "fresh/e/d", 0), 0);
	live_put(v, "fresh/e/d/more", "more");
	live_mkdir(v, "d");
}

static void one_more_link(struct live *v)
{
	CHECK_EQ(live_try_link(v, "dirty", "fresh/dirty"), 0);
	CHECK_EQ(live_try_link(v, "d/old", "fresh/old"), 0);
	CHECK_EQ(live_try_link(v, "two", "fresh/two"), 0);
	CHECK_EQ(live_try_write(v, "fresh/two", 3, "links", 5), 0);
}

static void one_link_less(struct live *v)
{
	CHECK_EQ(live_try_unlink(v, "two"), 0);
	CHECK_EQ(live_try_write(v, "d/e/two", 3, "left", 4), 0);
}

static void no_link_left(struct live *v)
{
	CHECK_EQ(live_try_unlink(v, "two"), 0);
	CHECK_EQ(live_try_unlink(v, "d/e/two"), 0);
	live_put(v, "two", "anew");
}

static void change_xattrs(struct live *v)
{
	set_xattr(v, "dirty", "user.new", "n");
	set_xattr(v, "d", "user.dir", "d");
	set_xattr(v, "two", "user.a", "other");
	remove_xattr(v, "fresh/f", "user.a");
	set_xattr(v, "", "user.top", "t");
}

static void change_only_attributes(struct live *v)
{
	static const char *const paths[] = { "", "d", "d/old", "dirty", "two", "fresh/f" };
	struct stat st = { .st_mode = 0700 };

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		uint64_t node = live_hold(v, paths[i]);

		CHECK_EQ(layer_setattr(v->l, &call, node, &st, LAYER_SET_MODE, &st, NULL), 0);
		live_drop(v, node);
	}
}

static const struct {
	const char *name;
	change_fn change;
} changes[] = {
	{ "write-again", write_again },
	{ "empty-and-write", empty_and_write },
	{ "cut", cut },
	{ "rename-files", rename_files },
	{ "exchange", exchange },
	{ "remove-files", remove_files },
	{ "remove-dirs", remove_dirs },
	{ "remove-and-make", remove_and_make },
	{ "move-dirs", move_dirs },
	{ "one-more-link", one_more_link },
	{ "one-link-less", one_link_less },
	{ "no-link-left", no_link_left },
	{ "xattrs", change_xattrs },
	{ "attributes", change_only_attributes },
};

/* Stored things and changed ones, of every sort. */
static void furnish(struct live *v)
{
	live_mkdir(v, "d");
	live_mkdir(v, "d/e");
	live_put(v, "d/old", "old");
	live_put(v, "gone", "gone");
	live_put(v, "two", "two");
	CHECK_EQ(live_try_link(v, "two", "d/e/two"), 0);
	set_xattr(v, "two", "user.a", "a");
	live_persist(v);
	live_put(v, "dirty", "dirty");
	live_mkdir(v, "fresh");
	live_put(v, "fresh/f", "f");
	set_xattr(v, "fresh/f", "user.a", "a");
	CHECK_EQ(live_try_write(v, "d/e/two", 0, "TWO", 3), 0);
	CHECK_EQ(live_try_unlink(v, "gone"), 0);
}

static bool is_settled(const struct live *v)
{
	struct layers_stats stats;

	layers_stats(v->layers, &stats);
	return stats.dirty == 0 && stats.nodes == 2;
}

/* Wait until nothing is left to persist: a rename over a file makes the committer hurry. */
static void settle(struct live *v)
{
	WAIT_FOR(is_settled(v));
}

static void check_stored(struct live *v, const struct buf *wanted)
{
	CLEANUP(buf_done) struct buf after = BUF_INIT;

	live_crash(v);
	live_dump(v, &after, true);
	CHECK_STR((char *)after.data, (char *)wanted->data);
	stock_check_clean(v->store);
}

static void check_change(const char *name, change_fn change)
{
	CLEANUP(live_close) struct live v = { .options.persist_ms = 1000000 };
	CLEANUP(buf_done) struct buf frozen = BUF_INIT, after = BUF_INIT, again = BUF_INIT;

	live_open(&v, name);
	furnish(&v);
	live_dump(&v, &frozen, true);
	persist_and(&v, change);
	live_dump(&v, &after, true);
	CHECK(strcmp((char *)after.data, (char *)frozen.data) != 0);
	stock_gc(v.store);
	live_persist(&v);
	live_dump(&v, &again, true);
	CHECK_STR((char *)again.data, (char *)after.data);
	settle(&v);
	check_stored(&v, &after);
}

TEST(a_change_while_all_is_frozen_is_in_the_next_persist)
{
	for (size_t i = 0; i < ARRAY_LEN(changes); i++)
		check_change(changes[i].name, changes[i].change);
}

/* Only a file that takes the place of something makes the committer persist at once. */
static bool is_stored_at_once(change_fn change)
{
	return change == exchange;
}

static void check_frozen(const char *name, change_fn change)
{
	CLEANUP(live_close) struct live v = { .options.persist_ms = 1000000 };
	CLEANUP(buf_done) struct buf frozen = BUF_INIT, changed = BUF_INIT, after = BUF_INIT;
	char path[64];

	snprintf(path, sizeof(path), "%s-frozen", name);
	live_open(&v, path);
	furnish(&v);
	live_dump(&v, &frozen, true);
	persist_and(&v, change);
	live_dump(&v, &changed, true);
	if (is_stored_at_once(change))
		settle(&v);
	stock_gc(v.store);
	live_crash(&v);
	live_dump(&v, &after, true);
	CHECK_STR((char *)after.data,
		  (char *)(is_stored_at_once(change) ? changed.data : frozen.data));
	stock_check_clean(v.store);
}

TEST(a_change_while_all_is_frozen_is_not_in_that_persist)
{
	for (size_t i = 0; i < ARRAY_LEN(changes); i++)
		check_frozen(changes[i].name, changes[i].change);
}

static int refuse(struct batch *b, const struct layer_state *state, void *ctx, struct err *err)
{
	struct between *bt = ctx;

	bt->change(bt->v);
	return err_set(err, -EIO, "no");
}

static void check_failed(const char *name, change_fn change)
{
	CLEANUP(live_close) struct live v = { .options.persist_ms = 1000000 };
	CLEANUP(buf_done) struct buf after = BUF_INIT, again = BUF_INIT;
	struct between bt = { .v = &v, .change = change };
	struct layer_state state;
	char path[64];

	snprintf(path, sizeof(path), "%s-failed", name);
	live_open(&v, path);
	furnish(&v);
	CHECK_EQ(layer_persist(v.l, BATCH_SAFE, refuse, &bt, &state, NULL), -EIO);
	live_dump(&v, &after, true);
	stock_gc(v.store);
	live_persist(&v);
	live_dump(&v, &again, true);
	CHECK_STR((char *)again.data, (char *)after.data);
	check_stored(&v, &after);
}

TEST(a_persist_that_fails_takes_nothing_from_what_changed_before_or_meanwhile)
{
	for (size_t i = 0; i < ARRAY_LEN(changes); i++)
		check_failed(changes[i].name, changes[i].change);
}

static void set_expiry(struct live *v)
{
	layer_set_expiry(v->l, 5);
}

TEST(an_expiry_that_is_set_meanwhile_is_in_the_next_persist)
{
	CLEANUP(live_close) struct live v = { .options.persist_ms = 1000000 };
	CLEANUP(clone_done) struct clone clone = { 0 };
	struct layer_usage usage;

	live_open(&v, "expiry");
	live_put(&v, "f", "f");
	persist_and(&v, set_expiry);
	layer_usage(v.l, &usage);
	CHECK(usage.changed);
	live_persist(&v);
	live_crash(&v);
	CHECK_OK(clone_get(v.store, "work", &clone, NULL), NULL);
	CHECK_EQ(clone.expires, 5);
}

/* --- looking ------------------------------------------------------------------------------ */

static int pin_state(struct batch *b, const struct layer_state *state, void *ctx, struct err *err)
{
	return store_pin(batch_store(b), OBJECT_TREE, &state->id, err);
}

TEST(who_looks_sees_what_is_written_and_persists_nothing)
{
	CLEANUP(live_close) struct live v = { 0 };
	struct layer_state seen, again;
	struct object_id root;
	struct err err = { 0 };

	live_open(&v, "look");
	live_put(&v, "kept", "persisted");
	root = live_persist(&v);
	live_put(&v, "kept", "written since");
	live_put(&v, "new", "and this");

	CHECK_OK(layer_look(v.l, pin_state, NULL, &seen, &err), &err);
	CHECK(!object_id_equal(&seen.id, &root));
	CHECK_EQ(seen.files, 2);
	CHECK_OK(layer_look(v.l, pin_state, NULL, &again, &err), &err);
	CHECK(object_id_equal(&seen.id, &again.id));

	/* A gc beside it takes nothing of what is pinned, and the next persist finds it there. */
	stock_gc(v.store);
	CHECK(store_has(v.store, OBJECT_TREE, &seen.id, &err) == 1);
	root = live_persist(&v);
	CHECK(object_id_equal(&seen.id, &root));
	store_unpin(v.store, OBJECT_TREE, &seen.id);
	store_unpin(v.store, OBJECT_TREE, &seen.id);

	live_put(&v, "new", "looked at, never persisted");
	CHECK_OK(layer_look(v.l, pin_state, NULL, &seen, &err), &err);
	store_unpin(v.store, OBJECT_TREE, &seen.id);
	live_crash(&v);
	CHECK(live_has(&v, "kept", "written since"));
	CHECK(live_has(&v, "new", "and this"));
}

/* A gc at the very moment in which it is pinned. */
static int pin_and_clean(struct batch *b, const struct layer_state *state, void *ctx,
			 struct err *err)
{
	int r = pin_state(b, state, ctx, err);

	stock_gc(batch_store(b));
	return r;
}

TEST(a_gc_finds_what_somebody_looks_at)
{
	CLEANUP(live_close) struct live v = { 0 };
	struct layer_state seen;
	struct err err = { 0 };

	live_open(&v, "look-gc");
	live_put(&v, "kept", "persisted");
	live_persist(&v);
	live_put(&v, "new", "looked at");
	CHECK_OK(layer_look(v.l, pin_and_clean, NULL, &seen, &err), &err);
	CHECK(store_has(v.store, OBJECT_TREE, &seen.id, &err) == 1);
	stock_gc(v.store);
	CHECK(store_has(v.store, OBJECT_TREE, &seen.id, &err) == 1);
	store_unpin(v.store, OBJECT_TREE, &seen.id);
}

TEST_MAIN("layer-freeze")
