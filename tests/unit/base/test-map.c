#include "tests/lib/test.h"

#include <errno.h>

#include "base/map.h"

struct item {
	uint64_t key;
	bool in; /* the naive model: is it in the map? */
};

static uint64_t hash_item(const void *key)
{
	return *(const uint64_t *)key;
}

static uint64_t hash_badly(const void *key)
{
	return *(const uint64_t *)key & 3;
}

static bool equal_item(const void *a, const void *b)
{
	return *(const uint64_t *)a == *(const uint64_t *)b;
}

TEST(what_was_added_is_found_until_it_is_removed)
{
	CLEANUP(map_done) struct map m = MAP_INIT(map_hash_str, map_equal_str);
	char key[] = "key", same[] = "key";
	int value;

	CHECK(!map_get(&m, key));
	CHECK(!map_remove(&m, key));
	CHECK_EQ(map_add(&m, key, &value, NULL), 0);
	CHECK(map_get(&m, same) == &value);
	CHECK(!map_get(&m, "kez"));
	CHECK_EQ(m.n, 1);
	CHECK(map_remove(&m, same) == &value);
	CHECK(!map_get(&m, key));
	CHECK(!map_remove(&m, key));
	CHECK_EQ(m.n, 0);
}

TEST(a_key_that_is_there_already_is_reported_and_kept)
{
	CLEANUP(map_done) struct map m = MAP_INIT(map_hash_str, map_equal_str);
	void *existing = NULL;
	int first, second;

	CHECK_EQ(map_add(&m, "k", &first, &existing), 0);
	CHECK(!existing);
	CHECK_EQ(map_add(&m, "k", &second, &existing), 1);
	CHECK(existing == &first);
	CHECK_EQ(map_add(&m, "k", &second, NULL), 1);
	CHECK(map_get(&m, "k") == &first);
	CHECK_EQ(m.n, 1);
}

TEST(room_that_was_made_is_enough_and_keeps_what_is_there)
{
	CLEANUP(map_done) struct map m = MAP_INIT(hash_item, equal_item);
	struct item items[1000];
	const struct map_slot *slots;

	items[0] = (struct item){ .key = 0 };
	CHECK_EQ(map_add(&m, &items[0].key, &items[0], NULL), 0);
	CHECK_EQ(map_reserve(&m, 1000), 0);
	slots = m.slots;
	for (size_t i = 1; i < 1000; i++) {
		items[i] = (struct item){ .key = i };
		CHECK_EQ(map_add(&m, &items[i].key, &items[i], NULL), 0);
	}
	CHECK(m.slots == slots);
	CHECK_EQ(map_reserve(&m, 10), 0);
	CHECK(m.slots == slots);
	for (size_t i = 0; i < 1000; i++)
		CHECK(map_get(&m, &i) == &items[i]);
	CHECK_EQ(map_reserve(&m, SIZE_MAX), -ENOMEM);
	CHECK_EQ(m.n, 1000);
}

TEST(strings_of_every_length_and_alignment_hash_by_content)
{
	char a[40], b[48];
	size_t len, shift;

	for (len = 0; len < 32; len++) {
		memset(a, 'x', len);
		a[len] = '\0';
		for (shift = 0; shift < 8; shift++) {
			memcpy(b + shift, a, len + 1);
			CHECK(map_hash_str(a) == map_hash_str(b + shift));
			CHECK(map_equal_str(a, b + shift));
			if (len == 0)
				continue;
			b[shift + len - 1] = 'y';
			CHECK(map_hash_str(a) != map_hash_str(b + shift));
			CHECK(!map_equal_str(a, b + shift));
		}
	}
}

static void check_against_model(const struct map *m, struct item *items, size_t n_items)
{
	struct item *it;
	size_t i, pos = 0, n = 0, seen = 0;

	for (i = 0; i < n_items; i++) {
		CHECK(map_get(m, &items[i].key) == (items[i].in ? &items[i] : NULL));
		n += items[i].in;
	}
	CHECK_EQ(m->n, n);
	while ((it = map_next(m, &pos))) {
		CHECK(it->in);
		seen++;
	}
	CHECK_EQ(seen, n);
}

static void run_random_ops(map_hash_fn hash, size_t n_items, int n_ops)
{
	struct map m = MAP_INIT(hash, equal_item);
	struct test_rng rng = { test_seed() };
	struct item *items = calloc(n_items, sizeof(*items)), *it;
	void *existing;
	size_t i;
	int op;

	CHECK(items);
	for (i = 0; i < n_items; i++)
		items[i].key = i << 12; /* a stride that clusters without a finaliser */
	for (op = 0; op < n_ops; op++) {
		it = &items[test_rand(&rng) % n_items];
		if (test_rand(&rng) % 2) {
			existing = NULL;
			CHECK_EQ(map_add(&m, &it->key, it, &existing), it->in);
			CHECK(existing == (it->in ? it : NULL));
			it->in = true;
		} else {
			CHECK(map_remove(&m, &it->key) == (it->in ? it : NULL));
			it->in = false;
		}
		CHECK(m.n_used * 4 <= m.n_slots * 3);
		CHECK(m.n <= m.n_used);
		if (op % (n_ops / 20) == 0)
			check_against_model(&m, items, n_items);
	}
	check_against_model(&m, items, n_items);
	map_done(&m);
	free(items);
}

TEST(it_agrees_with_a_naive_model_over_100000_random_operations)
{
	run_random_ops(hash_item, 3000, 100000);
}

TEST(it_agrees_with_the_model_when_every_key_collides)
{
	run_random_ops(hash_badly, 100, 20000);
}

TEST(churn_does_not_grow_the_table)
{
	CLEANUP(map_done) struct map m = MAP_INIT(hash_item, equal_item);
	static uint64_t keys[100000];
	size_t i;

	for (i = 0; i < ARRAY_LEN(keys); i++) {
		keys[i] = i;
		CHECK_EQ(map_add(&m, &keys[i], &keys[i], NULL), 0);
		if (i >= 10)
			CHECK(map_remove(&m, &keys[i - 10]) == &keys[i - 10]);
	}
	CHECK_EQ(m.n, 10);
	CHECK(m.n_slots <= 64);
}

static uint64_t hash_high(const void *key)
{
	return *(const uint64_t *)key >> 8;
}

/*
 * Eight tombstones stay in a chain that ends in a live entry.  Where the chains of
 * the next keys lie elsewhere, three of them fill the smallest table to its limit
 * and the fourth must clear it out.
 */
TEST(a_rehash_drops_tombstones_and_does_not_grow_for_them)
{
	uint64_t key[15], base;
	size_t i;

	for (base = 0; base < 64; base++) {
		CLEANUP(map_done) struct map m = MAP_INIT(hash_high, equal_item);

		for (i = 0; i < ARRAY_LEN(key); i++)
			key[i] = (i < 9 ? base : base + i) << 8 | i;
		for (i = 0; i < 9; i++)
			CHECK_EQ(map_add(&m, &key[i], &key[i], NULL), 0);
		for (i = 0; i < 8; i++)
			CHECK(map_remove(&m, &key[i]) == &key[i]);
		for (i = 9; i < ARRAY_LEN(key); i++) {
			CHECK_EQ(map_add(&m, &key[i], &key[i], NULL), 0);
			CHECK(m.n_used * 4 <= m.n_slots * 3);
			CHECK_EQ(m.n_slots, 16);
		}
		for (i = 8; i < ARRAY_LEN(key); i++)
			CHECK(map_get(&m, &key[i]) == &key[i]);
	}
}

TEST(keys_that_share_their_low_bits_do_not_cluster)
{
	CLEANUP(map_done) struct map m = MAP_INIT(hash_item, equal_item);
	static uint64_t keys[20000];
	size_t i, pos = 0, last = 0, run = 0, longest = 0;

	for (i = 0; i < ARRAY_LEN(keys); i++) {
		keys[i] = (uint64_t)i << 32;
		CHECK_EQ(map_add(&m, &keys[i], &keys[i], NULL), 0);
	}
	/* A probe is never longer than the run of full slots it falls into. */
	for (; map_next(&m, &pos); last = pos) {
		run = pos == last + 1 ? run + 1 : 1;
		if (run > longest)
			longest = run;
	}
	CHECK(longest < 1000);
}

TEST(every_value_is_visited_once_and_may_be_removed_on_the_way)
{
	CLEANUP(map_done) struct map m = MAP_INIT(hash_item, equal_item);
	struct item items[500], *it;
	size_t i, pos = 0, n = 0;

	for (i = 0; i < ARRAY_LEN(items); i++) {
		items[i] = (struct item){ .key = i };
		CHECK_EQ(map_add(&m, &items[i].key, &items[i], NULL), 0);
	}
	while ((it = map_next(&m, &pos))) {
		CHECK(!it->in);
		it->in = true;
		n++;
		if (it->key % 3 != 0)
			CHECK(map_remove(&m, &it->key) == it);
	}
	CHECK_EQ(n, ARRAY_LEN(items));
	CHECK_EQ(m.n, 167);
}

TEST(a_map_that_is_done_is_empty_and_usable)
{
	CLEANUP(map_done) struct map m = MAP_INIT(map_hash_str, map_equal_str);
	size_t pos = 0;
	int value;

	CHECK(!map_next(&m, &pos));
	CHECK_EQ(map_add(&m, "a", &value, NULL), 0);
	map_done(&m);
	CHECK_EQ(m.n, 0);
	CHECK_EQ(m.n_slots, 0);
	CHECK(!map_get(&m, "a"));
	CHECK(!map_next(&m, &pos));
	CHECK_EQ(map_add(&m, "a", &value, NULL), 0);
}

TEST(numbers_are_keys)
{
	CLEANUP(map_done) struct map m = MAP_INIT(map_hash_u64, map_equal_u64);
	const uint64_t keys[] = { 0, 1, UINT64_MAX, (uint64_t)1 << 32 }, other = 2;
	void *there;

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		CHECK_EQ(map_add(&m, &keys[i], (void *)(uintptr_t)&keys[i], &there), 0);
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		const uint64_t same = keys[i];

		CHECK(map_get(&m, &same) == &keys[i]);
	}
	CHECK(!map_get(&m, &other));
}

TEST_MAIN("map")
