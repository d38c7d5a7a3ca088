/*
 * heap.h - memory that runs out at the n-th request for it.
 *
 * Counted are the allocations of this program and its static libraries (the linker puts
 * ours in the place of malloc() and its kin, --wrap), those of SQLite, and the contexts
 * of zstd.  For one thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Before anything else of SQLite is called. */
void heap_install(void);

enum heap_whose {
	HEAP_OURS,   /* of our own code, zstd's contexts included */
	HEAP_SQLITE, /* of SQLite */
	HEAP_ALL,
};

/* Request number `n` from now on (the first is 1) gets nothing, and no later one does if `onwards`. */
void heap_fail_at(uint64_t n, enum heap_whose whose, bool onwards);

/* No more failures.  Returns how many requests got nothing since heap_fail_at(). */
uint64_t heap_calm(void);

/* Blocks that have been given out and not returned; of our own code only. */
int64_t heap_live(void);
int64_t heap_ours(void);
