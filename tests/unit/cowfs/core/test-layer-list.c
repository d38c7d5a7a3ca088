/*
 * Listing a directory in pieces, while its names come and go and the layer is persisted.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include "tests/lib/live.h"

static const struct layer_call call = { .uid = 1000, .gid = 1000, .may_wait = true };

#define MANY 4000

/* Names "f0" to "fN", how often each was seen, and how many fit into one answer. */
struct seen {
	unsigned char times[MANY];
	unsigned room, given;
	uint64_t next;
	uint64_t nodes[MANY]; /* with references to give back */
	size_t n_nodes;
};

static int see(void *ctx, const char *name, const struct layer_found *found, uint64_t next)
{
	struct seen *s = ctx;
	unsigned number;

	if (s->given == s->room)
		return 1;
	s->given++;
	s->next = next;
	if (sscanf(name, "f%u", &number) == 1 && number < MANY) {
		s->times[number]++;
		CHECK(S_ISREG(found->st.st_mode));
	}
	if (found->node)
		s->nodes[s->n_nodes++] = found->node;
	return 0;
}

/* The next piece; false if there is none. */
static bool see_more(struct live *v, uint64_t dir, bool plus, unsigned room, struct seen *s)
{
	struct err err = { 0 };

	s->room = room;
	s->given = 0;
	CHECK_OK(layer_readdir(v->l, &call, dir, s->next, plus, see, s, &err), &err);
	while (s->n_nodes > 0)
		layer_forget(v->l, s->nodes[--s->n_nodes], 1);
	return s->given > 0;
}

static void make_files(struct live *v, unsigned from, unsigned to)
{
	char path[32];

	for (unsigned i = from; i < to; i++) {
		snprintf(path, sizeof(path), "d/f%u", i);
		CHECK_EQ(live_try_make(v, path, S_IFREG | 0644), 0);
	}
}

static void check_seen(const struct seen *s, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++)
		CHECK_EQ(s->times[i], 1);
}

static void check_over_persist(const char *name, bool plus)
{
	CLEANUP(live_close) struct live v = { .options.persist_ms = 1000000 };
	struct seen s = { 0 };
	uint64_t dir;

	live_open(&v, name);
	live_mkdir(&v, "d");
	make_files(&v, 0, 50);
	live_persist(&v);
	make_files(&v, 50, 100);
	dir = live_hold(&v, "d");
	see_more(&v, dir, plus, 10, &s);
	live_persist(&v);
	while (see_more(&v, dir, plus, 10, &s))
		;
	check_seen(&s, 0, 100);
	live_drop(&v, dir);
}

TEST(a_listing_goes_on_over_a_persist_without_leaving_a_name_out)
{
	check_over_persist("plain", false);
	check_over_persist("plus", true);
}

/* How many names of a directory come with a node; the references are given back. */
static size_t count_nodes(struct live *v, uint64_t dir)
{
	struct seen s = { .room = 100 };
	struct err err = { 0 };
	size_t n;

	CHECK_OK(layer_readdir(v->l, &call, dir, 0, true, see, &s, &err), &err);
	n = s.n_nodes;
	while (s.n_nodes > 0)
		layer_forget(v->l, s.nodes[--s.n_nodes], 1);
	return n;
}

TEST(what_callers_know_and_what_did_not_change_comes_as_a_name_alone)
{
	CLEANUP(live_close) struct live v = { .options.persist_ms = 1000000 };
	CLEANUP(buf_done) struct buf bytes = { 0 };
	uint64_t dir, one, other;
	struct stat st;

	live_open(&v, "known");
	live_mkdir(&v, "d");
	make_files(&v, 0, 10);
	live_put(&v, "d/f0", "bytes");
	live_persist(&v);
	dir = live_hold(&v, "d");
	CHECK_EQ(count_nodes(&v, dir), 10);
	one = live_hold(&v, "d/f0");
	other = live_hold(&v, "d/f1");
	CHECK_EQ(count_nodes(&v, dir), 8);
	live_get_node(&v, one, &bytes); /* its access time is another now */
	CHECK_EQ(count_nodes(&v, dir), 9);
	CHECK_EQ(layer_getattr(v.l, one, &st, NULL), 0);
	CHECK_EQ(count_nodes(&v, dir), 8);
	CHECK_EQ(live_try_write(&v, "d/f1", 0, "x", 1), 0);
	live_drop(&v, live_hold(&v, "d/f2"));
	CHECK_EQ(layer_getattr(v.l, one, &st, NULL), 0);
	CHECK_EQ(count_nodes(&v, dir), 9);
	live_drop(&v, one);
	live_drop(&v, other);
	live_drop(&v, dir);
}

TEST(what_was_gone_before_the_listing_began_is_not_in_it)
{
	CLEANUP(live_close) struct live v = { .options.persist_ms = 1000000 };
	struct seen s = { 0 };
	char path[32];
	uint64_t dir;

	live_open(&v, "gone");
	live_mkdir(&v, "d");
	make_files(&v, 0, 100);
	live_persist(&v);
	for (unsigned i = 0; i < 50; i++) {
		snprintf(path, sizeof(path), "d/f%u", i);
		CHECK_EQ(live_try_unlink(&v, path), 0);
	}
	dir = live_hold(&v, "d");
	see_more(&v, dir, false, 5, &s);
	live_persist(&v);
	while (see_more(&v, dir, false, 5, &s))
		;
	check_seen(&s, 50, 100);
	for (unsigned i = 0; i < 50; i++)
		CHECK_EQ(s.times[i], 0);
	live_drop(&v, dir);
}

TEST(names_that_go_behind_or_before_the_cursor_do_not_move_it)
{
	CLEANUP(live_close) struct live v = { .options.persist_ms = 1000000 };
	struct seen s = { 0 };
	unsigned removed = 0;
	char path[32];
	uint64_t dir;

	live_open(&v, "remove");
	live_mkdir(&v, "d");
	make_files(&v, 0, 300);
	dir = live_hold(&v, "d");
	while (see_more(&v, dir, false, 7, &s)) {
		for (unsigned i = 0; i < 300; i++) {
			snprintf(path, sizeof(path), "d/f%u", i);
			if (s.times[i] == 1 && live_try_unlink(&v, path) == 0)
				removed++;
		}
		live_persist(&v);
	}
	CHECK_EQ(removed, 300);
	check_seen(&s, 0, 300);
	CHECK_EQ(live_try_rmdir(&v, "d"), 0);
	live_drop(&v, dir);
}

TEST(an_answer_is_as_full_as_it_can_be_though_the_store_must_be_read)
{
	CLEANUP(live_close) struct live v = { .options.persist_ms = 1000000 };
	struct seen s = { 0 };
	unsigned answers = 0;
	uint64_t dir;

	live_open(&v, "large");
	live_mkdir(&v, "d");
	make_files(&v, 0, MANY);
	live_reopen(&v);
	dir = live_hold(&v, "d");
	while (see_more(&v, dir, true, 500, &s))
		answers++;
	check_seen(&s, 0, MANY);
	CHECK_EQ(answers, MANY / 500 + 1);
	live_drop(&v, dir);
}

struct writer {
	struct live *v;
	pthread_t thread;
	bool stop;
};

static void *write_and_sync(void *arg)
{
	struct writer *w = arg;
	struct err err = { 0 };
	char path[32];

	for (unsigned i = 0; !__atomic_load_n(&w->stop, __ATOMIC_ACQUIRE); i++) {
		snprintf(path, sizeof(path), "d/w%u", i % 10);
		live_put(w->v, path, path);
		CHECK_OK(layer_sync(w->v->l, LAYER_ROOT, &err), &err);
	}
	return NULL;
}

TEST(a_large_directory_can_be_listed_while_it_is_synced_without_a_pause)
{
	CLEANUP(live_close) struct live v = { .options.persist_ms = 1000000 };
	struct writer w = { .v = &v };
	struct layers_stats before, after;
	uint64_t dir;

	live_open(&v, "livelock");
	live_mkdir(&v, "d");
	make_files(&v, 0, MANY);
	live_reopen(&v);
	dir = live_hold(&v, "d");
	CHECK_EQ(pthread_create(&w.thread, NULL, write_and_sync, &w), 0);
	layers_stats(v.layers, &before);
	do {
		struct seen s = { 0 };

		while (see_more(&v, dir, false, MANY, &s))
			;
		check_seen(&s, 0, MANY);
		layers_stats(v.layers, &after);
	} while (after.persists - before.persists < 10);
	__atomic_store_n(&w.stop, true, __ATOMIC_RELEASE);
	CHECK_EQ(pthread_join(w.thread, NULL), 0);
	live_drop(&v, dir);
}

TEST_MAIN("layer-list")
