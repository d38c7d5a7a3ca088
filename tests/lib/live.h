/*
 * live.h - a layer driven by paths, every step checked unless it says otherwise.
 *
 * live_open() makes a store with one clone, "work", whose root is an empty directory.
 * Paths count from its top, without a leading slash; "" is the top.  No references are kept but
 * those of live_hold().
 */
#pragma once

#include "base/buf.h"
#include "cowfs/core/layers.h"
#include "tests/lib/stock.h"

struct live {
	struct store *store;
	struct layers *layers;
	struct layer *l;
	struct layers_options options;
	uint64_t quota; /* of the clone; 0: none */
};

void live_open(struct live *v, const char *name); /* v->options and v->quota may be set */
void live_close(struct live *v);
void live_reopen(struct live *v); /* persisted, closed, opened */
void live_crash(struct live *v);  /* closed without persisting, opened */
void live_reopen_store(struct live *v);

/* The root of an empty directory. */
struct object_id live_empty_root(struct store *s);

/* What the call returns, unchecked. */
int live_try_make(struct live *v, const char *path, uint32_t mode);
int live_try_unlink(struct live *v, const char *path);
int live_try_rmdir(struct live *v, const char *path);
int live_try_rename(struct live *v, const char *from, const char *to, unsigned flags);
int live_try_link(struct live *v, const char *from, const char *to);
int live_try_symlink(struct live *v, const char *target, const char *path);
int live_try_write(struct live *v, const char *path, uint64_t off, const void *data, size_t len);
int live_try_truncate(struct live *v, const char *path, uint64_t size);
int live_try_stat(struct live *v, const char *path, struct stat *ret);

void live_mkdir(struct live *v, const char *path);
void live_put(struct live *v, const char *path, const char *text); /* a file with just this in it */
struct stat live_stat(struct live *v, const char *path);
void live_get(struct live *v, const char *path, struct buf *out); /* appends the bytes of a file */
bool live_has(struct live *v, const char *path, const char *text);
char *live_names(struct live *v, const char *path); /* owned; sorted, each behind a blank */

/* A reference, and the bytes behind one. */
uint64_t live_hold(struct live *v, const char *path);
void live_drop(struct live *v, uint64_t node);
void live_get_node(struct live *v, uint64_t node, struct buf *out);

struct object_id live_persist(struct live *v); /* the root */

/* layer_rebase() to a root that is known, with the base it has. */
NODISCARD int live_roll_back(struct layer *l, const struct object_id *root, layer_also_fn also,
			     void *ctx, struct layer_changes *ret, struct err *err);

/* Replace `out` with everything visible, a line for each name; without times if not asked. */
void live_dump(struct live *v, struct buf *out, bool times);
