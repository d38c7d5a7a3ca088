/*
 * root.h - the top of a whole file tree: its first directory, and its hard links.
 *
 * A root is itself a small tree with an entry "top", the directory with its
 * attributes, and, if any file has several names, an entry "links": a directory in
 * which each such file stands once, under its inode number in 16 hex digits.  So
 * one id names everything, and gc, check and comparison need no special case.
 */
#pragma once

#include "cowfs/store/tree.h"

#define ROOT_TOP   "top"
#define ROOT_LINKS "links"

#define ROOT_LINK_NAME_SIZE 17

struct root {
	struct tree_entry top;        /* a directory; its name is ROOT_TOP */
	struct object_id links;       /* tree of files with several names, or zero */
	struct tree_summary in_links; /* what lies in it */
};

/* The name under which a file with several names stands in the links tree. */
const char *root_link_name(uint64_t ino, char name[ROOT_LINK_NAME_SIZE]);

NODISCARD int root_put(struct batch *b, const struct root *root, struct object_id *ret_id,
		       struct err *err);
/* From the bytes of its object; what *ret holds does not borrow from them. */
NODISCARD int root_decode(const void *data, size_t len, struct root *ret, struct err *err);
NODISCARD int root_get(struct store *s, const struct object_id *id, struct root *ret,
		       struct err *err);

/*
 * What stands under a number in the links tree of `root`; *ret borrows from `hold`.  -ENOENT
 * (without a sentence) if nothing does.
 */
NODISCARD int root_find_link(struct store *s, const struct root *root, uint64_t ino,
			     struct tree_entry *ret, struct buf *hold, struct err *err);

/* The file behind a TREE_LINK entry.  *ret borrows from `hold`; -EBADMSG if the links tree lacks it. */
NODISCARD int root_link(struct store *s, const struct root *root, uint64_t ino,
			struct tree_entry *ret, struct buf *hold, struct err *err);
