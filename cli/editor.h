/*
 * editor.h - a text in the editor of the person at the terminal.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/*
 * Put `text` into a file of its own whose name ends as `like` does, and wait for $VISUAL, else
 * $EDITOR, else vi, to end.  *ret_path is that file; owned, and the caller removes it.
 */
NODISCARD int editor_open(const char *text, const char *like, char **ret_path, struct err *err);

/* Does a line of the file begin as a marker of a conflict does?  Negative if it cannot be read. */
NODISCARD int editor_has_markers(const char *path, struct err *err);
