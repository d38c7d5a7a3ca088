/*
 * url.h - the parts of a URL that decide which server may get which data.
 *
 * Strict: http or https, a host, perhaps a port, no user, and no byte below '!' or above '~'.
 */
#pragma once

#include <stdbool.h>

#include "base/attr.h"

/*
 * Scheme, host in lower case and port ("https://example.org:443"), which two URLs of one server share.
 * Owned; NULL if it is no such URL, or when out of memory.
 */
NODISCARD char *url_origin(const char *url);

bool url_same_origin(const char *a, const char *b);

/* `to` as a URL, which may be a path on the server of `base`.  Owned; NULL if it is none. */
NODISCARD char *url_resolve(const char *base, const char *to);

/* The URL without what follows '?' or '#', which can be a secret.  Owned; NULL when out of memory. */
NODISCARD char *url_shown(const char *url);

bool url_is_https(const char *url);

bool url_same_host(const char *a, const char *b); /* on any port */
bool url_is_loopback(const char *url);

/* Is it this machine, by a name or an address that no other can have: localhost, 127.0.0.0/8, ::1? */
bool url_host_is_loopback(const char *host); /* "[::1]" with its brackets, without a port */
