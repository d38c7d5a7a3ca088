#include "runner/net/secret.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/attr.h"

static bool is_for(const struct net_secret *s, const struct allow_target *target, uint16_t port)
{
	struct allow_target unused;

	return allow_ask(&s->rule, target->host, strlen(target->host), port, &unused) == ALLOW_YES;
}

bool net_secrets_concern(const struct net_secrets *s, const struct allow_target *target,
			 uint16_t port)
{
	for (size_t i = 0; s && i < s->n; i++)
		if (is_for(&s->list[i], target, port))
			return true;
	return false;
}

bool net_secrets_permit(const struct request *request)
{
	static const char *const echoes[] = { "TRACE", "TRACK", "DEBUG" };

	for (size_t i = 0; i < ARRAY_LEN(echoes); i++)
		if (request->method.len == strlen(echoes[i]) &&
		    strncasecmp(request->method.at, echoes[i], strlen(echoes[i])) == 0)
			return false;
	return true;
}

static bool same_name(struct http_span a, struct http_span b)
{
	return a.len == b.len && strncasecmp(a.at, b.at, a.len) == 0;
}

/*
 * Packed answers, and pieces of answers, could not be looked through; and the server is to end its
 * answer itself.
 */
static bool is_dropped(struct http_span name)
{
	static const char *const names[] = {
		"accept-encoding", "connection", "keep-alive", "proxy-connection",        "range",
		"if-range",        "te",         "expect",     "sec-websocket-extensions"
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (same_name(name, (struct http_span){ names[i], strlen(names[i]) }))
			return true;
	return false;
}

static bool is_replaced(struct http_span name, const struct net_secret *const *added, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (same_name(name, added[i]->name))
			return true;
	return is_dropped(name);
}

int net_secrets_add(const struct net_secrets *s, const struct allow_target *target, uint16_t port,
		    const char *data, const struct http_head *head, const struct request *request,
		    struct buf *out)
{
	const struct net_secret *added[NET_SECRETS_MAX];
	struct http_span line, name;
	size_t n = 0, at = 0;
	int r = 0;

	for (size_t i = 0; i < s->n && n < NET_SECRETS_MAX; i++)
		if (is_for(&s->list[i], target, port) &&
		    allow_request(&s->list[i].rule, target, port, request))
			added[n++] = &s->list[i];
	while (r == 0 && http_next_header(data, head, &at, &line, &name))
		if (name.len == 0 || !is_replaced(name, added, n))
			r = http_append_line(out, line);
	for (size_t i = 0; i < n && r == 0; i++)
		r = http_append_line(out, added[i]->line);
	if (r == 0)
		r = buf_append_str(out, "Accept-Encoding: identity\r\nConnection: close\r\n\r\n");
	return r;
}

size_t net_secrets_mask(const struct net_secrets *s, const struct allow_target *target,
			uint16_t port, struct buf *in, bool eof)
{
	size_t held = 0;

	for (size_t i = 0; i < s->n && in->len > 0; i++) {
		const struct http_span v = s->list[i].value;
		unsigned char *at = in->data, *end = in->data + in->len;

		if (!is_for(&s->list[i], target, port))
			continue;
		while ((at = memmem(at, (size_t)(end - at), v.at, v.len))) {
			memset(at, '*', v.len);
			at += v.len;
		}
		held = v.len - 1 > held ? v.len - 1 : held;
	}
	if (eof)
		return in->len;
	return in->len > held ? in->len - held : 0;
}
