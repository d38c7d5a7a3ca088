/* SHA-1 and SHA-256, by the same texts; many SHA-256 at once, by what they are one by one. */
#include "base/hex.h"
#include "base/md5.h"
#include "base/sha1.h"
#include "base/sha256-many-i.h"
#include "base/sha256.h"
#include "tests/lib/test.h"

/* A text so many times, in pieces of a size. */
struct input {
	const char *text;
	size_t piece, times;
};

/* The next piece of it, behind `at` bytes; 0 bytes at its end. */
static size_t next(const struct input *in, size_t at, const char **ret)
{
	const size_t len = strlen(in->text), from = len > 0 ? at % len : 0;

	*ret = in->text + from;
	if (at >= len * in->times)
		return 0;
	return len - from < in->piece ? len - from : in->piece;
}

static void check_sha1(const struct input *in, const char *want)
{
	char hex[SHA1_HEX_SIZE];
	uint8_t digest[SHA1_SIZE];
	const char *piece;
	struct sha1 s;

	sha1_begin(&s);
	for (size_t at = 0, n; (n = next(in, at, &piece)) > 0; at += n)
		sha1_add(&s, piece, n);
	sha1_end(&s, digest);
	CHECK_STR(hex_encode(digest, sizeof(digest), hex), want);
}

static void check_sha256(const struct input *in, const char *want)
{
	char hex[SHA256_HEX_SIZE];
	uint8_t digest[SHA256_SIZE];
	const char *piece;
	struct sha256 s;

	sha256_begin(&s);
	for (size_t at = 0, n; (n = next(in, at, &piece)) > 0; at += n)
		sha256_add(&s, piece, n);
	sha256_end(&s, digest);
	CHECK_STR(hex_encode(digest, sizeof(digest), hex), want);
}

static void check_digests(const char *text, size_t piece, size_t times, const char *sha1,
			  const char *sha256)
{
	const struct input in = { text, piece, times };

	check_sha1(&in, sha1);
	check_sha256(&in, sha256);
}

/* From FIPS 180, its examples, and RFC 3174. */
TEST(known_texts_have_their_known_digests)
{
	check_digests("", 1, 1, "da39a3ee5e6b4b0d3255bfef95601890afd80709",
		      "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	check_digests("abc", 3, 1, "a9993e364706816aba3e25717850c26c9cd0d89d",
		      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	check_digests("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, 1,
		      "84983e441c3bd26ebaae4aa1f95129e5e54670f1",
		      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	check_digests("a", 1, 1000000, "34aa973cd4c4daa4f61eeb2bdbad27316534016f",
		      "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(the_pieces_that_a_text_comes_in_do_not_matter)
{
	static const char text[] =
	    "0123456701234567012345670123456701234567012345670123456701234567";

	for (size_t piece = 1; piece <= 64; piece++)
		check_digests(text, piece, 10, "dea356a2cddd90c7a7ecedc5ebb563934f460452",
			      "594847328451bdfa85056225462cc1d867d877fb388df0ce35f25ab5562bfbb5");
}

TEST(a_text_counts_with_its_length)
{
	char hex[SHA256_HEX_SIZE], want[SHA256_HEX_SIZE];
	struct sha256 s;

	sha256_begin(&s);
	sha256_add_text(&s, "ab", 2);
	sha256_add_text(&s, NULL, 0);
	sha256_add_u64(&s, 0x0102);
	sha256_end_hex(&s, hex);
	sha256_begin(&s);
	sha256_add(&s, "\2\0\0\0\0\0\0\0ab\0\0\0\0\0\0\0\0\2\1\0\0\0\0\0\0", 26);
	CHECK_STR(hex, sha256_end_hex(&s, want));
}

/* From RFC 1321, its suite, and texts that end around the end of a block. */
TEST(known_texts_have_their_known_md5)
{
	static const struct {
		const char *text;
		const char *md5;
	} cases[] = {
		{ "", "d41d8cd98f00b204e9800998ecf8427e" },
		{ "abc", "900150983cd24fb0d6963f7d28e17f72" },
		{ "message digest", "f96b697d7cb7938d525a2f31aaf161d0" },
		{ "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
		  "57edf4a22be3c955ac49da2e2107b67a" },
		{ "1234567890123456789012345678901234567890123456789012345",
		  "c9ccf168914a1bcfc3229f1948e67da0" },
		{ "12345678901234567890123456789012345678901234567890123456",
		  "49f193adce178490e34d1b3a4ec0064c" },
	};
	uint8_t digest[MD5_SIZE];
	char hex[MD5_HEX_SIZE];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		md5(cases[i].text, strlen(cases[i].text), digest);
		CHECK_STR(hex_encode(digest, sizeof(digest), hex), cases[i].md5);
	}
}

/* One byte more or less decides whether the length still fits into the last block. */
TEST(texts_around_the_length_of_a_block_are_padded_right)
{
	static const struct {
		size_t len;
		const char *sha1, *sha256;
	} cases[] = {
		{ 55, "c1c8bbdc22796e28c0e15163d20899b65621d65a",
		  "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318" },
		{ 56, "c2db330f6083854c99d4b5bfb6e8f29f201be699",
		  "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a" },
		{ 63, "03f09f5b158a7a8cdad920bddc29b81c18a551f5",
		  "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34" },
		{ 64, "0098ba824b5c16427bd7a1122a5a442a25ec644d",
		  "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb" },
		{ 65, "11655326c708d70319be2610e8a57d9a5b959d3b",
		  "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		check_digests("a", 1, cases[i].len, cases[i].sha1, cases[i].sha256);
}

/* --- many at once ------------------------------------------------------------------------- */

#define JOBS_MAX 300

struct many {
	struct sha256_job jobs[JOBS_MAX];
	uint8_t digests[JOBS_MAX][SHA256_SIZE];
	size_t len[JOBS_MAX];
};

static uint8_t many_bytes[1 << 17];

/* A job of each length, at another place of the bytes each. */
static void fill_jobs(struct many *m, size_t n)
{
	memset(m->digests, 0, sizeof(m->digests));
	for (size_t i = 0; i < n; i++)
		m->jobs[i] = (struct sha256_job){ many_bytes + i * 7, m->len[i], m->digests[i] };
}

static void check_jobs(const struct many *m, size_t n)
{
	uint8_t want[SHA256_SIZE];

	for (size_t i = 0; i < n; i++) {
		sha256_of(many_bytes + i * 7, m->len[i], want);
		CHECK(memcmp(want, m->digests[i], sizeof(want)) == 0);
	}
}

/* By every way that this processor has. */
static void check_many(struct many *m, size_t n)
{
	for (int way = 0; way < N_SHA256_WAYS; way++) {
		fill_jobs(m, n);
		if (sha256_many_by((enum sha256_way)way, m->jobs, n))
			check_jobs(m, n);
	}
	fill_jobs(m, n);
	sha256_many(m->jobs, n);
	check_jobs(m, n);
}

static void fill_bytes(void)
{
	uint32_t x = 1;

	for (size_t i = 0; i < sizeof(many_bytes); i++) {
		x = x * 1664525 + 1013904223;
		many_bytes[i] = (uint8_t)(x >> 24);
	}
}

/* Lanes end at different times, in every order. */
TEST(many_at_once_have_the_digests_that_they_have_alone)
{
	static struct many m;

	fill_bytes();
	for (size_t n = 0; n <= 40; n++) {
		for (size_t i = 0; i < n; i++)
			m.len[i] = many_bytes[n * 41 + i];
		check_many(&m, n);
	}
	for (size_t i = 0; i < JOBS_MAX; i++)
		m.len[i] = i;
	check_many(&m, JOBS_MAX);
}

TEST(a_long_one_among_many_has_its_digest)
{
	static struct many m;

	fill_bytes();
	for (size_t i = 0; i < 20; i++)
		m.len[i] = i % 7 == 3 ? 100000 - i : i * 64;
	check_many(&m, 20);
	check_many(&m, 1);
}

TEST_MAIN("sha")
