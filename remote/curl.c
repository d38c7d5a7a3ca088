#include "remote/curl.h"

#include <errno.h>
#include <pthread.h>

#include "base/library.h"

#define FUNCTION(name) { "curl_" #name, offsetof(struct curl, name) },

static const struct library_function functions[] = { CURL_FUNCTIONS(FUNCTION) };
/* Debian has two builds of it that differ in what makes TLS; either serves. */
static const struct library library = {
	.what = "libcurl, which remotes need (Debian: libcurl3-gnutls)",
	.names = (const char *const[]){ CURL_LIBRARIES, NULL },
	.functions = functions,
	.n_functions = ARRAY_LEN(functions),
};

static struct {
	pthread_once_t once;
	struct curl curl;
	struct err why;
	int r;
} loaded = { .once = PTHREAD_ONCE_INIT };

static int load(struct curl *ret, struct err *err)
{
	int r = library_load(&library, ret, err);

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
