#include "tests/lib/test.h"

#include "base/le.h"

static const unsigned char bytes[] = { 0xff, 0x01, 0x82, 0x03, 0x84, 0x05, 0x86, 0x07, 0x88 };

TEST(loads_read_the_low_byte_first_at_any_address)
{
	CHECK_EQ(le16_load(bytes + 1), 0x8201);
	CHECK_EQ(le32_load(bytes + 1), 0x84038201);
	CHECK(le64_load(bytes + 1) == 0x8807860584038201ULL);
}

TEST(stores_write_what_loads_read_and_no_more)
{
	unsigned char out[10];

	memset(out, 0xff, sizeof(out));
	le16_store(out + 1, 0x8201);
	CHECK_MEM(out, 3, bytes, 3);
	CHECK_EQ(out[3], 0xff);
	le32_store(out + 1, 0x84038201);
	CHECK_MEM(out, 5, bytes, 5);
	CHECK_EQ(out[5], 0xff);
	le64_store(out + 1, 0x8807860584038201ULL);
	CHECK_MEM(out, 9, bytes, 9);
	CHECK_EQ(out[9], 0xff);
}

TEST(the_largest_values_survive)
{
	unsigned char out[8];

	le16_store(out, UINT16_MAX);
	CHECK_EQ(le16_load(out), UINT16_MAX);
	le32_store(out, UINT32_MAX);
	CHECK_EQ(le32_load(out), UINT32_MAX);
	le64_store(out, UINT64_MAX);
	CHECK(le64_load(out) == UINT64_MAX);
}

TEST_MAIN("le")
