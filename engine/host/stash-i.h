/*
 * stash-i.h - plain copies of large promised files whose writers are about to change them.
 *
 * Capturing a large file takes many times as long as copying it, and its writer waits in open(2)
 * meanwhile. So cowfsd copies it to STORE/stash, the writer continues, and the copy is captured in
 * its turn. A copy gets its name only when it is complete, so it outlives this process. It does not
 * outlive the machine, because nobody waits until it is on the disk: copies of an earlier boot are
 * discarded.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"
#include "cowfs/store/catalog-id.h"
#include "cowfs/store/object.h"

#define STASH_MIN ((uint64_t)1 << 20) /* smaller files are captured at once: milliseconds */

/* Whose copy it is. */
struct stash_key {
	const char *store; /* its directory */
	struct catalog_id capture;
	struct object_id promise;
};

/*
 * The capture of a copy that was made while no capture knew the promise yet.  A promise has a name that
 * is unique among those of all captures, so whichever has it takes the copy over.
 */
extern const struct catalog_id stash_early;

/*
 * Copy a file that is leased.  -ESTALE if it is not what was leased any more; -ENOSPC if that would take too
 * much of what is free; or why it could not be written.  None has a sentence: capture it instead.
 */
NODISCARD int stash_put(const struct stash_key *key, int fd, uint64_t size);

/* -ENOENT: there is none; or why nobody knows, which may pass. */
NODISCARD int stash_open(const struct stash_key *key, uint64_t size);
void stash_drop(const struct stash_key *key);

/* Make an early copy that of this capture.  -ENOENT: there is none. */
NODISCARD int stash_take_over(const struct stash_key *key);

/*
 * Call `fn` with the promise of each copy of a capture; a failure of it ends that and is returned.  Any other means that
 * there may be more of them, and may pass.
 */
typedef int (*stash_fn)(const struct object_id *promise, void *ctx);
NODISCARD int stash_each(const char *store, const struct catalog_id *capture, stash_fn fn,
			 void *ctx);

/* How much of the disk all copies take, of any capture. */
NODISCARD int stash_bytes(const char *store, uint64_t *ret);

/* Remove copies: of earlier boots, and of captures that `is_known` does not know. */
void stash_sweep(const char *store, bool (*is_known)(const struct catalog_id *capture, void *ctx),
		 void *ctx);

/* Remove the directories, if they are empty. */
void stash_tidy(const char *store);
