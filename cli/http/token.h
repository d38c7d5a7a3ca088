/*
 * token.h - the secret that clients of a server on HTTP must bring.
 */
#pragma once

#include "base/attr.h"
#include "base/err.h"

#define TOKEN_SIZE 129 /* with its NUL */

/* A new one. */
NODISCARD int token_make(char token[TOKEN_SIZE], struct err *err);

/*
 * The one that stands in the file; if there is no such file, a new one is made and written there.
 * -EPERM with a sentence if others may read it.
 */
NODISCARD int token_from_file(const char *path, char token[TOKEN_SIZE], struct err *err);
