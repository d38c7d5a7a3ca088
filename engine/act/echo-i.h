/*
 * echo-i.h - after a change of a clone: notify the kernel, and let the command notify file
 * watchers.
 *
 * cowfsd must not use its own mounts, so the command that asked for the change makes the echoes
 * (engine/ask/echo.c). It gets the list page by page over the same connection.
 */
#pragma once

#include "cowfs/fuse/mount.h"
#include "engine/host/task-i.h"
#include "engine/wire/wire-i.h"

/*
 * Calls mount_announce() and keeps what is to be echoed with the client's connection.  The caller has
 * the clone's turn.  Takes the list of replaced names.
 */
NODISCARD int echo_announce(struct task *task, const char *clone, struct mount *m,
			    struct layer_changes *changes, struct err *err);

size_t echo_count(const struct task *task); /* names that are to be echoed */

/* A page of names from that number on; an empty page ends the echo. */
NODISCARD int echo_page(struct task *task, uint64_t from, struct echo_page *ret, struct err *err);
