/*
 * What a clone pays for beside the bytes of its files: inodes, names, targets, attributes.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

#include "cowfs/store/catalog.h"
#include "tests/lib/live.h"

#define MIB ((uint64_t)1 << 20)

static const struct layer_call call = { .uid = 1000, .gid = 1000, .may_wait = true };

static int set_xattr(struct live *v, const char *path, const char *name, size_t len)
{
	static uint8_t value[64 << 10];
	const uint64_t node = live_hold(v, path);
	int r;

	/* No two are the same, or the store would keep one of them. */
	snprintf((char *)value, 64, "%s of %s", name, path);
	r = layer_setxattr(v->l, &call, node, name, value, len, 0, NULL);
	live_drop(v, node);
	return r;
}

/* Of the clone's record. */
static int64_t recorded(struct live *v)
{
	CLEANUP(clone_done) struct clone clone = { 0 };
	struct err err = { 0 };

	CHECK_OK(clone_get(v->store, "work", &clone, &err), &err);
	return clone.meta;
}

static uint64_t charged(struct live *v)
{
	struct layer_usage usage;

	layer_usage(v->l, &usage);
	return usage.charged;
}

static void roll_back(struct live *v, const struct object_id *root)
{
	CLEANUP(layer_changes_done) struct layer_changes changes = { 0 };
	struct err err = { 0 };

	CHECK_OK(live_roll_back(v->l, root, NULL, NULL, &changes, &err), &err);
}

TEST(attributes_count_against_the_limit_and_come_back)
{
	CLEANUP(live_close) struct live v = { 0 };
	struct layer_usage usage;
	char path[16];
	int n = 0, r = 0;

	live_open(&v, "attributes");
	layer_set_ceiling(v.l, MIB);
	for (; n < 1000 && r == 0; n++) {
		snprintf(path, sizeof(path), "f%d", n);
		live_put(&v, path, "");
		r = set_xattr(&v, path, "user.big", 60 << 10);
	}
	CHECK_EQ(r, -ENOSPC);
	CHECK(n > 20 && n < 40); /* a MiB that is free, and the one of the limit */
	layer_usage(v.l, &usage);
	CHECK(usage.refused > 0);
	CHECK(usage.charged <= MIB);
	CHECK_EQ(usage.used, 0);
	CHECK_EQ(set_xattr(&v, "f0", "user.big", 60 << 10), 0); /* no more than it was */
	CHECK_EQ(set_xattr(&v, "f0", "user.more", 60 << 10), -ENOSPC);
	live_persist(&v);
	CHECK_EQ(set_xattr(&v, "f0", "user.more", 60 << 10), -ENOSPC);
	CHECK_EQ(live_try_unlink(&v, "f1"), 0);
	CHECK_EQ(live_try_unlink(&v, "f2"), 0);
	CHECK_EQ(set_xattr(&v, "f0", "user.more", 3 << 10), 0);
}

TEST(names_and_targets_count_too)
{
	CLEANUP(live_close) struct live v = { 0 };
	char target[4001], path[64];
	int n, r = 0;

	memset(target, 't', sizeof(target) - 1);
	target[sizeof(target) - 1] = '\0';
	live_open(&v, "names");
	layer_set_ceiling(v.l, MIB);
	live_put(&v, "one", "");
	for (n = 0; n < 100000 && r == 0; n++) {
		snprintf(path, sizeof(path), "s%d", n);
		r = live_try_symlink(&v, target, path);
	}
	CHECK_EQ(r, -ENOSPC);
	CHECK(n < 1000);
	for (int i = 0; i < n - 1; i++) {
		snprintf(path, sizeof(path), "s%d", i);
		CHECK_EQ(live_try_unlink(&v, path), 0);
	}
	CHECK_EQ(charged(&v), 0);
	for (n = 0, r = 0; n < 100000 && r == 0; n++) {
		snprintf(path, sizeof(path), "a_rather_long_name_of_a_link_that_is_hard_%d", n);
		r = live_try_link(&v, "one", path);
	}
	CHECK_EQ(r, -ENOSPC);
	CHECK(n < 25000);
}

TEST(there_are_only_so_many_inodes)
{
	CLEANUP(live_close) struct live v = { 0 };
	struct layer_usage usage;
	struct layer_found found;
	char path[16];

	live_open(&v, "inodes");
	live_put(&v, "first", "");
	layer_usage(v.l, &usage);
	CHECK_EQ(usage.inodes, 1);
	layer_set_nodes_ceiling(v.l, 10);
	for (int i = 1; i < 10; i++) {
		snprintf(path, sizeof(path), "d%d", i);
		live_mkdir(&v, path);
	}
	CHECK_EQ(live_try_make(&v, "more", S_IFREG | 0644), -ENOSPC);
	CHECK_EQ(live_try_make(&v, "more", S_IFDIR | 0755), -ENOSPC);
	CHECK_EQ(live_try_make(&v, "more", S_IFIFO | 0644), -ENOSPC);
	CHECK_EQ(live_try_symlink(&v, "x", "more"), -ENOSPC);
	CHECK_EQ(layer_make_nameless(v.l, &call, LAYER_ROOT, S_IFREG | 0600, &found, NULL),
		 -ENOSPC);
	CHECK_EQ(live_try_link(&v, "first", "second"), 0); /* no inode */
	layer_usage(v.l, &usage);
	CHECK_EQ(usage.nodes_refused, 5);
	CHECK_EQ(usage.refused, 0);
	live_persist(&v);
	CHECK_EQ(live_try_make(&v, "more", S_IFREG | 0644), -ENOSPC);
	CHECK_EQ(live_try_rmdir(&v, "d1"), 0);
	CHECK_EQ(layer_make_nameless(v.l, &call, LAYER_ROOT, S_IFREG | 0600, &found, NULL), 0);
	CHECK_EQ(live_try_make(&v, "more", S_IFREG | 0644), -ENOSPC);
	live_drop(&v, found.node);
	CHECK_EQ(live_try_make(&v, "more", S_IFREG | 0644), 0);
	layer_set_nodes_ceiling(v.l, 0);
	CHECK_EQ(live_try_make(&v, "again", S_IFREG | 0644), 0);
}

TEST(attributes_are_dirty_memory)
{
	CLEANUP(live_close) struct live v = { .options.dirty_max = 8 * MIB,
					      .options.persist_ms = 1000000 };
	struct layers_stats stats;
	char path[16];

	live_open(&v, "dirty");
	for (int i = 0; i < 512; i++) {
		snprintf(path, sizeof(path), "f%d", i);
		live_put(&v, path, "");
		CHECK_EQ(set_xattr(&v, path, "user.big", 60 << 10), 0);
		layers_stats(v.layers, &stats);
		CHECK(stats.dirty <= 9 * MIB);
	}
	CHECK(stats.persists > 0);
	live_persist(&v);
	layers_stats(v.layers, &stats);
	CHECK_EQ(stats.dirty, 0);
}

struct hog {
	struct layer *l;
	sem_t begun, go_on;
};

static int hold_persist(struct batch *b, const struct layer_state *state, void *ctx,
			struct err *err)
{
	struct hog *h = ctx;

	(void)b;
	(void)state;
	(void)err;
	sem_post(&h->begun);
	sem_wait(&h->go_on);
	return 0;
}

static void *persist_slowly(void *ctx)
{
	struct hog *h = ctx;
	struct layer_state state;
	struct err err = { 0 };

	CHECK_OK(layer_persist(h->l, BATCH_SAFE, hold_persist, h, &state, &err), &err);
	return NULL;
}

static struct layer *open_other(struct live *v)
{
	CLEANUP(clone_done) struct clone clone = { 0 };
	CLEANUP(batch_end_p) struct batch *b = NULL;
	struct layer *l;
	struct err err = { 0 };

	CHECK_OK(clone_get(v->store, "work", &clone, &err), &err);
	free(clone.name);
	clone.name = strdup("other");
	b = stock_begin(v->store);
	CHECK_OK(clone_put(b, &clone, REF_REPLACE, &err), &err);
	stock_commit(b);
	CHECK_OK(layer_open(v->layers, "other", &l, &err), &err);
	return l;
}

TEST(who_takes_all_memory_leaves_some_for_others)
{
	const struct layer_call at_once = { .uid = 1000, .gid = 1000 };
	CLEANUP(live_close) struct live v = { .options.dirty_max = 8 * MIB,
					      .options.persist_ms = 1000000 };
	static const uint8_t block[64 << 10];
	struct layer_found hogs, others;
	struct layer *other;
	pthread_t thread;
	struct hog hog;
	int n = 0, r = 0;

	live_open(&v, "share");
	other = open_other(&v);
	hog.l = v.l;
	CHECK_EQ(sem_init(&hog.begun, 0, 0), 0);
	CHECK_EQ(sem_init(&hog.go_on, 0, 0), 0);
	CHECK_EQ(layer_make(v.l, &call, LAYER_ROOT, "big", S_IFREG | 0644, 0, &hogs, NULL), 0);
	CHECK_EQ(layer_make(other, &call, LAYER_ROOT, "f", S_IFREG | 0644, 0, &others, NULL), 0);
	/* Nothing of it can be persisted meanwhile. */
	CHECK_EQ(pthread_create(&thread, NULL, persist_slowly, &hog), 0);
	sem_wait(&hog.begun);
	for (uint64_t i = 0; i < 1000 && r == 0; i++)
		r = layer_write(v.l, &at_once, hogs.node, i * sizeof(block), block, sizeof(block),
				false, NULL);
	CHECK_EQ(r, -EAGAIN);
	for (r = 0; n < 1000 && r == 0; n++)
		r = layer_write(other, &at_once, others.node, (uint64_t)n * sizeof(block), block,
				sizeof(block), false, NULL);
	CHECK_EQ(r, -EAGAIN);
	CHECK(n >= 8); /* a sixteenth */
	sem_post(&hog.go_on);
	pthread_join(thread, NULL);
	layer_discard(other);
	live_drop(&v, hogs.node);
}

static void change_something(struct live *v, struct test_rng *rng, bool xattrs)
{
	char a[16], b[40];

	snprintf(a, sizeof(a), "n%d", (int)(test_rand(rng) % 12));
	snprintf(b, sizeof(b), test_rand(rng) % 2 ? "n%d" : "a_longer_name_%d",
		 (int)(test_rand(rng) % 12));
	switch (test_rand(rng) % 8) {
	case 0:
		IGNORE_RESULT(live_try_make(v, a, S_IFREG | 0644), "it may be there");
		break;
	case 1:
		IGNORE_RESULT(live_try_symlink(v, "some/where", b), "the same");
		break;
	case 2:
		IGNORE_RESULT(live_try_link(v, a, b), "it may not be there");
		break;
	case 3:
		IGNORE_RESULT(live_try_rename(v, a, b, 0), "the same");
		break;
	case 4:
		IGNORE_RESULT(live_try_unlink(v, b), "the same");
		break;
	case 5:
		IGNORE_RESULT(live_try_make(v, b, S_IFDIR | 0755), "it may be there");
		break;
	case 6:
		if (xattrs && live_try_make(v, a, S_IFREG | 0644) == -EEXIST)
			IGNORE_RESULT(set_xattr(v, a, "user.x", 100 + test_rand(rng) % 300),
				      "it may be a symlink");
		break;
	default:
		if (test_rand(rng) % 4 == 0)
			live_persist(v);
		IGNORE_RESULT(live_try_rename(v, a, b, LAYER_RENAME_EXCHANGE), "it may not be");
	}
}

TEST(going_back_gives_back_exactly_what_was_charged)
{
	CLEANUP(live_close) struct live v = { .options.persist_ms = 1000000 };
	struct test_rng rng = { .s = 18 };
	struct object_id empty;

	live_open(&v, "back");
	empty = live_persist(&v);
	for (int round = 0; round < 40; round++) {
		int64_t before;

		for (int i = 0; i < 60; i++)
			change_something(&v, &rng, round >= 20);
		live_persist(&v);
		before = recorded(&v);
		CHECK(before > 0);
		live_reopen(&v);
		CHECK_EQ(recorded(&v), before);
		roll_back(&v, &empty);
		if (round < 20)
			CHECK_EQ(recorded(&v), 0);
		/* Attributes that were stored and then removed unread stay charged. */
		CHECK(recorded(&v) >= 0 && recorded(&v) < 40 * 60 * 500);
	}
}

static void keep_root(struct live *v, const struct object_id *root, int n)
{
	struct batch *b = stock_begin(v->store);
	char name[16];

	snprintf(name, sizeof(name), "r%d", n);
	stock_name(b, REF_SNAPSHOT, name, root, REF_REPLACE);
	stock_commit(b);
	batch_end(b);
}

#define HELD 6

static void hold_or_drop(struct live *v, struct test_rng *rng, uint64_t held[static HELD])
{
	uint64_t *at = &held[test_rand(rng) % HELD];
	struct layer_found found;
	struct stat st;
	char name[16];

	if (*at != 0) {
		live_drop(v, *at);
		*at = 0;
		return;
	}
	snprintf(name, sizeof(name), "n%d", (int)(test_rand(rng) % 12));
	if (test_rand(rng) % 3 == 0) {
		CHECK_EQ(layer_make_nameless(v->l, &call, LAYER_ROOT, S_IFREG | 0600, &found, NULL),
			 0);
		*at = found.node;
		if (test_rand(rng) % 2 == 0 &&
		    layer_link(v->l, &call, *at, LAYER_ROOT, name, &found, NULL) == 0)
			live_drop(v, found.node);
	} else if (live_try_stat(v, name, &st) == 0) {
		*at = live_hold(v, name);
	}
}

static void write_something(struct live *v, struct test_rng *rng)
{
	static const uint8_t block[20000];
	char name[16];

	snprintf(name, sizeof(name), "n%d", (int)(test_rand(rng) % 12));
	IGNORE_RESULT(live_try_write(v, name, test_rand(rng) % 9000, block,
				     1 + test_rand(rng) % sizeof(block)),
		      "it may not be a file");
	if (test_rand(rng) % 3 == 0)
		IGNORE_RESULT(live_try_truncate(v, name, test_rand(rng) % 30000), "the same");
	if (test_rand(rng) % 3 == 0)
		IGNORE_RESULT(live_try_rename(v, name, "n3", LAYER_RENAME_WHITEOUT), "the same");
}

/* Also of what is removed, replaced or rolled back while somebody has it open. */
TEST(what_is_charged_is_what_the_trees_differ_by)
{
	CLEANUP(live_close) struct live v = { .options.persist_ms = 1000000 };
	struct test_rng rng = { .s = 19 };
	struct object_id empty, root, roots[40];
	struct layer_usage usage;
	struct err err = { 0 };

	live_open(&v, "trees");
	empty = live_persist(&v);
	for (int round = 0; round < 40; round++) {
		uint64_t held[HELD] = { 0 };
		struct layer_growth more;

		for (int i = 0; i < 60; i++) {
			change_something(&v, &rng, false);
			write_something(&v, &rng);
			hold_or_drop(&v, &rng, held);
			if (round > 0 && i == 30 && round % 3 == 0)
				roll_back(&v, &roots[test_rand(&rng) % (unsigned)round]);
		}
		for (int i = 0; i < HELD; i++)
			if (held[i] != 0)
				live_drop(&v, held[i]);
		root = roots[round] = live_persist(&v);
		keep_root(&v, &root, round);
		CHECK_OK(layer_growth(v.store, &empty, &root, &more, &err), &err);
		CHECK_EQ(recorded(&v), more.meta);
		layer_usage(v.l, &usage);
		CHECK_EQ(usage.used, more.data);
		if (round % 5 == 0)
			live_reopen(&v);
	}
}

TEST_MAIN("layer-charge")
