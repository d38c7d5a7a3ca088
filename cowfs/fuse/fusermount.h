/*
 * fusermount.h - private to fuse/: fusermount3, which mounts for ordinary users.
 *
 * Its complaint becomes our error message.
 */
#pragma once

#include <stdbool.h>

#include "base/attr.h"
#include "base/err.h"

/* `options` as it takes them with -o.  The connection, close-on-exec, is the caller's. */
NODISCARD int fusermount_mount(const char *path, const char *options, int *ret_fd, struct err *err);

/* 0 also if nothing is mounted there; -EBUSY if it is in use and not `lazy`. */
NODISCARD int fusermount_unmount(const char *path, bool lazy, struct err *err);
