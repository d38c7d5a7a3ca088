/*
 * changes.h - how much two trees differ, at the cost of the difference.
 *
 * A name counts as changed if content, type, mode, owner, target, device number or extended
 * attributes differ; times do not count. A directory counts if its own attributes changed, or if it
 * was added or removed without any files in it.
 */
#pragma once

#include "cowfs/store/object.h"
#include "cowfs/store/store.h"
#include "snapshot/diff/diff.h"

struct changes {
	uint64_t added, modified, deleted;
};

/* Both are roots (root.h). */
NODISCARD int changes_count(struct store *s, const struct object_id *from,
			    const struct object_id *to, struct changes *ret, struct err *err);

/* The same, and `kept` knows what promises became (diff.h). */
NODISCARD int changes_count_kept(struct store *s, const struct object_id *from,
				 const struct object_id *to, diff_kept_fn kept, void *kept_ctx,
				 struct changes *ret, struct err *err);

/* The same, and skips directories that are known to be the same (diff.h). */
NODISCARD int changes_count_twins(struct store *s, const struct object_id *from,
				  const struct object_id *to, struct twins *twins,
				  struct changes *ret, struct err *err);

/* The same without names that `leaves_out` says yes to; a directory that came or went is one name. */
typedef bool (*changes_leaves_out)(const char *path, const void *ctx);
NODISCARD int changes_count_without(struct store *s, const struct object_id *from,
				    const struct object_id *to, changes_leaves_out leaves_out,
				    const void *ctx, struct changes *ret, struct err *err);

/*
 * The names that are counted, each with 'A', 'M' or 'D', in the order of a walk (diff.h); "" is the
 * top.  The path is borrowed for the call.  An answer that is not 0 ends it and is returned.
 */
typedef int (*changes_fn)(const char *path, char status, void *ctx, struct err *err);
NODISCARD int changes_each(struct store *s, const struct object_id *from,
			   const struct object_id *to, changes_fn fn, void *ctx, struct err *err);

/* The same, and `kept` knows what promises became (diff.h). */
NODISCARD int changes_each_kept(struct store *s, const struct object_id *from,
				const struct object_id *to, diff_kept_fn kept, void *kept_ctx,
				changes_fn fn, void *ctx, struct err *err);
