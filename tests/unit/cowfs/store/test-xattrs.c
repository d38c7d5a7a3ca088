#include "cowfs/store/xattrs.h"

#include <errno.h>

#include "tests/lib/stock.h"
#include "tests/lib/test.h"

#define HEADER 8

#define XATTR(n, v)                                                                              \
	(struct xattr)                                                                           \
	{                                                                                        \
		.name = (n), .name_len = sizeof(n) - 1, .value = (v), .value_len = sizeof(v) - 1 \
	}

static const struct xattr some[] = {
	XATTR("user.b", "second"), XATTR("user.a", "first\0with a NUL"),
	XATTR("user.ab", ""),      XATTR("security.capability", "\1\0\0\2"),
	XATTR("user.\xff", "x"),
};

static void encode(const struct xattr *list, size_t n, struct buf *out)
{
	struct err err = { 0 };

	CHECK_OK(xattrs_encode(list, n, out, &err), &err);
}

static void check_refused(const void *data, size_t len, const char *why)
{
	struct err err = { 0 };

	CHECK_EQ(xattrs_verify(data, len, &err), -EBADMSG);
	CHECK_EQ(err.code, -EBADMSG);
	CHECK_HAS(err.msg, why);
}

TEST(a_set_is_written_byte_for_byte_as_documented)
{
	static const uint8_t want[] = { 'X', 1,   0,  0, 2, 0, 0,   0,   /* header */
					1,   0,   0,  0, 0, 0, 'a',      /* a, empty */
					2,   0,   3,  0, 0, 0, 'a', 'b', /* ab = 1 2 3 */
					'1', '2', '3' };
	static const struct xattr list[] = { XATTR("ab", "123"), XATTR("a", "") };
	CLEANUP(buf_done) struct buf set = BUF_INIT;

	encode(list, ARRAY_LEN(list), &set);
	CHECK_MEM(set.data, set.len, want, sizeof(want));
}

TEST(the_same_attributes_in_any_order_give_the_same_bytes)
{
	CLEANUP(buf_done) struct buf first = BUF_INIT, set = BUF_INIT;
	struct test_rng rng = { .s = test_seed() };
	struct xattr list[ARRAY_LEN(some)];

	encode(some, ARRAY_LEN(some), &first);
	memcpy(list, some, sizeof(some));
	for (int round = 0; round < 100; round++) {
		for (size_t i = ARRAY_LEN(list) - 1; i > 0; i--) {
			const size_t j = test_rand(&rng) % (i + 1);
			const struct xattr t = list[i];

			list[i] = list[j];
			list[j] = t;
		}
		encode(list, ARRAY_LEN(list), &set);
		CHECK_MEM(set.data, set.len, first.data, first.len);
	}
}

TEST(encoding_leaves_the_list_as_it_was)
{
	CLEANUP(buf_done) struct buf set = BUF_INIT;
	struct xattr list[ARRAY_LEN(some)];

	memcpy(list, some, sizeof(some));
	encode(list, ARRAY_LEN(list), &set);
	CHECK_MEM(list, sizeof(list), some, sizeof(some));
}

TEST(a_walk_gives_every_attribute_in_the_order_of_names)
{
	static const size_t order[] = { 3, 1, 2, 0, 4 };
	CLEANUP(buf_done) struct buf set = BUF_INIT;
	struct xattr x;
	size_t pos = 0;

	encode(some, ARRAY_LEN(some), &set);
	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		const struct xattr *want = &some[order[i]];

		CHECK(xattrs_next(&set, &pos, &x));
		CHECK_MEM(x.name, x.name_len, want->name, want->name_len);
		CHECK_MEM(x.value, x.value_len, want->value, want->value_len);
	}
	CHECK(!xattrs_next(&set, &pos, &x));
	CHECK(!xattrs_next(&set, &pos, &x));
}

TEST(every_attribute_is_found_by_its_whole_name_and_no_other)
{
	static const char *const absent[] = { "",       "user", "user.", "user.aa",      "user.abc",
					      "user.c", "a",    "z",     "user.\xff\xff" };
	CLEANUP(buf_done) struct buf set = BUF_INIT;
	struct xattr x;

	encode(some, ARRAY_LEN(some), &set);
	for (size_t i = 0; i < ARRAY_LEN(some); i++) {
		CHECK(xattrs_find(&set, some[i].name, some[i].name_len, &x));
		CHECK_MEM(x.name, x.name_len, some[i].name, some[i].name_len);
		CHECK_MEM(x.value, x.value_len, some[i].value, some[i].value_len);
	}
	for (size_t i = 0; i < ARRAY_LEN(absent); i++)
		CHECK(!xattrs_find(&set, absent[i], strlen(absent[i]), &x));
}

TEST(the_empty_set_is_no_bytes_and_holds_nothing)
{
	CLEANUP(buf_done) struct buf set = BUF_INIT;
	struct xattr x;
	size_t pos = 0;

	CHECK_EQ(buf_append_str(&set, "something else"), 0);
	encode(NULL, 0, &set);
	CHECK_EQ(set.len, 0);
	CHECK(!xattrs_next(&set, &pos, &x));
	CHECK(!xattrs_find(&set, "user.a", 6, &x));
}

TEST(a_name_given_twice_is_refused_and_named)
{
	static const struct xattr list[] = { XATTR("user.a", "1"), XATTR("user.b", "2"),
					     XATTR("user.a", "1") };
	CLEANUP(buf_done) struct buf set = BUF_INIT;
	struct err err = { 0 };

	CHECK_EQ(buf_append_str(&set, "kept"), 0);
	CHECK_EQ(xattrs_encode(list, ARRAY_LEN(list), &set, &err), -EINVAL);
	CHECK_HAS(err.msg, "'user.a' is given twice");
	CHECK_MEM(set.data, set.len, "kept", 4);
}

TEST(a_name_that_no_system_allows_is_refused)
{
	char longest[XATTR_NAME_LEN_MAX + 1];
	CLEANUP(buf_done) struct buf set = BUF_INIT;
	struct xattr x = { .name = longest };
	struct err err = { 0 };

	memset(longest, 'n', sizeof(longest));
	x.name_len = 0;
	CHECK_EQ(xattrs_encode(&x, 1, &set, &err), -EINVAL);
	x.name_len = XATTR_NAME_LEN_MAX + 1;
	CHECK_EQ(xattrs_encode(&x, 1, &set, &err), -EINVAL);
	CHECK_HAS(err.msg, "name");
	x.name_len = XATTR_NAME_LEN_MAX;
	CHECK_OK(xattrs_encode(&x, 1, &set, &err), &err);
	longest[100] = '\0';
	CHECK_EQ(xattrs_encode(&x, 1, &set, &err), -EINVAL);
}

TEST(values_and_sets_have_a_largest_size)
{
	AUTO_FREE char *value = calloc(1, XATTR_VALUE_LEN_MAX + 1);
	CLEANUP(buf_done) struct buf set = BUF_INIT;
	struct xattr list[64];
	char names[64][2];
	struct err err = { 0 };

	CHECK(value);
	for (size_t i = 0; i < ARRAY_LEN(list); i++) {
		names[i][0] = 'n';
		names[i][1] = (char)('0' + i);
		list[i] = (struct xattr){ names[i], 2, value, XATTR_VALUE_LEN_MAX };
	}
	CHECK_OK(xattrs_encode(list, 63, &set, &err), &err);
	CHECK_OK(xattrs_verify(set.data, set.len, &err), &err);
	CHECK_EQ(xattrs_encode(list, 64, &set, &err), -E2BIG);
	CHECK_HAS(err.msg, "more than");

	/* To the byte: 64 records of 8 bytes and the header are to fit too. */
	list[63].value_len -= 64 * 8 + HEADER;
	CHECK_OK(xattrs_encode(list, 64, &set, &err), &err);
	CHECK_EQ(set.len, OBJECT_SIZE_MAX);
	CHECK_OK(xattrs_verify(set.data, set.len, &err), &err);
	list[63].value_len++;
	CHECK_EQ(xattrs_encode(list, 64, &set, &err), -E2BIG);

	list[0].value_len++;
	CHECK_EQ(xattrs_encode(list, 1, &set, &err), -E2BIG);
	CHECK_HAS(err.msg, "'n0'");
}

TEST(a_set_cut_off_or_lengthened_anywhere_is_refused)
{
	CLEANUP(buf_done) struct buf set = BUF_INIT;

	encode(some, ARRAY_LEN(some), &set);
	for (size_t len = 0; len < set.len; len++) {
		/* A copy of its own, so that a sanitizer sees a read beyond the end. */
		AUTO_FREE uint8_t *cut = malloc(len > 0 ? len : 1);

		CHECK(cut);
		memcpy(cut, set.data, len);
		check_refused(cut, len, len < HEADER ? "no attribute set" : "cut off");
	}
	CHECK_EQ(buf_append_u8(&set, 0), 0);
	check_refused(set.data, set.len, "follow the last attribute");
}

TEST(a_set_that_no_writer_writes_is_refused)
{
	/* Offsets: header 0, first name_len 8, value_len 10, name 14, value 15, second record 16. */
	static const struct xattr list[] = { XATTR("b", "1"), XATTR("d", "2") };
	static const struct {
		size_t at;
		uint8_t value;
		const char *why;
	} cases[] = {
		{ 0, 'R', "no attribute set" },
		{ 1, 2, "version 2" },
		{ 2, 1, "no attribute set" },
		{ 3, 1, "no attribute set" },
		{ 4, 0, "without attributes" },
		{ 4, 1, "follow the last attribute" },
		{ 4, 3, "cut off" },
		{ 7, 0xff, "cut off" },
		{ 8, 0, "no valid name" },
		{ 9, 0xff, "cut off" },
		{ 13, 0xff, "cut off" },
		{ 14, '\0', "no valid name" },
		{ 14, 'd', "out of order" },
		{ 14, 'e', "out of order" },
	};
	CLEANUP(buf_done) struct buf set = BUF_INIT;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		encode(list, ARRAY_LEN(list), &set);
		set.data[cases[i].at] = cases[i].value;
		check_refused(set.data, set.len, cases[i].why);
	}
}

TEST(a_stored_name_or_value_that_is_too_long_is_refused)
{
	AUTO_FREE char *bytes = calloc(1, XATTR_VALUE_LEN_MAX + 1);
	CLEANUP(buf_done) struct buf set = BUF_INIT;
	struct xattr x = { .value = bytes, .value_len = XATTR_VALUE_LEN_MAX };

	CHECK(bytes);
	memset(bytes, 'n', XATTR_VALUE_LEN_MAX + 1);
	x.name = bytes;
	x.name_len = 1;
	encode(&x, 1, &set);
	set.data[10]++; /* value_len 65537 */
	CHECK_EQ(buf_append_u8(&set, 0), 0);
	check_refused(set.data, set.len, "65537 bytes");

	x.name_len = XATTR_NAME_LEN_MAX;
	x.value_len = 0;
	encode(&x, 1, &set);
	set.data[8] = 0; /* name_len 256 */
	set.data[9] = 1;
	CHECK_EQ(buf_append_u8(&set, 'n'), 0);
	check_refused(set.data, set.len, "no valid name");
}

TEST(a_set_over_the_size_of_an_object_is_refused)
{
	CLEANUP(buf_done) struct buf set = BUF_INIT;
	static const struct xattr x = XATTR("user.a", "1");

	encode(&x, 1, &set);
	CHECK_EQ(buf_append_zero(&set, OBJECT_SIZE_MAX), 0);
	check_refused(set.data, set.len, "above 4194304");
}

/* So two different byte strings never mean the same set. */
TEST(whatever_verifies_is_encoded_to_the_same_bytes)
{
	CLEANUP(buf_done) struct buf set = BUF_INIT, again = BUF_INIT;
	size_t accepted = 0;

	encode(some, ARRAY_LEN(some), &set);
	for (size_t bit = 0; bit < 8 * set.len; bit++) {
		set.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		if (xattrs_verify(set.data, set.len, NULL) == 0) {
			struct xattr list[ARRAY_LEN(some)];
			size_t pos = 0, n = 0;

			while (n < ARRAY_LEN(list) && xattrs_next(&set, &pos, &list[n]))
				n++;
			encode(list, n, &again);
			CHECK_MEM(again.data, again.len, set.data, set.len);
			accepted++;
		}
		set.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	CHECK(accepted > 0);
}

TEST(a_set_comes_back_from_the_store_as_it_was_put)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("roundtrip"), STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	CLEANUP(buf_done) struct buf want = BUF_INIT, set = BUF_INIT;
	struct object_id id, again;
	struct err err = { 0 };

	encode(some, ARRAY_LEN(some), &want);
	CHECK_OK(xattrs_put(b, some, ARRAY_LEN(some), &id, &err), &err);
	CHECK_OK(xattrs_put(b, some, ARRAY_LEN(some), &again, &err), &err);
	CHECK(object_id_equal(&id, &again));
	stock_commit(b);
	CHECK_OK(xattrs_get(s, &id, &set, &err), &err);
	CHECK_MEM(set.data, set.len, want.data, want.len);
}

TEST(the_empty_set_is_the_zero_id_and_needs_no_object)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("empty"), STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	CLEANUP(buf_done) struct buf set = BUF_INIT;
	struct object_id id = { { 1 } };
	struct store_sizes sizes;
	struct err err = { 0 };

	CHECK_OK(xattrs_put(b, NULL, 0, &id, &err), &err);
	CHECK(object_id_is_zero(&id));
	stock_commit(b);
	CHECK_OK(store_sizes(s, &sizes, &err), &err);
	CHECK_EQ(sizes.objects, 0);
	CHECK_EQ(buf_append_str(&set, "something else"), 0);
	CHECK_OK(xattrs_get(s, &id, &set, &err), &err);
	CHECK_EQ(set.len, 0);
}

TEST(a_refused_set_is_not_put)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("refused"), STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	const struct xattr twice[] = { some[0], some[0] };
	struct object_id id = { { 1 } };
	struct err err = { 0 };

	CHECK_EQ(xattrs_put(b, twice, 2, &id, &err), -EINVAL);
	CHECK_EQ(id.b[0], 1);
}

TEST(a_missing_or_malformed_object_is_reported_and_the_result_untouched)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("malformed"), STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	CLEANUP(buf_done) struct buf set = BUF_INIT;
	struct object_id id, absent = { { 0xee } };
	char hex[OBJECT_HEX_SIZE];
	struct err err = { 0 };

	id = stock_put(b, OBJECT_XATTRS, "X\1\0\0\1\0\0\0", 8);
	stock_commit(b);
	CHECK_EQ(buf_append_str(&set, "kept"), 0);
	CHECK_EQ(xattrs_get(s, &id, &set, &err), -EBADMSG);
	CHECK_HAS(err.msg, object_id_hex(&id, hex));
	CHECK_HAS(err.msg, "cut off");
	CHECK_EQ(xattrs_get(s, &absent, &set, &err), -EBADMSG);
	CHECK_HAS(err.msg, object_id_hex(&absent, hex));
	CHECK_MEM(set.data, set.len, "kept", 4);
}

TEST_MAIN("xattrs")
