/* FIPS 180-4, section 6.1. */
#include "base/sha1.h"

#include <string.h>

#include "base/sha1-i.h"

void sha1_begin(struct sha1 *s)
{
	*s = (struct sha1){ .h = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 } };
}

static uint32_t rotate(uint32_t v, int by)
{
	return v << by | v >> (32 - by);
}

static uint32_t load(const uint8_t *b)
{
	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* What is mixed in step `t`, of the three words of the state that are mixed. */
static uint32_t mix(int t, uint32_t b, uint32_t c, uint32_t d)
{
	if (t < 20)
		return ((b & c) | (~b & d)) + 0x5a827999;
	if (t < 40)
		return (b ^ c ^ d) + 0x6ed9eba1;
	if (t < 60)
		return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
	return (b ^ c ^ d) + 0xca62c1d6;
}

static void add_block(struct sha1 *s, const uint8_t *block)
{
	uint32_t w[80], v[5], next;

	for (int t = 0; t < 16; t++)
		w[t] = load(block + 4 * t);
	for (int t = 16; t < 80; t++)
		w[t] = rotate(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
	memcpy(v, s->h, sizeof(v));
	for (int t = 0; t < 80; t++) {
		next = rotate(v[0], 5) + mix(t, v[1], v[2], v[3]) + v[4] + w[t];
		v[4] = v[3];
		v[3] = v[2];
		v[2] = rotate(v[1], 30);
		v[1] = v[0];
		v[0] = next;
	}
	for (int i = 0; i < 5; i++)
		s->h[i] += v[i];
}

static void add_blocks(void *digest, const uint8_t *data, size_t n)
{
	struct sha1 *s = digest;

	if (sha1_take(s->h, data, n))
		return;
	for (; n > 0; n--, data += sizeof(s->blocks.block))
		add_block(s, data);
}

void sha1_add(struct sha1 *s, const void *data, size_t len)
{
	blocks_add(&s->blocks, data, len, add_blocks, s);
}

void sha1_end(struct sha1 *s, uint8_t digest[SHA1_SIZE])
{
	blocks_end(&s->blocks, add_blocks, s);
	for (int i = 0; i < SHA1_SIZE; i++)
		digest[i] = (uint8_t)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}
