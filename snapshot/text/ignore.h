/*
 * ignore.h - which names a file of rules leaves out.
 *
 * The rules are git's for .gitignore: one pattern in a line; `#` begins a comment; `!` takes back
 * an earlier pattern; a slash at the end means a directory; a slash elsewhere ties the pattern to
 * the directory that holds the file; `*`, `?`, `[...]`, a `**` between slashes, and a backslash
 * before a literal character.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

#define IGNORE_FILE     ".snapignore"
#define IGNORE_SIZE_MAX ((size_t)1 << 20)

struct ignore;

enum ignore_verdict {
	IGNORE_SILENT, /* no rule speaks of it */
	IGNORE_OUT,
	IGNORE_IN,
};

NODISCARD int ignore_parse(const void *text, size_t len, struct ignore **ret, struct err *err);
void ignore_free(struct ignore *ig); /* NULL is fine */
DEFINE_CLEANUP(struct ignore *, ignore_free)

/* `path` is seen from the directory that holds the rules, without a slash at either end. */
enum ignore_verdict ignore_match(const struct ignore *ig, const char *path, bool is_dir);

/* Does a rule leave out the file at `path`, or a directory above it? */
bool ignore_covers(const struct ignore *ig, const char *path);
