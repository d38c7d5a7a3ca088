/*
 * Random operations on a layer, with persists, crashes and rollbacks between them.  What
 * is in memory must always be what a layer opened afresh reads from the store.
 */
#include <errno.h>
#include <stdio.h>

#include "tests/lib/live.h"

#define NAMES 6
#define SAVED 8

static const struct layer_call call = { .uid = 1000, .gid = 1000, .may_wait = true };

struct model {
	struct live v;
	struct test_rng rng;
	struct {
		struct object_id root;
		struct buf dump;
	} saved[SAVED]; /* states to go back to */
	size_t n_saved;
	uint64_t held[4]; /* nodes that somebody has open; 0: none */
};

static unsigned pick(struct model *m, unsigned n)
{
	return (unsigned)(test_rand(&m->rng) % n);
}

/* A path of up to three parts out of few names, so that they often meet. */
static const char *some_path(struct model *m, char path[64])
{
	unsigned parts = 1 + pick(m, 3);
	int len = 0;

	for (unsigned i = 0; i < parts; i++)
		len += snprintf(path + len, 64 - (size_t)len, "%s%c%u", i ? "/" : "",
				i + 1 < parts ? 'd' : "dfs"[pick(m, 3)], pick(m, NAMES));
	return path;
}

static uint64_t some_offset(struct model *m)
{
	static const uint64_t around[] = { 0, 0, 100, 4096, 65536, 131072, 200000 };

	return around[pick(m, ARRAY_LEN(around))] + pick(m, 50);
}

static void write_somewhere(struct model *m)
{
	uint8_t data[70000];
	size_t len = pick(m, 8) ? 1 + pick(m, 3000) : sizeof(data);
	char path[64];

	for (size_t i = 0; i < len; i++)
		data[i] = (uint8_t)test_rand(&m->rng);
	IGNORE_RESULT(live_try_write(&m->v, some_path(m, path), some_offset(m), data, len),
		      "it may not be there");
}

static void punch_somewhere(struct model *m)
{
	struct layer_found found;
	struct stat st;
	char path[64];

	if (live_try_stat(&m->v, some_path(m, path), &st) < 0 || !S_ISREG(st.st_mode))
		return;
	found.node = live_hold(&m->v, path);
	CHECK_EQ(layer_allocate(m->v.l, &call, found.node,
				LAYER_ALLOC_PUNCH | LAYER_ALLOC_KEEP_SIZE, some_offset(m),
				1 + pick(m, 100000), NULL),
		 0);
	live_drop(&m->v, found.node);
}

static void change_attributes(struct model *m)
{
	char path[64], value[16];
	struct stat st;
	uint64_t node;

	if (live_try_stat(&m->v, some_path(m, path), &st) < 0)
		return;
	node = live_hold(&m->v, path);
	snprintf(value, sizeof(value), "v%u", pick(m, 100));
	if (pick(m, 3) == 0) {
		st.st_mode = pick(m, 01000);
		CHECK_EQ(layer_setattr(m->v.l, &call, node, &st, LAYER_SET_MODE, &st, NULL), 0);
	} else if (pick(m, 2)) {
		CHECK_EQ(layer_setxattr(m->v.l, &call, node, pick(m, 2) ? "user.a" : "user.b",
					value, strlen(value), 0, NULL),
			 0);
	} else {
		IGNORE_RESULT(layer_removexattr(m->v.l, &call, node, "user.a", NULL),
			      "it may not be there");
	}
	live_drop(&m->v, node);
}

/* Somebody opens a file, or closes it after a look that it is as he left it. */
static void hold_something(struct model *m)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	unsigned i = pick(m, 4);
	struct stat st;
	char path[64];

	if (m->held[i]) {
		CHECK_EQ(layer_getattr(m->v.l, m->held[i], &st, NULL), 0);
		if (st.st_nlink == 0) {
			live_get_node(&m->v, m->held[i], &bytes);
			CHECK_EQ(bytes.len, st.st_size);
		}
		live_drop(&m->v, m->held[i]);
		m->held[i] = 0;
	} else if (live_try_stat(&m->v, some_path(m, path), &st) == 0 && S_ISREG(st.st_mode)) {
		m->held[i] = live_hold(&m->v, path);
	}
}

static void forget_held(struct model *m)
{
	for (size_t i = 0; i < ARRAY_LEN(m->held); i++)
		m->held[i] = 0;
}

static void save(struct model *m)
{
	size_t i = m->n_saved < SAVED ? m->n_saved++ : pick(m, SAVED);
	char name[16];

	m->saved[i].root = live_persist(&m->v);
	live_dump(&m->v, &m->saved[i].dump, true);
	snprintf(name, sizeof(name), "saved%zu", i);
	{
		CLEANUP(batch_end_p) struct batch *b = stock_begin(m->v.store);

		stock_name(b, REF_SNAPSHOT, name, &m->saved[i].root, REF_REPLACE);
		stock_commit(b);
	}
}

static void roll_back(struct model *m)
{
	CLEANUP(layer_changes_done) struct layer_changes changes = { 0 };
	CLEANUP(buf_done) struct buf now = BUF_INIT;
	struct err err = { 0 };
	size_t i;

	if (m->n_saved == 0)
		return;
	i = pick(m, (unsigned)m->n_saved);
	CHECK_OK(live_roll_back(m->v.l, &m->saved[i].root, NULL, NULL, &changes, &err), &err);
	live_dump(&m->v, &now, true);
	CHECK_STR((char *)now.data, (char *)m->saved[i].dump.data);
}

static void compare_with_stored(struct model *m)
{
	CLEANUP(buf_done) struct buf before = BUF_INIT, after = BUF_INIT;

	live_dump(&m->v, &before, true);
	live_persist(&m->v);
	live_crash(&m->v);
	forget_held(m);
	live_dump(&m->v, &after, true);
	CHECK_STR((char *)after.data, (char *)before.data);
}

static void step(struct model *m)
{
	char path[64], other[64];

	switch (pick(m, 24)) {
	case 0 ... 3:
		IGNORE_RESULT(live_try_make(&m->v, some_path(m, path), S_IFREG | 0644),
			      "may be there");
		break;
	case 4 ... 5:
		IGNORE_RESULT(live_try_make(&m->v, some_path(m, path), S_IFDIR | 0755),
			      "may be there");
		break;
	case 6 ... 9:
		write_somewhere(m);
		break;
	case 10:
		IGNORE_RESULT(live_try_truncate(&m->v, some_path(m, path), some_offset(m)),
			      "as above");
		break;
	case 11 ... 12:
		IGNORE_RESULT(live_try_unlink(&m->v, some_path(m, path)), "may not be there");
		break;
	case 13:
		IGNORE_RESULT(live_try_rmdir(&m->v, some_path(m, path)), "may not be empty");
		break;
	case 14 ... 16:
		IGNORE_RESULT(
		    live_try_rename(&m->v, some_path(m, path), some_path(m, other), pick(m, 3)),
		    "may be refused");
		break;
	case 17:
		IGNORE_RESULT(live_try_link(&m->v, some_path(m, path), some_path(m, other)),
			      "likewise");
		break;
	case 18:
		IGNORE_RESULT(live_try_symlink(&m->v, "somewhere", some_path(m, path)), "likewise");
		break;
	case 19:
		change_attributes(m);
		break;
	case 20:
		punch_somewhere(m);
		break;
	case 21:
		hold_something(m);
		break;
	case 22:
		live_persist(&m->v);
		break;
	case 23:
		switch (pick(m, 8)) {
		case 0:
			save(m);
			break;
		case 1:
			roll_back(m);
			break;
		case 2:
			compare_with_stored(m);
			break;
		case 3:
			stock_gc(m->v.store);
			break;
		}
		break;
	}
}

static void run(const char *name, unsigned persist_ms, unsigned steps)
{
	struct model m = { .v.options.persist_ms = persist_ms, .rng.s = test_seed() };

	live_open(&m.v, name);
	for (unsigned i = 0; i < steps; i++)
		step(&m);
	compare_with_stored(&m);
	stock_check_clean(m.v.store);
	for (size_t i = 0; i < SAVED; i++)
		buf_done(&m.saved[i].dump);
	live_close(&m.v);
}

TEST(memory_and_store_never_disagree)
{
	run("alone", 1000000, 4000);
}

TEST(memory_and_store_never_disagree_while_the_committer_runs)
{
	run("beside", 1, 4000);
}

TEST_MAIN("layer-model")
