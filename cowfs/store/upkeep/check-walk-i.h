/*
 * check-walk-i.h - private to check: the walk over all that the refs reach.
 *
 * check-walk.c goes from node to node and calls the others: check-node.c for the content of a tree
 * node, check-content.c for the blocks of a file, check-links.c for files with several names,
 * check-place.c to look up an object and to blame the place where the walk is.
 */
#pragma once

#include "cowfs/store/root.h"
#include "cowfs/store/tree-node.h"
#include "cowfs/store/upkeep/check-i.h"

/* --- check-node.c: tree nodes the walk came to ------------------------------------------ */

/* What a tree node holds by its own records, and how far the walk is with it. */
struct seen_node {
	int64_t seq; /* of its row: the key in check_walk.nodes */
	uint64_t entries;
	struct tree_summary below;
	uint64_t dirs;                 /* names of directories in all its leaves, once `counted` */
	const struct seen_node *right; /* branch: its last child, once walked */
	uint64_t links_no;             /* nothing wrong at or below it with these links */
	uint64_t round;                /* in which it was walked last, */
	uint8_t walks;                 /* and how often in that round */
	uint8_t level;
	bool clean;   /* nothing wrong at or below it, and no links */
	bool counted; /* leaf: always; branch: if all below it could be walked */
	uint8_t first_len, last_len;
	char names[]; /* the first name; leaf: and the last */
};

/* What the one that names a node says about it. */
struct node_claim {
	const struct tree_summary *below; /* NULL: nothing */
	const struct tree_child *child;   /* the record of a branch, or NULL: a whole directory */
	unsigned level;                   /* with `child`: the level it must have */
	uint32_t nlink;                   /* a whole directory: its links; 0: nothing */
};

struct check_walk;
struct seen_node *seen_node_get(const struct check_walk *w, int64_t seq); /* NULL: not yet seen */
/* -EBADMSG, with a sentence, if the node cannot be read. */
NODISCARD int seen_node_add(struct check_walk *w, int64_t seq, const struct tree_node *node,
			    struct seen_node **ret, struct err *err);

/* The sentence if node and claim disagree, written to `why`; else NULL. */
const char *node_claim_flaw(const struct node_claim *claim, const struct seen_node *n,
			    struct err *why);

/* Does `name` follow all names of the node?  Also if they are not known. */
bool seen_node_is_before(const struct seen_node *n, const char *name, size_t name_len);

/* --- check-links.c: the files with several names of one root ---------------------------- */

/* A file that has something wrong, and a finding about it. */
struct bad_link {
	uint64_t ino; /* first: they are sorted by it, as plain numbers are */
	size_t finding;
};

struct check_links {
	struct object_id id;         /* the tree that the rest is about */
	uint64_t no;                 /* another one for every tree; 0: none yet */
	const struct seen_node *top; /* its first node, or NULL */
	struct buf inos;             /* uint64_t, rising: files that are there */
	struct buf bad;              /* struct bad_link, rising: those with something wrong */
	bool broken;                 /* nodes of the tree itself cannot be read or do not fit: */
	size_t finding;              /* the last finding about that */
};

/* --- the walk --------------------------------------------------------------------------- */

struct frame {
	struct buf bytes; /* kept for the next user of this depth */
	struct tree_node node;
	uint32_t i;
	struct seen_node *seen;
	const struct seen_node *before; /* branch: the child walked last, or NULL */
	struct object_id id;
	size_t path_len;    /* of the directory it belongs to */
	bool whole;         /* a whole directory, not the child of a branch */
	uint32_t nlink;     /* if whole: its links, still to be compared with `dirs`, or 0 */
	uint64_t dirs;      /* branch: directories in the children that are counted, */
	uint32_t n_counted; /* and the number of those */
	bool trouble;       /* something at or below it is wrong */
	bool linked;        /* some file at or below it has several names */
};

struct check_walk {
	struct check *c;
	struct map nodes;   /* struct seen_node, owned */
	struct map recipes; /* struct seen_recipe, owned */
	struct frame *stack;
	size_t depth, cap;
	struct buf path;   /* "snapshot NAME:a/b" */
	uint64_t place;    /* rises with every place the walk comes to */
	struct buf blamed; /* uint64_t per finding: the place that was last blamed for it */
	uint64_t round;    /* rises with every tree that is walked from its top */
	struct check_links links;

	/* Of the ref being walked: */
	struct root root;
	size_t start;                        /* length of "snapshot NAME:" */
	bool in_links;                       /* the links tree is being walked */
	const struct tree_entry *link_entry; /* in it: the file at hand, or NULL at a node */
};

/* --- check-place.c ---------------------------------------------------------------------- */

/* The finding concerns the place where the walk stands. */
NODISCARD int walk_blame(struct check_walk *w, size_t finding, struct err *err);

/*
 * Is the object there and in order, as far as the first pass knows?  1, with its row;
 * 0 if not, and the place has been blamed.
 */
NODISCARD int walk_visit(struct check_walk *w, enum object_kind kind, const struct object_id *id,
			 struct row *ret, struct err *err);

/* The bytes of what was visited.  1: fetched.  0: they cannot be, and the place has been blamed. */
NODISCARD int walk_fetch(struct check_walk *w, enum object_kind kind, const struct object_id *id,
			 struct buf *out, struct err *err);

/*
 * An object, or "hard link", contradicts the one that names it: others may name it
 * rightly.  One finding however often it is met.  0, and the place has been blamed.
 */
NODISCARD int walk_contradiction(struct check_walk *w, enum object_kind kind,
				 const struct object_id *id, const char *why, struct err *err);
NODISCARD int walk_link_flaw(struct check_walk *w, const char *why, struct err *err);

/* --- check-content.c -------------------------------------------------------------------- */

/* The content of a regular file of form TREE_CHUNK or TREE_RECIPE. */
NODISCARD int walk_content(struct check_walk *w, const struct tree_entry *e, struct err *err);
void walk_content_done(struct check_walk *w);

/* --- check-links.c ---------------------------------------------------------------------- */

void check_links_done(struct check_links *l);

/* Before a links tree is walked, for every entry of it, and behind it. */
void check_links_begin(struct check_links *l);
NODISCARD int check_links_add(struct check_walk *w, const struct tree_entry *e, struct err *err);
void check_links_end(struct check_links *l, const struct object_id *id);

/* One name of a file that has several: is the file there, and is anything wrong with it? */
NODISCARD int walk_link(struct check_walk *w, uint64_t ino, struct err *err);
