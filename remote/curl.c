#include "remote/curl.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#define FUNCTION(name)                                     \
	{                                                  \
		"curl_" #name, offsetof(struct curl, name) \
	}

static const struct {
	const char *name;
	size_t offset;
} functions[] = {
	FUNCTION(global_init),    FUNCTION(easy_init),     FUNCTION(easy_reset),
	FUNCTION(easy_cleanup),   FUNCTION(easy_setopt),   FUNCTION(easy_perform),
	FUNCTION(easy_getinfo),   FUNCTION(easy_strerror), FUNCTION(slist_append),
	FUNCTION(slist_free_all),
};

/* Debian has two builds of it that differ in what makes TLS; either serves. */
static const char *const libraries[] = { CURL_LIBRARIES };

static struct {
	pthread_once_t once;
	struct curl curl;
	struct err why;
	int r;
} loaded = { .once = PTHREAD_ONCE_INIT };

static int find_functions(void *lib, struct curl *ret, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
		void *at = dlsym(lib, functions[i].name);

		if (!at)
			return err_set(err, -ENOTSUP, "libcurl lacks '%s'", functions[i].name);
		/* POSIX has it that a function's address travels as an object's. */
		memcpy((char *)ret + functions[i].offset, &at, sizeof(at));
	}
	return 0;
}

static int load(struct curl *ret, struct err *err)
{
	void *lib = NULL;
	int r;

	for (size_t i = 0; !lib && i < ARRAY_LEN(libraries); i++)
		lib = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		return err_set(
		    err, -ENOTSUP,
		    "cannot load libcurl, which remotes need (Debian: libcurl3-gnutls): %s",
		    dlerror());
	r = find_functions(lib, ret, err);
	if (r < 0)
		return r;
	if (ret->global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return err_set(err, -ENOTSUP, "libcurl cannot be initialised");
	return 0;
}

static void load_once(void)
{
	loaded.r = load(&loaded.curl, &loaded.why);
}

int curl_load(const struct curl **ret, struct err *err)
{
	pthread_once(&loaded.once, load_once);
	if (loaded.r < 0)
		return err_set(err, loaded.r, "%s", loaded.why.msg);
	*ret = &loaded.curl;
	return 0;
}
