/* FIPS 180-4, section 6.1. */
#include "base/sha1.h"

#include <string.h>

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

static void store(uint8_t *b, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		b[i] = (uint8_t)(v >> (24 - 8 * i));
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

void sha1_add(struct sha1 *s, const void *data, size_t len)
{
	const uint8_t *p = data;
	size_t n;

	while (len > 0) {
		const size_t at = s->len % sizeof(s->block);

		n = sizeof(s->block) - at < len ? sizeof(s->block) - at : len;
		if (n == sizeof(s->block)) {
			add_block(s, p);
		} else {
			memcpy(s->block + at, p, n);
			if (at + n == sizeof(s->block))
				add_block(s, s->block);
		}
		s->len += n;
		p += n;
		len -= n;
	}
}

void sha1_end(struct sha1 *s, uint8_t digest[SHA1_SIZE])
{
	static const uint8_t pad[64] = { 0x80 };
	const uint64_t bits = 8 * s->len;
	uint8_t length[8];

	sha1_add(s, pad, 1 + (119 - s->len % 64) % 64);
	store(length, (uint32_t)(bits >> 32));
	store(length + 4, (uint32_t)bits);
	sha1_add(s, length, sizeof(length));
	for (int i = 0; i < 5; i++)
		store(digest + 4 * i, s->h[i]);
}
