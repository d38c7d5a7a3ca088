/*
 * content-sum-i.h - the SHA-256 of a regular file in the store.
 *
 * Of a file that is almost all holes (content_is_sparse()) it is that of "sparse", a space, its size in
 * decimal, a NUL, and for each run of data its offset, a space, its length, a NUL and the bytes.
 */
#pragma once

#include "base/sha256.h"
#include "cowfs/store/tree.h"

NODISCARD int content_sum(struct store *s, const struct tree_entry *e, uint8_t digest[SHA256_SIZE],
			  struct err *err);
