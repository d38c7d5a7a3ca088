/*
 * warm-make-i.h - make one warm clone (warm-clone-i.h): a layer, and a mount that is attached
 * nowhere. warm_clone_drop() closes it.
 *
 * An ordinary user's mount cannot be attached nowhere: fusermount3 mounts only at a directory. So
 * it waits in the store's directory, and warm_clone_show() moves it (mover.h).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cowfs/store/catalog.h"

struct host;
struct layer;
struct mount;
struct mount_options;

/* The snapshot that should have warm clones. */
struct warm_clone_wish {
	size_t count; /* so many */
	struct catalog_id snapshot, project;
	struct object_id root;
	uint64_t files;
	size_t growing; /* warm clones that are being walked: their memory is not all in use yet */
};

/* -EFBIG or -ENOMEM if there are too many files for a clone that perhaps nobody takes. */
NODISCARD int warm_clone_make(struct host *h, const struct warm_clone_wish *w,
			      struct layer **ret_layer, struct mount **ret_mount, struct err *err);

uint64_t warm_clone_cost(uint64_t files); /* bytes of memory, here and in the kernel */

/* One that could not be unmounted when it was dropped: fusermount3 may fail for a moment only. */
struct warm_unclosed {
	struct layer *layer;
	struct mount *mount;
};

/* Close one that nobody uses; if that fails, the next drop and the end of cowfsd try again. */
void warm_clone_drop(struct host *h, struct layer *layer, struct mount *mount);
void warm_clone_close_again(struct host *h);

/* Put the mount of one at options->path, which is an empty directory. */
NODISCARD int warm_clone_show(struct mount *mount, const struct mount_options *options,
			      struct err *err);

/* Those that a dead daemon left. */
void warm_clone_sweep(struct host *h);
