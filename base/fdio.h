/*
 * fdio.h - read and write whole amounts, and replace a file in one step.
 *
 * These functions handle short transfers and EINTR, so no other code loops over read().
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/* Up to `len` bytes, fewer only at end of file; the number read, or a negative errno. */
NODISCARD ssize_t fdio_read(int fd, void *data, size_t len);
NODISCARD ssize_t fdio_pread(int fd, void *data, size_t len, off_t off);

/* All of it; 0 or a negative errno. */
NODISCARD int fdio_write(int fd, const void *data, size_t len);
NODISCARD int fdio_pwrite(int fd, const void *data, size_t len, off_t off);

/* openat() for reading, which never waits for the other end of a fifo; a negative errno. */
NODISCARD int fdio_open_read(int dirfd, const char *name, int flags);

/* Append a file's whole content to `out`.  -EFBIG, and `out` as it was, if it is over `max` bytes. */
NODISCARD int fdio_read_file(int dirfd, const char *name, size_t max, struct buf *out,
			     struct err *err);

/* How the name begins under which a file is written beside its place: a crash may leave one. */
#define FDIO_TEMP_PREFIX ".tmp-"

/*
 * Make `name` hold exactly these bytes, atomically and durably: written beside it,
 * synced, renamed over it, directory synced.  `mode` is subject to the umask.  On
 * failure the old file is untouched and nothing is left beside it, save that when
 * only the last sync failed the new file is in place and may not survive power loss.
 */
NODISCARD int fdio_replace_file(int dirfd, const char *name, const void *data, size_t len,
				mode_t mode, struct err *err);

/*
 * The same without waiting for the disk, for what can be had again: after power loss the file may
 * be there and hold anything.
 */
NODISCARD int fdio_swap_file(int dirfd, const char *name, const void *data, size_t len, mode_t mode,
			     struct err *err);

/* A file in `dir` without a name, for reading and writing, which goes with its descriptor. */
NODISCARD int fdio_open_nameless(const char *dir, struct err *err);
