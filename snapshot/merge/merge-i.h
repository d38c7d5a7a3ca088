/*
 * merge-i.h - shared by the files behind merge.h.
 *
 *   side    changes of one side since base, by path, with its renames
 *   text    three texts become one
 *   fresh   objects that were put and may be needed again
 *   file    three versions of one file become one: content, then each attribute by itself
 *   draft   ours, with names added and removed, not yet written
 *   join    which versions belong together, and the result for each
 *   names   which names are one file, where files have several
 *   place   puts results into the draft
 *   number  each file has an inode number of its own
 *   write   the draft becomes a root
 */
#pragma once

#include "base/buf.h"
#include "base/map.h"
#include "cowfs/store/cache.h"
#include "cowfs/store/root.h"
#include "snapshot/diff/diff.h"
#include "snapshot/merge/merge.h"

/* A file as one of the three trees has it.  Everything is borrowed. */
struct version {
	const char *path;
	const struct tree_entry *e; /* NULL if it is absent */
	bool linked;                /* it has several names; e->ino is theirs in common */
	bool renumbered;            /* as in struct altered; always false for `base` */
};

enum { BASE, OURS, THEIRS, VERSIONS };

/* --- merge-side.c ----------------------------------------------------------------------- */

/* A name that a side changed. */
struct altered {
	char *path; /* owned */
	/* Never of form TREE_LINK; targets owned; mode 0 means absent. */
	struct tree_entry before, after;
	bool before_linked, after_linked;
	bool renumbered;           /* its file has the names that it had, and another number */
	unsigned what;             /* enum diff_what */
	struct altered *from, *to; /* the other name, if it was renamed */
	struct vote *vote;         /* owned; where a directory went; NULL: not asked yet */
};

struct side {
	struct altered *list; /* owned; in the order of a walk */
	size_t n, cap;
	struct map by_path;
	bool left_out; /* something that does not take part */
	bool renamed;  /* one of them at least was found to be */
};

#define SIDE_INIT ((struct side){ .by_path = MAP_INIT(map_hash_str, map_equal_str) })

void side_done(struct side *s);

/* `take` NULL: all. */
NODISCARD int side_collect(struct store *s, const struct object_id *base,
			   const struct object_id *root, merge_take_fn take, void *take_ctx,
			   struct side *ret, struct err *err);

/* Finds what moved, if it could matter to what the other side did. */
NODISCARD int side_find_renames(struct store *s, const struct object_id *base,
				const struct object_id *root, struct side *side,
				const struct side *other, struct err *err);

struct altered *side_get(const struct side *s, const char *path); /* NULL: it is as in base */

/* The parts of a name that are a directory, and those that are anything else; NULL: none. */
const struct tree_entry *dir_part(const struct tree_entry *e);
const struct tree_entry *file_part(const struct tree_entry *e);

/* One entry of a difference as a version, if it is no directory; else all zero. */
struct version version_of(const struct altered *a, const struct tree_entry *e, bool linked);

/* All three versions of a file that theirs changed; all zero means absent. */
void versions_of(const struct side *ours, const struct altered *t, struct version v[VERSIONS]);

/* Did more than times and the number of its names change? */
bool altered_counts(const struct altered *a);

/*
 * Where a name goes whose directory the side renamed: all files of it that it renamed went to
 * one other.  Owned; *ret is NULL if it stays where it is.
 */
NODISCARD int side_follow_dir(const struct side *s, const char *path, char **ret, struct err *err);

/* --- merge-text.c ----------------------------------------------------------------------- */

/*
 * `text` by version; an absent base is empty.  *ret_hunks is 0 and `out` the merged text; or it is
 * the number of conflicting places, and `out` is what the options want there (not with MERGE_STOP).
 */
NODISCARD int merge_text(const struct buf text[VERSIONS], const struct merge_options *options,
			 enum merge_on_conflict wish, struct buf *out, unsigned *ret_hunks,
			 struct err *err);

/* 1 if it can be merged by lines, 0 if it is too long, lost or has a NUL near its start; loads it then. */
NODISCARD int merge_text_load(struct store *s, const struct tree_entry *e, struct buf *out,
			      struct err *err);

/* --- merge-draft.c ---------------------------------------------------------------------- */

/* Names of one file in the merged tree. */
struct draft_group {
	uint64_t ino; /* in the merged tree */
	uint64_t
	    theirs; /* in theirs, if it is to be merged with that or comes from there; else 0 */
	struct tree_entry was; /* in ours; mode 0 if ours has no such link */
	struct tree_entry now; /* targets of both are owned */
	bool known;            /* `now` comes of a file that ours has */
	bool merged;           /* and has in it what theirs made of that */
	int64_t names;         /* that came or went; counted when it is written */
};

struct draft_dir;

struct draft_name {
	char *name;                /* owned */
	struct tree_entry was;     /* as ours has it, links unresolved; mode 0 means absent */
	struct tree_entry now;     /* targets of both are owned */
	struct draft_group *group; /* set for a link: then only the type of `now` counts */
	struct draft_dir *in;      /* the directory it stands in; NULL: it is the top */
	struct draft_dir *dir;     /* it was opened as a directory */
	bool emptied; /* what ours has below it is gone, also if it becomes one again */
};

struct draft_dir {
	struct draft_name *as;
	char *path; /* owned */
	unsigned depth;
	struct object_id base; /* its tree in ours; zero: it is new */
	struct map names;      /* struct draft_name, owned */
};

struct draft {
	struct store *store;
	struct root root; /* ours */
	struct draft_name top;
	struct draft_dir **dirs; /* owned, and each of them */
	size_t n_dirs, cap_dirs;
	struct map groups;    /* struct draft_group by `ino`, owned */
	struct map by_theirs; /* the same by `theirs` */
	uint64_t next_ino;    /* for what has none, or one that is taken */
};

void draft_done(struct draft *d);
NODISCARD int draft_init(struct draft *d, struct store *s, const struct object_id *ours,
			 int64_t now, struct err *err);

/*
 * Look up a name, present or not.  -ENOTDIR if the path leads through something that is no
 * directory, -ENOENT if through nothing; *ret_stop, if not NULL, is then the length of the path up
 * to it.  Sets no error message.
 */
NODISCARD int draft_find(struct draft *d, const char *path, struct draft_name **ret,
			 size_t *ret_stop, struct err *err);

static inline bool draft_is_there(const struct draft_name *n)
{
	return n->now.mode != 0;
}

/* `group` NULL: it has no other names. */
NODISCARD int draft_set(struct draft_name *n, const struct tree_entry *e, struct draft_group *group,
			struct err *err);

/* A directory that is not in ours, or no longer. */
NODISCARD int draft_make_dir(struct draft *d, struct draft_name *n, const char *path,
			     const struct tree_entry *e, struct err *err);

void draft_clear(struct draft_name *n); /* no directory, or one that is empty */

/* For directories, given with their paths: remove one with everything below; is it empty? */
NODISCARD int draft_remove(struct draft *d, struct draft_name *n, const char *path,
			   struct err *err);
NODISCARD int draft_is_empty(struct draft *d, struct draft_name *n, const char *path,
			     struct err *err);

/* The names that ours has for this file; *ret is NULL if it has none among its links. */
NODISCARD int draft_group_of_ours(struct draft *d, uint64_t ino, struct draft_group **ret,
				  struct err *err);

/*
 * Those that theirs has for it, in the merged tree.  `same`: a file of ours that stands among its
 * links under this number is the same one.
 */
NODISCARD int draft_group_of_theirs(struct draft *d, uint64_t ino, bool same,
				    struct draft_group **ret, struct err *err);

/* The file of a group has been merged with what theirs has under this number. */
NODISCARD int draft_group_meets(struct draft *d, struct draft_group *g, uint64_t theirs,
				struct err *err);

/* Once they have been counted: how many names are left to it; and is there one of this number? */
int64_t draft_group_names(const struct draft_group *g);
bool draft_has_group(const struct draft *d, uint64_t ino);

NODISCARD int draft_new_ino(struct draft *d, uint64_t *ret, struct err *err);

/* Takes over attributes and content for all names of a group. */
NODISCARD int draft_group_set(struct draft_group *g, const struct tree_entry *e, struct err *err);

/* --- merge.c ---------------------------------------------------------------------------- */

struct merging {
	struct batch *batch;
	struct store *store;
	const struct merge_options *options;
	struct root base;        /* for its links */
	struct root theirs_root; /* for directories on the way to what takes part */
	struct side ours, theirs;
	struct draft draft;
	struct map fresh;   /* merge-fresh.c */
	struct map choices; /* struct merge_choice by path, borrowed */
	struct merge result;
};

/* --- merge-fresh.c ---------------------------------------------------------------------- */

/*
 * A batch cannot be read before its commit, and a file with several names may be merged again with
 * the result under another name.  So results for such files are kept: a text by its content id, as
 * OBJECT_CHUNK, and a set of attributes.
 */
NODISCARD int fresh_keep(struct merging *m, enum object_kind kind, const struct object_id *id,
			 const void *data, size_t len, struct err *err);
const struct buf *fresh_get(const struct merging *m, enum object_kind kind,
			    const struct object_id *id); /* NULL: it is in the store */
void fresh_done(struct map *fresh);

/* --- merge-conflict.c ------------------------------------------------------------------- */

/* The option that decides a clash at this path; does theirs replace ours? */
enum merge_on_conflict merge_wish(const struct merging *m, const char *path);
bool merge_wants_theirs(const struct merging *m, const char *path);

/* The caller's choice for it; NULL: none. */
const struct merge_choice *merge_choice_of(const struct merging *m, const char *path);
NODISCARD int merge_learn_choices(struct merging *m, struct err *err);

/* The file that was chosen for one path stands at another, which is borrowed. */
NODISCARD int merge_share_choice(struct merging *m, const char *from, const char *to,
				 struct err *err);

/* The bytes of choices that have some, when all files are in their places. */
NODISCARD int merge_fill_choices(struct merging *m, struct err *err);

/* One more conflict; `v` by version.  Settled if the options say whose it is to be. */
NODISCARD int merge_add_conflict(struct merging *m, enum merge_kind kind, const char *path,
				 const struct version v[VERSIONS], struct err *err);
struct merge_conflict *merge_last_conflict(struct merging *m);
void merge_sort_conflicts(struct merge *m);

/* --- merge-file.c ----------------------------------------------------------------------- */

/* Ours and theirs are there; a base that is not makes it an addition of both.  *ret borrows from `v`. */
NODISCARD int merge_file(struct merging *m, const char *path, const struct version v[VERSIONS],
			 struct tree_entry *ret, struct err *err);

/* Mode, owner, attributes and time of a directory that all three have. */
NODISCARD int merge_dir(struct merging *m, const struct version v[VERSIONS], struct tree_entry *ret,
			struct err *err);

bool merge_same_type(const struct tree_entry *a, const struct tree_entry *b);

/* Are they the same but for times, number and names? */
bool merge_same_content(const struct tree_entry *a, const struct tree_entry *b);

/* --- merge-xattrs.c --------------------------------------------------------------------- */

/* Attribute by attribute; 1 if both changed one, else 0.  `keep`: for fresh_get(). */
NODISCARD int merge_xattrs(struct merging *m, const char *path, const struct object_id id[VERSIONS],
			   bool keep, struct object_id *ret, struct err *err);

/* --- merge-names.c ---------------------------------------------------------------------- */

/* Which files of ours and of theirs are one; before anything else. */
NODISCARD int names_match(struct merging *m, struct err *err);

/*
 * Ours and theirs have it: the merged file in `e`, and in *ret the names that it has, NULL if no
 * others.  `e` borrows from `v` or *ret, until that is changed.
 */
NODISCARD int names_join(struct merging *m, const char *path, const struct version v[VERSIONS],
			 struct tree_entry *e, struct draft_group **ret, struct err *err);

/* The file of which theirs has this as one of several names. */
NODISCARD int names_join_theirs(struct merging *m, const char *path,
				const struct version v[VERSIONS], struct draft_group **ret,
				struct err *err);

/* --- merge-number.c --------------------------------------------------------------------- */

/* No two files have one number; when names have been counted. */
NODISCARD int merge_give_numbers(struct merging *m, struct err *err);

/* --- merge-join.c, merge-write.c -------------------------------------------------------- */

NODISCARD int merge_join(struct merging *m, struct err *err);
NODISCARD int merge_write(struct merging *m, struct err *err);
