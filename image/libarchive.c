#include "image/libarchive.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"

static const struct {
	const char *name;
	size_t offset;
} functions[] = {
#define LIBARCHIVE_SYMBOL(name) { "archive_" #name, offsetof(struct libarchive, name) },
#include "image/libarchive-symbols-i.h"
#undef LIBARCHIVE_SYMBOL
};

int libarchive_load(struct libarchive *ret, struct err *err)
{
	void *lib = dlopen(LIBARCHIVE_LIBRARY, RTLD_NOW | RTLD_LOCAL);

	if (!lib)
		return err_set(
		    err, -ENOTSUP,
		    "cannot load libarchive, which images need (install the package that "
		    "has '" LIBARCHIVE_LIBRARY "'): %s",
		    dlerror());
	for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
		void *at = dlsym(lib, functions[i].name);

		if (!at)
			return err_set(err, -ENOTSUP, "'" LIBARCHIVE_LIBRARY "' lacks '%s'",
				       functions[i].name);
		/* POSIX has it that a function's address travels as an object's. */
		memcpy((char *)ret + functions[i].offset, &at, sizeof(at));
	}
	return 0;
}
