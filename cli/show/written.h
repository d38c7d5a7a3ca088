/*
 * written.h - the reports of `write` and `edit`: the file, and the change.
 */
#pragma once

#include "cli/cmd.h"
#include "engine/api/file.h"

/* Cut CLONE:PATH in two, in place.  -EINVAL with a sentence if there is no path. */
NODISCARD int written_split(char *word, const char **ret_clone, const char **ret_path,
			    struct err *err);

/* Print the result of the command. */
NODISCARD int written_print(struct invocation *inv, const char *clone, const char *path,
			    const struct engine_written *w, struct err *err);
