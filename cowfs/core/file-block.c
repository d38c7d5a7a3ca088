/*
 * Memory for a block grows with its bytes: as much as the first write needs, then four times as
 * much each time. Bytes outside the range are not even zeroed before they are needed: most blocks
 * are written from their first byte to their last.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cowfs/core/file-i.h"

#define CAP_STEP 512

_Static_assert(FILE_BLOCK % CAP_STEP == 0, "the largest block is a whole number of steps");

static uint32_t least_cap(uint32_t cap)
{
	return (cap + CAP_STEP - 1) / CAP_STEP * CAP_STEP;
}

static uint8_t *data_new(uint32_t cap)
{
	return cap == FILE_BLOCK ? pool_take() : malloc(cap > 0 ? cap : 1);
}

static void data_free(uint8_t *data, uint32_t cap)
{
	if (cap == FILE_BLOCK)
		pool_give(data);
	else
		free(data);
}

struct block *block_new(uint32_t cap)
{
	struct block *b = malloc(sizeof(*b));

	assert(cap <= FILE_BLOCK);
	if (!b)
		return NULL;
	*b = (struct block){ .refs = 1, .cap = least_cap(cap) };
	b->data = data_new(b->cap);
	if (!b->data) {
		free(b);
		return NULL;
	}
	return b;
}

struct block *block_ref(struct block *b)
{
	__atomic_add_fetch(&b->refs, 1, __ATOMIC_RELAXED);
	return b;
}

void block_unref(struct block *b)
{
	if (!b || __atomic_sub_fetch(&b->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	data_free(b->data, b->cap);
	free(b);
}

bool block_is_shared(const struct block *b)
{
	return __atomic_load_n(&b->refs, __ATOMIC_ACQUIRE) > 1;
}

int block_reserve(struct block *b, uint32_t cap)
{
	uint8_t *data;

	assert(cap <= FILE_BLOCK && !block_is_shared(b));
	if (cap <= b->cap)
		return 0;
	cap = least_cap(cap);
	if (cap < 4 * b->cap)
		cap = 4 * b->cap < FILE_BLOCK ? 4 * b->cap : FILE_BLOCK;
	data = cap == FILE_BLOCK ? pool_take() : realloc(b->data, cap);
	if (!data)
		return -ENOMEM;
	if (cap == FILE_BLOCK) {
		memcpy(data + b->lo, b->data + b->lo, b->hi - b->lo);
		free(b->data);
	}
	b->data = data;
	b->cap = cap;
	return 0;
}

void block_put(struct block *b, uint32_t at, const void *data, uint32_t len)
{
	const uint32_t end = at + len;

	assert(len > 0 && end <= b->cap && !block_is_shared(b));
	if (b->lo == b->hi)
		b->lo = b->hi = at;
	if (at > b->hi)
		memset(b->data + b->hi, 0, at - b->hi);
	else if (end < b->lo)
		memset(b->data + end, 0, b->lo - end);
	if (data)
		memcpy(b->data + at, data, len);
	else
		memset(b->data + at, 0, len);
	if (at < b->lo)
		b->lo = at;
	if (end > b->hi)
		b->hi = end;
}

void block_copy(struct block *b, const struct block *from, uint32_t end)
{
	const uint32_t hi = from->hi < end ? from->hi : end;

	b->whole = from->whole;
	if (from->lo < hi)
		block_put(b, from->lo, from->data + from->lo, hi - from->lo);
}

void block_merge(struct block *b, const uint8_t *under, uint32_t len)
{
	const uint32_t lo = b->lo, hi = b->hi;

	if (under && lo == hi && len > 0)
		block_put(b, 0, under, len);
	else if (under && len > 0) {
		if (lo > 0)
			block_put(b, 0, under, len < lo ? len : lo);
		if (len > hi)
			block_put(b, hi, under + hi, len - hi);
	}
	b->whole = true;
}

void block_clip(struct block *b, uint32_t end)
{
	assert(!block_is_shared(b));
	if (b->hi > end)
		b->hi = end;
	if (b->lo >= b->hi)
		b->lo = b->hi = 0;
}

bool block_hides(const struct block *b, uint32_t shows)
{
	return b->whole || shows == 0 || (b->lo == 0 && b->hi >= shows);
}
