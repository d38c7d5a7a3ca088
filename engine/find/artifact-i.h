/*
 * artifact-i.h - artifacts in the catalog.
 */
#pragma once

#include "engine/api/artifact.h"
#include "engine/find/engine-i.h"

#define ARTIFACT_BETWEEN "//" /* two paths of a record */

/* Copy a record of the catalog. */
NODISCARD int artifact_entry(const struct artifact *a, struct engine_artifact *ret,
			     struct err *err);

/*
 * The one of the project whose id or digest begins so; `ret_root` may be NULL.  -ENOENT or -EINVAL
 * with a sentence.
 */
NODISCARD int artifact_find(struct store *s, const struct catalog_id *project, const char *id,
			    struct engine_artifact *ret, struct object_id *ret_root,
			    struct err *err);
