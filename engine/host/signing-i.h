/*
 * signing-i.h - the files with the signatures of projects (snapshot/capture/signatures.h).
 */
#pragma once

#include <sys/stat.h>

#include "cowfs/store/catalog-id.h"
#include "snapshot/capture/signatures.h"

struct host;

/* Those of a project, and what stat(2) says of their file.  -ENOENT if there are none. */
NODISCARD int signing_read(struct host *h, const struct catalog_id *project, struct stat *ret_file,
			   struct signatures **ret, struct err *err);

/* Without them the next capture takes longer, so a failure is a warning. */
void signing_write(struct host *h, const struct catalog_id *project, const char *path,
		   const struct signatures *s);

/* The same for a capture that ended just now and began then, in ns: what a later one left stays. */
void signing_write_late(struct host *h, const struct catalog_id *project, const char *path,
			const struct signatures *s, int64_t began);

NODISCARD int signing_remove(struct host *h, const struct catalog_id *project, struct err *err);
