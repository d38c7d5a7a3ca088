#include "runner/net/secret.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/attr.h"
#include "base/vec.h"

static bool is_for(const struct net_secret *s, const struct allow_target *target, uint16_t port)
{
	struct allow_target unused;

	return allow_ask(&s->rule, target->host, strlen(target->host), port, &unused) == ALLOW_YES;
}

bool net_secrets_concern(const struct net_secrets *s, const struct allow_target *target,
			 uint16_t port)
{
	return s && VEC_HAS(it, s->list, s->n, is_for(it, target, port));
}

bool net_secrets_permit(const struct request *request)
{
	static const char *const echoes[] = { "TRACE", "TRACK", "DEBUG" };

	return !VEC_HAS(it, echoes, ARRAY_LEN(echoes),
			request->method.len == strlen(*it) &&
			    strncasecmp(request->method.at, *it, strlen(*it)) == 0);
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

	return VEC_HAS(it, names, ARRAY_LEN(names),
		       same_name(name, (struct http_span){ *it, strlen(*it) }));
}

static bool is_replaced(struct http_span name, const struct net_secret *const *added, size_t n)
{
	return VEC_HAS(it, added, n, same_name(name, (*it)->name)) || is_dropped(name);
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
	return r < 0
		   ? r
		   : buf_append_str(out, "Accept-Encoding: identity\r\nConnection: close\r\n\r\n");
}

/* --- what the server says ----------------------------------------------------------------- */

/*
 * The end of one chunk and the size of the next (RFC 9112, 7.1), as they stand between two bytes of
 * an answer that comes in pieces.  How long that is; 0: there is none.
 */
static size_t chunk_break(const unsigned char *at, size_t len)
{
	size_t n = 2;

	if (len < 5 || at[0] != '\r' || at[1] != '\n')
		return 0;
	while (n < len && isxdigit(at[n]))
		n++;
	if (n == 2)
		return 0;
	if (n < len && at[n] == ';')
		while (n < len && at[n] != '\r')
			n++;
	return n + 2 <= len && at[n] == '\r' && at[n + 1] == '\n' ? n + 2 : 0;
}

/* How many bytes of `data` are the secret, with the ends of chunks in it; 0: it is not there. */
static size_t secret_at(struct http_span secret, const unsigned char *data, size_t len)
{
	size_t at = 0;

	for (size_t i = 0; i < secret.len; i++) {
		if (i > 0)
			at += chunk_break(data + at, len - at);
		if (at == len || data[at] != (unsigned char)secret.at[i])
			return 0;
		at++;
	}
	return at;
}

static size_t longest_at(const struct http_span *secrets, size_t n, const unsigned char *data,
			 size_t len)
{
	size_t most = 0, one;

	for (size_t i = 0; i < n; i++) {
		one = data[0] == (unsigned char)secrets[i].at[0] ? secret_at(secrets[i], data, len)
								 : 0;
		most = one > most ? one : most;
	}
	return most;
}

/*
 * Byte by byte, and stars only where no secret can begin any more: secrets may overlap, and the rest
 * of one that is covered already may begin another.
 */
static void cover(struct net_mask *m, const struct http_span *secrets, size_t n, struct buf *in,
		  size_t clear)
{
	size_t end = m->covered, frame = m->frame, more;

	for (size_t at = 0; at < clear; at++) {
		more = longest_at(secrets, n, in->data + at, in->len - at);
		if (more > 0) {
			end = at + more > end ? at + more : end;
			frame = at;
		} else if (at < end && at >= frame) {
			frame = at + chunk_break(in->data + at, in->len - at);
		}
		if (at < end && at >= frame)
			in->data[at] = '*';
	}
	m->covered = end > clear ? end - clear : 0;
	m->frame = frame > clear ? frame - clear : 0;
}

size_t net_secrets_mask(const struct net_secrets *s, const struct allow_target *target,
			uint16_t port, struct net_mask *m, struct buf *in, bool eof)
{
	struct http_span secrets[NET_SECRETS_MAX];
	size_t n = 0, held = 0, clear;

	for (size_t i = 0; i < s->n && n < NET_SECRETS_MAX; i++) {
		if (!is_for(&s->list[i], target, port))
			continue;
		secrets[n] = s->list[i].value;
		if (NET_SECRET_REACH(secrets[n].len) - 1 > held)
			held = NET_SECRET_REACH(secrets[n].len) - 1;
		n++;
	}
	clear = eof ? in->len : in->len > held ? in->len - held : 0;
	cover(m, secrets, n, in, clear);
	return clear;
}
