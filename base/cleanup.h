/*
 * cleanup.h - release what a scope owns when the scope ends.
 *
 * Every owning local carries CLEANUP(fn) and is initialised where it is declared.
 * Ownership leaves a scope only through TAKE_PTR, TAKE_STRUCT or TAKE_FD, so
 * searching for TAKE_ finds every hand-over.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(fn) __attribute__((cleanup(fn)))

/* Define fn_p(), which CLEANUP can call with the address of a pointer. */
#define DEFINE_CLEANUP(type, fn)           \
	static inline void fn##_p(type *p) \
	{                                  \
		fn(*p);                    \
	}

#define TAKE_PTR(p)                       \
	({                                \
		__auto_type taken_ = (p); \
		(p) = NULL;               \
		taken_;                   \
	})

/* The same for a struct; all zeroes remain. */
#define TAKE_STRUCT(s)                      \
	({                                  \
		__auto_type taken_ = (s);   \
		(s) = (__typeof__(s)){ 0 }; \
		taken_;                     \
	})

#define TAKE_FD(fd)                \
	({                         \
		int taken_ = (fd); \
		(fd) = -1;         \
		taken_;            \
	})

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static inline void cleanup_fclose(FILE **f)
{
	if (*f)
		fclose(*f);
}

#define AUTO_FREE   CLEANUP(cleanup_free)
#define AUTO_CLOSE  CLEANUP(cleanup_close) /* a descriptor */
#define AUTO_FCLOSE CLEANUP(cleanup_fclose)
