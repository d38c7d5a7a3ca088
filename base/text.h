/*
 * text.h - owned strings that are replaced as a whole, and lists of them.
 */
#pragma once

#include <stddef.h>

#include "base/attr.h"
#include "base/err.h"

/* A formatted text, owned by the caller.  NULL: no memory. */
char *text_format(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* Free *text and put a formatted text in its place.  -ENOMEM, and nothing changed. */
NODISCARD int text_set(char **text, struct err *err, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* The same with a copy of `from`; NULL stays NULL. */
NODISCARD int text_copy(char **text, const char *from, struct err *err);

/* --- a list and its length, as a struct that travels has them (fields.h); else see strlist.h ------- */

void texts_free(char **list, size_t n);

/* Add a copy.  -ENOMEM, and nothing changed. */
NODISCARD int texts_add(char ***list, size_t *n, const char *text, struct err *err);

/* Add copies of all.  -ENOMEM, and those before are there. */
NODISCARD int texts_add_all(char ***list, size_t *n, char *const *from, size_t n_from,
			    struct err *err);
