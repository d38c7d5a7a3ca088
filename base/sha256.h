/*
 * sha256.h - SHA-256 in pieces, for digests that others rely on: no two contents with one are known.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SHA256_SIZE     32
#define SHA256_HEX_SIZE (2 * SHA256_SIZE + 1)

struct sha256 {
	uint64_t state[16]; /* the library's */
};

void sha256_begin(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *data, size_t len);
void sha256_end(struct sha256 *s, uint8_t digest[SHA256_SIZE]);
