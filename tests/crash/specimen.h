/*
 * specimen.h - a snapshot that follows from a number: put it, and know it again.
 *
 * The number decides name, tree, attributes and every byte, so whoever knows it can
 * verify a stored snapshot without having kept anything.  Contents, attribute sets and
 * whole directories are drawn from a small common pool: specimens overlap, as
 * snapshots of one project do.  No function here allocates.
 */
#pragma once

#include "cowfs/store/batch.h"
#include "cowfs/store/store.h"

/* In the number: a handful of entries instead of dozens. */
#define SPECIMEN_SMALL (1ULL << 63)

#define SPECIMEN_NAME_LEN 16

void specimen_name(uint64_t number, char name[SPECIMEN_NAME_LEN + 1]);
NODISCARD int specimen_number(const char *name, size_t len, uint64_t *ret);

/* Put the tree and queue the ref for it, or for its removal. */
NODISCARD int specimen_put(struct batch *b, uint64_t number, struct err *err);
NODISCARD int specimen_drop(struct batch *b, uint64_t number, struct err *err);

/* The two parts of specimen_put(): trees may be put by any thread, refs by the batch's own. */
NODISCARD int specimen_put_tree(struct batch *b, uint64_t number, struct object_id *ret_root,
				struct err *err);
NODISCARD int specimen_put_ref(struct batch *b, uint64_t number, const struct object_id *root,
			       struct err *err);

/* specimen_put() and specimen_drop() in a batch of their own. */
NODISCARD int specimen_commit(struct store *s, uint64_t number, enum batch_durability durability,
			      struct err *err);
NODISCARD int specimen_remove(struct store *s, uint64_t number, struct err *err);

/* 1: there, and every byte of it.  0: not there.  -EILSEQ: not what its number says. */
NODISCARD int specimen_find(struct store *s, uint64_t number, struct err *err);

/* Is the tree that of the number?  The times of its first directory do not count. */
NODISCARD int specimen_verify(struct store *s, uint64_t number, const struct object_id *root,
			      struct err *err);

/* check_store() finds nothing; -EILSEQ with its first finding otherwise. */
NODISCARD int specimen_store_sound(struct store *s, struct err *err);

/* Once every ref is gone, gc leaves nothing; -EILSEQ otherwise. */
NODISCARD int specimen_store_empties(struct store *s, struct err *err);
