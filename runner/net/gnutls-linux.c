#include "runner/net/gnutls.h"

#include <stdlib.h>

#include "base/library.h"

#define FUNCTION(name) { "gnutls_" #name, offsetof(struct gnutls, name) },

static const struct library_function functions[] = { GNUTLS_FUNCTIONS(FUNCTION) };
static const struct library library = {
	.what =
	    "GnuTLS, which --tls-inspect needs (install the package that has '" GNUTLS_LIBRARY "')",
	.names = (const char *const[]){ GNUTLS_LIBRARY, NULL },
	.functions = functions,
	.n_functions = ARRAY_LEN(functions),
};

int gnutls_load(struct gnutls *ret, struct err *err)
{
	/* It would write the keys of connections there, or take its settings from there. */
	unsetenv("SSLKEYLOGFILE");
	unsetenv("GNUTLS_SYSTEM_PRIORITY_FILE");
	return library_load(&library, ret, err);
}
