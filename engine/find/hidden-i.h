/*
 * hidden-i.h - the files that searches for secrets hid from runs of a clone, in the catalog.
 */
#pragma once

#include "cowfs/store/batch.h"
#include "engine/find/engine-i.h"

/* No numbers if there is no record, or only one of an earlier clone of that name. */
NODISCARD int hidden_load(struct store *s, const struct clone *clone, struct hidden *ret,
			  struct err *err);

/* 1: what is hidden in the state of a snapshot: its own list, or that of its clone; 0: it has none. */
NODISCARD int hidden_load_of(struct store *s, const struct snapshot *of, struct hidden *ret,
			     struct err *err);

/* Give the snapshot a list of its own with these numbers, unless it has one.  It must go with the snapshot. */
NODISCARD int hidden_put_of(struct batch *b, const struct catalog_id *snapshot,
			    const struct hidden *h, struct err *err);
NODISCARD int hidden_drop_of(struct batch *b, const struct catalog_id *snapshot, struct err *err);

/* 1: some of these numbers were not in it yet; 0: all were; -ENOMEM. */
NODISCARD int hidden_add(struct hidden *h, const struct hidden *more);

/*
 * The numbers as they travel to other stores: hexadecimal differences, rising; "FILES/DIRECTORIES".  *ret is
 * NULL if there are none.  -E2BIG with a sentence.
 */
NODISCARD int hidden_write(const struct hidden *h, char **ret, struct err *err);
NODISCARD int hidden_read(const char *text, struct hidden *ret, struct err *err);
