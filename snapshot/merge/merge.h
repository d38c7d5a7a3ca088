/*
 * merge.h - three-way merge of trees.
 *
 * Pure: reads three roots, writes one through the caller's batch, touches no directory. The changes
 * of `theirs` since `base` are applied to `ours`; everything that `theirs` left alone stays as in
 * `ours`. The cost is that of the two differences, not of the trees: the merge keeps only their
 * names and ids, and the three versions of one text at a time.
 *
 * A conflict is a result, not a failure. Every case is a row of the table in docs/design/merge.md,
 * and a test of the same name.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cowfs/store/batch.h"
#include "cowfs/store/object.h"
#include "cowfs/store/tree-entry.h"

/* What the merged tree holds where both sides changed the same thing. */
enum merge_on_conflict {
	MERGE_STOP,    /* ours, whole: the caller does not mean to use the tree */
	MERGE_OURS,    /* ours; in a text, only where it conflicts */
	MERGE_THEIRS,  /* theirs, likewise */
	MERGE_MARKERS, /* a text holds both between markers; anything else is ours */
};

/* How markers show a conflict; the last two also show base. */
enum merge_style {
	MERGE_STYLE_PLAIN,
	MERGE_STYLE_DIFF3,
	MERGE_STYLE_ZDIFF3,
};

enum merge_kind {
	MERGE_CONTENT, /* a text that both changed, in the same place */
	MERGE_BINARY,  /* a file that is no text, a device: both changed it */
	MERGE_TARGET,  /* a symlink that leads to another place on either side */
	MERGE_ADD_ADD,
	MERGE_EDIT_DELETE,   /* ours changed what theirs removed */
	MERGE_DELETE_EDIT,   /* and the other way round */
	MERGE_DIR_FILE,      /* a directory on one side, no directory on the other */
	MERGE_TYPE,          /* two other types of file */
	MERGE_RENAME_RENAME, /* one file to two names, or two files to one */
	MERGE_RENAME_DELETE, /* one side renamed what the other removed */
	MERGE_RENAME_ADD,    /* to a name that the other side made, too */
	MERGE_MODE,          /* permission bits */
	MERGE_OWNER,         /* uid or gid */
	MERGE_XATTRS,        /* one attribute of that name at least */
};
const char *merge_kind_name(enum merge_kind kind); /* "content", "edit/delete", ... */

/* One of the three versions; its root has it at this path. */
struct merge_side {
	char *path;              /* owned; NULL if absent */
	struct tree_entry entry; /* without name; its target is owned */
};

struct merge_conflict {
	enum merge_kind kind;
	char *path; /* owned; where it stands in the merged tree, or would */
	struct merge_side base, ours, theirs;
	unsigned hunks; /* of a text: places in it that conflict; else 0 */
	bool settled;   /* the caller's wish decided it, so the merged tree may be used */
	bool marked;    /* by markers in the text */
};

struct merge {
	struct object_id root;            /* readable when the batch has been committed */
	struct merge_conflict *conflicts; /* owned; in the order of a walk */
	size_t n_conflicts;
	size_t n_merged; /* texts that were put together from both sides, without a conflict */
	size_t cap_conflicts;
};

void merge_done(struct merge *m);

/*
 * Does theirs' change of this path take part?  Asked with the path in theirs, or in base if it was
 * removed.
 */
typedef bool (*merge_take_fn)(const char *path, void *ctx);

/* A decision for the conflicts at one path; it overrides on_conflict. */
struct merge_choice {
	const char *path;            /* the path as a merge with MERGE_STOP reports it */
	enum merge_on_conflict take; /* MERGE_OURS or MERGE_THEIRS */
	const struct content *bytes; /* content for the file there; NULL: that side's content */
};

struct merge_options {
	enum merge_on_conflict on_conflict;
	const struct merge_choice *choices; /* of paths no two of which are the same */
	size_t n_choices;
	enum merge_style style;
	unsigned short marker_size; /* letters of a marker; 0: the usual 7 */
	const char *label_base, *label_ours, *label_theirs; /* on markers; NULL: "base", ... */
	bool no_renames;                                    /* follow none */
	merge_take_fn take;                                 /* NULL: everything */
	void *take_ctx;
	int64_t now; /* nanoseconds since 1970: the mtime of bytes that neither side had */
};

/*
 * All three are committed roots (root.h) that stay reachable until the batch has ended.  Nothing is
 * visible until the caller commits.  -EBADMSG names the path; -ECANCELED if a side that takes part
 * has something new whose path has PATH_MAX bytes or more; -ENOTSUP if two texts are to be
 * merged, or compared to see whether one was renamed, and this machine has no libgit2.
 */
NODISCARD int merge_trees(struct batch *b, const struct object_id *base,
			  const struct object_id *ours, const struct object_id *theirs,
			  const struct merge_options *options, struct merge *ret, struct err *err);

/* How two changes of one path relate. */
enum merge_overlap {
	MERGE_SAME,    /* the same */
	MERGE_APART,   /* it can be put together */
	MERGE_OVERLAP, /* they would conflict */
};

/* In the order of a walk; the path is borrowed for the call.  An answer that is not 0 ends it and is returned. */
typedef int (*merge_overlap_fn)(const char *path, enum merge_overlap overlap, void *ctx,
				struct err *err);

/* Each path that is no directory and that both changed, times apart.  Nothing is written; renames are not followed. */
NODISCARD int merge_overlap(struct store *s, const struct object_id *base,
			    const struct object_id *a, const struct object_id *b,
			    merge_overlap_fn fn, void *ctx, struct err *err);
