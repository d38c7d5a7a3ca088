/*
 * text-i.h - a file's content in memory, and whether it is text.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "cowfs/store/content.h"

#define TEXT_MAX ((uint64_t)64 << 20) /* bytes of a file that is taken for text */

/* Replace `out` with all of it. */
NODISCARD int text_load(struct store *s, const struct content *c, struct buf *out, struct err *err);
