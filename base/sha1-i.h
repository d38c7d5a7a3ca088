/*
 * sha1-i.h - private to sha1: blocks by instructions that only some processors have.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Take in `n` blocks of 64 bytes; false, with nothing done, if this processor cannot. */
bool sha1_take(uint32_t h[5], const uint8_t *data, size_t n);
