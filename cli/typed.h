/*
 * typed.h - paths as a person types them: also in the form in which they are printed.
 *
 * A name with bytes that cannot be printed is shown with \xNN (base/json.h), and people copy that
 * form. Such a word stands for the name it shows as well as for itself.
 */
#pragma once

#include "base/opt.h"
#include "engine/api/run.h"

struct typed {
	const char **items; /* owned; as given, then those that were unescaped */
	char **owned;
	size_t n, n_owned;
};

NODISCARD int typed_read(struct typed *t, const struct opt_list *given, struct err *err);
void typed_done(struct typed *t);

/* For the engine; borrowed from it. */
struct engine_list typed_list(const struct typed *t);

/* A path as a person can type it: escaped if need be.  Owned; NULL: no memory. */
char *typed_path(const char *path);
