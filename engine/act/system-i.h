/*
 * system-i.h - the machine's own root, `/`, as a project that can be captured.
 *
 * It leaves out file systems that the kernel generates, files that do not survive a boot, and other
 * mounts. Only paths that root has named are ever written: see landing_open().
 */
#pragma once

#include <stdbool.h>

#include "base/strlist.h"
#include "engine/api/engine.h"
#include "engine/host/task-i.h"

bool system_is(const char *path);

/*
 * Directories to leave out of a capture of `path`, without the store; none of any other directory than `/`.
 * -EINVAL with a sentence for an included path where nothing is mounted.
 */
NODISCARD int system_left_out(const char *path, const char *store,
			      const struct engine_list *include, struct strlist *ret,
			      struct err *err);

/* Warn the caller about them, by name. */
void system_tell(struct task *task, const struct strlist *left_out);
