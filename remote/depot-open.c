/*
 * The back end for a url.
 */
#include <errno.h>
#include <string.h>

#include "base/vec.h"
#include "remote/depot.h"
#include "remote/reference.h"

typedef int (*open_fn)(const char *url, const struct depot_config *config, struct depot **ret,
		       struct err *err);

static const struct scheme {
	const char *begin;
	open_fn open;
} schemes[] = {
	{ "dir:", depot_dir_open },
	{ "oci://", depot_registry_open },
	{ "oci+http://", depot_registry_open },
	{ "s3://", depot_s3_open },
	{ "s3+https://", depot_s3_open },
	{ "s3+http://", depot_s3_open },
	{ "ssh://", depot_ssh_open },
};

static const struct scheme *find_scheme(const char *text)
{
	return VEC_FIND(it, schemes, ARRAY_LEN(schemes),
			strncmp(text, it->begin, strlen(it->begin)) == 0);
}

bool depot_is_url(const char *text)
{
	return find_scheme(text) != NULL;
}

bool depot_is_scheme(const char *word)
{
	const size_t len = strlen(word);

	return VEC_HAS(it, schemes, ARRAY_LEN(schemes),
		       strcspn(it->begin, ":") == len && memcmp(it->begin, word, len) == 0);
}

static open_fn find_open(const char *url)
{
	const struct scheme *s = find_scheme(url);

	if (s)
		return s->open;
	return reference_has_host(url) ? depot_registry_open : NULL;
}

char *depot_beside(const char *url, const char *other)
{
	return find_open(url) == depot_registry_open && find_open(other) == depot_registry_open
		   ? depot_registry_beside(url, other)
		   : NULL;
}

int depot_open(const char *url, const struct depot_config *config, struct depot **ret,
	       struct err *err)
{
	static const struct depot_config plain;
	const open_fn open = find_open(url);

	if (open)
		return open(url, config ? config : &plain, ret, err);
	return err_set(
	    err, -EINVAL,
	    "'%s' is not the address of a remote, which begins with dir:, oci://, s3:// or ssh://",
	    url);
}
