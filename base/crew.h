/*
 * crew.h - many things done by several threads.
 *
 * crew_each() calls `fn` once for each number below `n`, from as many threads as the caller asks
 * for, its own included, and returns when every call has. Each thread takes the lowest number that
 * nobody has taken; which thread takes which number is undefined.
 *
 * If a call fails, crew_each() returns the first failure with its sentence; numbers not taken by
 * then are left out. A thread that cannot be started is no failure: the others do its work.
 *
 * Threads start with the priority of the caller's.
 */
#pragma once

#include <stddef.h>

#include "base/attr.h"
#include "base/err.h"

#define CREW_MAX 4 /* more would wait for what they share: a directory, a lock, a log */

/* `member` is below the number of threads, another for each; 0 is the caller's. */
typedef int (*crew_fn)(unsigned member, size_t i, void *ctx, struct err *err);
NODISCARD int crew_each(unsigned threads, size_t n, crew_fn fn, void *ctx, struct err *err);

/* How many threads there should be for so many things: as there are processors, if not few. */
unsigned crew_size(size_t n);
