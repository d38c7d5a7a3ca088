/*
 * await.h - wait until another process has written to a file, or has closed it.
 *
 * A process that dies closes its files too, so the caller notices any death. Nothing is polled.
 */
#pragma once

#include <stdbool.h>

#include "base/attr.h"

/* A descriptor to wait at, or a negative errno. */
NODISCARD int await_open(void);

/* That file, by the number that await_next() calls it by; -ENOENT if there is none. */
NODISCARD int await_file(int at, const char *path);

/* That directory: names that come. */
NODISCARD int await_names(int at, const char *path);

/* Something happened to the file of that number; `closed`: a writer has let it go. */
typedef void (*await_fn)(int number, bool closed, void *ctx);

/*
 * 1 when something happened and `fn` was called for all of it (NULL: for none), or a signal came; 0
 * when `ms` were over (-1: never); -EINTR when `stop_fd` (-1: none) can be read.
 */
NODISCARD int await_next(int at, int stop_fd, int ms, await_fn fn, void *ctx);
