/*
 * forget-i.h - which snapshots may be removed, and what that changes for those that stay.
 *
 * A snapshot that a tag, a clone, an open lazy capture or a change under way names stays. So does
 * the base of a snapshot that a clone can go back to, and the base of a lazy capture whose promises
 * another snapshot may name. If a parent goes, its child gets the parent's parent instead.
 *
 * To rely on a snapshot, hold host->snapshots for reading from finding the snapshot to the commit
 * that names it. To forget snapshots, hold it for writing from choosing them to the commit. Never
 * wait for a turn while holding it.
 */
#pragma once

#include "cowfs/store/batch.h"
#include "engine/find/engine-i.h"

struct forget_one {
	struct catalog_id id, parent;
	bool stays;
};

struct forget {
	struct forget_one *list; /* owned */
	size_t n, cap;
	const struct lazy *capture; /* borrowed; an open one that goes with its snapshot; or NULL */
	const char *tag; /* borrowed; one that goes too: what it names need not stay; or NULL */
	bool
	    unborn; /* no change is under way: those that begun receipts name need not stay either */
	const struct catalog_id
	    *ending; /* borrowed; of a change that ends without having happened; or NULL */
};

void forget_done(struct forget *f);

NODISCARD int forget_add(struct forget *f, const struct snapshot *s, struct err *err);

/* The same by its id, if it is still there. */
NODISCARD int forget_add_id(struct forget *f, struct store *s, const struct catalog_id *id,
			    struct err *err);

/*
 * Find those that must stay; nothing may be added afterwards.  Clone `except` (NULL: none) keeps
 * nothing.
 */
NODISCARD int forget_settle(struct forget *f, struct store *s, const char *except, struct err *err);

/* It was added, and something names it. */
bool forget_stays(const struct forget *f, const struct catalog_id *id);
bool forget_goes(const struct forget *f, const struct catalog_id *id);

/* Put it into a batch: once that is committed they are gone.  *ret is their number. */
NODISCARD int forget_put(const struct forget *f, struct batch *b, uint64_t *ret, struct err *err);
