/*
 * echo-i.h - a clone shows something else: tell the kernel, and have the caller tell who watches.
 *
 * cowfsd must not use its own mounts, so the command that asked for the change makes the echoes
 * (engine/ask/echo.c): it is given the list page by page over the same connection.
 */
#pragma once

#include "cowfs/fuse/mount.h"
#include "engine/host/task-i.h"
#include "engine/wire/wire-i.h"

/*
 * mount_announce(), and what there is to echo stays with the caller's connection.  The caller has
 * the turn of the clone.  Takes the list of replaced names.
 */
NODISCARD int echo_announce(struct task *task, const char *clone, struct mount *m,
			    struct layer_changes *changes, struct err *err);

size_t echo_count(const struct task *task); /* names that are to be echoed */

/* Names from that number on; none at the end, and then it is over. */
NODISCARD int echo_page(struct task *task, uint64_t from, struct echo_page *ret, struct err *err);
