/*
 * warm-make-i.h - making one warm clone (warm-clone-i.h): a layer, and a mount that is attached
 * nowhere.  warm_clone_drop() closes it.
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

/* Close one that nobody uses. */
void warm_clone_drop(struct layer *layer, struct mount *mount);
