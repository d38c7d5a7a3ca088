/*
 * digest.h - the SHA-256 by which others know some bytes: blobs of a depot, objects in packs.
 *
 * Ids of a store never leave it (cowfs/store/object.h); these digests do.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/sha256.h"

#define DIGEST_TEXT_SIZE (sizeof("sha256:") - 1 + SHA256_HEX_SIZE)

/* The SHA-256 of a blob's bytes. */
struct digest {
	uint8_t b[SHA256_SIZE];
};

/* "sha256:" and 64 digits; returns `text`. */
char *digest_text(const struct digest *d, char text[DIGEST_TEXT_SIZE]);
/* -EINVAL, without a sentence, unless it is exactly that. */
NODISCARD int digest_parse(const char *text, struct digest *ret);
struct digest digest_of(const void *bytes, size_t len);
bool digest_equal(const struct digest *a, const struct digest *b);
