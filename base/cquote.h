/*
 * cquote.h - names as git writes them in a line.
 *
 * A name of printable UTF-8 without quotes and backslashes stays as it is. Any other is put between
 * double quotes, with the escapes of C and bytes as three octal digits. Git reads both, and so does
 * a person.
 */
#pragma once

#include "base/buf.h"

/* Append prefix + name, as one name; -ENOMEM, and nothing appended that counts. */
NODISCARD int cquote_append(struct buf *out, const char *prefix, const char *name);
