/*
 * system-i.h - the machine's own root, `/`, as something to be captured.
 *
 * What the kernel makes up, what lives only until the next boot, and what is mounted elsewhere is no part
 * of it.  Nothing is written to it but paths that root has named: see landing_open().
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
