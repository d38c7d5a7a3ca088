/*
 * What a rollback does to the numbers: growth that counts against the quota, nodes in
 * memory, inode numbers.
 */
#include <errno.h>

#include "cowfs/store/catalog.h"
#include "tests/lib/live.h"

#define MIB ((uint64_t)1 << 20)

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

static void roll_back(struct live *v, const struct object_id *root)
{
	CLEANUP(layer_changes_done) struct layer_changes changes = { 0 };
	struct err err = { 0 };

	CHECK_OK(live_roll_back(v->l, root, NULL, NULL, &changes, &err), &err);
}

/* Of the clone's record, which may be negative. */
static int64_t grown(struct live *v)
{
	CLEANUP(clone_done) struct clone clone = { 0 };
	struct err err = { 0 };

	CHECK_OK(clone_get(v->store, "work", &clone, &err), &err);
	return clone.grown;
}

static void put_bytes(struct live *v, const char *path, uint64_t off, size_t len)
{
	static uint8_t block[MIB];
	int r = live_try_make(v, path, S_IFREG | 0644);

	CHECK(r == 0 || r == -EEXIST);
	for (size_t done = 0; done < len; done += MIB)
		CHECK_EQ(
		    live_try_write(v, path, off + done, block, len - done < MIB ? len - done : MIB),
		    0);
}

TEST(growth_goes_back_with_the_files)
{
	CLEANUP(live_close) struct live v = { .options.persist_ms = 1000000 };
	struct object_id small, large;

	live_open(&v, "growth");
	put_bytes(&v, "keep", 0, MIB);
	small = save(&v, "small");
	live_mkdir(&v, "d");
	live_mkdir(&v, "d/e");
	put_bytes(&v, "d/e/f", 0, 2 * MIB);
	put_bytes(&v, "keep", MIB, MIB);
	put_bytes(&v, "two", 0, MIB);
	CHECK_EQ(live_try_link(&v, "two", "d/two"), 0);
	large = save(&v, "large");
	CHECK_EQ(grown(&v), 5 * MIB);
	roll_back(&v, &small);
	CHECK_EQ(grown(&v), MIB);
	live_reopen(&v);
	CHECK_EQ(grown(&v), MIB);
	roll_back(&v, &large);
	CHECK_EQ(grown(&v), 5 * MIB);
	live_crash(&v);
	put_bytes(&v, "more", 0, MIB);
	live_persist(&v);
	CHECK_EQ(grown(&v), 6 * MIB);
}

TEST(holes_do_not_count)
{
	CLEANUP(live_close) struct live v = { .options.persist_ms = 1000000 };
	struct object_id empty;

	live_open(&v, "holes");
	empty = save(&v, "empty");
	put_bytes(&v, "sparse", 1024 * MIB, 65536);
	live_mkdir(&v, "d");
	put_bytes(&v, "d/sparse", 1024 * MIB, 65536);
	live_persist(&v);
	CHECK_EQ(grown(&v), 2 * 65536);
	roll_back(&v, &empty);
	CHECK_EQ(grown(&v), 0);
}

TEST(a_file_that_somebody_has_open_counts_until_he_closes_it)
{
	CLEANUP(live_close) struct live v = { .options.persist_ms = 1000000 };
	struct layer_usage usage;
	struct object_id empty;
	uint64_t node;

	live_open(&v, "open");
	live_put(&v, "x", "x");
	empty = save(&v, "empty");
	put_bytes(&v, "f", 0, 2 * MIB);
	node = live_hold(&v, "f");
	roll_back(&v, &empty);
	layer_usage(v.l, &usage);
	CHECK_EQ(usage.used, 2 * MIB + 1);
	live_drop(&v, node);
	layer_usage(v.l, &usage);
	CHECK_EQ(usage.used, 1);
	live_put(&v, "y", "yy");
	live_persist(&v);
	CHECK_EQ(grown(&v), 3);
}

TEST(nothing_stays_in_memory_that_nobody_needs)
{
	CLEANUP(live_close) struct live v = { .options.persist_ms = 1000000 };
	struct layers_stats stats;
	struct object_id root;
	uint64_t nodes[4];

	live_open(&v, "memory");
	live_mkdir(&v, "d");
	live_mkdir(&v, "d/e");
	live_put(&v, "d/e/changed", "old");
	live_put(&v, "d/two", "two");
	CHECK_EQ(live_try_link(&v, "d/two", "two"), 0);
	root = save(&v, "s");
	live_put(&v, "d/e/changed", "new");
	live_put(&v, "d/e/added", "added");
	CHECK_EQ(live_try_write(&v, "two", 0, "TWO", 3), 0);
	CHECK_EQ(live_try_rename(&v, "d/two", "d/e/two", 0), 0);
	nodes[0] = live_hold(&v, "d/e/changed");
	nodes[1] = live_hold(&v, "d/e/added");
	nodes[2] = live_hold(&v, "d/e/two");
	nodes[3] = live_hold(&v, "two");
	roll_back(&v, &root);
	for (size_t i = 0; i < ARRAY_LEN(nodes); i++)
		live_drop(&v, nodes[i]);
	layers_stats(v.layers, &stats);
	CHECK_EQ(stats.nodes, 2);
	stock_check_clean(v.store);
}

static struct live *looking;

/* Somebody looks around between the moment that all is ready and the commit. */
static int look_around(struct batch *b, const struct layer_state *state, void *ctx, struct err *err)
{
	const struct layer_call no_wait = { .uid = 1000, .gid = 1000 };
	struct layer_found found;
	uint64_t *held = ctx;

	CHECK_EQ(layer_lookup(looking->l, &no_wait, LAYER_ROOT, "not-loaded", &found, NULL),
		 -EAGAIN);
	CHECK_EQ(layer_lookup(looking->l, &no_wait, LAYER_ROOT, "gone", &found, NULL), 0);
	live_drop(looking, found.node);
	live_drop(looking, *held);
	return 0;
}

TEST(who_looks_meanwhile_sees_what_there_was_or_waits)
{
	CLEANUP(layer_changes_done) struct layer_changes changes = { 0 };
	CLEANUP(live_close) struct live v = { .options.persist_ms = 1000000 };
	CLEANUP(buf_done) struct buf before = BUF_INIT, after = BUF_INIT;
	struct object_id root;
	struct err err = { 0 };
	uint64_t dir, gone;

	live_open(&v, "meanwhile");
	live_mkdir(&v, "d");
	live_put(&v, "d/f", "f");
	live_put(&v, "not-loaded", "old");
	root = save(&v, "s");
	live_dump(&v, &before, true);
	live_put(&v, "not-loaded", "new");
	live_put(&v, "gone", "gone");
	live_put(&v, "d/f", "changed");
	live_reopen(&v);
	dir = live_hold(&v, "d/f");
	gone = live_hold(&v, "gone");
	looking = &v;
	CHECK_OK(live_roll_back(v.l, &root, look_around, &dir, &changes, &err), &err);
	live_drop(&v, gone);
	live_dump(&v, &after, true);
	CHECK_STR((char *)after.data, (char *)before.data);
}

static int collect(struct batch *b, const struct layer_state *state, void *ctx, struct err *err)
{
	struct object_id *now = ctx;

	*now = state->id;
	return 0;
}

TEST(what_was_there_can_be_named_in_the_same_step)
{
	CLEANUP(layer_changes_done) struct layer_changes changes = { 0 };
	CLEANUP(live_close) struct live v = { .options.persist_ms = 1000000 };
	struct object_id root, now;
	struct err err = { 0 };
	struct layer_found found;

	live_open(&v, "named");
	root = save(&v, "s");
	live_put(&v, "f", "f");
	CHECK_OK(live_roll_back(v.l, &root, collect, &now, &changes, &err), &err);
	CHECK_EQ(layer_lookup(v.l, &call, LAYER_ROOT, "f", &found, &err), -ENOENT);
	roll_back(&v, &now);
	CHECK(live_has(&v, "f", "f"));
}

/* --- towards another base --------------------------------------------------------------- */

static const struct catalog_id new_base = { { 7, 7, 7 } };

static bool has_new_base(struct live *v)
{
	CLEANUP(clone_done) struct clone clone = { 0 };
	struct err err = { 0 };

	CHECK_OK(clone_get(v->store, "work", &clone, &err), &err);
	return catalog_id_same(&clone.base, &new_base);
}

TEST(a_clone_has_grown_since_the_base_that_it_got)
{
	CLEANUP(layer_changes_done) struct layer_changes changes = { 0 };
	CLEANUP(live_close) struct live v = { .options.persist_ms = 1000000 };
	struct snapshot from = { 0 }, to = { .id = new_base };
	struct object_id both;
	struct err err = { 0 };

	live_open(&v, "rebased");
	from.root = save(&v, "from");
	put_bytes(&v, "theirs", 0, 4 * MIB);
	to.root = save(&v, "to");
	put_bytes(&v, "mine", 0, MIB);
	both = save(&v, "both");
	roll_back(&v, &from.root);
	put_bytes(&v, "mine", 0, MIB);
	CHECK_OK(layer_rebase(v.l,
			      &(struct layer_rebase){ .target = &both, .from = &from, .to = &to },
			      &changes, &err),
		 &err);
	CHECK_EQ(grown(&v), MIB);
	CHECK(has_new_base(&v));
	/* What is persisted later says the same. */
	put_bytes(&v, "more", 0, MIB);
	live_persist(&v);
	live_reopen(&v);
	CHECK_EQ(grown(&v), 2 * MIB);
	CHECK(has_new_base(&v));
}

struct chooser {
	struct live *v;
	struct object_id now, to;
	int answer;
};

/* Nobody can write while it is chosen what to show. */
static int choose(const struct layer_state *now, struct object_id *ret, void *ctx, struct err *err)
{
	const struct layer_call no_wait = { .uid = 1000, .gid = 1000 };
	struct chooser *c = ctx;
	struct layer_found found;

	c->now = now->id;
	*ret = c->to;
	CHECK_EQ(layer_make(c->v->l, &no_wait, LAYER_ROOT, "late", S_IFREG | 0644, 0, &found, NULL),
		 -EAGAIN);
	return c->answer < 0 ? err_set(err, c->answer, "no") : 0;
}

TEST(what_to_show_is_chosen_when_nothing_changes_any_more)
{
	CLEANUP(layer_changes_done) struct layer_changes changes = { 0 };
	CLEANUP(live_close) struct live v = { .options.persist_ms = 1000000 };
	struct chooser c = { .v = &v, .answer = -EIO };
	struct layer_found found;
	const struct layer_rebase how = { .choose = choose, .ctx = &c };
	struct err err = { 0 };

	live_open(&v, "chosen");
	c.to = save(&v, "s");
	live_put(&v, "f", "f");
	CHECK_EQ(layer_rebase(v.l, &how, &changes, &err), -EIO);
	CHECK(live_has(&v, "f", "f"));
	c.answer = 0;
	CHECK_OK(layer_rebase(v.l, &how, &changes, &err), &err);
	CHECK_EQ(layer_lookup(v.l, &call, LAYER_ROOT, "f", &found, &err), -ENOENT);
	roll_back(&v, &c.now);
	CHECK(live_has(&v, "f", "f"));
}

TEST_MAIN("rollback-count")
