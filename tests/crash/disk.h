/*
 * disk.h - a disk under SQLite that fails, or dies, at the n-th thing it is asked to keep.
 *
 * Counted are the calls that need room or promise durability: writes, truncations, syncs,
 * opening a file that may have to be made, and growing the shared memory of a log; of the
 * store's own calls, fsync() and fdatasync().  No sync reaches the real disk: what is tried
 * here is the death of a process, not of the machine, and waiting for it would take minutes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum disk_fault {
	DISK_FULL,       /* no room: nothing is written */
	DISK_SHORT,      /* no room after the first half of a write */
	DISK_BROKEN,     /* an I/O error: nothing is written */
	DISK_KILL,       /* SIGKILL instead of the call */
	DISK_KILL_HALF,  /* SIGKILL after the first half of a write */
	DISK_UNREADABLE, /* an I/O error of a read; reads are counted then, and nothing else */
};

/* Stand between SQLite and its files from now on.  Before the first store is opened. */
void disk_install(void);

/* Call number `n` from now on (the first is 1) meets the fault, and all later ones if `onwards`. */
void disk_fail_at(uint64_t n, enum disk_fault fault, bool onwards);

/* No more faults.  Returns how many calls met one since disk_fail_at(). */
uint64_t disk_calm(void);
