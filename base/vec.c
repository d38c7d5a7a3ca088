#include "base/vec.h"

#include <stdint.h>
#include <stdlib.h>

#define FIRST 16

static void *grow(void *list, size_t wanted, size_t *cap, size_t size)
{
	void *more;

	if (wanted > PTRDIFF_MAX / size)
		return NULL;
	more = reallocarray(list, wanted, size);
	if (more)
		*cap = wanted;
	return more;
}

void *vec_more(void *list, size_t n, size_t *cap, size_t size)
{
	if (n < *cap)
		return list;
	return grow(list, *cap > 0 ? 2 * *cap : FIRST, cap, size);
}

void *vec_reserve(void *list, size_t n, size_t more, size_t *cap, size_t size)
{
	size_t least;

	if (__builtin_add_overflow(n, more, &least))
		return NULL;
	return grow(list, least > 2 * *cap ? least : 2 * *cap, cap, size);
}

int vec_by_u64(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

size_t vec_unique_u64(uint64_t *list, size_t n)
{
	size_t kept = 0;

	VEC_SORT(list, n, vec_by_u64);
	for (size_t i = 0; i < n; i++)
		if (kept == 0 || list[kept - 1] != list[i])
			list[kept++] = list[i];
	return kept;
}

size_t vec_room(size_t n)
{
	size_t room = n > 0 ? FIRST : 0;

	while (room < n)
		room *= 2;
	return room;
}

void *vec_one_more(void *list, size_t n, size_t size)
{
	size_t cap = n;

	/* The rooms that vec_more() makes: FIRST, doubled again and again. */
	if (n > 0 && (n < FIRST || (n & (n - 1)) != 0))
		return list;
	return vec_more(list, n, &cap, size);
}
