/*
 * inbound-i.h - shared by the files of inbound.
 */
#pragma once

#include "cowfs/store/root.h"
#include "remote/pack/digest-table.h"
#include "remote/pack/inbound.h"
#include "remote/pack/portable.h"

/* What an object of the packs became. */
struct brought {
	struct object_id id;
	uint64_t data;             /* of a chunk or a recipe: bytes that are no hole */
	uint64_t size;             /* of a whole file */
	struct tree_summary below; /* of a directory */
	uint32_t nlink;            /* of a directory */
	bool shared;               /* a directory of the base: not in the packs, maybe */
	bool lacking;              /* something in it is in a pack that is not here */
};

struct inbound {
	struct batch *batch;
	struct store *store;
	const struct inbound_options *options;
	struct digest_table seen; /* kind and digest -> number in `brought` */
	struct brought *brought;  /* owned */
	size_t n, cap;
	struct digest_table links; /* inode number -> how many names were met */
	uint64_t link_steps;       /* of counting them */
	size_t held;               /* bytes of directories that are being read, at all depths */
	uint64_t objects, bytes;
	struct buf object; /* room */
};

#define SEEN_FILE 16 /* kind in `seen` of a whole large file, by its top node */

/* Remember what an object became. */
NODISCARD int inbound_note(struct inbound *in, uint32_t kind, const struct digest *d,
			   const struct brought *what, struct err *err);
const struct brought *inbound_seen(const struct inbound *in, uint32_t kind, const struct digest *d);

/* An object of the packs into `out`; -ENODATA if its pack is not here, -EBADMSG if no pack has it. */
NODISCARD int inbound_get(struct inbound *in, enum object_kind kind, const struct digest *d,
			  struct buf *out, struct err *err);

/* The content of a regular file, or its attributes (inbound-file.c).  -ENODATA. */
NODISCARD int inbound_file(struct inbound *in, const struct portable_entry *p, struct tree_entry *e,
			   struct err *err);
/* A promise in their place. */
NODISCARD int inbound_promise(struct inbound *in, const struct portable_entry *p,
			      struct tree_entry *e, struct err *err);
NODISCARD int inbound_xattrs(struct inbound *in, const struct digest *d, struct object_id *ret,
			     struct err *err);

/*
 * Bring all chunks of a tree that are in packs which are here, by several threads, and note them
 * (inbound-ahead.c).  Nothing is shared with a base.
 */
NODISCARD int inbound_ahead(struct inbound *in, const struct digest *root, struct err *err);

/* Leaves of a large directory that were made from the base (inbound-regrow.c).  Begins as { 0 }. */
struct regrown_leaf {
	struct digest digest;
	struct buf bytes;
};

struct regrown {
	struct regrown_leaf *list; /* owned */
	size_t n, cap;
};

void regrown_done(struct regrown *g);
/* All that the branch lists and that `base`, a directory of the store, gives. */
NODISCARD int regrown_fill(struct inbound *in, const struct object_id *base,
			   const struct portable_node *branch, struct regrown *g, struct err *err);
/* Move one to `out`; false: it is not there. */
bool regrown_take(struct regrown *g, const struct digest *d, struct buf *out);

/* An entry of the store as it travels; false if a digest is not known. */
bool inbound_portable(struct inbound *in, const struct tree_entry *e, struct portable_entry *ret);

/* Count the names of hard links (inbound-links.c). */
NODISCARD int inbound_count_link(struct inbound *in, const struct tree_entry *e, struct err *err);
/* The same for all in a directory that was brought already. */
NODISCARD int inbound_count_links(struct inbound *in, const struct digest *d,
				  const struct brought *dir, struct err *err);
/* Is this entry of the links tree a file with as many names as it says?  Takes it off the count. */
NODISCARD int inbound_settle_link(struct inbound *in, const struct tree_entry *e, struct err *err);
