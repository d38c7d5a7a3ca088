/*
 * Which back end a url names.
 */
#include <errno.h>
#include <string.h>

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
	for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
		if (strncmp(text, schemes[i].begin, strlen(schemes[i].begin)) == 0)
			return &schemes[i];
	return NULL;
}

bool depot_is_url(const char *text)
{
	return find_scheme(text) != NULL;
}

bool depot_is_scheme(const char *word)
{
	const size_t len = strlen(word);

	for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
		if (strcspn(schemes[i].begin, ":") == len &&
		    memcmp(schemes[i].begin, word, len) == 0)
			return true;
	return false;
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
	    "'%s' is no address of a remote: it begins with dir:, oci://, s3:// or ssh://", url);
}
