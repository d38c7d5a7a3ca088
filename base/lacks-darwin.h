/*
 * lacks-darwin.h - functions that the C library of macOS lacks and others have.
 *
 * The build includes it before every file there, so that no file has to know; sys-darwin.c has the
 * functions.
 */
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <stddef.h>

/* realloc(3) of n times size bytes, which fails where that is more than can be said. */
void *reallocarray(void *p, size_t n, size_t size);

/* Only to be looked up in. */
#ifndef O_PATH
#define O_PATH O_RDONLY
#endif

/* The other side has shut down what it sends: POLLHUP says so there. */
#ifndef POLLRDHUP
#define POLLRDHUP 0
#endif
