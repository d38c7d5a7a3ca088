/*
 * layout.h - the mounts of a run: the host's directories that it sees, and its own.
 *
 * A struct layout owns the strings of its mounts. Order matters: a later mount covers earlier ones.
 */
#pragma once

#include "base/cleanup.h"
#include "runner/sandbox.h"

struct layout {
	struct sandbox_mount mounts[SANDBOX_MOUNTS_MAX];
	char *owned[2 * SANDBOX_MOUNTS_MAX];
	size_t n, n_owned;
};

struct layout *layout_new(void); /* NULL when out of memory */
void layout_free(struct layout *l);
DEFINE_CLEANUP(struct layout *, layout_free)

/* A copy of it, with its strings. */
NODISCARD int layout_add(struct layout *l, const struct sandbox_mount *m, struct err *err);

/*
 * The host's programs and their settings, read-only and without its secrets, and empty /tmp
 * and /var/tmp: the same system, packages and paths.  Folders that this host lacks are left
 * out; one that is a symlink is the same symlink.
 */
NODISCARD int layout_add_system(struct layout *l, struct err *err);
