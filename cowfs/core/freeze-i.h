/*
 * freeze-i.h - private to freezing: the changed nodes and names of a layer at one moment.
 *
 * Directories are in one list, each after its parent, parents in the order of the list. So reading
 * the list backwards is bottom-up, however deep the tree.
 */
#pragma once

#include "cowfs/core/layer-i.h"

/* Directories that are in no other. */
#define TOP   0
#define LINKS 1

/* An entry as it was. */
struct frozen_entry {
	struct entry *entry;      /* stays while it is marked, and it is until this is settled */
	struct node *node;        /* pinned; NULL: the name is gone */
	struct tree_entry record; /* borrows from entry and node */
	bool has_file;
	struct file file;
	struct content content; /* once put */
	struct buf *xattrs;     /* owned; a set to put, or NULL */
};

struct frozen_dir {
	struct node *node; /* pinned */
	struct object_id base;
	struct tree_summary below; /* of base; once put, of the new one */
	size_t in, at;             /* which entry of which directory it is; not for the first two */
	struct frozen_entry *list;
	size_t n;
	struct object_id id; /* once put */
};

/* A file without a name. */
struct frozen_stray {
	struct node *node; /* pinned */
	struct file file;
	struct content content;
};

struct frozen {
	struct layer *l;
	uint64_t generation;
	struct frozen_entry top; /* the attributes of the top; its name is ROOT_TOP */
	struct frozen_dir *dirs;
	size_t n, cap;
	struct frozen_stray *strays;
	size_t n_strays;
};
