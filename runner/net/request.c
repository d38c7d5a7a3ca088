#include "runner/net/request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SCHEME     "http://"
#define SCHEME_TLS "https://"

/* --- paths -------------------------------------------------------------------------------- */

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 32;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/*
 * Undo "%41", once.  The length, or -EBADMSG for what some servers would decode again, end at, or
 * take for another byte.
 */
static ssize_t decode(struct http_span path, char out[REQUEST_PATH_MAX])
{
	size_t n = 0;

	if (path.len > REQUEST_PATH_MAX)
		return -EBADMSG;
	for (size_t i = 0; i < path.len; i++) {
		int c = (unsigned char)path.at[i];

		if (c == '%') {
			const int high = i + 2 < path.len ? hex_value(path.at[i + 1]) : -1;
			const int low = i + 2 < path.len ? hex_value(path.at[i + 2]) : -1;

			if (high < 0 || low < 0)
				return -EBADMSG;
			c = high * 16 + low;
			i += 2;
			if (c == '%' || c == '?' || c == '#')
				return -EBADMSG;
		}
		/* Bytes that no UTF-8 has were once read as "." and "/" all the same. */
		if (c < 32 || c == 127 || c == '\\' || c == 0xc0 || c == 0xc1 || c > 0xf4)
			return -EBADMSG;
		out[n++] = (char)c;
	}
	return (ssize_t)n;
}

/* A name between two slashes, without what stands behind a ";" in it. */
static bool is_plain_segment(const char *at, size_t len, bool last)
{
	const char *semicolon = memchr(at, ';', len);
	const size_t n = semicolon ? (size_t)(semicolon - at) : len;
	size_t dots = 0;

	if (len == 0)
		return last;
	while (dots < n && (at[dots] == '.' || at[dots] == ' '))
		dots++;
	return dots < n;
}

static bool is_plain(const char *path, size_t len)
{
	size_t at = 1, end;

	if (len == 0 || path[0] != '/')
		return false;
	do {
		for (end = at; end < len && path[end] != '/'; end++)
			;
		if (!is_plain_segment(path + at, end - at, end == len))
			return false;
		at = end + 1;
	} while (end < len);
	return true;
}

bool request_path_is_plain(struct http_span path)
{
	char decoded[REQUEST_PATH_MAX];
	const ssize_t n = decode(path, decoded);

	return n >= 0 && is_plain(decoded, (size_t)n);
}

/* --- reading ------------------------------------------------------------------------------ */

static bool are_methods(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		const bool letter = text[i] >= 'A' && text[i] <= 'Z';
		const bool between = i > 0 && i + 1 < len && text[i - 1] != '+';

		if (!letter && !(text[i] == '+' && between))
			return false;
	}
	return len > 0 && len <= REQUEST_METHODS_MAX;
}

/* Into a line of a shell or a profile, between quotes, it must go as it is. */
static bool is_pattern(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] <= ' ' || text[i] >= 127 || strchr("'\"\\#<>`,", text[i]))
			return false;
	return len <= REQUEST_PATTERN_MAX;
}

static int read_pattern(const char *rule, const char *text, struct request_rule *ret,
			struct err *err)
{
	const char *mark = strchr(text, '?');
	const size_t len = mark ? (size_t)(mark - text) : strlen(text);

	if (!is_pattern(text, len) || (mark && !is_pattern(mark + 1, strlen(mark + 1))) ||
	    (len > 0 && !request_path_is_plain((struct http_span){ text, len })))
		return err_set(err, -EINVAL,
			       "network rule '%.100s': no request has the path '%.60s' (write what "
			       "cannot be said as *)",
			       rule, text);
	memcpy(ret->path, text, len);
	ret->has_query = mark;
	if (mark)
		memcpy(ret->query, mark + 1, strlen(mark + 1));
	return 0;
}

int request_rule_parse(const char *text, struct request_rule *ret, struct http_span *ret_authority,
		       struct err *err)
{
	struct request_rule rule = { .on = true };
	const char *blank = strchr(text, ' '), *url = blank ? blank + 1 : text, *path;
	int r;

	if (blank && !are_methods(text, (size_t)(blank - text)))
		return err_set(err, -EINVAL,
			       "network rule '%.100s': '%.*s' is no method, as in 'GET+HEAD "
			       "http://example.org/*'",
			       text, (int)(blank - text < 60 ? blank - text : 60), text);
	if (blank)
		memcpy(rule.methods, text, (size_t)(blank - text));
	rule.tls = strncmp(url, SCHEME_TLS, strlen(SCHEME_TLS)) == 0;
	if (!rule.tls && strncmp(url, SCHEME, strlen(SCHEME)) != 0)
		return err_set(err, -EINVAL,
			       "network rule '%.100s': rules for requests begin with 'http://' or "
			       "'https://'; allow the host as HOST:PORT",
			       text);
	url += strlen(rule.tls ? SCHEME_TLS : SCHEME);
	path = url + strcspn(url, "/?");
	r = read_pattern(text, path, &rule, err);
	if (r < 0)
		return r;
	*ret = rule;
	*ret_authority = (struct http_span){ url, (size_t)(path - url) };
	return 0;
}

/* --- asking ------------------------------------------------------------------------------- */

bool request_of(const struct http_head *head, struct request *ret)
{
	struct http_span t = head->target, authority;
	const char *mark;

	if (t.at[0] != '/' && !http_split_uri(head->target, &authority, &t))
		return false;
	if (t.len == 0)
		t = (struct http_span){ "/", 1 };
	mark = memchr(t.at, '?', t.len);
	*ret = (struct request){ .method = head->method, .path = t, .has_query = mark };
	if (mark) {
		ret->path.len = (size_t)(mark - t.at);
		ret->query = (struct http_span){ mark + 1, t.len - ret->path.len - 1 };
	}
	return ret->path.len > 0;
}

/* A star stands for any bytes.  What failed is tried again from the last star on. */
static bool matches(const char *pattern, const char *text, size_t len)
{
	const char *star = NULL;
	size_t at = 0, again = 0;

	while (at < len) {
		if (*pattern == '*') {
			star = pattern++;
			again = at;
		} else if (*pattern != '\0' && *pattern == text[at]) {
			pattern++;
			at++;
		} else if (star) {
			pattern = star + 1;
			at = ++again;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return *pattern == '\0';
}

static bool has_method(const char *methods, const char *method, size_t len)
{
	for (const char *m = methods; *m != '\0';) {
		const size_t n = strcspn(m, "+");

		if (n == len && memcmp(m, method, n) == 0)
			return true;
		m += n + (m[n] == '+');
	}
	return *methods == '\0';
}

/* The path as it is and the path as a server may decode it: a rule that means one means both. */
bool request_rule_allows(const struct request_rule *rule, const struct request *q)
{
	char decoded[REQUEST_PATH_MAX];
	ssize_t n;

	if (!rule->on)
		return true;
	if (rule->tls != q->tls)
		return false;
	n = decode(q->path, decoded);
	if (n < 0 || !is_plain(decoded, (size_t)n))
		return false;
	if (!has_method(rule->methods, q->method.at, q->method.len))
		return false;
	if (*rule->path != '\0' && !(matches(rule->path, q->path.at, q->path.len) &&
				     matches(rule->path, decoded, (size_t)n)))
		return false;
	if (!rule->has_query)
		return true;
	return q->has_query ? matches(rule->query, q->query.at, q->query.len)
			    : *rule->query == '\0';
}

/* --- comparing ---------------------------------------------------------------------------- */

/* Patterns are compared as texts, but for a star at the end of the outer one. */
static bool pattern_covers(const char *outer, const char *inner)
{
	const size_t n = strlen(outer);

	if (strcmp(outer, inner) == 0)
		return true;
	return n > 0 && strchr(outer, '*') == outer + n - 1 && strncmp(outer, inner, n - 1) == 0;
}

bool request_rule_covers(const struct request_rule *outer, const struct request_rule *inner)
{
	const char *m = inner->methods;

	if (!outer->on)
		return true;
	if (!inner->on || inner->tls != outer->tls || (*m == '\0' && *outer->methods != '\0'))
		return false;
	for (size_t n; *m != '\0'; m += n + (m[n] == '+')) {
		n = strcspn(m, "+");
		if (!has_method(outer->methods, m, n))
			return false;
	}
	if (*outer->path != '\0' && !pattern_covers(outer->path, inner->path))
		return false;
	return !outer->has_query ||
	       (inner->has_query && pattern_covers(outer->query, inner->query));
}
