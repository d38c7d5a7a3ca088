/*
 * run-trees.h - a set of trees.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "cowfs/store/object.h"

/* All zero: none.  The first `sorted` can be found. */
struct trees {
	struct object_id *list; /* owned */
	size_t n, cap, sorted;
};

/* -ENOMEM.  It cannot be found before all are sorted. */
NODISCARD int trees_add(struct trees *t, const struct object_id *id);
void trees_sort(struct trees *t);
bool trees_have(const struct trees *t, const struct object_id *id);
void trees_forget(struct trees *t); /* all */
