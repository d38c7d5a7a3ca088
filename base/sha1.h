/*
 * sha1.h - SHA-1 in pieces, for the names that git gives to contents.
 *
 * Use it to agree with git and for nothing else: two contents with one SHA-1 can be made.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SHA1_SIZE     20
#define SHA1_HEX_SIZE (2 * SHA1_SIZE + 1)

struct sha1 {
	uint64_t state[16]; /* the library's */
};

void sha1_begin(struct sha1 *s);
void sha1_add(struct sha1 *s, const void *data, size_t len);
void sha1_end(struct sha1 *s, uint8_t digest[SHA1_SIZE]);
