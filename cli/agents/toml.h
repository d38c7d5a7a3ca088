/*
 * toml.h - change one section in the text of a TOML file that people edit too.
 *
 * A section goes from its line "[name]" to the next line that begins one.  All else stays as it is.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

/* Is it there? */
bool toml_has(const char *text, size_t len, const char *section);

/* The text with that section holding these lines, in its place or at the end; appended to `ret`. */
NODISCARD int toml_set(const char *text, size_t len, const char *section, const char *lines,
		       struct buf *ret, struct err *err);

/* The text without it; -ENOENT if it is not there. */
NODISCARD int toml_remove(const char *text, size_t len, const char *section, struct buf *ret,
			  struct err *err);
