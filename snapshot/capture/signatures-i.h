/*
 * signatures-i.h - private to signatures: the layout of their bytes.
 */
#pragma once

#include "snapshot/capture/signatures.h"

#define SIGNATURES_MAGIC "snapsig\n"

enum {
	HEAD_SUM = 8,      /* of all from HEAD_SUMMED on, under the store's secret */
	HEAD_SUMMED = 24,  /* here it begins */
	HEAD_VERSION = 24, /* u32 */
	HEAD_FLAGS = 28,   /* u32 */
	HEAD_ROOT = 32,
	HEAD_NAMES = 48, /* u64 */
	HEAD_TOP = 56,   /* u64 */
	HEAD_SIZE = 64,
};
#define HEAD_RENUMBERED 1

enum {
	ENTRY_FORM = 72, /* enum tree_form */
	ENTRY_FLAGS = 73,
	ENTRY_NAME_LEN = 74,
	ENTRY_ZERO = 75,
	ENTRY_TARGET_LEN = 76, /* u16 */
	ENTRY_ZERO_2 = 78,
	ENTRY_FIXED = 80,
};

enum {
	ENTRY_DOUBTED = 1,
	ENTRY_LINKED = 2,
	ENTRY_HAS_INO = 4,
	ENTRY_HAS_XATTRS = 8,
	ENTRY_LINKS_BELOW = 16,
	ENTRY_WHOLE = 32,
	ENTRY_FLAGS_KNOWN = 63,
};

/* Only directories have these; the name follows. */
enum {
	ENTRY_DIR_FILES = 0,
	ENTRY_DIR_BYTES = 8,
	ENTRY_DIR_RECORD = 16,
	ENTRY_DIR_NLINK = 24,
	ENTRY_DIR_SIZE = 28,
};

#define RECORD_HEAD 4 /* u32: the number of names */

struct signature_iter signature_iter_at(const uint8_t *record);
struct object_id signatures_sum(const struct object_key *key, const struct buf *bytes);
