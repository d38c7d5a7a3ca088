/*
 * lease.h - hold up programs that write to a file until it has been read.
 *
 * Leases are for promised files whose content has not been read yet. While a file is in a set, a
 * process that opens it for writing or truncates it waits in that call. The set then calls `take`,
 * which reads the file through its descriptor, and lets the writer continue. The descriptor stays
 * readable when the name is unlinked or given to another file.
 *
 * From leases_try() on, and as long as lease_held() says so, the bytes are those of that moment if
 * the size is the same. mtime and ctime prove nothing here: chmod, rename, link, unlink and utimes
 * change them and no byte. Look at the file's signature once, after leases_try() and before
 * anything relies on the promise: the lease does not show writes before it.
 *
 * Where a lease does not help, and what the caller does about it:
 *   - A file that somebody has open for writing, or has mapped so, cannot be leased (-EAGAIN). Read
 *     it on the spot.
 *   - open(O_RDONLY | O_TRUNC) empties a file without breaking a lease. Its size is then 0, and it
 *     cannot grow again unseen: compare the size after reading.
 *   - The kernel takes a lease away when a writer has waited for lease-break-time (45 s, in
 *     /proc/sys/fs), because this process was stopped or a take was slow. lease_held() says so
 *     afterwards.
 *   - Files of another owner need CAP_LEASE (-EACCES); root has it.
 *   - Other machines: a network file system, or one that a process serves, changes without an open
 *     here. Lease only files for which lease_possible() says that they are on a file system of this
 *     kernel. Writes to the block device, or to the layers below an overlay, break nothing either.
 *   - open(O_NONBLOCK) for writing fails with EWOULDBLOCK instead of waiting, and begins the break.
 *
 * A thread of this process that opens a leased file for writing waits like any other: it must hold
 * nothing that `take` needs. Thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/cleanup.h"
#include "base/err.h"

#define LEASES_MAX   65536            /* an open file with its lease takes the kernel about 1 KiB */
#define LEASES_FILES (2 * LEASES_MAX) /* the limit of descriptors with which there are so many */

struct leases;

/*
 * Read the file, from any of the set's threads, while its writer waits; `fd` is borrowed and its
 * offset unused.  Keep nothing of it unless lease_held(fd) afterwards.  -EAGAIN: not yet; the writer
 * waits on, the set serves the other breaks and asks again a moment later, and for the last time when
 * leases_close() has begun.  Whatever else was returned, the writer goes on and the set has forgotten
 * the file.  May call leases_add() and
 * leases_drop(), not leases_close().
 */
typedef int (*lease_take_fn)(void *ctx, uint64_t key, int fd);

struct leases_options {
	size_t max; /* files at most; 0: half of what RLIMIT_NOFILE allows, and LEASES_MAX */
	unsigned
	    takers; /* threads that take, so that a large file does not delay small ones; 0: 2 */
	lease_take_fn take;
	void *ctx;
};

struct leases_count {
	size_t held;     /* now */
	uint64_t broken; /* somebody wanted to write, and take was called */
	uint64_t failed; /* of these, take returned a failure */
	uint64_t lapsed; /* of these, the kernel had not waited for us */
	uint64_t swept;  /* times that all leases were looked at, because signals were lost */
};

/* -ENOTSUP where there are no leases at all. */
NODISCARD int leases_open(const struct leases_options *options, struct leases **ret,
			  struct err *err);

/*
 * Let every file go.  Breaks that have begun are served first, so `take` may be called until this
 * returns.  NULL is fine.
 */
void leases_close(struct leases *l);
DEFINE_CLEANUP(struct leases *, leases_close)

/* A lease that was set before anybody knew whether its file is to be held. */
struct lease_trial {
	bool is_set;     /* the descriptor has a lease */
	bool signals;    /* the set hears of its breaks */
	uint64_t doubts; /* of the set, before that */
};

/*
 * Lease a regular file that is open for reading only.  A writer waits from now on, for leases_add() or
 * until the caller closes the descriptor or calls lease_give_up().  Without `likely` leases_add() has
 * more to do, and a lease that does not come to that costs less.  Without a set (NULL) none does.
 * SIGIO must be ignored.
 * None of these has a sentence, for each is an answer:
 *   -EAGAIN   somebody has it open for writing
 *   -EACCES   another owner's, and we lack CAP_LEASE
 *   -ENOTSUP  no leases on this file system, or not a regular file
 * Others (-ENOMEM, -ENOLCK) are failures of the machine.
 */
NODISCARD int leases_try(struct leases *l, int fd, bool likely, struct lease_trial *ret);
void lease_give_up(int fd, struct lease_trial *t); /* if it is set */

/*
 * The file is in the set, and the descriptor is the set's.  Else that is the caller's still, with its lease:
 *   -EMFILE   the set is full
 *   -EEXIST   the key is in the set
 * Others are failures of the machine.
 */
NODISCARD int leases_add(struct leases *l, uint64_t key, int fd, const struct lease_trial *t);

/*
 * Let a file go, after it was read otherwise.  1: it was held all the time until now; 0: it was not
 * (-ESTALE would be the caller's word); -ENOENT: not in the set; -EBUSY: a writer has come, and the
 * take that serves it lets the file go.  Never waits, so a take may need what the caller holds.
 */
NODISCARD int leases_drop(struct leases *l, uint64_t key);

/* A descriptor of the caller's own for a file in the set; -ENOENT.  It does not keep the lease. */
NODISCARD int leases_dup(struct leases *l, uint64_t key);

struct leases_count leases_count(struct leases *l);
size_t leases_room(const struct leases *l); /* how many it may hold */

/*
 * Did the lease on this descriptor, or the one it was duplicated from, hold until now, also with a
 * writer waiting?  1, 0, or a negative errno if it cannot be told (no /proc): then only an unchanged
 * ctime proves anything.
 */
NODISCARD int lease_held(int fd);

/* Can files of the file system that this one is on be leased so that the promises above are kept? */
bool lease_possible(int fd);
