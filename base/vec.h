/*
 * vec.h - arrays that grow.
 *
 * An array is three members of whatever owns it: the list, how many it holds, how many it has room
 * for.  It begins as NULL, 0, 0 and is freed with free().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/attr.h"

/* `list` with room for more than `n`, where it has room for *cap; NULL, and nothing changed: no memory. */
NODISCARD void *vec_more(void *list, size_t n, size_t *cap, size_t size);

/* `list` with room for `more` than `n`: twice *cap, or exactly that many if they are more; NULL as above. */
NODISCARD void *vec_reserve(void *list, size_t n, size_t more, size_t *cap, size_t size);

/* As vec_more(), for an array that does not say for how many it has room; it may be grown by this alone. */
NODISCARD void *vec_one_more(void *list, size_t n, size_t size);

/* How many such an array of `n` has room for: make it that large if you allocate it otherwise. */
size_t vec_room(size_t n);

int vec_by_u64(const void *a, const void *b); /* for qsort() and bsearch(): rising */

/* Sort the numbers and keep each once; returns how many are left. */
size_t vec_unique_u64(uint64_t *list, size_t n);

/* Make room for one more than `n`; false: there is no memory. */
#define VEC_ROOM(list, n, cap)                                                \
	({                                                                    \
		void *more_ = vec_more((list), (n), &(cap), sizeof(*(list))); \
                                                                              \
		if (more_)                                                    \
			(list) = more_;                                       \
		more_ != NULL;                                                \
	})

/* Make room for `more` than `n`; false: there is no memory. */
#define VEC_RESERVE(list, n, cap, more)                                                       \
	({                                                                                    \
		const size_t wanted_ = (more);                                                \
		const bool fits_ = wanted_ <= (cap) - (n);                                    \
		void *larger_ = NULL;                                                         \
                                                                                              \
		if (!fits_)                                                                   \
			larger_ = vec_reserve((list), (n), wanted_, &(cap), sizeof(*(list))); \
		if (larger_)                                                                  \
			(list) = larger_;                                                     \
		fits_ || larger_;                                                             \
	})

#define VEC_ONE_MORE(list, n)                                             \
	({                                                                \
		void *more_ = vec_one_more((list), (n), sizeof(*(list))); \
                                                                          \
		if (more_)                                                \
			(list) = more_;                                   \
		more_ != NULL;                                            \
	})

/*
 * A pointer to the first of the `n` elements that match, or NULL.  `match` is an expression in which
 * `it` points to an element.
 */
#define VEC_FIND(it, list, n, match)                                         \
	({                                                                   \
		__typeof__((list) + 0) found_ = NULL;                        \
                                                                             \
		for (size_t at_ = 0, n_ = (n); at_ < n_ && !found_; at_++) { \
			__typeof__(found_) it = &(list)[at_];                \
                                                                             \
			if (match)                                           \
				found_ = it;                                 \
		}                                                            \
		found_;                                                      \
	})

/* Whether any element matches, or all do. */
#define VEC_HAS(it, list, n, match) (VEC_FIND(it, list, n, match) != NULL)
#define VEC_ALL(it, list, n, match) (!VEC_FIND(it, list, n, !(match)))

/* Sort as qsort() does; `list` may be NULL where there is none. */
#define VEC_SORT(list, n, compare)                                      \
	do {                                                            \
		if ((n) > 1)                                            \
			qsort((list), (n), sizeof(*(list)), (compare)); \
	} while (0)

/*
 * Free what each element owns by the statement `done`, in which `it` points to one, then `list`.  If
 * that is NULL, `n` is not looked at.
 */
#define VEC_FREE(it, list, n, done)                                            \
	do {                                                                   \
		for (size_t at_ = 0, n_ = (list) ? (n) : 0; at_ < n_; at_++) { \
			__typeof__((list) + 0) it = &(list)[at_];              \
                                                                               \
			done;                                                  \
		}                                                              \
		free(list);                                                    \
	} while (0)

/* Define fn(), which frees `list` of a struct with its `n` elements and leaves the struct empty. */
#define DEFINE_LIST_DONE(fn, type, done_one)                 \
	void fn(type *l)                                     \
	{                                                    \
		VEC_FREE(one, l->list, l->n, done_one(one)); \
		*l = (type){ 0 };                            \
	}
