/*
 * crew.h - many things done by several threads.
 *
 * crew_each() calls `fn` once for each number below `n`, from as many threads as are asked for, the
 * caller's among them, and returns when every call has.  They take the numbers in
 * ascending order, each the next that nobody has; which of them takes which is not to be relied on.
 *
 * The first call that fails is what crew_each() returns, with its sentence; numbers that nobody has
 * taken by then are left.  A thread that cannot be started is no failure: the others do its work.
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
