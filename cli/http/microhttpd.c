#include "cli/http/microhttpd.h"

#include "base/library.h"

#define FUNCTION(name) { "MHD_" #name, offsetof(struct microhttpd, name) },

static const struct library_function functions[] = { MICROHTTPD_FUNCTIONS(FUNCTION) };
static const struct library library = {
	.what = "libmicrohttpd, which --http needs (install the package that has "
		"'" MICROHTTPD_LIBRARY "')",
	.names = (const char *const[]){ MICROHTTPD_LIBRARY, NULL },
	.functions = functions,
	.n_functions = ARRAY_LEN(functions),
};

int microhttpd_load(struct microhttpd *ret, struct err *err)
{
	return library_load(&library, ret, err);
}
