/*
 * blocks.h - bytes that come in pieces, gathered to the blocks of 64 that SHA-1 and SHA-256 take.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct blocks {
	uint64_t len;      /* bytes so far */
	uint8_t block[64]; /* len % 64 of them wait here */
};

/* Takes `n` blocks, at least one. */
typedef void (*blocks_fn)(void *digest, const uint8_t *data, size_t n);

void blocks_add(struct blocks *b, const void *data, size_t len, blocks_fn take, void *digest);

/* The padding and the length that both end with (FIPS 180-4, section 5.1.1). */
void blocks_end(struct blocks *b, blocks_fn take, void *digest);
