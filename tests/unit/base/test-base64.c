#include "tests/lib/test.h"

#include <errno.h>
#include <string.h>

#include "base/base64.h"

/* RFC 4648, section 10. */
static const char *const vectors[][2] = {
	{ "", "" },
	{ "f", "Zg==" },
	{ "fo", "Zm8=" },
	{ "foo", "Zm9v" },
	{ "foob", "Zm9vYg==" },
	{ "fooba", "Zm9vYmE=" },
	{ "foobar", "Zm9vYmFy" },
};

TEST(the_vectors_of_the_standard_hold_both_ways)
{
	for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
		CLEANUP(buf_done) struct buf text = BUF_INIT, back = BUF_INIT;

		CHECK_EQ(base64_append(&text, vectors[i][0], strlen(vectors[i][0])), 0);
		CHECK_STR(buf_str(&text), vectors[i][1]);
		CHECK_EQ(base64_decode(&back, vectors[i][1], strlen(vectors[i][1])), 0);
		CHECK_STR(buf_str(&back), vectors[i][0]);
	}
}

TEST(every_byte_survives_the_round_trip)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT, back = BUF_INIT;
	unsigned char all[256];

	for (size_t i = 0; i < sizeof(all); i++)
		all[i] = (unsigned char)i;
	CHECK_EQ(base64_append(&text, all, sizeof(all)), 0);
	CHECK_EQ(base64_decode(&back, (const char *)text.data, text.len), 0);
	CHECK_MEM(back.data, back.len, all, sizeof(all));
}

TEST(a_text_that_is_none_is_refused_and_nothing_is_appended)
{
	static const char *const wrong[] = { "Z",    "Zg=",  "Zg",   "Zm9v=",    "=Zg=",
					     "Zh==", "Zm9=", "Zm-v", "Zg==Zm9v", "Zm9v\n===" };

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		CLEANUP(buf_done) struct buf back = BUF_INIT;

		CHECK_EQ(buf_append_str(&back, "x"), 0);
		CHECK_EQ(base64_decode(&back, wrong[i], strlen(wrong[i])), -EINVAL);
		CHECK_EQ(back.len, 1);
	}
}

TEST_MAIN("base64")
