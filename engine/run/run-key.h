/*
 * run-key.h - whether a file of a clone may hold a private key.
 */
#pragma once

#include <stdbool.h>

#include "cowfs/store/root.h"

/* A state of the clone; all borrowed. */
struct run_key_in {
	struct store *store;
	const struct root *root;
	int dir; /* the clone's mount */
};

/* Also one that is large, or cannot be read to its end.  `path`: from the top; NULL: no memory for it. */
bool run_key_may_be_in(const struct run_key_in *in, const struct tree_entry *e, const char *path);
