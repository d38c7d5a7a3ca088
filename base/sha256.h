/*
 * sha256.h - SHA-256, for digests that others rely on: no collisions are known.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SHA256_SIZE     32
#define SHA256_HEX_SIZE (2 * SHA256_SIZE + 1)

struct sha256 {
	uint64_t state[16]; /* the library's */
};

/* In pieces.  Either end may be the only one; `hex` is returned. */
void sha256_begin(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *data, size_t len);
void sha256_add_u64(struct sha256 *s, uint64_t n); /* its 8 bytes, little-endian */
void sha256_end(struct sha256 *s, uint8_t digest[SHA256_SIZE]);
char *sha256_end_hex(struct sha256 *s, char hex[SHA256_HEX_SIZE]);

/* With its length before it, so that no two lists of texts are one sequence of bytes. */
void sha256_add_text(struct sha256 *s, const char *text, size_t len);

/* Of bytes that are all there. */
void sha256_of(const void *data, size_t len, uint8_t digest[SHA256_SIZE]);
