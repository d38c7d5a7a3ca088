#include "image/libarchive.h"

#include <errno.h>

#include "base/library.h"

static const struct library_function functions[] = {
#define LIBARCHIVE_SYMBOL(name) { "archive_" #name, offsetof(struct libarchive, name) },
#include "image/libarchive-symbols-i.h"
#undef LIBARCHIVE_SYMBOL
};
static const struct library library = {
	.what =
	    "libarchive, which images need (install the package that has '" LIBARCHIVE_LIBRARY "')",
	.names = (const char *const[]){ LIBARCHIVE_LIBRARY, NULL },
	.functions = functions,
	.n_functions = ARRAY_LEN(functions),
};

int libarchive_load(struct libarchive *ret, struct err *err)
{
	return library_load(&library, ret, err);
}

int libarchive_failed(const struct libarchive *lib, struct archive *a, const struct err *why,
		      struct err *err)
{
	const char *text = lib->error_string(a);

	if (why->code < 0) {
		*err = *why;
		return why->code;
	}
	return err_set(err, -EINVAL, "cannot be read as an archive: %s",
		       text ? text : "not known why");
}
