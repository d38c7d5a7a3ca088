/*
 * plain.h - the plain bytes of an archive, whatever it is packed with, and their SHA-256.
 */
#pragma once

#include "base/cleanup.h"
#include "base/sha256.h"
#include "image/unpack.h"

struct plain;

/* Reads from `read`: gzip, zstd, xz, or what is packed with none.  All is borrowed until plain_free(). */
NODISCARD int plain_new(const struct libarchive *lib, unpack_read_fn read, void *ctx,
			struct plain **ret, struct err *err);
void plain_free(struct plain *p); /* NULL is fine */
DEFINE_CLEANUP(struct plain *, plain_free)

/* An unpack_read_fn; `ctx` is the struct plain.  -EINVAL with a sentence if the bytes are damaged. */
NODISCARD ssize_t plain_read(void *ctx, const void **ret, struct err *err);

/*
 * Read what is left behind the end of the archive, up to a bound (-EINVAL); then the digest of all bytes,
 * from the first on.
 */
NODISCARD int plain_end(struct plain *p, char hex[static SHA256_HEX_SIZE], struct err *err);
