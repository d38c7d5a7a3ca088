#include "base/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

static int fill(const struct library *l, void *lib, const char *name, void *ret, struct err *err)
{
	for (size_t i = 0; i < l->n_functions; i++) {
		void *at = dlsym(lib, l->functions[i].name);

		if (!at)
			return err_set(err, -ENOTSUP, "'%s' lacks '%s'", name,
				       l->functions[i].name);
		/* POSIX has it that a function's address travels as an object's. */
		memcpy((char *)ret + l->functions[i].offset, &at, sizeof(at));
	}
	return 0;
}

int library_load(const struct library *l, void *ret, struct err *err)
{
	for (const char *const *name = l->names; *name; name++) {
		void *lib = dlopen(*name, RTLD_NOW | RTLD_LOCAL);

		if (lib)
			return fill(l, lib, *name, ret, err);
	}
	return err_set(err, -ENOTSUP, "cannot load %s: %s", l->what, dlerror());
}
