#include "base/sha256.h"

#include "base/hex.h"
#include "base/sys.h"
#include "tests/lib/test.h"

/* Both ways (--wrap): with the processor's own instructions, where it has some, and without. */
static bool plain;

bool __real_sys_has_sha(void);
bool __wrap_sys_has_sha(void);

bool __wrap_sys_has_sha(void)
{
	return !plain && __real_sys_has_sha();
}

static void check_one_way(const char *text, size_t piece, size_t times, const char *want)
{
	uint8_t digest[SHA256_SIZE];
	char hex[SHA256_HEX_SIZE];
	struct sha256 s;

	sha256_begin(&s);
	for (size_t n = 0; n < times; n++)
		for (size_t at = 0; at < strlen(text); at += piece)
			sha256_add(&s, text + at,
				   strlen(text) - at < piece ? strlen(text) - at : piece);
	sha256_end(&s, digest);
	CHECK_STR(hex_encode(digest, sizeof(digest), hex), want);
}

static void check_digest(const char *text, size_t piece, size_t times, const char *want)
{
	plain = false;
	check_one_way(text, piece, times, want);
	plain = true;
	check_one_way(text, piece, times, want);
}

/* From FIPS 180 and its examples. */
TEST(known_texts_have_their_known_digests)
{
	check_digest("", 1, 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	check_digest("abc", 3, 1,
		     "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	check_digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, 1,
		     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	check_digest("a", 1, 1000000,
		     "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(the_pieces_that_a_text_comes_in_do_not_matter)
{
	static const char text[] =
	    "0123456701234567012345670123456701234567012345670123456701234567";

	for (size_t piece = 1; piece <= 64; piece++)
		check_digest(text, piece, 10,
			     "594847328451bdfa85056225462cc1d867d877fb388df0ce35f25ab5562bfbb5");
}

/* One byte more or less decides whether the length still fits into the last block. */
TEST(texts_around_the_length_of_a_block_are_padded_right)
{
	static const struct {
		size_t len;
		const char *digest;
	} cases[] = {
		{ 55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318" },
		{ 56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a" },
		{ 63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34" },
		{ 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb" },
		{ 65, "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		check_digest("a", 1, cases[i].len, cases[i].digest);
}

TEST_MAIN("sha256")
