/*
 * mates.h - private to fuse/: mounts that show the same layer.
 *
 * Each has its own connection, and the kernel caches for long what came through it. So a change
 * through one mount is announced on the others. Each mount has a thread for that: an announcement
 * waits for requests in progress, so no thread that answers requests may make one.
 */
#pragma once

#include "cowfs/fuse/mount-i.h"

/* From now on both hear of each other's changes. */
NODISCARD int mates_join(struct mount *m, struct mount *beside, struct err *err);

/* The request has been handled: let the others know what it may have changed. */
void mates_tell(struct mount *m, const void *bytes);
void mates_announce(struct mount *m, const struct layer_changes *changes);

/* Wait until the others know what has been handled so far. */
void mates_settle(struct mount *m);

/* Hear and tell no more.  Its reader must still answer. */
void mates_leave(struct mount *m);

/* Is it so for this mount and every other of its layer? */
bool mates_all(struct mount *m, bool (*is)(struct mount *m, const void *ctx), const void *ctx);
