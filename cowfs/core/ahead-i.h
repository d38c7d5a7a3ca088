/*
 * ahead-i.h - private to the core: an idle thread loads objects that somebody will need soon.
 *
 * Only a hint: if the queue is full or an object cannot be read, nothing happens, and the operation
 * that needs the object loads it.
 */
#pragma once

#include "cowfs/store/cache.h"

struct ahead;

NODISCARD int ahead_new(struct cache *c, struct ahead **ret, struct err *err);
void ahead_free(struct ahead *a); /* NULL is fine */

#define AHEAD_MAX 128 /* objects that one call may name */

void ahead_want(struct ahead *a, const struct object_ref *list, size_t n);
