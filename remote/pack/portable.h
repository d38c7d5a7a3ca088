/*
 * portable.h - the portable form of directories and large files: SHA-256 names what they refer to.
 *
 * Chunks and sets of attributes travel as the store has them, because nothing in them is the
 * store's own. Directories are cut into nodes by a rule that every store follows alike, and nodes
 * of large files are those of recipe.h with digests in the place of ids. Data that can be computed
 * (summaries of directories, the number of bytes that are no hole) does not travel.
 *
 * Pure: no I/O. Byte for byte: docs/design/remote.md.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "cowfs/store/recipe.h"
#include "cowfs/store/tree-entry.h"
#include "remote/pack/digest.h"

#define PORTABLE_LEAF_ENTRIES  1024
#define PORTABLE_LEAF_BYTES    ((size_t)256 << 10) /* it ends once it has so many */
#define PORTABLE_LEAF_MAX      ((size_t)272 << 10)
#define PORTABLE_BRANCH_LEAVES 100000

/* Ids, summary, `data` and `nlink` of directories are not set. */
struct portable_entry {
	struct tree_entry e;
	struct digest content; /* of forms chunk, recipe and directory */
	struct digest xattrs;
	bool has_xattrs;
};

/* --- writing a directory ------------------------------------------------------------------ */

struct portable_leaf {
	struct buf bytes; /* header and entries */
	uint32_t n;
};

void portable_leaf_done(struct portable_leaf *l);
void portable_leaf_reset(struct portable_leaf *l);
NODISCARD int portable_leaf_add(struct portable_leaf *l, const struct portable_entry *e);
/* Of an empty directory: give it its header.  Else it has one. */
NODISCARD int portable_leaf_seal(struct portable_leaf *l);
/* Does the leaf end behind the entry that was added last, of this name? */
bool portable_leaf_ends(const struct portable_leaf *l, const char *name, size_t len);

/* A directory of several leaves; `out` is replaced. */
NODISCARD int portable_branch(const struct digest *leaves, size_t n, struct buf *out);

/* --- reading one -------------------------------------------------------------------------- */

struct portable_node {
	unsigned level; /* 0: a leaf */
	uint32_t n;
	const uint8_t *at, *end; /* borrowed: what was not read yet */
	const char *last;        /* the name before; NULL: none */
	size_t last_len;
};

/* -EBADMSG with a sentence, unless it begins like one; what it holds is checked as it is read. */
NODISCARD int portable_node(const void *bytes, size_t len, struct portable_node *ret,
			    struct err *err);
/* 1 and the next entry of a leaf, borrowed from the bytes; 0 at the end; -EBADMSG. */
NODISCARD int portable_next_entry(struct portable_node *node, struct portable_entry *ret,
				  struct err *err);
/* 1 and the next leaf of a branch; 0 at the end. */
int portable_next_leaf(struct portable_node *node, struct digest *ret);

/* --- large files -------------------------------------------------------------------------- */

struct portable_recipe {
	unsigned level, n;
	struct digest slot[RECIPE_FANOUT]; /* all zero: a hole */
};

bool digest_is_zero(const struct digest *d);
NODISCARD int portable_recipe_encode(const struct portable_recipe *node, struct buf *out);
NODISCARD int portable_recipe_decode(const void *bytes, size_t len, struct portable_recipe *ret,
				     struct err *err);
