/*
 * pick-i.h - some paths of a tree as a tree of their own.
 */
#pragma once

#include "base/strlist.h"
#include "cowfs/store/root.h"

/*
 * The paths, and the directories above them; *ret is in the batch.  A file with several names becomes
 * a file for each.  `paths` are clean, in the order of path_compare(), and none is below another.
 * `from` is committed and stays until the batch has ended.  -ENOENT with a sentence if one is missing.
 */
NODISCARD int pick_paths(struct batch *b, const struct root *from, const struct strlist *paths,
			 struct root *ret, struct err *err);
