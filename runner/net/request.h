/*
 * request.h - which requests of HTTP a rule allows: methods, and a pattern for path and query.
 *
 *   http://example.org                       every request
 *   GET http://example.org/index.html        this one
 *   GET+HEAD http://example.org/pool/a*      every path that begins so; a star matches anything
 *   POST http://example.org/find?kind=*      the query is compared only if the rule has one
 *   GET https://example.org/a*               the same within TLS, where the proxy ends that
 *
 * Servers read some paths differently from one another ("..", "//", "%5c", "..;"). No rule matches
 * such a path. Portable and pure.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "runner/net/http.h"

#define REQUEST_METHODS_MAX 63
#define REQUEST_PATTERN_MAX 255
#define REQUEST_PATH_MAX    4096 /* of a request that a rule may match */

struct request_rule {
	bool on;  /* else every request is fine, and whatever is no request too */
	bool tls; /* for requests within TLS, and for no others */
	char methods[REQUEST_METHODS_MAX + 1]; /* "GET+HEAD"; "": any */
	char path[REQUEST_PATTERN_MAX + 1];    /* "": any */
	bool has_query;
	char query[REQUEST_PATTERN_MAX + 1];
};

/*
 * Read a rule as above; `ret_authority` is what stands between "//" and the path, borrowed from
 * `text`, for the caller to judge.  -EINVAL with a sentence.
 */
NODISCARD int request_rule_parse(const char *text, struct request_rule *ret,
				 struct http_span *ret_authority, struct err *err);

/* What a request asks for, borrowed from its head. */
struct request {
	struct http_span method, path, query;
	bool has_query;
	bool tls; /* it came within TLS; the caller sets it */
};

/* False if the head names no path of a server, as "*" does. */
bool request_of(const struct http_head *head, struct request *ret);

/* Is it a path that every server reads alike? */
bool request_path_is_plain(struct http_span path);

bool request_rule_allows(const struct request_rule *rule, const struct request *request);

/* Does `inner` allow nothing that `outer` does not? */
bool request_rule_covers(const struct request_rule *outer, const struct request_rule *inner);
