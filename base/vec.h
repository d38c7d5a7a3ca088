/*
 * vec.h - arrays that grow.
 *
 * An array is three members of whatever owns it: the list, how many it holds, how many it has room
 * for.  It begins as NULL, 0, 0 and is freed with free().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"

/* `list` with room for more than `n`, where it has room for *cap; NULL, and nothing changed: no memory. */
NODISCARD void *vec_more(void *list, size_t n, size_t *cap, size_t size);

/* The same for an array that does not say for how many it has room; it may be grown by this alone. */
NODISCARD void *vec_one_more(void *list, size_t n, size_t size);

/* How many such an array of `n` has room for: whoever makes one otherwise makes it that large. */
size_t vec_room(size_t n);

/* Make room for one more than `n`; false: there is no memory. */
#define VEC_ROOM(list, n, cap)                                                \
	({                                                                    \
		void *more_ = vec_more((list), (n), &(cap), sizeof(*(list))); \
                                                                              \
		if (more_)                                                    \
			(list) = more_;                                       \
		more_ != NULL;                                                \
	})

#define VEC_ONE_MORE(list, n)                                             \
	({                                                                \
		void *more_ = vec_one_more((list), (n), sizeof(*(list))); \
                                                                          \
		if (more_)                                                \
			(list) = more_;                                   \
		more_ != NULL;                                            \
	})
