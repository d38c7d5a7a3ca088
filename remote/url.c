#include "remote/url.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/size.h"

struct parts {
	const char *host; /* borrowed; with its brackets if it is an address of IPv6 */
	size_t host_len;
	unsigned port;
	bool https;
	const char *rest; /* from the first '/', '?' or '#' on */
};

static bool is_host_byte(char c)
{
	return isalnum((unsigned char)c) || c == '.' || c == '-' || c == '_';
}

/* How many bytes the host has; 0: it is none. */
static size_t host_length(const char *s)
{
	size_t n = 0;

	if (*s != '[') {
		while (is_host_byte(s[n]))
			n++;
		return n;
	}
	n = 1 + strspn(s + 1, "0123456789abcdefABCDEF:.");
	return s[n] == ']' && n > 1 ? n + 1 : 0;
}

static bool parse_port(const char *s, size_t len, unsigned *ret)
{
	char digits[8];
	uint64_t port;

	if (len == 0 || len >= sizeof(digits))
		return false;
	memcpy(digits, s, len);
	digits[len] = '\0';
	if (size_parse_u64(digits, &port) < 0 || port == 0 || port > 65535)
		return false;
	*ret = (unsigned)port;
	return true;
}

static bool split(const char *url, struct parts *ret)
{
	const char *at;

	for (const char *c = url; *c; c++)
		if (*c < '!' || *c > '~')
			return false;
	ret->https = strncasecmp(url, "https://", 8) == 0;
	if (!ret->https && strncasecmp(url, "http://", 7) != 0)
		return false;
	ret->host = url + (ret->https ? 8 : 7);
	ret->host_len = host_length(ret->host);
	ret->port = ret->https ? 443 : 80;
	at = ret->host + ret->host_len;
	ret->rest = at + strcspn(at, "/?#");
	if (ret->host_len == 0)
		return false;
	if (*at == ':')
		return parse_port(at + 1, (size_t)(ret->rest - at - 1), &ret->port);
	return at == ret->rest;
}

char *url_origin(const char *url)
{
	struct parts p;
	char *text;

	if (!split(url, &p) || asprintf(&text, "http%s://%.*s:%u", p.https ? "s" : "",
					(int)p.host_len, p.host, p.port) < 0)
		return NULL;
	for (char *c = text; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	return text;
}

bool url_same_origin(const char *a, const char *b)
{
	AUTO_FREE char *of_a = url_origin(a), *of_b = url_origin(b);

	return of_a && of_b && strcmp(of_a, of_b) == 0;
}

char *url_resolve(const char *base, const char *to)
{
	AUTO_FREE char *text = NULL;
	struct parts p;

	if (to[0] != '/')
		return split(to, &p) ? strdup(to) : NULL;
	if (to[1] == '/' || !split(base, &p) ||
	    asprintf(&text, "%.*s%s", (int)(p.rest - base), base, to) < 0)
		return NULL;
	return split(text, &p) ? TAKE_PTR(text) : NULL;
}

char *url_shown(const char *url)
{
	return strndup(url, strcspn(url, "?#"));
}

bool url_is_https(const char *url)
{
	return strncasecmp(url, "https://", 8) == 0;
}

bool url_host_is_loopback(const char *host)
{
	struct in_addr v4;

	if (strcasecmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0)
		return true;
	return inet_pton(AF_INET, host, &v4) == 1 && (ntohl(v4.s_addr) >> 24) == 127;
}

bool url_same_host(const char *a, const char *b)
{
	struct parts of_a, of_b;

	return split(a, &of_a) && split(b, &of_b) && of_a.host_len == of_b.host_len &&
	       strncasecmp(of_a.host, of_b.host, of_a.host_len) == 0;
}

bool url_is_loopback(const char *url)
{
	AUTO_FREE char *host = NULL;
	struct parts p;

	if (!split(url, &p))
		return false;
	host = strndup(p.host, p.host_len);
	return host && url_host_is_loopback(host);
}
