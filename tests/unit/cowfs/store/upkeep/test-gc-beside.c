/*
 * A gc beside batches, commits and readers: none of them loses anything.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "tests/unit/cowfs/store/upkeep/gc-fixture.h"

/* --- beside batches --------------------------------------------------------------------------- */

/* A root "text" that is garbage, and enough else to have steps around it. */
static void prepare(struct store *s)
{
	leave_garbage(s, "before");
	leave_garbage(s, "text");
	leave_garbage(s, "after");
	stock_snapshot(s, "kept", "kept");
}

static struct store *store_with_garbage(const char *name)
{
	struct store *s = stock_open(test_path(name), STORE_CREATE);

	prepare(s);
	return s;
}

static void clear(struct store *s)
{
	stock_drop(s, "new");
	stock_drop(s, "kept");
	stock_gc(s);
	CHECK_EQ(stock_rows(s), 0);
}

static void check_kept(struct store *s, const struct object_id *root)
{
	const struct object_id kept = stock_root(s, "kept");

	CHECK(stock_root_is_whole(s, root, "text"));
	CHECK(stock_root_is_whole(s, &kept, "kept"));
	stock_check_clean(s);
	stock_gc(s);
	CHECK(stock_root_is_whole(s, root, "text"));
	CHECK_EQ(stock_rows(s), 6);
	stock_check_clean(s);
}

static bool expect_new; /* no put looks whether it is there */

static struct batch *begin(struct store *s)
{
	struct batch *b = stock_begin(s);

	if (expect_new)
		batch_expect_new(b);
	return b;
}

/*
 * Put what is garbage after `put_at` steps of a gc, name it after `commit_at`; the gc
 * goes on to its end, before the commit if that comes later.  How many steps there were.
 */
static unsigned put_beside_gc(struct store *s, unsigned put_at, unsigned commit_at)
{
	CLEANUP(batch_end_p) struct batch *b = put_at == 0 ? begin(s) : NULL;
	struct object_id root = { { 0 } };
	struct gc_progress p;
	struct gc *g;
	unsigned n = 0;
	bool more = true;

	if (put_at == 0)
		root = stock_put_root(b, "text");
	g = begin_gc(s);
	while (more) {
		n++;
		if (n == put_at) {
			b = begin(s);
			root = stock_put_root(b, "text");
		}
		if (n == commit_at) {
			stock_name(b, REF_SNAPSHOT, "new", &root, REF_NEW);
			stock_commit(b);
		}
		more = step(g, 1, &p);
	}
	gc_end(g);
	if (put_at > n) {
		b = begin(s);
		root = stock_put_root(b, "text");
	}
	if (commit_at > n) {
		stock_name(b, REF_SNAPSHOT, "new", &root, REF_NEW);
		stock_commit(b);
	}
	batch_end(b);
	b = NULL;
	check_kept(s, &root);
	return n;
}

static void put_beside_each_step(const char *name)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path(name), STORE_CREATE);
	unsigned steps = 1;

	for (unsigned put_at = 0; put_at <= steps + 1; put_at++)
		for (unsigned commit_at = put_at > 1 ? put_at : 1; commit_at <= steps + 1;
		     commit_at += commit_at < put_at + 2 ? 1 : 5) {
			prepare(s);
			steps = put_beside_gc(s, put_at, commit_at);
			clear(s);
		}
	CHECK(steps > 15);
}

TEST(garbage_that_a_batch_meets_at_any_step_is_there_when_it_is_named)
{
	put_beside_each_step("met");
}

TEST(garbage_that_a_batch_did_not_look_for_is_there_when_it_is_named)
{
	expect_new = true;
	put_beside_each_step("unlooked");
	expect_new = false;
}

TEST(garbage_met_before_the_sweep_is_kept_and_met_after_it_is_stored_anew)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("anew"), STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	struct object_id id;
	struct gc_progress p;
	struct gc *g;
	struct err err = { 0 };

	stock_put_text(b, "first");
	stock_put_text(b, "second");
	stock_commit(b);
	batch_end(b);
	b = stock_begin(s);
	g = begin_gc(s);
	while (step(g, 1, &p) && p.swept < 1)
		;
	CHECK_EQ(batch_put(b, OBJECT_CHUNK, "first", 5, &id, &err), 1);
	CHECK_EQ(batch_put(b, OBJECT_CHUNK, "second", 6, &id, &err), 0);
	finish_gc(g);
	CHECK_EQ(stock_sizes(s).chunks, 1);
	stock_commit(b);
	CHECK_EQ(stock_sizes(s).chunks, 2);
}

TEST(an_ended_batch_protects_nothing)
{
	CLEANUP(store_close_p) struct store *s = store_with_garbage("ended");
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);

	stock_put_root(b, "text");
	stock_commit(b);
	CHECK_EQ(stock_gc(s).swept, 6);
	batch_end(b);
	b = NULL;
	CHECK_EQ(stock_gc(s).swept, 3);
}

TEST(a_ref_committed_during_a_gc_keeps_all_it_reaches)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("during"), STORE_CREATE);
	bool more = true;

	for (unsigned at = 0; more; at++) {
		struct gc_progress p;
		struct gc *g;
		struct object_id a, b;

		prepare(s);
		g = begin_gc(s);
		for (unsigned i = 0; i < at && more; i++)
			more = step(g, 1, &p);
		a = stock_snapshot(s, "new", "text");
		b = stock_snapshot(s, "kept", "never seen before");
		finish_gc(g);
		CHECK(stock_root_is_whole(s, &a, "text"));
		CHECK(stock_root_is_whole(s, &b, "never seen before"));
		stock_check_clean(s);
		clear(s);
	}
}

TEST(a_ref_dropped_during_a_gc_is_garbage_for_the_next)
{
	CLEANUP(store_close_p) struct store *s = store_with_garbage("dropped");
	struct gc *g = begin_gc(s);

	stock_drop(s, "kept");
	finish_gc(g);
	CHECK_EQ(stock_rows(s), 3);
	CHECK_EQ(stock_gc(s).swept, 3);
}

/* --- beside other threads --------------------------------------------------------------------- */

#define WRITERS 2
#define TURNS   1500
#define SECONDS 3 /* at most: where each commit waits for a disk, fewer turns must do */

#define BLOCKS 5

struct writer {
	struct store *store;
	unsigned number;
	uint8_t *const
	    *blocks; /* large, so that a put takes long enough for a gc to come between */
	struct err err;
};

/* A thread must not jump into the test that waits for it, so nothing here may CHECK. */
static int put_chain(struct batch *b, const uint8_t *block, struct object_id *ret_root,
		     struct err *err)
{
	CLEANUP(tree_builder_free_p) struct tree_builder *t = NULL;
	struct tree_entry file = { .name = "file", .name_len = 4, .mode = S_IFREG | 0644 };
	struct root root = { .top = { .name = ROOT_TOP,
				      .name_len = strlen(ROOT_TOP),
				      .form = TREE_DIR,
				      .mode = S_IFDIR | 0755 } };
	struct content c;
	int r;

	r = content_put(b, block, CHUNK_SIZE_MAX, &c, err);
	if (r < 0)
		return r;
	tree_entry_set_content(&file, &c);
	r = tree_builder_new(b, &t, err);
	if (r >= 0)
		r = tree_builder_add(t, &file, err);
	if (r >= 0)
		r = tree_builder_finish(t, &root.top.id, &root.top.below, err);
	return r < 0 ? r : root_put(b, &root, ret_root, err);
}

static int take_turn(struct writer *w, unsigned turn)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	char name[32];
	struct ref ref = { .kind = REF_SNAPSHOT, .name = name };
	int r;

	/* Few names and few contents, so that what one drops another puts again. */
	snprintf(name, sizeof(name), "%u", w->number);
	ref.name_len = strlen(name);
	r = batch_begin(w->store, &b, &w->err);
	if (r >= 0)
		r = put_chain(b, w->blocks[turn % BLOCKS], &ref.root, &w->err);
	if (r >= 0)
		r = ref_put(b, &ref, REF_REPLACE, &w->err);
	if (r >= 0)
		r = batch_commit(b, BATCH_SAFE, &w->err);
	return r;
}

static void *write_turns(void *arg)
{
	struct writer *w = arg;
	const time_t end = time(NULL) + SECONDS;
	int r = 0;

	for (unsigned turn = 0; turn < TURNS && r >= 0 && time(NULL) <= end; turn++)
		r = take_turn(w, turn);
	w->err.code = r < 0 ? r : 0;
	return NULL;
}

struct collector {
	struct store *store;
	atomic_bool stop;
	struct err err;
	uint64_t swept;
};

static void *collect(void *arg)
{
	struct collector *c = arg;
	struct gc_progress p;
	int r = 0;

	while (r >= 0 && !atomic_load(&c->stop)) {
		r = gc_run(c->store, &p, &c->err);
		c->swept += p.swept;
	}
	c->err.code = r < 0 ? r : 0;
	return NULL;
}

TEST(writers_and_a_gc_in_threads_lose_nothing)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("threads"), STORE_CREATE);
	struct collector c = { .store = s };
	struct writer w[WRITERS];
	pthread_t writers[WRITERS], collector;
	uint8_t *blocks[BLOCKS];

	for (unsigned i = 0; i < BLOCKS; i++) {
		blocks[i] = malloc(CHUNK_SIZE_MAX);
		CHECK(blocks[i]);
		stock_noise(blocks[i], i);
	}
	CHECK_EQ(pthread_create(&collector, NULL, collect, &c), 0);
	for (unsigned i = 0; i < WRITERS; i++) {
		w[i] = (struct writer){ .store = s, .number = i, .blocks = blocks };
		CHECK_EQ(pthread_create(&writers[i], NULL, write_turns, &w[i]), 0);
	}
	for (unsigned i = 0; i < WRITERS; i++)
		CHECK_EQ(pthread_join(writers[i], NULL), 0);
	atomic_store(&c.stop, true);
	CHECK_EQ(pthread_join(collector, NULL), 0);
	for (unsigned i = 0; i < WRITERS; i++)
		CHECK_OK(w[i].err.code, &w[i].err);
	CHECK_OK(c.err.code, &c.err);
	stock_check_clean(s);
	stock_gc(s);
	stock_check_clean(s);
	CHECK(stock_rows(s) <= 3 * WRITERS);
	for (unsigned i = 0; i < BLOCKS; i++)
		free(blocks[i]);
}

TEST(a_reader_beside_a_gc_reads_on)
{
	const char *path = test_path("reader");
	CLEANUP(store_close_p) struct store *s = stock_open(path, STORE_CREATE);
	CLEANUP(store_close_p) struct store *r = stock_open(path, STORE_READ);
	const struct object_id kept = stock_snapshot(s, "kept", "kept");
	struct gc_progress p;
	struct gc *g;

	leave_garbage(s, "text");
	g = begin_gc(s);
	while (step(g, 1, &p))
		CHECK(stock_root_is_whole(r, &kept, "kept"));
	gc_end(g);
	CHECK(stock_root_is_whole(r, &kept, "kept"));
}

TEST(one_gc_at_a_time)
{
	CLEANUP(store_close_p) struct store *s = store_with_garbage("busy");
	struct gc *g = begin_gc(s), *other = NULL;
	struct gc_progress p;
	struct err err = { 0 };

	CHECK_EQ(gc_begin(s, &other, &err), -EBUSY);
	CHECK_HAS(err.msg, "a gc of store");
	CHECK_EQ(gc_run(s, &p, &err), -EBUSY);
	CHECK(!other);
	finish_gc(g);
	CHECK_EQ(stock_rows(s), 3);
}

TEST_MAIN("gc-beside")
