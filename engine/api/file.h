/*
 * file.h - write and edit single files of a clone, for programs that have no shell in it.
 */
#pragma once

#include <stddef.h>

#include "engine/api/engine.h"

struct engine_written {
	bool created;
	uint64_t bytes;    /* that the file has now */
	uint64_t replaced; /* by an edit: how many times */
};

/*
 * Make the file at `path`, from the top of the clone, hold exactly these bytes.  Directories are
 * made as needed.  A file that is there keeps its mode and owner; one that is made can be run if
 * `executable`.  No symlink is followed: -ELOOP.  Others see the old file or the new one.
 */
NODISCARD int engine_file_write(struct engine *e, const char *clone, const char *path,
				const void *data, size_t len, bool executable,
				struct engine_written *ret, struct err *err);

/*
 * Replace `old` in the file by `new`.  -EINVAL with a sentence, and nothing changed, if it does not
 * occur, or occurs more than once and `all` is not set.
 */
NODISCARD int engine_file_edit(struct engine *e, const char *clone, const char *path,
			       const char *old, const char *new, bool all,
			       struct engine_written *ret, struct err *err);

/* Is this a clone, or any state, of the project here?  -ENOENT with a sentence if not. */
NODISCARD int engine_is_of_project(struct engine *e, const char *text, bool is_clone,
				   struct err *err);
