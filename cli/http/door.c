#include "cli/http/door.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* The name without the port; 0 if it is no host. */
static size_t name_length(const char *host, size_t len)
{
	size_t n = 0;

	if (len > 0 && host[0] == '[') {
		const char *end = memchr(host, ']', len);

		n = end ? (size_t)(end - host) + 1 : 0;
	} else {
		while (n < len && host[n] != ':')
			n++;
	}
	if (n == 0 || n == len)
		return n;
	if (host[n] != ':')
		return 0;
	for (size_t i = n + 1; i < len; i++)
		if (!isdigit((unsigned char)host[i]))
			return 0;
	return n;
}

static bool is_name(const char *host, size_t len, const char *name)
{
	return len == strlen(name) && strncasecmp(host, name, len) == 0;
}

/* 127.1.2.3: four numbers, so that no name such as 127.0.0.1.example.org is one. */
static bool is_loopback_v4(const char *host, size_t len)
{
	size_t dots = 0;

	if (len < 9 || strncmp(host, "127.", 4) != 0)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (host[i] == '.' && ++dots && (i + 1 == len || host[i + 1] == '.'))
			return false;
		if (host[i] != '.' && !isdigit((unsigned char)host[i]))
			return false;
	}
	return dots == 3;
}

bool door_is_loopback(const char *host, size_t len)
{
	const size_t n = name_length(host, len);

	return is_name(host, n, "localhost") || is_name(host, n, "[::1]") ||
	       is_loopback_v4(host, n);
}

/* Where the name of the host begins in an origin; NULL if it is none of HTTP. */
static const char *origin_host(const char *origin)
{
	if (strncasecmp(origin, "http://", 7) == 0)
		return origin + 7;
	if (strncasecmp(origin, "https://", 8) == 0)
		return origin + 8;
	return NULL;
}

static bool is_allowed_origin(const struct door *d, const struct door_request *r)
{
	const char *host = origin_host(r->origin);

	if (!host)
		return false;
	return door_is_loopback(host, strlen(host)) ||
	       (d->remote && strcasecmp(host, r->host) == 0);
}

/* Takes as long for any text of that length, so that nobody can guess it letter by letter. */
static bool is_token(const char *text, const char *token)
{
	const size_t len = strlen(text), want = strlen(token);
	unsigned differ = len != want;

	for (size_t i = 0; i < want; i++)
		differ |= (unsigned char)token[i] ^ (unsigned char)text[i < len ? i : 0];
	return differ == 0;
}

static bool brings_token(const struct door *d, const char *authorization)
{
	if (!d->token)
		return true;
	if (!authorization || strncasecmp(authorization, "Bearer ", 7) != 0)
		return false;
	return is_token(authorization + 7, d->token);
}

unsigned door_check(const struct door *d, const struct door_request *r, const char **ret_why)
{
	*ret_why = "the header 'Host' names no address of this machine";
	if (!r->host || (!d->remote && !door_is_loopback(r->host, strlen(r->host))))
		return 403;
	*ret_why = "the header 'Origin' names a page of somebody else";
	if (r->origin && !is_allowed_origin(d, r))
		return 403;
	*ret_why =
	    "the header 'Authorization' must be 'Bearer' and the token of this server, which it "
	    "printed when it was started";
	return brings_token(d, r->authorization) ? 0 : 401;
}
