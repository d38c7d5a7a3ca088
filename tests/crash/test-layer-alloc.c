/*
 * Memory runs out at the n-th request within one operation of a layer.  The operation then says
 * -ENOMEM and has changed nothing, or does without; tried again it succeeds; and what is in memory
 * is what is stored in the end.  Every n up to 20 is tried and then a third, or all of them with
 * SNAP_TESTS_LONG.
 */
#include <errno.h>
#include <stdio.h>

#include "cowfs/store/catalog.h"
#include "tests/crash/heap.h"
#include "tests/lib/live.h"

#define BLOCK CHUNK_SIZE_MAX
#define MANY  600

static const struct layer_call call = { .uid = 1000, .gid = 1000, .may_wait = true };

static struct live v = { .options.persist_ms = 1000000 };
static struct object_id begin, other; /* roots: where each attempt begins, and one to go back to */
static struct buf at_begin;           /* a dump of the first */
static struct err why;

/* What an attempt has open. */
static uint64_t d, f, big, two, nameless;

static void write_at(const char *path, uint64_t off, int byte, size_t len)
{
	static uint8_t data[4 * BLOCK];

	memset(data, byte, len);
	CHECK_EQ(live_try_write(&v, path, off, data, len), 0);
}

static void set_xattr(const char *path, const char *value)
{
	uint64_t node = live_hold(&v, path);

	CHECK_EQ(layer_setxattr(v.l, &call, node, "user.a", value, strlen(value), 0, NULL), 0);
	live_drop(&v, node);
}

static struct object_id save(const char *name)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	struct object_id root = live_persist(&v);

	b = stock_begin(v.store);
	stock_name(b, REF_SNAPSHOT, name, &root, REF_NEW);
	stock_commit(b);
	return root;
}

static void furnish(void)
{
	char path[32];

	live_mkdir(&v, "d");
	live_mkdir(&v, "d/empty");
	live_put(&v, "d/f", "file");
	live_put(&v, "d/g", "another");
	live_put(&v, "big", "");
	write_at("big", 0, 1, 4 * BLOCK);
	live_put(&v, "two", "two");
	CHECK_EQ(live_try_link(&v, "two", "d/two"), 0);
	CHECK_EQ(live_try_symlink(&v, "target", "sym"), 0);
	set_xattr("d/f", "value");
	other = save("other");
	live_mkdir(&v, "many");
	for (unsigned i = 0; i < MANY; i++) {
		snprintf(path, sizeof(path), "many/name-that-is-not-short-%u", i);
		CHECK_EQ(live_try_make(&v, path, S_IFREG | 0644), 0);
	}
	live_put(&v, "d/g", "changed");
	CHECK_EQ(live_try_write(&v, "two", 0, "TWO", 3), 0);
	live_mkdir(&v, "d/new");
	live_put(&v, "d/new/n", "n");
	begin = save("begin");
	live_dump(&v, &at_begin, true);
}

/* Everything as it was in the beginning, with nothing in memory. */
static void start_over(void)
{
	CLEANUP(batch_end_p) struct batch *b = stock_begin(v.store);
	CLEANUP(clone_done) struct clone clone = { 0 };

	CHECK_OK(clone_get(v.store, "work", &clone, &why), &why);
	clone.root = begin;
	CHECK_OK(clone_put(b, &clone, REF_REPLACE, &why), &why);
	stock_commit(b);
	live_crash(&v);
	d = live_hold(&v, "d");
	f = live_hold(&v, "d/f");
	big = live_hold(&v, "big");
	two = live_hold(&v, "d/two");
}

static void let_go(void)
{
	uint64_t *const nodes[] = { &d, &f, &big, &two, &nameless };

	for (size_t i = 0; i < ARRAY_LEN(nodes); i++) {
		if (*nodes[i])
			live_drop(&v, *nodes[i]);
		*nodes[i] = 0;
	}
}

/* --- what is tried ------------------------------------------------------------------------ */

static int drop_found(int r, const struct layer_found *found)
{
	if (r >= 0)
		live_drop(&v, found->node);
	return r;
}

static int make(void)
{
	struct layer_found found;

	return drop_found(layer_make(v.l, &call, d, "made", S_IFREG | 0644, 0, &found, &why),
			  &found);
}

static int make_symlink(void)
{
	struct layer_found found;

	return drop_found(layer_symlink(v.l, &call, LAYER_ROOT, "made", "there", &found, &why),
			  &found);
}

static int make_nameless(void)
{
	struct layer_found found;
	int r = layer_make_nameless(v.l, &call, d, S_IFREG | 0600, &found, &why);

	if (r >= 0)
		nameless = found.node;
	return r;
}

static int look_up(void)
{
	struct layer_found found;

	return drop_found(layer_lookup(v.l, &call, LAYER_ROOT, "two", &found, &why), &found);
}

static int link_file(void)
{
	struct layer_found found;

	return drop_found(layer_link(v.l, &call, f, LAYER_ROOT, "linked", &found, &why), &found);
}

static int link_again(void)
{
	struct layer_found found;

	return drop_found(layer_link(v.l, &call, two, d, "linked", &found, &why), &found);
}

static int unlink_open(void)
{
	return layer_unlink(v.l, &call, d, "f", &why);
}

static int unlink_link(void)
{
	return layer_unlink(v.l, &call, LAYER_ROOT, "two", &why);
}

static int remove_dir(void)
{
	return layer_rmdir(v.l, &call, d, "empty", &why);
}

static int rename_over(void)
{
	return layer_rename(v.l, &call, d, "g", LAYER_ROOT, "two", 0, &why);
}

static int rename_dir(void)
{
	return layer_rename(v.l, &call, d, "new", d, "empty", LAYER_RENAME_WHITEOUT, &why);
}

static int exchange(void)
{
	return layer_rename(v.l, &call, LAYER_ROOT, "sym", d, "new", LAYER_RENAME_EXCHANGE, &why);
}

static int same_file(void)
{
	return layer_rename(v.l, &call, LAYER_ROOT, "two", d, "two", 0, &why);
}

/* Into the middle of blocks that are stored, twice into one of them. */
static int write_middle(void)
{
	return layer_write(v.l, &call, big, BLOCK + 1000, "somewhere", 9, false, &why);
}

static int write_between(void)
{
	static const uint8_t data[2 * BLOCK];

	return layer_write(v.l, &call, big, BLOCK / 2, data, sizeof(data), false, &why);
}

static int truncate_file(void)
{
	struct stat st = { .st_size = BLOCK + 77 };

	return layer_setattr(v.l, &call, big, &st, LAYER_SET_SIZE, &st, &why);
}

static int punch(void)
{
	return layer_allocate(v.l, &call, big, LAYER_ALLOC_PUNCH | LAYER_ALLOC_KEEP_SIZE, BLOCK / 2,
			      2 * BLOCK, &why);
}

static int read_all(void)
{
	struct layer_bytes bytes = { 0 };
	int r = layer_read(v.l, &call, big, 0, 4 * BLOCK, &bytes, &why);

	if (r >= 0)
		layer_bytes_done(&bytes);
	return r;
}

static int copy_whole(void)
{
	return (int)layer_copy(v.l, &call, big, 0, nameless, 0, 4 * BLOCK, &why);
}

static int set_attribute(void)
{
	return layer_setxattr(v.l, &call, f, "user.b", "new", 3, 0, &why);
}

static int remove_attribute(void)
{
	return layer_removexattr(v.l, &call, f, "user.a", &why);
}

static int give_node(void *ctx, const char *name, const struct layer_found *found, uint64_t next)
{
	uint64_t *nodes = ctx;

	if (nodes[0] == 100)
		return 1;
	if (found->node)
		nodes[++nodes[0]] = found->node;
	return 0;
}

static int list_many(void)
{
	uint64_t nodes[101] = { 0 };
	struct layer_found found;
	int r = layer_lookup(v.l, &call, LAYER_ROOT, "many", &found, &why);

	if (r < 0)
		return r;
	r = layer_readdir(v.l, &call, found.node, 0, true, give_node, nodes, &why);
	for (; nodes[0] > 0; nodes[0]--)
		live_drop(&v, nodes[nodes[0]]);
	live_drop(&v, found.node);
	return r;
}

static int persist(void)
{
	struct layer_state stored;

	return layer_persist(v.l, BATCH_SAFE, NULL, NULL, &stored, &why);
}

static int roll_back(void)
{
	struct layer_changes changes = { 0 };
	int r = live_roll_back(v.l, &other, NULL, NULL, &changes, &why);

	layer_changes_done(&changes);
	return r;
}

/* --- what there is before it -------------------------------------------------------------- */

static void write_once(void)
{
	write_at("big", BLOCK + 5000, 7, 100);
}

static void have_nameless(void)
{
	CHECK_EQ(make_nameless(), 0);
}

/* Some of everything is changed and not stored. */
static void change_all(void)
{
	write_once();
	live_put(&v, "d/new/more", "more");
	live_mkdir(&v, "fresh");
	live_put(&v, "fresh/f", "f");
	set_xattr("fresh/f", "new");
	CHECK_EQ(live_try_link(&v, "d/f", "fresh/linked"), 0);
	CHECK_EQ(live_try_write(&v, "two", 1, "w", 1), 0);
	CHECK_EQ(live_try_unlink(&v, "d/g"), 0);
	CHECK_EQ(live_try_rename(&v, "d/new", "fresh/new", 0), 0);
	have_nameless();
}

static const struct attempt {
	const char *name;
	int (*run)(void);
	void (*prepare)(void);
} attempts[] = {
	{ "make", make, NULL },
	{ "symlink", make_symlink, NULL },
	{ "nameless", make_nameless, NULL },
	{ "lookup", look_up, NULL },
	{ "link", link_file, NULL },
	{ "link again", link_again, NULL },
	{ "unlink", unlink_open, NULL },
	{ "unlink a link", unlink_link, NULL },
	{ "rmdir", remove_dir, NULL },
	{ "rename", rename_over, NULL },
	{ "rename a directory", rename_dir, NULL },
	{ "exchange", exchange, NULL },
	{ "rename to itself", same_file, NULL },
	{ "write", write_middle, write_once },
	{ "write much", write_between, write_once },
	{ "truncate", truncate_file, write_once },
	{ "punch", punch, write_once },
	{ "read", read_all, write_once },
	{ "copy", copy_whole, have_nameless },
	{ "setxattr", set_attribute, NULL },
	{ "removexattr", remove_attribute, NULL },
	{ "readdir", list_many, NULL },
	{ "persist", persist, change_all },
	{ "rollback", roll_back, change_all },
};

/* --- trying ------------------------------------------------------------------------------- */

static void must_be_stored(void)
{
	CLEANUP(buf_done) struct buf before = BUF_INIT, after = BUF_INIT;
	struct layers_stats stats;

	let_go();
	live_dump(&v, &before, true);
	live_persist(&v);
	live_dump(&v, &after, true);
	CHECK_STR((char *)after.data, (char *)before.data);
	layers_stats(v.layers, &stats);
	CHECK_EQ(stats.nodes, 2);
	CHECK_EQ(stats.dirty, 0);
	live_crash(&v);
	live_dump(&v, &after, true);
	CHECK_STR((char *)after.data, (char *)before.data);
}

/* False once all requests were granted. */
static bool try_once(const struct attempt *a, uint64_t n)
{
	CLEANUP(buf_done) struct buf prepared = BUF_INIT, after = BUF_INIT;
	const struct buf *before =
	    &at_begin; /* looking now would load what the attempt is to load */
	uint64_t refused;
	int r;

	start_over();
	if (a->prepare) {
		a->prepare();
		live_dump(&v, &prepared, true);
		before = &prepared;
	}
	heap_fail_at(n, HEAP_OURS, false);
	r = a->run();
	refused = heap_calm();
	if (r < 0) {
		CHECK_EQ(r, -ENOMEM);
		live_dump(&v, &after, true);
		CHECK_STR((char *)after.data, (char *)before->data);
		CHECK_OK(a->run(), &why);
	}
	/* Comparing all of it is most of the work: for the first ones, and then for some. */
	if (n <= 6 || n % 7 == 0 || refused == 0 || getenv("SNAP_TEST_EVERY"))
		must_be_stored();
	return refused > 0;
}

TEST(an_operation_without_memory_changes_nothing_and_can_be_tried_again)
{
	uint64_t n;

	live_open(&v, "store");
	furnish();
	for (size_t i = 0; i < ARRAY_LEN(attempts); i++) {
		for (n = 1; try_once(&attempts[i], n); n += n < 20 ? 1 : test_stride())
			CHECK(n < 2000);
		printf("# %s: %ju\n", attempts[i].name, (uintmax_t)n - 1);
	}
	stock_check_clean(v.store);
	live_close(&v);
	buf_done(&at_begin);
}

TEST_MAIN("layer-alloc")
