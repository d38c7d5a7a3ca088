#include "base/sha1.h"

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
	uint8_t digest[SHA1_SIZE];
	char hex[SHA1_HEX_SIZE];
	struct sha1 s;

	sha1_begin(&s);
	for (size_t n = 0; n < times; n++)
		for (size_t at = 0; at < strlen(text); at += piece)
			sha1_add(&s, text + at,
				 strlen(text) - at < piece ? strlen(text) - at : piece);
	sha1_end(&s, digest);
	CHECK_STR(hex_encode(digest, sizeof(digest), hex), want);
}

static void check_digest(const char *text, size_t piece, size_t times, const char *want)
{
	plain = false;
	check_one_way(text, piece, times, want);
	plain = true;
	check_one_way(text, piece, times, want);
}

/* From FIPS 180 and RFC 3174. */
TEST(known_texts_have_their_known_digests)
{
	check_digest("", 1, 1, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
	check_digest("abc", 3, 1, "a9993e364706816aba3e25717850c26c9cd0d89d");
	check_digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, 1,
		     "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
	check_digest("a", 1, 1000000, "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

TEST(the_pieces_that_a_text_comes_in_do_not_matter)
{
	static const char text[] =
	    "0123456701234567012345670123456701234567012345670123456701234567";

	for (size_t piece = 1; piece <= 64; piece++)
		check_digest(text, piece, 10, "dea356a2cddd90c7a7ecedc5ebb563934f460452");
}

/* One byte more or less decides whether the length still fits into the last block. */
TEST(texts_around_the_length_of_a_block_are_padded_right)
{
	static const struct {
		size_t len;
		const char *digest;
	} cases[] = {
		{ 55, "c1c8bbdc22796e28c0e15163d20899b65621d65a" },
		{ 56, "c2db330f6083854c99d4b5bfb6e8f29f201be699" },
		{ 63, "03f09f5b158a7a8cdad920bddc29b81c18a551f5" },
		{ 64, "0098ba824b5c16427bd7a1122a5a442a25ec644d" },
		{ 65, "11655326c708d70319be2610e8a57d9a5b959d3b" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		check_digest("a", 1, cases[i].len, cases[i].digest);
}

TEST_MAIN("sha1")
