/*
 * rootfile.h - files of a root by their path, as texts.
 */
#pragma once

#include "base/buf.h"
#include "cowfs/store/root.h"
#include "cowfs/store/tree.h"

#define ROOTFILE_TEXT_MAX ((uint64_t)64 << 20)

struct rootfile {
	struct store *store; /* borrowed */
	struct root root;
	struct buf hold[2];
};

NODISCARD int rootfile_open(struct store *s, const struct object_id *root, struct rootfile *ret,
			    struct err *err);
void rootfile_done(struct rootfile *l);

/*
 * `path` counts from the top; no symlink is followed.  `ret` is good until the next call.  -ENOENT without a
 * sentence if there is no such name.
 */
NODISCARD int rootfile_find(struct rootfile *l, const char *path, struct tree_entry *ret,
			    struct err *err);

/* Add a regular file's bytes to `text`; of anything else nothing.  -EDQUOT if it has more than ROOTFILE_TEXT_MAX. */
NODISCARD int rootfile_read(struct rootfile *l, const struct tree_entry *e, struct buf *text,
			    struct err *err);

/* Both in one; a file that is not there is empty.  Returns 1 if it is there. */
NODISCARD int rootfile_text(struct rootfile *l, const char *path, struct buf *text,
			    struct err *err);
