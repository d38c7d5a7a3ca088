#include "tests/lib/test.h"

#include <errno.h>

#include "base/buf.h"

TEST(appended_bytes_come_out_in_order)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	CHECK_EQ(buf_append(&b, "ab", 2), 0);
	CHECK_EQ(buf_append_str(&b, "cd"), 0);
	CHECK_EQ(buf_append_zero(&b, 2), 0);
	CHECK_EQ(buf_append_u8(&b, 'e'), 0);
	CHECK_MEM(b.data, b.len, "abcd\0\0e", 7);
}

TEST(integers_are_little_endian)
{
	static const unsigned char want[] = { 6, 5, 4, 3, 14, 13, 12, 11, 10, 9, 8, 7 };
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	CHECK_EQ(buf_append_u32(&b, 0x03040506), 0);
	CHECK_EQ(buf_append_u64(&b, 0x0708090a0b0c0d0eULL), 0);
	CHECK_MEM(b.data, b.len, want, sizeof(want));
}

TEST(nothing_may_be_appended_to_an_empty_buffer)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	CHECK_EQ(buf_append(&b, NULL, 0), 0);
	CHECK_EQ(buf_append_str(&b, ""), 0);
	CHECK_EQ(buf_append_zero(&b, 0), 0);
	CHECK_EQ(buf_reserve(&b, 0), 0);
	CHECK_EQ(b.len, 0);
	CHECK(buf_extend(&b, 0));
	CHECK_EQ(b.len, 0);
}

TEST(growth_is_geometric)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	size_t i, cap = 0, moves = 0;

	for (i = 0; i < 1000000; i++) {
		CHECK_EQ(buf_append_u8(&b, (uint8_t)i), 0);
		if (b.cap != cap)
			moves++;
		cap = b.cap;
	}
	CHECK_EQ(b.len, 1000000);
	CHECK(moves < 30);
	for (i = 0; i < 1000000; i++)
		CHECK(b.data[i] == (uint8_t)i);
}

TEST(a_growth_that_cannot_be_met_changes_nothing)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	struct buf before;

	CHECK_EQ(buf_append_str(&b, "kept"), 0);
	before = b;
	CHECK_EQ(buf_reserve(&b, SIZE_MAX), -ENOMEM);
	CHECK_EQ(buf_reserve(&b, SIZE_MAX - 3), -ENOMEM);
	CHECK_EQ(buf_reserve(&b, (size_t)PTRDIFF_MAX), -ENOMEM);
	CHECK_EQ(buf_append_zero(&b, SIZE_MAX - 2), -ENOMEM);
	CHECK(!buf_extend(&b, SIZE_MAX));
	CHECK_MEM(&b, sizeof(b), &before, sizeof(before));
	CHECK_MEM(b.data, b.len, "kept", 4);
}

TEST(extend_points_at_the_new_bytes)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	char *p;

	CHECK_EQ(buf_append_str(&b, "ab"), 0);
	p = buf_extend(&b, 3);
	CHECK(p);
	memcpy(p, "cde", 3);
	CHECK_MEM(b.data, b.len, "abcde", 5);
}

TEST(reserve_keeps_length_and_makes_room)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	CHECK_EQ(buf_append_str(&b, "ab"), 0);
	CHECK_EQ(buf_reserve(&b, 5000), 0);
	CHECK_EQ(b.len, 2);
	CHECK(b.cap >= 5002);
}

TEST(reset_keeps_memory_and_done_gives_it_back)
{
	struct buf b = BUF_INIT;
	size_t cap;

	CHECK_EQ(buf_append_zero(&b, 1000), 0);
	cap = b.cap;
	buf_reset(&b);
	CHECK_EQ(b.len, 0);
	CHECK_EQ(b.cap, cap);
	buf_done(&b);
	CHECK(!b.data);
	CHECK_EQ(b.cap, 0);
	CHECK_EQ(buf_append_str(&b, "usable"), 0);
	CHECK_STR(buf_str(&b), "usable");
	buf_done(&b);
	buf_done(&b);
}

TEST(swap_exchanges_contents)
{
	CLEANUP(buf_done) struct buf a = BUF_INIT, b = BUF_INIT;

	CHECK_EQ(buf_append_str(&a, "a"), 0);
	buf_swap(&a, &b);
	CHECK_EQ(a.len, 0);
	CHECK_STR(buf_str(&b), "a");
}

TEST(printf_appends_without_its_nul_however_long)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	CHECK_EQ(buf_append_str(&b, "x"), 0);
	CHECK_EQ(buf_printf(&b, "%d-%s", 42, "y"), 0);
	CHECK_EQ(b.len, 5);
	CHECK_EQ(buf_printf(&b, "%5000d", 7), 0);
	CHECK_EQ(b.len, 5005);
	CHECK_MEM(b.data, 5, "x42-y", 5);
	CHECK_EQ(b.data[5004], '7');
}

TEST(str_adds_a_nul_that_is_not_counted)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	size_t i;

	CHECK_STR(buf_str(&b), "");
	for (i = 0; i < 64; i++) {
		CHECK_EQ(buf_append_u8(&b, 'a'), 0);
		CHECK_EQ(strlen(buf_str(&b)), i + 1);
		CHECK_EQ(b.len, i + 1);
	}
}

TEST_MAIN("buf")
