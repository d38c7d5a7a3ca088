/*
 * keep.h - the bytes of a file that an earlier capture promised (capture_options.lazy).
 *
 * A promise names a file by its inode number, size, mtime and ctime. So a file is the promised one
 * if it matches before and after it was read.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "cowfs/store/batch.h"
#include "cowfs/store/catalog-id.h"
#include "cowfs/store/content.h"

/* Reads one file after the other into a batch.  One thread at a time. */
struct keeper;

/*
 * `stop` is asked with each block of a large file whether the rest is in vain; if so, the file is not read
 * and the answer is -ECANCELED.
 */
typedef bool (*keeper_stop_fn)(void *ctx);

NODISCARD int keeper_new(struct batch *b, keeper_stop_fn stop, void *ctx, struct keeper **ret,
			 struct err *err);
void keeper_free(struct keeper *k); /* NULL is fine */
DEFINE_CLEANUP(struct keeper *, keeper_free)

/*
 * Why a promise cannot be kept: the sentence is the file's, without its name.  Any other negative answer
 * is a failure of ours, and the file may be tried again.
 */
#define KEEP_LOST 1

/* Is this errno the machine's failure and not the file's?  It may be better later. */
bool keep_is_ours(int code);

/* Open a file below the directory `top`, following no symlink: 0, or KEEP_LOST. */
NODISCARD int keep_open(int top, const char *path, int *ret_fd, struct err *err);

/* Is it still what was promised, as far as stat(2) shows? */
bool keep_is_promised(const struct object_key *key, int fd, dev_t home,
		      const struct catalog_id *capture, const struct object_id *promise);

/* 0 and its content; KEEP_LOST if it is not what was promised any more. */
NODISCARD int keeper_read(struct keeper *k, int fd, dev_t home, const struct catalog_id *capture,
			  const struct object_id *promise, struct content *ret, struct err *err);

/* Some of its bytes alone: how many; 0 if it is not what was promised any more, or cannot be read. */
NODISCARD ssize_t keep_peek(const struct object_key *key, int fd, dev_t home,
			    const struct catalog_id *capture, const struct object_id *promise,
			    uint64_t off, void *data, size_t len);
NODISCARD ssize_t keep_peek_held(int fd, uint64_t size, uint64_t off, void *data, size_t len);

/*
 * The same for a file that is leased since it was promised (lease.h): if it still is, and has the
 * same size, its bytes are the same, whatever its times say.
 */
NODISCARD int keeper_read_held(struct keeper *k, int fd, uint64_t size, struct content *ret,
			       struct err *err);

/* The same for a copy of our own, which nobody changes. */
NODISCARD int keeper_read_copy(struct keeper *k, int fd, struct content *ret, struct err *err);
