/*
 * visible.h - untrusted text, made safe to look at on a terminal.
 *
 * Printable UTF-8, tabs and newlines pass. Everything that a terminal would obey or that nobody
 * could see is shown as in less(1): control bytes as ^[ and ^M, bytes that are no UTF-8 as <9B>,
 * control, direction-changing and zero-width characters as <U+202E>.
 *
 * A stream may be cut anywhere: the beginning of a character is held until the rest comes.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct visible {
	const char *on, *off; /* put around what is shown instead of obeyed; NULL: nothing */
	char held[4];
	size_t n_held;
	uint32_t last; /* character before, for variation selectors of symbols */
};

/* Append to `out` what can be shown by now; -ENOMEM. */
NODISCARD int visible_append(struct visible *v, const void *data, size_t len, struct buf *out);

/* What was held is no character.  Afterwards another stream may begin. */
NODISCARD int visible_end(struct visible *v, struct buf *out);
