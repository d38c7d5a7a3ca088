/*
 * edit-fixture.h - for tests of editing: what it put, what it read, and memory that runs out.
 *
 * The linker puts these functions in the place of the originals (--wrap).  For one program
 * of one thread.
 */
#pragma once

#include "cowfs/store/batch.h"
#include "cowfs/store/cache.h"
#include "tests/lib/test.h"

/* Objects put since this was zeroed, and how many of them were new. */
static struct {
	unsigned puts, fresh;
} counted;

/* Requests for memory until one gets nothing; 0: all get what they want. */
static unsigned memory_lasts;
static bool memory_ran_out;

int __real_batch_put(struct batch *b, enum object_kind kind, const void *data, size_t len,
		     struct object_id *ret_id, struct err *err);
int __wrap_batch_put(struct batch *b, enum object_kind kind, const void *data, size_t len,
		     struct object_id *ret_id, struct err *err);
void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n);
void *__real_reallocarray(void *p, size_t n, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);

int __wrap_batch_put(struct batch *b, enum object_kind kind, const void *data, size_t len,
		     struct object_id *ret_id, struct err *err)
{
	const int r = __real_batch_put(b, kind, data, len, ret_id, err);

	counted.puts++;
	counted.fresh += r == 1;
	return r;
}

static bool memory_fails(void)
{
	if (memory_lasts == 0 || --memory_lasts > 0)
		return false;
	memory_ran_out = true;
	return true;
}

void *__wrap_malloc(size_t n)
{
	return memory_fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return memory_fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	return memory_fails() ? NULL : __real_realloc(p, n);
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
	return memory_fails() ? NULL : __real_reallocarray(p, n, size);
}

static inline struct cache *new_cache(struct store *s)
{
	const struct cache_limits limits = { .chunk_bytes = 1 << 20, .meta_bytes = 8 << 20 };
	struct cache *c = NULL;
	struct err err = { 0 };

	CHECK_OK(cache_new(s, &limits, &c, &err), &err);
	return c;
}

/* Start counting with nothing in memory. */
static inline void count_anew(struct cache *c)
{
	cache_drop(c);
	counted.puts = 0;
	counted.fresh = 0;
}

/* Objects read from the store since a moment when this was `before`. */
static inline unsigned loads_since(struct cache *c, uint64_t before)
{
	return (unsigned)(cache_stats(c).loaded - before);
}
