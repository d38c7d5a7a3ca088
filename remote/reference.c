#include "remote/reference.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "remote/depot.h"
#include "remote/url.h"

void reference_done(struct reference *r)
{
	free(r->host);
	free(r->repository);
	free(r->name);
	*r = (struct reference){ 0 };
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* One of ".", "_", "__" or any number of "-": how long it is; 0: none. */
static size_t separator_length(const char *s)
{
	if (*s == '-')
		return strspn(s, "-");
	if (strncmp(s, "__", 2) == 0)
		return 2;
	return *s == '.' || *s == '_' ? 1 : 0;
}

bool reference_repository_valid(const char *name)
{
	if (strlen(name) > REFERENCE_REPOSITORY_MAX)
		return false;
	for (;;) {
		if (!is_letter(*name))
			return false;
		while (is_letter(*name))
			name++;
		if (*name == '\0')
			return true;
		name += *name == '/' ? 1 : separator_length(name);
	}
}

/* A host, with its port if it has one: what a URL may have there. */
static int check_host(struct reference *r, struct err *err)
{
	AUTO_FREE char *url = NULL, *origin = NULL, *alone = NULL;
	size_t len = r->host[0] == '[' ? strcspn(r->host, "]") + 1 : strcspn(r->host, ":");
	int failed = text_set(&url, err, "https://%s", r->host);

	if (failed < 0)
		return failed;
	origin = url_origin(url);
	if (!origin)
		return err_set(err, -EINVAL, "'%s' is no host of a registry", r->host);
	alone = strndup(r->host, len);
	if (!alone)
		return err_nomem(err);
	r->plain = url_host_is_loopback(alone);
	return 0;
}

/* Cut tag or digest off, and keep it as the name. */
static int split_name(char *rest, struct reference *r, struct err *err)
{
	char *at = strchr(rest, '@'), *colon = strchr(rest, ':');
	struct digest digest;

	if (!at && !colon)
		return 0;
	if (at) {
		*at++ = '\0';
		if (digest_parse(at, &digest) < 0)
			return err_set(err, -EINVAL, "'%s' is no digest", at);
		/* A digest says more than a tag beside it. */
		rest[strcspn(rest, ":")] = '\0';
	} else {
		at = colon;
		*at++ = '\0';
		if (!depot_tag_valid(at))
			return err_set(err, -EINVAL, "'%s' is no tag", at);
	}
	r->name = strdup(at);
	return r->name ? 0 : err_nomem(err);
}

bool reference_has_host(const char *text)
{
	const size_t len = strcspn(text, "/");

	if (text[len] != '/' || strstr(text, "://"))
		return false;
	return memchr(text, '.', len) || memchr(text, ':', len) ||
	       (len == 9 && strncmp(text, "localhost", 9) == 0);
}

int reference_parse(const char *text, struct reference *ret, struct err *err)
{
	CLEANUP(reference_done) struct reference r = { 0 };
	AUTO_FREE char *copy = strdup(text);
	char *slash;
	int failed;

	if (!copy)
		return err_nomem(err);
	slash = strchr(copy, '/');
	if (!slash || slash == copy || slash[1] == '\0')
		return err_set(err, -EINVAL, "'%s' is no HOST[:PORT]/REPOSITORY", text);
	*slash++ = '\0';
	r.host = strdup(copy);
	if (!r.host)
		return err_nomem(err);
	failed = check_host(&r, err);
	if (failed == 0)
		failed = split_name(slash, &r, err);
	if (failed < 0)
		return failed;
	if (!reference_repository_valid(slash))
		return err_set(err, -EINVAL,
			       "'%s' is no name of a repository (a-z, 0-9, '.', '_', '-', '/')",
			       slash);
	r.repository = strdup(slash);
	if (!r.repository)
		return err_nomem(err);
	*ret = TAKE_STRUCT(r);
	return 0;
}
