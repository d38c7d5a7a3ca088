/*
 * library.h - a shared library that is loaded when it is first needed, and stays.
 *
 * Linked, it and its dependencies would slow the start of every command.
 */
#pragma once

#include <stddef.h>

#include "base/attr.h"
#include "base/err.h"

/* A function of the library, and where in the caller's struct the pointer to it goes. */
struct library_function {
	const char *name;
	size_t offset;
};

struct library {
	const char *what;         /* for a person: the library, who needs it, what to install */
	const char *const *names; /* of files, NULL at the end; the first that there is serves */
	const struct library_function *functions;
	size_t n_functions;
};

/* Fill all pointers of `ret`.  -ENOTSUP with a sentence if this machine has no such library. */
NODISCARD int library_load(const struct library *l, void *ret, struct err *err);
