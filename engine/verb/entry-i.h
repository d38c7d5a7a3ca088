/*
 * entry-i.h - an entry of a tree as commands show it.
 */
#pragma once

#include "cowfs/store/tree-entry.h"
#include "engine/api/show.h"

/* Calls `fn` with the entry in plain form; `name` need not be terminated. */
NODISCARD int entry_report(const struct tree_entry *e, const char *name, size_t name_len,
			   int (*fn)(const struct engine_entry *, void *, struct err *), void *ctx,
			   struct err *err);
