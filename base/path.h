/*
 * path.h - names and paths as strings; only path_make_dirs() touches the disk.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

#define PATH_NAME_MAX 255 /* bytes in one name, as Linux and macOS have it */

/* One component that can stand in a directory: 1..255 bytes, no '/' or NUL, not "." or "..". */
bool path_name_valid(const char *name, size_t len);

/* `dir` + "/" + `name`, without doubling the slash.  Owned by the caller; NULL when out of memory. */
NODISCARD char *path_join(const char *dir, const char *name);

/*
 * Make `path` absolute (below `cwd`) and lexically clean: no "//", "." or ".." left.
 * ".." is resolved by text alone, symlinks are not looked at.  Owned; NULL when out of memory.
 */
NODISCARD char *path_clean(const char *cwd, const char *path);

/* Is `path` the directory `dir` or below it?  Both clean and absolute. */
bool path_is_below(const char *path, const char *dir);

/* The same of paths from the top of a tree, which is "". */
bool path_is_within(const char *path, const char *part);

/* The order of a walk: a directory before what is in it. */
int path_compare(const char *a, const char *b);

/* The last component of a clean path, borrowed; "/" for the root. */
const char *path_base(const char *path);

/*
 * mkdir -p with `mode` for what is missing.  What it makes survives power loss, but for
 * directories in one that can be written and not read; what is in `path` is for the caller
 * to sync.
 */
NODISCARD int path_make_dirs(const char *path, mode_t mode, struct err *err);

/*
 * Append `name` for programs: printable UTF-8 as it is; control bytes, backslash and bytes
 * that are no UTF-8 as \xNN.
 */
NODISCARD int path_append_escaped(struct buf *out, const char *name, size_t len);

/*
 * The way back: 1 and the bytes of a name that was escaped, owned by the caller; 0 if it is none,
 * since it has no \xNN, or a backslash that begins no such group, or a NUL would stand in it.  -ENOMEM.
 */
NODISCARD int path_unescape(const char *escaped, char **ret);

/* The same as path_append_escaped() for people: characters that cannot be seen are escaped too (utf8_visible()). */
NODISCARD int path_append_shown(struct buf *out, const char *name, size_t len);
