/*
 * warm-clone-i.h - a clone that is warm before somebody asks for one.
 *
 * The kernel knows nothing of a fresh mount, so the first program that looks at all files there
 * takes some four times as long as the next. So cowfsd makes one more mount of the state that was
 * cloned last, without a record in the store, and has another process read its directories
 * (walker.h). The next clone of the same root gets it. If a client announced to need several, as an
 * experiment does, or lately made several at once, cowfsd keeps as many as memory allows, for a
 * shorter time.
 *
 * cowfsd makes it when it has little else to do, and drops it after a while. Nobody waits for it or
 * fails because of it: where there is none, clones are made cold.
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

/* From now on none is made or handed out, and no walker is left. */
void warm_clone_end(struct warm_clone *s);
void warm_clone_free(struct warm_clone *s); /* NULL is fine */

/*
 * So many clones of it were made, and `count` are announced to follow; 1: one that was made may be
 * followed by another, or by as many as were made at once of late (habit-i.h).
 */
void warm_clone_follow(struct warm_clone *s, const struct snapshot *base, size_t made,
		       size_t count);

/* If this project was cloned last, the next clone probably starts from this new snapshot. */
void warm_clone_renew(struct warm_clone *s, const struct snapshot *newest);

/*
 * A command needs all processors: the walker ends, and another follows when the command is done and
 * cowfsd is quiet.
 */
void warm_clone_rest(struct warm_clone *s);
void warm_clone_rested(struct warm_clone *s);

/* The warm clone of this root, taken by the caller; false if there is none. */
bool warm_clone_take(struct warm_clone *s, const struct object_id *root, struct layer **ret_layer,
		     struct mount **ret_mount);

/* Before a gc: give it up if nothing else keeps its root. */
void warm_clone_let_go(struct warm_clone *s);

enum warm_clone_state {
	WARM_CLONE_NONE,    /* none of what is likely to be cloned next */
	WARM_CLONE_WARMING, /* it can be taken, but is not all warm */
	WARM_CLONE_READY,   /* the kernel knows its names, */
	WARM_CLONE_WARM,    /* and small files, as far as memory allows */
};

struct warm_clone_news {
	enum warm_clone_state state;
	uint64_t ready; /* how many of which the kernel knows the names */
	uint64_t taken; /* since the start */
};
void warm_clone_news(struct warm_clone *s, struct warm_clone_news *ret);
