#include "engine/run/run-numbers.h"

#include <errno.h>

#include "base/vec.h"

int numbers_add(struct numbers *n, uint64_t ino)
{
	if (!VEC_ROOM(n->list, n->n, n->cap))
		return -ENOMEM;
	n->list[n->n++] = ino;
	return 0;
}

void numbers_sort(struct numbers *n)
{
	n->n = vec_unique_u64(n->list, n->n);
}

int numbers_join(struct numbers *n, const struct numbers *more)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < more->n; i++)
		r = numbers_add(n, more->list[i]);
	numbers_sort(n);
	return r;
}

bool numbers_has(const struct numbers *n, uint64_t ino)
{
	return n->n > 0 && bsearch(&ino, n->list, n->n, sizeof(ino), vec_by_u64);
}

bool numbers_have(const struct numbers *n, const struct numbers *these)
{
	return VEC_ALL(it, these->list, these->n, numbers_has(n, *it));
}
