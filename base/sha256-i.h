/*
 * sha256-i.h - private to sha256: blocks by instructions that only some processors have.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern const uint32_t sha256_constants[64];

/* Take in `n` blocks of 64 bytes; false, with nothing done, if this processor cannot. */
bool sha256_take(uint32_t h[8], const uint8_t *data, size_t n);
