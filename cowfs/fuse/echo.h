/*
 * echo.h - private to fuse/: operations that only make the kernel notify programs that watch files.
 *
 * The kernel notifies programs only of changes made through it. So after a rollback a command
 * removes and creates each changed name once more (mount_echo_begin()), and cowfsd answers as if it
 * had done so, without asking or changing the layer. A name created that way leads to a phantom, a
 * node that is not in the layer, so the kernel learns nothing about a real node that could be out
 * of date by then.
 *
 * All functions return true if they answered the request.
 */
#pragma once

#include "cowfs/fuse/mount-i.h"
#include "cowfs/fuse/ops.h"

bool echo_lookup(fuse_req_t req, fuse_ino_t dir, const char *name);
bool echo_make(fuse_req_t req, fuse_ino_t dir, const char *name, mode_t mode);
bool echo_remove(fuse_req_t req, fuse_ino_t dir, const char *name);
bool echo_setattr(fuse_req_t req, fuse_ino_t node);

/* Is this the echoing thread?  It may do nothing else, so a real change must be refused. */
bool echo_is_from(struct mount *m, uint32_t thread);

/* Is the name still to be echoed?  Then the kernel must ask for it again next time. */
bool echo_awaits(struct mount *m, uint64_t dir, const char *name);

void echo_end_all(struct mount *m); /* nobody works for the mount any more */
