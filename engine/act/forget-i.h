/*
 * forget-i.h - snapshots that go: which, and what follows for those that stay.
 *
 * What a tag or a clone names stays, and the base of what a clone can go back to.  What stays and
 * had one that goes as its parent follows that one's parent then.
 *
 * Who relies on a snapshot until it has named it holds host->snapshots for reading from a look
 * whether it is there to the commit; who forgets some holds it for writing from choosing them to
 * the commit.  Nobody waits for a turn while holding it.
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
	const char *tag; /* borrowed; one that goes too: what it names need not stay; or NULL */
};

void forget_done(struct forget *f);

NODISCARD int forget_add(struct forget *f, const struct snapshot *s, struct err *err);

/* The same by its id, if it is still there. */
NODISCARD int forget_add_id(struct forget *f, struct store *s, const struct catalog_id *id,
			    struct err *err);

/*
 * Let those stay that something names; nothing may be added then.  What clone `except` started
 * from does not stay for its sake; NULL: every clone counts.
 */
NODISCARD int forget_settle(struct forget *f, struct store *s, const char *except, struct err *err);

/* It was added, and something names it. */
bool forget_stays(const struct forget *f, const struct catalog_id *id);
bool forget_goes(const struct forget *f, const struct catalog_id *id);

/* Put it into a batch: once that is committed they are gone.  *ret is their number. */
NODISCARD int forget_put(const struct forget *f, struct batch *b, uint64_t *ret, struct err *err);
