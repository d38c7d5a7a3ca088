/*
 * names.h - a list of names, sorted.
 */
#pragma once

#include <stddef.h>

#include "base/attr.h"

struct names {
	char **list; /* owned, each too */
	size_t n;
};

void names_done(struct names *l);
void names_add(struct names *l, const char *name); /* a copy */
void names_sort(struct names *l);

/* Those of a directory, without the dots; 0 or a negative errno. */
NODISCARD int names_of(int dir, const char *path, struct names *ret);
