#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "runner/net/gnutls.h"

#define FUNCTION(name) { "gnutls_" #name, offsetof(struct gnutls, name) },

static const struct {
	const char *name;
	size_t offset;
} functions[] = { GNUTLS_FUNCTIONS(FUNCTION) };

int gnutls_load(struct gnutls *ret, struct err *err)
{
	void *lib;

	/* It would write the keys of connections there, or take its settings from there. */
	unsetenv("SSLKEYLOGFILE");
	unsetenv("GNUTLS_SYSTEM_PRIORITY_FILE");
	lib = dlopen(GNUTLS_LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		return err_set(err, -ENOTSUP,
			       "cannot load GnuTLS, which --tls-inspect needs (install the package "
			       "that has '" GNUTLS_LIBRARY "'): %s",
			       dlerror());
	for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
		void *at = dlsym(lib, functions[i].name);

		if (!at)
			return err_set(err, -ENOTSUP, "'" GNUTLS_LIBRARY "' lacks '%s'",
				       functions[i].name);
		/* POSIX has it that a function's address travels as an object's. */
		memcpy((char *)ret + functions[i].offset, &at, sizeof(at));
	}
	return 0;
}
