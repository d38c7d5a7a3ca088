/*
 * ahead-i.h - private to the core: objects that somebody will want soon, loaded by a thread that
 * has nothing else to do.
 *
 * Only a hint: what there is no room for in the queue is forgotten, and what cannot be read
 * is left for whoever really needs it.
 */
#pragma once

#include "cowfs/store/cache.h"

struct ahead;

NODISCARD int ahead_new(struct cache *c, struct ahead **ret, struct err *err);
void ahead_free(struct ahead *a); /* NULL is fine */

#define AHEAD_MAX 128 /* objects that one call may name */

void ahead_want(struct ahead *a, const struct object_ref *list, size_t n);
