/*
 * repair.h - set damaged rows aside, so that sound ones can replace them.
 *
 * While a row holds the wrong bytes, a put of the right ones is refused. So repair copies a row
 * with damaged content to a file in `damaged/` and removes it; then the same content can be put
 * again. If only the checksum is wrong, the row gets the right one. Repair never touches refs or
 * sound rows: a damaged object is missing afterwards, for the same paths.
 *
 * Interrupted anywhere, by kill -9 or power loss, each database is as it was or repaired, and no
 * row is gone whose bytes are not in `damaged/`.
 *
 * Batches may be open beside it and lose nothing. A row that one of them found sound and relies on
 * stays; the next repair gets it.
 */
#pragma once

#include "base/err.h"
#include "cowfs/store/upkeep/check.h"

#define REPAIR_DIR "damaged" /* in the store's directory */

struct repair_report {
	uint64_t mended;    /* rows that got their checksum */
	uint64_t set_aside; /* rows that went to `damaged/` */
	uint64_t left;      /* rows that an open batch relies on */
};

/*
 * Repair the rows that a check found.  Each is looked at again: one that is sound or gone by now
 * is no matter.  -EBUSY if a gc or a check of this store is under way, -EROFS if it is not open
 * for writing, -EBADMSG if a database itself is damaged: to write to it could make it worse.
 */
NODISCARD int repair_store(struct store *s, const struct check_report *found,
			   struct repair_report *ret, struct err *err);
