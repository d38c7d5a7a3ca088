/*
 * text-i.h - a file's content in memory, and whether it is text.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "cowfs/store/content.h"
#include "snapshot/diff/delta.h"

#define TEXT_MAX ((uint64_t)64 << 20) /* bytes of a file that is taken for text */

/* Replace `out` with all of it. */
NODISCARD int text_load(struct store *s, const struct content *c, struct buf *out, struct err *err);

/*
 * The same for one side of a file, a symlink's text being where it points; a side that is not
 * there is empty.  1 if it is text, 0 if not: too long or with a NUL in it; `out` is then not
 * to be used.
 */
NODISCARD int text_of_side(struct store *s, const struct delta_side *side, struct buf *out,
			   struct err *err);
