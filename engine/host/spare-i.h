/*
 * spare-i.h - a clone that is warm before somebody asks for one.
 *
 * The kernel knows nothing of a fresh mount, so the first program that looks at all files there
 * takes some four times as long as the next.  Therefore cowfsd keeps, at most, one mount
 * of what was cloned last, attached nowhere and without a record in the store, and has another
 * process read its directories (walker.h).  Whoever clones the same root next gets it.
 *
 * It is made when cowfsd has little else to do, is given up after a while, and nobody waits
 * for it or fails because of it: where there is none, clones are made as ever.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cowfs/store/catalog.h"

struct host;
struct layer;
struct mount;
struct spare;

NODISCARD int spare_new(struct host *h, struct spare **ret, struct err *err);

/* None is made or given from now on, and no process of it is left. */
void spare_end(struct spare *s);
void spare_free(struct spare *s); /* NULL is fine */

/* A clone of it was made: another may follow. */
void spare_follow(struct spare *s, const struct snapshot *base);

/* A project has a new snapshot; if it is the one that was cloned last, that is what the next starts from. */
void spare_renew(struct spare *s, const struct snapshot *newest);

/*
 * Somebody waits for something that keeps all processors busy: who warms the spare ends, and
 * another follows when that is over and cowfsd has little to do.
 */
void spare_rest(struct spare *s);
void spare_rested(struct spare *s);

/* The spare of this root, taken by the caller; false if there is none. */
bool spare_take(struct spare *s, const struct object_id *root, struct layer **ret_layer,
		struct mount **ret_mount);

/* Give it up if only it holds on to what it shows: a gc is to follow. */
void spare_let_go(struct spare *s);

/* Close one that was taken and is not wanted. */
void spare_drop(struct layer *layer, struct mount *mount);

enum spare_state {
	SPARE_NONE,    /* of what is likely to be cloned next */
	SPARE_WARMING, /* it can be taken, but is not all warm */
	SPARE_READY,   /* its names are known, */
	SPARE_WARM,    /* and what is in small files, as far as memory allows */
};

struct spare_news {
	enum spare_state state;
	uint64_t taken; /* since the start */
};
void spare_news(struct spare *s, struct spare_news *ret);
