/* RFC 1321. */
#include "base/md5.h"

#include <string.h>

#include "base/le.h"

#define BLOCK 64

static const uint8_t shifts[4][4] = {
	{ 7, 12, 17, 22 }, { 5, 9, 14, 20 }, { 4, 11, 16, 23 }, { 6, 10, 15, 21 }
};

/* 2^32 times the absolute sine of 1 to 64, whole. */
static const uint32_t sines[64] = {
	0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613,
	0xfd469501, 0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193,
	0xa679438e, 0x49b40821, 0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d,
	0x02441453, 0xd8a1e681, 0xe7d3fbc8, 0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed,
	0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a, 0xfffa3942, 0x8771f681, 0x6d9d6122,
	0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70, 0x289b7ec6, 0xeaa127fa,
	0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665, 0xf4292244,
	0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
	0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb,
	0xeb86d391,
};

static uint32_t mix(int t, const uint32_t v[4])
{
	switch (t / 16) {
	case 0:
		return (v[1] & v[2]) | (~v[1] & v[3]);
	case 1:
		return (v[1] & v[3]) | (v[2] & ~v[3]);
	case 2:
		return v[1] ^ v[2] ^ v[3];
	default:
		return v[2] ^ (v[1] | ~v[3]);
	}
}

/* Which word of the block step `t` takes. */
static int word_of(int t)
{
	static const uint8_t first[] = { 0, 1, 5, 0 }, by[] = { 1, 5, 3, 7 };

	return (first[t / 16] + t * by[t / 16]) % 16;
}

static void add_block(uint32_t h[4], const uint8_t *block)
{
	uint32_t v[4], sum;

	memcpy(v, h, sizeof(v));
	for (int t = 0; t < BLOCK; t++) {
		const int by = shifts[t / 16][t % 4];

		sum = v[0] + mix(t, v) + sines[t] + le32_load(block + (size_t)4 * word_of(t));
		v[0] = v[3];
		v[3] = v[2];
		v[2] = v[1];
		v[1] += sum << by | sum >> (32 - by);
	}
	for (int i = 0; i < 4; i++)
		h[i] += v[i];
}

void md5(const void *data, size_t len, uint8_t digest[static MD5_SIZE])
{
	uint32_t h[4] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476 };
	const size_t whole = len / BLOCK, rest = len % BLOCK;
	uint8_t last[2 * BLOCK] = { 0 };
	const size_t n = rest < BLOCK - 8 ? BLOCK : 2 * BLOCK;

	for (size_t i = 0; i < whole; i++)
		add_block(h, (const uint8_t *)data + i * BLOCK);
	if (rest > 0)
		memcpy(last, (const uint8_t *)data + whole * BLOCK, rest);
	last[rest] = 0x80;
	le64_store(last + n - 8, (uint64_t)len * 8);
	for (size_t i = 0; i < n; i += BLOCK)
		add_block(h, last + i);
	for (size_t i = 0; i < 4; i++)
		le32_store(digest + 4 * i, h[i]);
}
