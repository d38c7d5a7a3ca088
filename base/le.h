/*
 * le.h - little-endian integers at any address.
 */
#pragma once

#include <stdint.h>

static inline uint16_t le16_load(const void *p)
{
	const uint8_t *b = p;

	return (uint16_t)(b[0] | b[1] << 8);
}

static inline uint32_t le32_load(const void *p)
{
	const uint8_t *b = p;

	return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static inline uint64_t le64_load(const void *p)
{
	const uint8_t *b = p;

	return le32_load(b) | (uint64_t)le32_load(b + 4) << 32;
}

static inline void le16_store(void *p, uint16_t v)
{
	uint8_t *b = p;

	b[0] = (uint8_t)v;
	b[1] = (uint8_t)(v >> 8);
}

static inline void le32_store(void *p, uint32_t v)
{
	uint8_t *b = p;

	le16_store(b, (uint16_t)v);
	le16_store(b + 2, (uint16_t)(v >> 16));
}

static inline void le64_store(void *p, uint64_t v)
{
	uint8_t *b = p;

	le32_store(b, (uint32_t)v);
	le32_store(b + 4, (uint32_t)(v >> 32));
}
