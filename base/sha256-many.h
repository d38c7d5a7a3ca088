/*
 * sha256-many.h - SHA-256 of many contents at once.
 *
 * Each step of SHA-256 needs the one before it, so one content leaves most of a processor idle.
 * Eight contents beside each other fill its wide registers: about six times as many bytes a second
 * where there are AVX2 or AVX-512 and no instructions for SHA-256 itself.  Elsewhere the contents
 * are digested one after the other.
 */
#pragma once

#include <stdbool.h>

#include "base/sha256.h"

struct sha256_job {
	const void *data;
	size_t len;
	uint8_t *digest; /* SHA256_SIZE bytes, written to */
};

/* The jobs come back in another order. */
void sha256_many(struct sha256_job *jobs, size_t n);

/* Does it gain anything here? */
bool sha256_many_is_wide(void);
