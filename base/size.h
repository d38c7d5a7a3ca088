/*
 * size.h - sizes and durations as people write them.
 *
 * Parsing is strict: no sign, blank, fraction or trailing text, and nothing that does not fit.
 * -EINVAL if the text is malformed, -ERANGE if its value is too large.
 */
#pragma once

#include <stdint.h>

#include "base/attr.h"

#define SIZE_TEXT_MAX     16 /* "1023.9 KiB" and room */
#define DURATION_TEXT_MAX 32 /* "213503982334d 14h" and room */

/* Decimal digits; the base of size_parse() and duration_parse(). */
NODISCARD int size_parse_u64(const char *text, uint64_t *ret);

/* Bytes: "4096", "512M", "2G", "1TiB".  Units are powers of 1024, in either case, "iB" optional. */
NODISCARD int size_parse(const char *text, uint64_t *ret);

/* The same, but -EDOM for less than 1024 without a unit: "5" was hardly meant as five bytes; "5B" is. */
NODISCARD int size_parse_limit(const char *text, uint64_t *ret);

/* Milliseconds: "500ms", "30s", "2h", "7d", "4w", or several, largest first: "1h30m".  A bare 0 is fine. */
NODISCARD int duration_parse(const char *text, uint64_t *ret);

/* "12 B", "1.5 MiB"; returns `out`. */
char *size_format(uint64_t bytes, char out[SIZE_TEXT_MAX]);

/* The two largest units that matter: "500ms", "1.5s", "2m 5s", "1h 30m", "7d 2h"; returns `out`. */
char *duration_format(uint64_t ms, char out[DURATION_TEXT_MAX]);
