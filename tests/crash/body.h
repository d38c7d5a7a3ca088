/*
 * body.h - the bytes of a file that follow from a number.
 */
#pragma once

#include "cowfs/store/content.h"

struct body {
	uint64_t seed;
	uint64_t size;
	bool noise; /* does not compress */
};

/* Two numbers made one, with every bit of both in every bit of it. */
uint64_t body_mix(uint64_t a, uint64_t b);

struct body body_of(uint64_t seed, bool small);
struct body body_of_blocks(uint64_t seed); /* always of several blocks */

/* `off` is a multiple of 8. */
void body_fill(const struct body *y, uint64_t off, uint8_t *out, size_t len);

NODISCARD int body_put(struct batch *b, const struct body *y, struct content *ret, struct err *err);

/* 1: every byte is there.  0: not so. */
NODISCARD int body_verify(struct store *s, const struct body *y, const struct content *c,
			  struct err *err);
