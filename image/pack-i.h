/*
 * pack-i.h - an archive being written: entries go in, bytes come out.
 */
#pragma once

#include "base/map.h"
#include "image/pack.h"

#define PACK_WHITEOUT   ".wh."
#define PACK_BLOCK_SIZE ((size_t)256 << 10)

/* A file with several names, and the one under which it was written. */
struct pack_link {
	uint64_t ino;
	char path[];
};

struct pack {
	struct store *store;
	struct libarchive lib;
	struct archive *archive; /* the tar */
	struct archive *packer;  /* what compresses it; NULL: nothing does */
	struct sha256 sum;       /* of the tar */
	struct archive_entry *entry;
	const struct pack_options *options;
	struct root root;
	struct map linked; /* ino -> struct pack_link: files with several names that were written */
	struct buf xattrs, block;
	struct err why; /* of a failed write */
	struct packed done;
};

/* --- pack-entry.c ----------------------------------------------------------------------- */

/* What a failed call of libarchive, or our own writer below it, said. */
int pack_failed(const struct pack *p, struct err *err);

/* One name with the attributes of its file; `linked`: the file has several names. */
NODISCARD int pack_entry(struct pack *p, const char *path, const struct tree_entry *e, bool linked,
			 struct err *err);

/* The name is in the base and not here. */
NODISCARD int pack_whiteout(struct pack *p, const char *path, struct err *err);

/* --- pack-walk.c ------------------------------------------------------------------------ */

NODISCARD int pack_all(struct pack *p, struct err *err);
NODISCARD int pack_changes(struct pack *p, const struct object_id *from, const struct object_id *to,
			   struct err *err);
