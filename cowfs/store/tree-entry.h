/*
 * tree-entry.h - one entry of a directory: a name, with everything that stat(2) shows of it.
 *
 * Plain data. Every entry has one form only: fields that do not fit its type are zero.
 */
#pragma once

#include "base/bytes.h"
#include "cowfs/store/content.h"
#include "cowfs/store/object.h"

#define TREE_NAME_LEN_MAX   255
#define TREE_TARGET_LEN_MAX 4095

/* What an entry refers to.  The values are on disk. */
enum tree_form {
	TREE_NONE = 0,   /* nothing: empty or all-hole file, symlink, device, FIFO, socket */
	TREE_CHUNK = 1,  /* a regular file of one block */
	TREE_RECIPE = 2, /* a larger regular file */
	TREE_DIR = 3,    /* a directory: `id` is its tree */
	TREE_LINK = 4,   /* one name of a file with several: `ino` names it in the links tree */
	TREE_LAZY = 5,   /* a regular file whose bytes are promised: `id` names the promise */
};

/* What lies below a directory, kept in its entry so that nobody need walk to know it. */
struct tree_summary {
	uint64_t files; /* names of everything that is no directory */
	uint64_t bytes; /* sum of their sizes; a file with several names counts in the links tree */
	bool links;     /* some of them are TREE_LINK */
};

/*
 * Of a TREE_LINK entry only name, ino and the type bits of mode mean anything; all
 * else is zero.  Fields that do not fit the type are zero too: the encoding is
 * canonical, and tree_builder_add() asserts it.
 *
 * `nlink` of a directory is 2 and one for each directory in it, or 0: not known, as trees
 * have it that were written before it was kept.
 */
struct tree_entry {
	const char *name; /* not terminated */
	size_t name_len;
	enum tree_form form;
	uint32_t mode; /* type and permission bits, as st_mode */
	uint32_t uid, gid;
	uint64_t ino;
	uint64_t size;
	int64_t mtime_s, ctime_s;
	uint32_t mtime_ns, ctime_ns;
	struct object_id id;     /* by form: chunk, recipe, tree or promise; else zero */
	struct object_id xattrs; /* zero: none */
	uint64_t data;           /* regular file: bytes that are no hole */
	uint64_t rdev;           /* device: its number, as st_rdev */
	uint32_t nlink;          /* as st_nlink, of directories and in the links tree; else zero */
	const char *target;      /* symlink: where it points; not terminated */
	size_t target_len;
	struct tree_summary below; /* directory */
};

/* The order of names: by bytes, a name before those that it begins. */
static inline int tree_name_compare(const char *a, size_t a_len, const char *b, size_t b_len)
{
	return bytes_compare(a, a_len, b, b_len);
}

void tree_entry_set_content(struct tree_entry *e, const struct content *c);
struct content tree_entry_content(const struct tree_entry *e);

/*
 * A copy that borrows nothing: without name and summary, its target owned until
 * tree_entry_done().  -ENOMEM, and *ret is as it was.
 */
NODISCARD int tree_entry_copy(const struct tree_entry *e, struct tree_entry *ret);
void tree_entry_done(struct tree_entry *e); /* of such a copy, or of zeros */

/* Same name and same everything, summaries included. */
bool tree_entry_equal(const struct tree_entry *a, const struct tree_entry *b);

/* What keeps an entry from being canonical, as words for a sentence; NULL if nothing does. */
const char *tree_entry_flaw(const struct tree_entry *e);
