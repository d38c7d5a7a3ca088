/*
 * hunks-i.h - private to hunks: the same comparison, always by libgit2.
 */
#pragma once

#include "snapshot/text/hunks.h"

NODISCARD int hunks_find_by_git(const struct buf *a, const struct buf *b, struct hunks *ret,
				struct err *err);
