/*
 * warm-clone-i.h - a clone that is warm before somebody asks for one.
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
struct warm_clone;

NODISCARD int warm_clone_new(struct host *h, struct warm_clone **ret, struct err *err);

/* None is made or given from now on, and no process of it is left. */
void warm_clone_end(struct warm_clone *s);
void warm_clone_free(struct warm_clone *s); /* NULL is fine */

/* A clone of it was made: another may follow. */
void warm_clone_follow(struct warm_clone *s, const struct snapshot *base);

/* A project has a new snapshot; if it is the one that was cloned last, that is what the next starts from. */
void warm_clone_renew(struct warm_clone *s, const struct snapshot *newest);

/*
 * Somebody waits for something that keeps all processors busy: the walker ends, and
 * another follows when that is over and cowfsd has little to do.
 */
void warm_clone_rest(struct warm_clone *s);
void warm_clone_rested(struct warm_clone *s);

/* The warm clone of this root, taken by the caller; false if there is none. */
bool warm_clone_take(struct warm_clone *s, const struct object_id *root, struct layer **ret_layer,
		     struct mount **ret_mount);

/* Give it up if only it holds on to what it shows: a gc is to follow. */
void warm_clone_let_go(struct warm_clone *s);

/* Close one that was taken and is not wanted. */
void warm_clone_drop(struct layer *layer, struct mount *mount);

enum warm_clone_state {
	WARM_CLONE_NONE,    /* of what is likely to be cloned next */
	WARM_CLONE_WARMING, /* it can be taken, but is not all warm */
	WARM_CLONE_READY,   /* its names are known, */
	WARM_CLONE_WARM,    /* and what is in small files, as far as memory allows */
};

struct warm_clone_news {
	enum warm_clone_state state;
	uint64_t taken; /* since the start */
};
void warm_clone_news(struct warm_clone *s, struct warm_clone_news *ret);
