#include "cowfs/store/cache.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>

#include "tests/lib/damage.h"
#include "tests/lib/stock.h"

#define ROOMY ((size_t)64 << 20)

static struct cache *new_cache(struct store *s, size_t chunk_bytes, size_t meta_bytes)
{
	const struct cache_limits limits = { .chunk_bytes = chunk_bytes, .meta_bytes = meta_bytes };
	struct cache *c = NULL;
	struct err err = { 0 };

	CHECK_OK(cache_new(s, &limits, &c, &err), &err);
	return c;
}

static const struct cached *load(struct cache *c, enum object_kind kind, const struct object_id *id)
{
	const struct cached *o = NULL;
	struct err err = { 0 };

	CHECK_OK(cache_load(c, kind, id, &o, &err), &err);
	return o;
}

static bool has(struct cache *c, enum object_kind kind, const struct object_id *id)
{
	CLEANUP(cached_unref_p) const struct cached *o = cache_find(c, kind, id);

	return o != NULL;
}

static size_t held(struct cache *c)
{
	const struct cache_stats stats = cache_stats(c);

	return stats.chunk_bytes + stats.meta_bytes;
}

#define TEXTS 200

static struct object_id texts[TEXTS]; /* of the last store that texts_store() made */

static const char *text_no(unsigned i)
{
	static _Thread_local char text[32];

	snprintf(text, sizeof(text), "text number %u", i);
	return text;
}

static struct store *texts_store(const char *name)
{
	struct store *s = stock_open(test_path(name), STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);

	for (unsigned i = 0; i < TEXTS; i++)
		texts[i] = stock_put_text(b, text_no(i));
	stock_commit(b);
	return s;
}

TEST(what_was_loaded_is_found_and_is_what_was_put)
{
	CLEANUP(store_close_p) struct store *s = texts_store("found");
	CLEANUP(cache_free_p) struct cache *c = new_cache(s, ROOMY, ROOMY);
	const char *text = text_no(7);

	CHECK(!has(c, OBJECT_CHUNK, &texts[7]));
	for (int i = 0; i < 2; i++) {
		CLEANUP(cached_unref_p) const struct cached *o = load(c, OBJECT_CHUNK, &texts[7]);

		CHECK_MEM(o->data, o->len, text, strlen(text));
		CHECK(object_id_equal(&o->what.id, &texts[7]) && o->what.kind == OBJECT_CHUNK);
		CHECK(has(c, OBJECT_CHUNK, &texts[7]));
	}
	CHECK(has(c, OBJECT_CHUNK, &texts[7]));
	CHECK_EQ(cache_stats(c).loaded, 1);
	CHECK_EQ(cache_stats(c).found, 4);
	CHECK(cache_store(c) == s);
}

TEST(an_object_of_another_kind_under_the_same_id_is_another)
{
	CLEANUP(store_close_p) struct store *s = texts_store("kinds");
	CLEANUP(cache_free_p) struct cache *c = new_cache(s, ROOMY, ROOMY);

	cached_unref(load(c, OBJECT_CHUNK, &texts[0]));
	CHECK(!has(c, OBJECT_TREE, &texts[0]));
}

TEST(what_is_missing_or_damaged_is_not_handed_out)
{
	const char *path = test_path("bad");
	struct object_id id, none = { .b = { 1 } };
	const struct cached *o = NULL;
	struct err err = { 0 };

	{
		CLEANUP(store_close_p) struct store *s = stock_open(path, STORE_CREATE);
		CLEANUP(batch_end_p) struct batch *b = stock_begin(s);

		id = stock_put_text(b, "text");
		stock_commit(b);
	}
	damage_object(path, OBJECT_CHUNK, &id);

	CLEANUP(store_close_p) struct store *s = stock_open(path, STORE_READ);
	CLEANUP(cache_free_p) struct cache *c = new_cache(s, ROOMY, ROOMY);
	CHECK_EQ(cache_load(c, OBJECT_CHUNK, &id, &o, &err), -EBADMSG);
	CHECK_EQ(cache_load(c, OBJECT_TREE, &none, &o, &err), -EBADMSG);
	CHECK_HAS(err.msg, "it is missing");
	CHECK(!o);
	CHECK_EQ(held(c), 0);
}

/* Nearly the oldest: which shards they fall into is left to chance. */
TEST(over_budget_old_ones_go_first)
{
	CLEANUP(store_close_p) struct store *s = texts_store("oldest");
	CLEANUP(cache_free_p) struct cache *c = new_cache(s, 8 << 10, ROOMY);
	unsigned kept_old = 0, kept_new = 0;

	for (unsigned i = 0; i < TEXTS; i++)
		cached_unref(load(c, OBJECT_CHUNK, &texts[i]));
	CHECK(held(c) <= 8 << 10 && held(c) > 7 << 10);
	for (unsigned i = 0; i < TEXTS / 4; i++) {
		kept_old += has(c, OBJECT_CHUNK, &texts[i]);
		kept_new += has(c, OBJECT_CHUNK, &texts[TEXTS - 1 - i]);
	}
	CHECK(kept_new > 20);
	CHECK(kept_old < 8);
}

TEST(finding_something_makes_it_young_again)
{
	CLEANUP(store_close_p) struct store *s = texts_store("young");
	CLEANUP(cache_free_p) struct cache *c = new_cache(s, 16 << 10, ROOMY);

	for (unsigned i = 0; i < TEXTS; i++) {
		cached_unref(load(c, OBJECT_CHUNK, &texts[i]));
		CHECK(has(c, OBJECT_CHUNK, &texts[0]));
	}
}

TEST(what_is_referenced_stays_whatever_the_budget)
{
	CLEANUP(store_close_p) struct store *s = texts_store("referenced");
	CLEANUP(cache_free_p) struct cache *c = new_cache(s, 0, 0);
	const struct cached *o[TEXTS];

	for (unsigned i = 0; i < TEXTS; i++)
		o[i] = load(c, OBJECT_CHUNK, &texts[i]);
	cache_drop(c);
	for (unsigned i = 0; i < TEXTS; i++) {
		CHECK(has(c, OBJECT_CHUNK, &texts[i]));
		CHECK_MEM(o[i]->data, o[i]->len, text_no(i), strlen(text_no(i)));
		cached_unref(o[i]);
		CHECK(!has(c, OBJECT_CHUNK, &texts[i]));
	}
	CHECK_EQ(held(c), 0);
}

TEST(chunks_do_not_drive_out_trees)
{
	CLEANUP(store_close_p) struct store *s = texts_store("apart");
	CLEANUP(cache_free_p) struct cache *c = new_cache(s, 1000, ROOMY);
	struct object_id root = stock_snapshot(s, "s", "text");

	cached_unref(load(c, OBJECT_TREE, &root));
	for (unsigned i = 0; i < TEXTS; i++)
		cached_unref(load(c, OBJECT_CHUNK, &texts[i]));
	CHECK(has(c, OBJECT_TREE, &root));
	CHECK(cache_stats(c).chunk_bytes <= 1000);
}

TEST(dropping_forgets_all_that_nobody_references)
{
	CLEANUP(store_close_p) struct store *s = texts_store("drop");
	CLEANUP(cache_free_p) struct cache *c = new_cache(s, ROOMY, ROOMY);
	struct object_id root = stock_snapshot(s, "s", "text");

	CLEANUP(cached_unref_p) const struct cached *kept = load(c, OBJECT_CHUNK, &texts[3]);
	cached_unref(load(c, OBJECT_TREE, &root));
	for (unsigned i = 0; i < TEXTS; i++)
		cached_unref(load(c, OBJECT_CHUNK, &texts[i]));
	cache_drop(c);
	for (unsigned i = 0; i < TEXTS; i++)
		CHECK_EQ(has(c, OBJECT_CHUNK, &texts[i]), i == 3);
	CHECK(!has(c, OBJECT_TREE, &root));
	CHECK_EQ(cache_stats(c).meta_bytes, 0);
	CHECK_MEM(kept->data, kept->len, text_no(3), strlen(text_no(3)));
}

TEST(an_object_of_no_bytes_can_be_held)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("empty"), STORE_CREATE);
	CLEANUP(cache_free_p) struct cache *c = new_cache(s, ROOMY, ROOMY);
	struct object_id id;

	{
		CLEANUP(batch_end_p) struct batch *b = stock_begin(s);

		id = stock_put(b, OBJECT_CHUNK, "", 0);
		stock_commit(b);
	}
	CLEANUP(cached_unref_p) const struct cached *o = load(c, OBJECT_CHUNK, &id);
	CHECK_EQ(o->len, 0);
}

TEST(what_was_put_is_found_without_the_store)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("added"), STORE_CREATE);
	CLEANUP(cache_free_p) struct cache *c = new_cache(s, ROOMY, ROOMY);
	const struct object_id id = { .b = { 7 } };

	for (int i = 0; i < 2; i++)
		cache_add(c, OBJECT_TREE, &id, "leaf", 4);
	CLEANUP(cached_unref_p) const struct cached *o = load(c, OBJECT_TREE, &id);
	CHECK_MEM(o->data, o->len, "leaf", 4);
	CHECK(cached_is_sound(o));
	CHECK_EQ(cache_stats(c).loaded, 0);
	CHECK(!has(c, OBJECT_CHUNK, &id));
}

TEST(what_was_put_obeys_the_budget)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("much"), STORE_CREATE);
	CLEANUP(cache_free_p) struct cache *c = new_cache(s, ROOMY, 20 << 10);
	static const uint8_t node[1 << 10];

	for (unsigned i = 1; i < 200; i++) {
		const struct object_id id = { .b = { (uint8_t)i } };

		cache_add(c, OBJECT_TREE, &id, node, sizeof(node));
	}
	CHECK(held(c) > 10 << 10 && held(c) <= 20 << 10);
}

TEST(what_was_loaded_is_sound_once_somebody_says_so)
{
	CLEANUP(store_close_p) struct store *s = texts_store("sound");
	CLEANUP(cache_free_p) struct cache *c = new_cache(s, ROOMY, ROOMY);

	for (int i = 0; i < 2; i++) {
		CLEANUP(cached_unref_p) const struct cached *o = load(c, OBJECT_CHUNK, &texts[1]);

		CHECK_EQ(cached_is_sound(o), i > 0);
		cached_set_sound(o);
	}
	cache_drop(c);
	CLEANUP(cached_unref_p) const struct cached *o = load(c, OBJECT_CHUNK, &texts[1]);
	CHECK(!cached_is_sound(o));
}

TEST(trees_are_read_through_the_cache_that_is_shared_as_long_as_it_is)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("shared"), STORE_CREATE);
	struct cache *c = new_cache(s, ROOMY, ROOMY), *other = new_cache(s, ROOMY, ROOMY);
	const struct object_id id = stock_snapshot(s, "a", "text");
	struct err err = { 0 };
	struct root root;

	CHECK_OK(root_get(s, &id, &root, &err), &err);
	CHECK_EQ(cache_stats(c).loaded, 0);
	cache_share(c);
	cache_free(other); /* it was not shared */
	for (int i = 0; i < 2; i++)
		CHECK(stock_root_is_whole(s, &id, "text"));
	CHECK(has(c, OBJECT_TREE, &id) && has(c, OBJECT_TREE, &root.top.id));
	CHECK_EQ(cache_stats(c).loaded, 2);

	damage_remove(store_path(s), OBJECT_TREE, &id);
	CHECK_OK(root_get(s, &id, &root, &err), &err);
	cache_drop(c);
	CHECK_EQ(root_get(s, &id, &root, &err), -EBADMSG);
	cache_free(c);
	err = (struct err){ 0 };
	CHECK_EQ(root_get(s, &id, &root, &err), -EBADMSG);
	CHECK_HAS(err.msg, "it is missing");
}

/* --- threads ---------------------------------------------------------------------------------- */

#define THREADS 4
#define TURNS   4000

struct user {
	struct cache *cache;
	struct test_rng rng;
	unsigned wrong;
};

static bool is_text(const struct cached *o, unsigned i)
{
	const char *text = text_no(i);

	return o->len == strlen(text) && memcmp(o->data, text, o->len) == 0;
}

/* Keeps a few references at any time, and now and then empties the cache. */
static void *use(void *arg)
{
	struct user *u = arg;
	const struct cached *kept[8] = { 0 };
	unsigned number[8] = { 0 };

	for (unsigned turn = 0; turn < TURNS; turn++) {
		const unsigned slot = turn % ARRAY_LEN(kept), i = test_rand(&u->rng) % TEXTS;
		struct err err = { 0 };

		if (kept[slot] && !is_text(kept[slot], number[slot]))
			u->wrong++;
		cached_unref(kept[slot]);
		number[slot] = i;
		kept[slot] = cache_find(u->cache, OBJECT_CHUNK, &texts[i]);
		if (!kept[slot] &&
		    cache_load(u->cache, OBJECT_CHUNK, &texts[i], &kept[slot], &err) < 0)
			u->wrong++;
		if (turn % 512 == 0)
			cache_drop(u->cache);
	}
	for (size_t slot = 0; slot < ARRAY_LEN(kept); slot++)
		cached_unref(kept[slot]);
	return NULL;
}

TEST(threads_share_one_copy_and_lose_nothing)
{
	CLEANUP(store_close_p) struct store *s = texts_store("threads");
	CLEANUP(cache_free_p) struct cache *c = new_cache(s, 20 << 10, ROOMY);
	struct user u[THREADS];
	pthread_t t[THREADS];
	uint64_t seed = test_seed();

	for (unsigned i = 0; i < THREADS; i++) {
		u[i] = (struct user){ .cache = c, .rng = { seed + i } };
		CHECK_EQ(pthread_create(&t[i], NULL, use, &u[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		CHECK_EQ(pthread_join(t[i], NULL), 0);
		CHECK_EQ(u[i].wrong, 0);
	}
	CHECK(held(c) <= 20 << 10);
	cache_drop(c);
	CHECK_EQ(held(c), 0);
}

/* --- what is offered ---------------------------------------------------------------------- */

static struct object_id id_no(unsigned i)
{
	struct object_id id = { { 1 } };

	id.b[1] = (uint8_t)i;
	return id;
}

TEST(what_is_offered_is_taken_while_there_is_room_and_drives_nothing_out)
{
	CLEANUP(store_close_p) struct store *s = texts_store("offered");
	CLEANUP(cache_free_p) struct cache *c = new_cache(s, ROOMY, 4 << 10);
	static const uint8_t bytes[1000];
	const struct object_id first = id_no(0);
	unsigned taken = 0;

	cache_offer(s, OBJECT_TREE, &first, bytes, sizeof(bytes)); /* to nobody yet */
	cache_share(c);
	CHECK(!cache_has(c, OBJECT_TREE, &first));
	for (unsigned i = 0; i < 10; i++) {
		const struct object_id id = id_no(i);

		cache_offer(s, OBJECT_TREE, &id, bytes, sizeof(bytes));
		taken += cache_has(c, OBJECT_TREE, &id);
	}
	CHECK_EQ(taken, 3);
	CHECK(cache_has(c, OBJECT_TREE, &first));
	CHECK(held(c) <= 4 << 10);
}

TEST(a_builder_offers_what_it_puts_if_it_is_told_to)
{
	CLEANUP(store_close_p) struct store *s = texts_store("builder");
	CLEANUP(cache_free_p) struct cache *c = new_cache(s, ROOMY, ROOMY);
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	CLEANUP(tree_builder_free_p) struct tree_builder *t = NULL;
	struct tree_entry e = { .name = "a", .name_len = 1, .mode = S_IFREG | 0644, .ino = 3 };
	struct tree_summary below;
	struct object_id quiet, told;
	struct err err = { 0 };

	cache_share(c);
	CHECK_OK(tree_builder_new(b, &t, &err), &err);
	CHECK_OK(tree_builder_add(t, &e, &err), &err);
	CHECK_OK(tree_builder_finish(t, &quiet, &below, &err), &err);
	tree_builder_offer(t);
	e.ino = 4;
	CHECK_OK(tree_builder_add(t, &e, &err), &err);
	CHECK_OK(tree_builder_finish(t, &told, &below, &err), &err);
	CHECK(!cache_has(c, OBJECT_TREE, &quiet));
	CHECK(cache_has(c, OBJECT_TREE, &told));
}

TEST_MAIN("cache")
