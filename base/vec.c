#include "base/vec.h"

#include <stdint.h>
#include <stdlib.h>

#define FIRST 16

void *vec_more(void *list, size_t n, size_t *cap, size_t size)
{
	const size_t wanted = *cap > 0 ? 2 * *cap : FIRST;
	void *more;

	if (n < *cap)
		return list;
	if (wanted > SIZE_MAX / size)
		return NULL;
	more = reallocarray(list, wanted, size);
	if (more)
		*cap = wanted;
	return more;
}
