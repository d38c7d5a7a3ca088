#include "runner/net/secret.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/attr.h"

#define ADDED_MAX 8 /* headers in one request */

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

/* Packed answers could not be looked through. */
static bool is_replaced(struct http_span name, const struct net_secret *const *added, size_t n)
{
	const struct http_span packing = { "accept-encoding", 15 };

	for (size_t i = 0; i < n; i++)
		if (same_name(name, added[i]->name))
			return true;
	return same_name(name, packing);
}

int net_secrets_add(const struct net_secrets *s, const struct allow_target *target, uint16_t port,
		    const char *data, const struct http_head *head, const struct request *request,
		    struct buf *out)
{
	const struct net_secret *added[ADDED_MAX];
	struct http_span line, name;
	size_t n = 0, at = 0;
	int r = 0;

	for (size_t i = 0; i < s->n && n < ADDED_MAX; i++)
		if (is_for(&s->list[i], target, port) &&
		    allow_request(&s->list[i].rule, target, port, request))
			added[n++] = &s->list[i];
	if (n == 0)
		return 0;
	while (r == 0 && http_next_header(data, head, &at, &line, &name))
		if (name.len == 0 || !is_replaced(name, added, n))
			r = http_append_line(out, line);
	for (size_t i = 0; i < n && r == 0; i++)
		r = http_append_line(out, added[i]->line);
	if (r == 0)
		r = buf_append_str(out, "Accept-Encoding: identity\r\n\r\n");
	return r < 0 ? r : 1;
}

/* Length of the longest end of the bytes with which the value begins. */
static size_t begun(const struct buf *in, struct http_span value)
{
	size_t n = value.len - 1 < in->len ? value.len - 1 : in->len;

	while (n > 0 && memcmp(in->data + in->len - n, value.at, n) != 0)
		n--;
	return n;
}

size_t net_secrets_mask(const struct net_secrets *s, struct buf *in, bool eof)
{
	size_t held = 0;

	for (size_t i = 0; i < s->n && in->len > 0; i++) {
		const struct http_span v = s->list[i].value;
		unsigned char *at = in->data, *end = in->data + in->len;

		while ((at = memmem(at, (size_t)(end - at), v.at, v.len))) {
			memset(at, '*', v.len);
			at += v.len;
		}
		held = !eof && begun(in, v) > held ? begun(in, v) : held;
	}
	return in->len - held;
}
