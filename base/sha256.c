/* FIPS 180-4, section 6.2. */
#include "base/sha256.h"

#include <string.h>

#include "base/sha256-i.h"

const uint32_t sha256_constants[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

void sha256_begin(struct sha256 *s)
{
	*s = (struct sha256){ .h = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
				     0x9b05688c, 0x1f83d9ab, 0x5be0cd19 } };
}

static uint32_t rotate(uint32_t v, int by)
{
	return v >> by | v << (32 - by);
}

static uint32_t load(const uint8_t *b)
{
	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static void stretch(uint32_t w[64], const uint8_t *block)
{
	for (int t = 0; t < 16; t++)
		w[t] = load(block + 4 * (size_t)t);
	for (int t = 16; t < 64; t++) {
		const uint32_t a = w[t - 15], b = w[t - 2];

		w[t] = w[t - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[t - 7] +
		       (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
	}
}

/* One of the 64; the caller passes the eight words one place further each time, so none is moved. */
static inline void turn(uint32_t a, uint32_t b, uint32_t c, uint32_t *d, uint32_t e, uint32_t f,
			uint32_t g, uint32_t *h, uint32_t in)
{
	*h += (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + (g ^ (e & (f ^ g))) + in;
	*d += *h;
	*h += (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) | (c & (a | b)));
}

static void add_block(struct sha256 *s, const uint8_t *block)
{
	uint32_t w[64], a = s->h[0], b = s->h[1], c = s->h[2], d = s->h[3], e = s->h[4],
			f = s->h[5], g = s->h[6], h = s->h[7];

	stretch(w, block);
	for (int t = 0; t < 64; t += 8) {
		const uint32_t *k = sha256_constants + t, *in = w + t;

		turn(a, b, c, &d, e, f, g, &h, k[0] + in[0]);
		turn(h, a, b, &c, d, e, f, &g, k[1] + in[1]);
		turn(g, h, a, &b, c, d, e, &f, k[2] + in[2]);
		turn(f, g, h, &a, b, c, d, &e, k[3] + in[3]);
		turn(e, f, g, &h, a, b, c, &d, k[4] + in[4]);
		turn(d, e, f, &g, h, a, b, &c, k[5] + in[5]);
		turn(c, d, e, &f, g, h, a, &b, k[6] + in[6]);
		turn(b, c, d, &e, f, g, h, &a, k[7] + in[7]);
	}
	s->h[0] += a;
	s->h[1] += b;
	s->h[2] += c;
	s->h[3] += d;
	s->h[4] += e;
	s->h[5] += f;
	s->h[6] += g;
	s->h[7] += h;
}

static void add_blocks(void *digest, const uint8_t *data, size_t n)
{
	struct sha256 *s = digest;

	if (sha256_take(s->h, data, n))
		return;
	for (; n > 0; n--, data += sizeof(s->blocks.block))
		add_block(s, data);
}

void sha256_add(struct sha256 *s, const void *data, size_t len)
{
	blocks_add(&s->blocks, data, len, add_blocks, s);
}

void sha256_end(struct sha256 *s, uint8_t digest[SHA256_SIZE])
{
	blocks_end(&s->blocks, add_blocks, s);
	for (int i = 0; i < SHA256_SIZE; i++)
		digest[i] = (uint8_t)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}
