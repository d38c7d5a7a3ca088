/*
 * Which back end a url names.
 */
#include <errno.h>
#include <string.h>

#include "remote/depot.h"
#include "remote/reference.h"

static const struct scheme {
	const char *begin;
	int (*open)(const char *url, const struct depot_config *config, struct depot **ret,
		    struct err *err);
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

int depot_open(const char *url, const struct depot_config *config, struct depot **ret,
	       struct err *err)
{
	static const struct depot_config plain;
	const struct scheme *s = find_scheme(url);

	if (!config)
		config = &plain;
	if (s)
		return s->open(url, config, ret, err);
	if (reference_has_host(url))
		return depot_registry_open(url, config, ret, err);
	return err_set(
	    err, -EINVAL,
	    "'%s' is no address of a remote: it begins with dir:, oci://, s3:// or ssh://", url);
}
