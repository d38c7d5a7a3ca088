/*
 * hex.h - bytes as lower-case hexadecimal digits, and back.
 */
#pragma once

#include <stddef.h>

#include "base/attr.h"

/* Write 2 * len digits and a NUL to `out`; returns `out`. */
char *hex_encode(const void *data, size_t len, char *out);

/* Exactly 2 * len digits, upper or lower case, into `out`; -EINVAL for anything else. */
NODISCARD int hex_decode(const char *digits, size_t n_digits, void *out, size_t len);
