/*
 * signatures.h - what the last capture of a directory saw, so that the next one reads only changes.
 *
 * For every directory: its names in order, each with its stat(2) and its entry in the tree.
 * Signatures belong to one root of one store; the caller makes sure that this root stays reachable.
 * They save work and hold nothing that is not in the tree: losing them costs only time.
 *
 * The bytes are verified when they are loaded; after that only memory can fail here. On-disk:
 * docs/design/capture.md, "Signatures".
 */
#pragma once

#include <sys/stat.h>

#include "cowfs/store/tree-entry.h"

#define SIGNATURES_VERSION 1
#define SIGNATURES_MAX     ((size_t)1 << 30)

/* The result of stat(2) as bytes, equal exactly if no change was seen. */
#define SIGNATURE_STAT_SIZE 72

struct signature_stat {
	uint8_t b[SIGNATURE_STAT_SIZE];
};

/*
 * `home` is the top's device.  Its number may change at the next boot, so it is not stored; those
 * of other devices are.
 */
void signature_stat_set(struct signature_stat *s, const struct stat *st, dev_t home);

struct signatures {
	struct buf bytes;
	struct object_id root; /* what they belong to */
	uint64_t names;        /* of everything, the top too */
	bool renumbered;       /* some names got other inode numbers than they have on disk */
	size_t top;            /* where the entry of the top is */
};

void signatures_free(struct signatures *s); /* NULL is fine */
DEFINE_CLEANUP(struct signatures *, signatures_free)

/* Takes the bytes on success.  -EBADMSG, with the reason, unless they are whole and sound. */
NODISCARD int signatures_decode(struct buf *bytes, const struct object_key *key,
				struct signatures **ret, struct err *err);

/* The same without the checksum, for a fuzzer, which cannot guess it. */
NODISCARD int signatures_verify(struct signatures *s, struct err *err);

/* --- looking ---------------------------------------------------------------------------- */

/* One name, decoded; everything is borrowed from the bytes. */
struct signature {
	const struct signature_stat *stat;
	struct tree_entry e; /* of a file with several names the file, not TREE_LINK */
	bool trusted;        /* a file with the same stat is unchanged */
	bool linked;         /* it stands among the links of the root */
	bool whole;          /* of a directory: it had these names and no others */
	uint64_t record;     /* of a directory: where its names are */
};

/* Where a name stands. */
typedef const uint8_t *signature_at;

signature_at signatures_top(const struct signatures *s);
void signature_decode(signature_at at, struct signature *ret);
const char *signature_name(signature_at at, size_t *ret_len);
bool signature_holds(signature_at at, const struct signature_stat *stat); /* and is trusted */
uint64_t signature_record(signature_at at);                               /* of a directory */
bool signature_is_whole(signature_at at);                                 /* the same */
uint32_t signature_mode(signature_at at);
uint64_t signature_bytes(signature_at at); /* as stat(2) told */
uint64_t signature_ino(signature_at at);   /* in the tree */
size_t signature_size(signature_at at);    /* in bytes */

/* A number that no other name has, below signatures_numbers(). */
size_t signature_number(const struct signatures *s, signature_at at);
size_t signatures_numbers(const struct signatures *s);

/* The names of a directory, in order. */
struct signature_iter {
	signature_at next;
	uint32_t left;
};

struct signature_iter signatures_names(const struct signatures *s, uint64_t record);
void signature_iter_step(struct signature_iter *it);

/* --- writing ---------------------------------------------------------------------------- */

/*
 * Signatures in the making.  Directories are added below ones first, by any thread; those that
 * did not change are named in the old ones.
 */
struct signatures_draft;

#define SIGNATURES_OLD ((uint64_t)1 << 63) /* in the number of a record: it is among the old ones */

NODISCARD int signatures_draft_new(const struct signatures *old, struct signatures_draft **ret,
				   struct err *err);    /* `old`: borrowed, or NULL */
void signatures_draft_free(struct signatures_draft *d); /* NULL is fine */

/* A record is made of these, and of `n` entries behind them. */
NODISCARD int signature_append_count(struct buf *out, uint32_t n);
NODISCARD int signature_append(struct buf *out, const struct signature *s);
NODISCARD int signature_append_old(struct buf *out, signature_at at, uint64_t record);

NODISCARD int signatures_draft_add(struct signatures_draft *d, const struct buf *record,
				   uint64_t *ret_record);

/* The same directory gives the same bytes, in whatever order it was added.  -EFBIG if they are too many. */
NODISCARD int signatures_finish(struct signatures_draft *d, const struct signature *top,
				const struct object_id *root, bool renumbered,
				const struct object_key *key, struct signatures **ret,
				struct err *err);

/* The same names once the promises among them were settled, and `root` is what their root became. */
struct settle;
NODISCARD int signatures_settle(const struct signatures *old, const struct settle *settle,
				const struct object_id *root, const struct object_key *key,
				struct signatures **ret, struct err *err);
