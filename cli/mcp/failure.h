/*
 * failure.h - a failure as a tool answers it: the object that a command prints with --json.
 */
#pragma once

#include "base/json.h"

/* Fill an empty object; `code` is one of docs/schema/snap.error.1.json. */
void failure_set(struct json j, const char *code, const char *sentence);

/* Print such an object as a line.  Returns the exit code 4, or 1 if it could not be printed. */
int failure_print(FILE *out, const char *code, const char *sentence);
