/*
 * draft.h - a whole file tree in memory, from the entries of one or more archives, and then in a
 * store.
 *
 * Nothing is ever made on a disk: a path is looked up in this tree alone, where a symlink is an
 * entry and leads nowhere. So no archive can reach outside, owners and devices need no privilege,
 * and a name that leads through a symlink is refused.
 *
 *   - The last entry of a name wins. A repeated directory keeps its content.
 *   - Directories that no entry names get mode 0755, owner 0 and the time 0.
 *   - Whiteouts remove names of lower layers, wherever they stand in their own layer.
 *   - The same entries give the same root, in whatever order they come.
 *
 * After a failure, free the draft.
 */
#pragma once

#include "cowfs/store/root.h"
#include "image/stream.h"

#define DRAFT_DEPTH_MAX 1024

struct draft_limits {
	uint64_t names; /* entries of the tree at once */
	uint64_t text;  /* bytes of names and targets */
};

struct draft;

NODISCARD int draft_new(const struct draft_limits *limits, struct draft **ret, struct err *err);
void draft_free(struct draft *d); /* NULL is fine */

/* What comes from now on lies over what is there. */
void draft_next_layer(struct draft *d);

/*
 * Enter a name.  `attr` has mode, uid, gid, mtime, rdev, xattrs, target and what belongs to its content; the name
 * is in `path`.  *ret is its file, borrowed until the next call, for draft_set_content(); NULL: not wanted.
 * -EINVAL with a sentence if the path cannot be.
 */
struct draft_file;
NODISCARD int draft_add(struct draft *d, struct stream_span path, const struct tree_entry *attr,
			struct draft_file **ret, struct err *err);
void draft_set_content(struct draft_file *f, const struct content *c);

/* Give the file at `target` another name. */
NODISCARD int draft_link(struct draft *d, struct stream_span path, struct stream_span target,
			 struct err *err);

NODISCARD int draft_whiteout(struct draft *d, struct stream_span path, struct err *err);
NODISCARD int draft_opaque(struct draft *d, struct stream_span path, struct err *err);

/* Put all of it.  *ret_root is what the id names. */
NODISCARD int draft_put(struct draft *d, struct batch *b, struct object_id *ret_id,
			struct root *ret_root, struct err *err);
