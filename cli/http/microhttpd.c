#include "cli/http/microhttpd.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"

#define FUNCTION(name)                                          \
	{                                                       \
		"MHD_" #name, offsetof(struct microhttpd, name) \
	}

static const struct {
	const char *name;
	size_t offset;
} functions[] = {
	FUNCTION(start_daemon),
	FUNCTION(stop_daemon),
	FUNCTION(run),
	FUNCTION(get_timeout),
	FUNCTION(get_daemon_info),
	FUNCTION(get_connection_info),
	FUNCTION(lookup_connection_value),
	FUNCTION(create_response_from_buffer),
	FUNCTION(create_response_from_callback),
	FUNCTION(add_response_header),
	FUNCTION(queue_response),
	FUNCTION(destroy_response),
	FUNCTION(suspend_connection),
	FUNCTION(resume_connection),
};

int microhttpd_load(struct microhttpd *ret, struct err *err)
{
	void *lib = dlopen(MICROHTTPD_LIBRARY, RTLD_NOW | RTLD_LOCAL);

	if (!lib)
		return err_set(err, -ENOTSUP,
			       "cannot load libmicrohttpd, which --http needs (install the package "
			       "that has '" MICROHTTPD_LIBRARY "'): %s",
			       dlerror());
	for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
		void *at = dlsym(lib, functions[i].name);

		if (!at)
			return err_set(err, -ENOTSUP, "'" MICROHTTPD_LIBRARY "' lacks '%s'",
				       functions[i].name);
		/* POSIX has it that a function's address travels as an object's. */
		memcpy((char *)ret + functions[i].offset, &at, sizeof(at));
	}
	return 0;
}
