/*
 * diff.h - what differs between two trees, name by name, at the cost of the difference.
 *
 * Equal directories are skipped by their id, unread. Content is compared by id too, which is exact
 * (invariant 1), so no file is read. The caller chooses what to ignore; inode numbers, ctimes and
 * mtimes count only if the caller wants them.
 */
#pragma once

#include <stdbool.h>

#include "cowfs/store/root.h"
#include "cowfs/store/store.h"
#include "snapshot/diff/twins.h"

/* In what the two sides of a name differ. */
enum diff_what {
	DIFF_TYPE = 1,    /* it is another type of file now; nothing else is then set */
	DIFF_CONTENT = 2, /* bytes, target or device number */
	DIFF_MODE = 4,    /* permission bits */
	DIFF_OWNER = 8,   /* uid or gid */
	DIFF_XATTRS = 16,
	DIFF_LINKS = 32,  /* it shares its file with other names than before; only if asked for */
	DIFF_MTIME = 64,  /* only if asked for */
	DIFF_TRACE = 128, /* ctime or inode number: somebody touched it; only if asked for */
};

/* Everything is borrowed for the call. */
struct diff_entry {
	const char *path; /* from the top; "" is the top itself */
	/*
	 * NULL on the side that lacks the name.  Of a file with several names these are the
	 * attributes of the file, whose form is then never TREE_LINK.
	 */
	const struct tree_entry *before, *after;
	bool before_linked, after_linked; /* it has several names */
	unsigned what;                    /* enum diff_what; 0 if it came or went */
};

/* What a promise (docs/design/lazy.md) became: 1 and the content; 0: it was lost. */
typedef int (*diff_kept_fn)(const struct object_id *promise, struct content *ret, void *ctx,
			    struct err *err);

struct diff_options {
	bool mtimes; /* report a name that differs only in its mtime */
	bool links;  /* and one whose other names changed */
	bool traces; /* and one that differs only in its ctime or inode number */
	/*
	 * Report everything below an added or removed directory; otherwise only the directory,
	 * whose summary counts its content.
	 */
	bool deep;
	/*
	 * NULL: a promise equals itself alone, so a file that one side promises and the other has
	 * differs.  Asked of files that could be equal.
	 */
	diff_kept_fn kept;
	void *kept_ctx;
	/*
	 * Directories that are known to be the same but for traces are skipped unread, unless `traces`
	 * are wanted.  A walk that looks at `mtimes` adds those that it finds.  NULL: none are known.
	 */
	struct twins *twins;
};

/*
 * Calls `fn` in walk order: a directory before its content, names by their bytes.  A name that
 * changes from or to a directory is reported once, with both sides; then, if `deep`, what is below
 * the directory.  A non-zero answer of `fn` ends the walk and is returned.
 */
typedef int (*diff_fn)(const struct diff_entry *e, void *ctx, struct err *err);

/* Both are roots (root.h), and stay reachable until this returns. */
NODISCARD int diff_walk(struct store *s, const struct object_id *from, const struct object_id *to,
			const struct diff_options *options, diff_fn fn, void *ctx, struct err *err);
