/*
 * gunzip.h - unpack gzip with its checksums.
 *
 * libarchive unpacks gzip too, but never looks at the checksum and the length at its end, so a damaged
 * archive would become a damaged image.  What is not gzip passes through as it is.
 */
#pragma once

#include "base/cleanup.h"
#include "image/unpack.h"

struct gunzip;

/* Reads from `read`.  Everything is borrowed until gunzip_free(). */
NODISCARD int gunzip_new(unpack_read_fn read, void *ctx, struct gunzip **ret, struct err *err);
void gunzip_free(struct gunzip *g); /* NULL is fine */

/* An unpack_read_fn; `ctx` is the struct gunzip.  -EINVAL with a sentence if the bytes are damaged. */
NODISCARD ssize_t gunzip_read(void *ctx, const void **ret, struct err *err);
