/*
 * side.h - one of the two directories, and what operations do to it.
 */
#pragma once

#include "base/buf.h"
#include "tests/model/script.h"

struct side {
	const char *root; /* borrowed; an empty directory at first */
	int dir;          /* root, while it is open */
	int slots[OP_SLOTS];
	int flags[OP_SLOTS]; /* how it was opened */
};

struct outcome {
	int64_t ret;
	int errnum;     /* 0 if it succeeded */
	uint64_t hash;  /* of what it told: bytes, names, attributes */
	char told[120]; /* the same for people; may be cut */
};

NODISCARD int side_open(struct side *s, const char *root);
void side_close_slots(struct side *s);
void side_close(struct side *s); /* slots too; the directory stays */

/* Do it; anything but what changes states (script.h). */
void side_do(struct side *s, const struct op *op, struct outcome *ret);
bool outcome_equal(const struct outcome *a, const struct outcome *b);
void outcome_print(const struct outcome *o, FILE *f);

/*
 * Everything that can be seen, a line for each name, sorted; times only as far as they
 * were set by the script.  Two sides are equal if these are.  -EBADMSG and a sentence in
 * `err` for what is wrong with one alone: bytes where a hole is said to be.
 */
NODISCARD int side_describe(struct side *s, struct buf *ret, struct err *err);

/* Names and inode numbers, to see whether they stay. */
NODISCARD int side_describe_inodes(struct side *s, struct buf *ret, struct err *err);

/* The bytes of every open slot, for after a rollback. */
NODISCARD int side_describe_slots(struct side *s, struct buf *ret);

/* --- between side.c and describe.c -------------------------------------------------------- */

#define SET_TIMES_END 1000000000 /* seconds; what a script sets is below, what a clock says above */

/* The bytes of a file are what it tells; how many, or -1 and errno. */
int64_t outcome_read_all(int fd, struct outcome *o);

/* A path that needs no directory, until the next call. */
const char *side_path(const struct side *s, const char *path);

uint64_t hash_bytes(uint64_t hash, const void *data, size_t len);
