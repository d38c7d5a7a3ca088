/*
 * depot-mark.h - which blobs of a depot are needed, found by reading its manifests; for gc.
 */
#pragma once

#include "remote/depot.h"
#include "remote/pack/digest-table.h"

/*
 * Call `fn` for each blob that a manifest or an index of manifests names.  Bytes that are neither name
 * none.  A non-zero answer ends it and is returned.
 */
typedef int (*depot_blob_fn)(const struct digest *blob, bool is_manifest, void *ctx);
NODISCARD int depot_each_blob(const struct buf *manifest, depot_blob_fn fn, void *ctx);

struct depot_marks {
	struct depot *depot; /* borrowed */
	struct err *err;     /* borrowed; not NULL */
	struct digest_table table;
	unsigned depth;
};

void depot_marks_done(struct depot_marks *m);

/* The manifest is needed, with all that it names.  -ENOENT without a sentence if it is not there. */
NODISCARD int depot_mark_manifest(struct depot_marks *m, const struct digest *d);
/* The same for a manifest whose bytes are at hand. */
NODISCARD int depot_mark_bytes(struct depot_marks *m, const struct buf *manifest);
/* What `what` says of manifests without a name: those that stay, as far as they can be read, and those that go. */
NODISCARD int depot_mark_retained(struct depot_marks *m, const struct depot_retention *what);

bool depot_is_needed(const struct depot_marks *m, const struct digest *blob);
bool depot_is_gone(const struct depot_marks *m, const struct digest *manifest);
