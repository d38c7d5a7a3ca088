/*
 * text.h - one owned string that is written anew.
 */
#pragma once

#include "base/attr.h"
#include "base/err.h"

/* Free *text and put a formatted text in its place.  -ENOMEM, and nothing changed. */
NODISCARD int text_set(char **text, struct err *err, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* The same with a copy; of NULL it is NULL. */
NODISCARD int text_copy(char **text, const char *from, struct err *err);
