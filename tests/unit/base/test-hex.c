#include "tests/lib/test.h"

#include <errno.h>

#include "base/hex.h"

TEST(bytes_become_two_lower_case_digits_each)
{
	char out[7];

	CHECK(hex_encode("\x00\xa9\xff", 3, out) == out);
	CHECK_STR(out, "00a9ff");
	CHECK_STR(hex_encode("", 0, out), "");
}

TEST(every_byte_survives_the_round_trip)
{
	unsigned char all[256], back[256];
	char digits[513];
	size_t i;

	for (i = 0; i < sizeof(all); i++)
		all[i] = (unsigned char)i;
	hex_encode(all, sizeof(all), digits);
	CHECK_EQ(hex_decode(digits, 512, back, sizeof(back)), 0);
	CHECK_MEM(back, sizeof(back), all, sizeof(all));
}

TEST(either_case_is_read)
{
	unsigned char out[3];

	CHECK_EQ(hex_decode("aBcDeF", 6, out, 3), 0);
	CHECK_MEM(out, 3, "\xab\xcd\xef", 3);
	CHECK_EQ(hex_decode("", 0, out, 0), 0);
}

TEST(anything_else_is_refused_and_nothing_is_written)
{
	static const char *const bad[] = { "0g", "g0", " 1", "1 ", "0x", "-1",
					   "/0", ":0", "@0", "G0", "`0", "\xc3\xa9" };
	unsigned char out[2] = { 0x55, 0x55 };
	size_t i;

	for (i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_EQ(hex_decode(bad[i], 2, out, 1), -EINVAL);
	CHECK_EQ(hex_decode("01zz", 4, out, 2), -EINVAL);
	CHECK_MEM(out, 2, "\x55\x55", 2);
}

TEST(a_wrong_number_of_digits_is_refused)
{
	unsigned char out[2] = { 0x55, 0x55 };

	CHECK_EQ(hex_decode("012", 3, out, 1), -EINVAL);
	CHECK_EQ(hex_decode("012", 3, out, 2), -EINVAL);
	CHECK_EQ(hex_decode("01", 2, out, 2), -EINVAL);
	CHECK_EQ(hex_decode("0123", 4, out, 1), -EINVAL);
	CHECK_MEM(out, 2, "\x55\x55", 2);
}

TEST_MAIN("hex")
