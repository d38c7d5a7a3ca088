/*
 * What a store remembers of SHA-256, in memory and in its file.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/le.h"
#include "remote/pack/digest-table.h"
#include "remote/pack/digests.h"
#include "tests/lib/test.h"

#define MANY 5000

static struct object_id id_of(unsigned i)
{
	struct object_id id = { { 0 } };

	/* Many begin alike. */
	le32_store(id.b, i % 7);
	le32_store(id.b + 8, i);
	return id;
}

static void fill(struct digests *d, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const struct object_id id = id_of(i);
		const struct digest digest = digest_of(&i, sizeof(i));

		CHECK_EQ(digests_add(d, i % 2 ? OBJECT_CHUNK : OBJECT_TREE, &id, &digest), 0);
	}
}

static void check_all(struct digests *d, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const struct object_id id = id_of(i);
		const struct digest want = digest_of(&i, sizeof(i));
		struct digest have;

		CHECK(digests_find(d, i % 2 ? OBJECT_CHUNK : OBJECT_TREE, &id, &have));
		CHECK(digest_equal(&have, &want));
		CHECK(!digests_find(d, i % 2 ? OBJECT_TREE : OBJECT_CHUNK, &id, &have));
	}
}

static void load(struct digests *d)
{
	struct err err = { 0 };

	CHECK_OK(digests_load(d, test_path("."), &err), &err);
}

static void save(struct digests *d)
{
	struct err err = { 0 };

	CHECK_OK(digests_save(d, test_path("."), &err), &err);
}

static void read_file(struct buf *out)
{
	struct err err = { 0 };

	CHECK_OK(fdio_read_file(AT_FDCWD, test_path(DIGESTS_FILE), 1 << 20, out, &err), &err);
}

static void write_file(const struct buf *from)
{
	struct err err = { 0 };

	CHECK_OK(
	    fdio_swap_file(AT_FDCWD, test_path(DIGESTS_FILE), from->data, from->len, 0600, &err),
	    &err);
}

TEST(what_was_added_is_found_and_comes_back)
{
	CLEANUP(digests_done) struct digests one = { 0 }, two = { 0 }, three = { 0 };
	const struct object_id id = id_of(3);
	const struct digest other = digest_of("other", 5);
	struct digest have;

	fill(&one, MANY);
	check_all(&one, MANY);
	CHECK_EQ(one.n, MANY);
	save(&one);
	load(&two);
	check_all(&two, MANY);
	/* The same again changes nothing; another digest does. */
	CHECK(!two.changed);
	fill(&two, MANY);
	CHECK(!two.changed);
	CHECK_EQ(digests_add(&two, OBJECT_CHUNK, &id, &other), 0);
	CHECK(two.changed && two.n == MANY);
	fill(&two, 0);
	save(&two);
	load(&three);
	CHECK(digests_find(&three, OBJECT_CHUNK, &id, &have) && digest_equal(&have, &other));
}

TEST(a_file_of_the_first_version_is_read)
{
	CLEANUP(digests_done) struct digests one = { 0 }, two = { 0 };
	CLEANUP(buf_done) struct buf file = BUF_INIT;
	struct digest sum;

	fill(&one, 100);
	save(&one);
	read_file(&file);
	/* It ended with its SHA-256. */
	file.len -= 8;
	le32_store(file.data + 4, 1);
	sum = digest_of(file.data, file.len);
	CHECK_EQ(buf_append(&file, sum.b, sizeof(sum.b)), 0);
	write_file(&file);
	load(&two);
	check_all(&two, 100);
	fill(&two, 101);
	save(&two);
	digests_done(&two);
	load(&two);
	check_all(&two, 101);
}

TEST(a_file_that_is_damaged_or_of_a_later_version_is_none)
{
	CLEANUP(digests_done) struct digests one = { 0 };
	CLEANUP(buf_done) struct buf file = BUF_INIT;
	size_t len;

	fill(&one, 100);
	save(&one);
	read_file(&file);
	len = file.len;
	for (size_t at = 0; at < len; at += at < 24 ? 1 : 97) {
		CLEANUP(digests_done) struct digests two = { 0 };

		file.data[at] ^= 2;
		write_file(&file);
		load(&two);
		CHECK_EQ(two.n, 0);
		file.data[at] ^= 2;
	}
	for (file.len = 0; file.len < len; file.len += 61) {
		CLEANUP(digests_done) struct digests two = { 0 };

		write_file(&file);
		load(&two);
		CHECK_EQ(two.n, 0);
	}
}

/* Somebody who sends an index chooses what is in it.  A million digests with one hash would take hours. */
static struct digest chosen(unsigned way, uint64_t i)
{
	struct digest d = { 0 };

	if (way == 0)
		le64_store(d.b + 24, i);
	else if (way == 1) /* the inverse of the multiplier */
		le64_store(d.b + 8, i * 0xcfee444d8b59a89bu);
	else
		le64_store(d.b, i << 32);
	return d;
}

static int by_hash(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	return (x->hash > y->hash) - (x->hash < y->hash);
}

TEST(no_choice_of_digests_gives_many_of_them_one_hash)
{
	for (unsigned way = 0; way < 3; way++) {
		CLEANUP(digest_table_done) struct digest_table t = { 0 };
		size_t same = 0;

		for (uint64_t i = 0; i < MANY; i++) {
			const struct digest d = chosen(way, i);

			CHECK_EQ(digest_table_add(&t, OBJECT_CHUNK, &d, i), 0);
		}
		for (uint64_t i = 0; i < MANY; i++) {
			const struct digest d = chosen(way, i);
			const uint64_t *at = digest_table_find(&t, OBJECT_CHUNK, &d);

			CHECK(at && *at == i);
		}
		qsort(t.slots.list, t.slots.cap, sizeof(*t.slots.list), by_hash);
		for (size_t i = 1; i < t.slots.cap; i++)
			same += t.slots.list[i].number != 0 &&
				t.slots.list[i].hash == t.slots.list[i - 1].hash;
		CHECK(same < MANY / 100);
	}
}

TEST_MAIN("digests")
