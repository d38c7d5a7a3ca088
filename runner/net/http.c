#include "runner/net/http.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/attr.h"
#include "base/vec.h"

#define HEADERS_MAX 128

static bool is_token_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool span_is(struct http_span s, const char *word)
{
	return s.len == strlen(word) && strncasecmp(s.at, word, s.len) == 0;
}

static bool span_number(struct http_span s, uint64_t most, uint64_t *ret)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s.len; i++) {
		if (!is_digit(s.at[i]))
			return false;
		n = n * 10 + (uint64_t)(s.at[i] - '0');
		if (n > most)
			return false;
	}
	*ret = n;
	return s.len > 0;
}

/* --- the head ----------------------------------------------------------------------------- */

/* The line at `at` without its end: 1, 0 if it has no end yet, -EBADMSG for a byte no line has. */
static int next_line(const char *data, size_t len, size_t *at, struct http_span *ret)
{
	for (size_t i = *at; i < len; i++) {
		const unsigned char c = (unsigned char)data[i];

		if (c == '\r' && i + 1 == len)
			return 0;
		if (c == '\r' && data[i + 1] == '\n') {
			*ret = (struct http_span){ data + *at, i - *at };
			*at = i + 2;
			return 1;
		}
		if ((c < 32 && c != '\t') || c == 127)
			return -EBADMSG;
	}
	return 0;
}

static int parse_request_line(struct http_span line, struct http_head *head)
{
	size_t at = 0;

	while (at < line.len && is_token_byte(line.at[at]))
		at++;
	if (at == 0 || at == line.len || line.at[at] != ' ')
		return -EBADMSG;
	head->method = (struct http_span){ line.at, at };
	head->target.at = line.at + ++at;
	/* What follows a '#' is no part of a request: some servers read it, others do not. */
	while (at < line.len && line.at[at] > 32 && line.at[at] < 127 && line.at[at] != '#')
		at++;
	head->target.len = (size_t)(line.at + at - head->target.at);
	if (head->target.len == 0 || at == line.len || line.at[at] != ' ')
		return -EBADMSG;
	at++;
	head->version = (struct http_span){ line.at + at, line.len - at };
	if (head->version.len != 8 || memcmp(head->version.at, "HTTP/1.", 7) != 0)
		return -EBADMSG;
	return line.at[at + 7] == '0' || line.at[at + 7] == '1' ? 0 : -EBADMSG;
}

static int split_header(struct http_span line, struct http_span *name, struct http_span *value)
{
	size_t at = 0, end = line.len;

	while (at < line.len && is_token_byte(line.at[at]))
		at++;
	if (at == 0 || at == line.len || line.at[at] != ':')
		return -EBADMSG;
	*name = (struct http_span){ line.at, at++ };
	while (at < end && (line.at[at] == ' ' || line.at[at] == '\t'))
		at++;
	while (end > at && (line.at[end - 1] == ' ' || line.at[end - 1] == '\t'))
		end--;
	*value = (struct http_span){ line.at + at, end - at };
	return 0;
}

/* Much that reads headers has no '-' in names, and makes both of them one. */
static bool reads_as(struct http_span name, const char *word)
{
	if (name.len != strlen(word))
		return false;
	for (size_t i = 0; i < name.len; i++)
		if (name.at[i] == '_' ? word[i] != '-' : strncasecmp(name.at + i, word + i, 1) != 0)
			return false;
	return true;
}

/* Headers that some frameworks believe more than the first line. */
static bool is_override(struct http_span name)
{
	static const char *const names[] = { "x-http-method-override", "x-http-method",
					     "x-method-override", "x-original-url",
					     "x-rewrite-url" };

	return VEC_HAS(it, names, ARRAY_LEN(names), reads_as(name, *it));
}

static int take_header(struct http_span name, struct http_span value, struct http_head *head)
{
	if (span_is(name, "host")) {
		if (head->host.len > 0 || value.len == 0)
			return -EBADMSG;
		head->host = value;
	} else if (span_is(name, "content-length")) {
		if (head->framing != HTTP_NO_BODY ||
		    !span_number(value, INT64_MAX / 16, &head->length))
			return -EBADMSG;
		head->framing = HTTP_LENGTH;
	} else if (span_is(name, "transfer-encoding")) {
		/* Some servers of HTTP/1.0 read it, others go by the length that is not there. */
		if (head->framing != HTTP_NO_BODY || !span_is(value, "chunked") ||
		    span_is(head->version, "HTTP/1.0"))
			return -EBADMSG;
		head->framing = HTTP_CHUNKED;
	} else if (span_is(name, "upgrade")) {
		/* Asked for two of them a server has the choice. */
		head->upgrade = !head->asks_upgrade && span_is(value, "websocket");
		head->asks_upgrade = true;
	} else if (is_override(name)) {
		head->overrides = true;
	}
	return 0;
}

static int parse_lines(const char *data, size_t len, struct http_head *head)
{
	struct http_span line, name, value;
	size_t at = 0;
	int r = next_line(data, len, &at, &line);

	if (r > 0 && parse_request_line(line, head) < 0)
		return -EBADMSG;
	for (unsigned i = 0; r > 0; i++) {
		r = next_line(data, len, &at, &line);
		if (r > 0 && line.len == 0) {
			head->len = at;
			return 1;
		}
		if (r > 0 && (i == HEADERS_MAX || split_header(line, &name, &value) < 0 ||
			      take_header(name, value, head) < 0))
			return -EBADMSG;
	}
	return r;
}

int http_parse_head(const char *data, size_t len, struct http_head *ret)
{
	struct http_head head = { 0 };
	int r = parse_lines(data, len < HTTP_HEAD_MAX ? len : HTTP_HEAD_MAX, &head);

	if (r == 0 && len >= HTTP_HEAD_MAX)
		return -EBADMSG;
	if (r > 0)
		*ret = head;
	return r;
}

/* Whether "HTTP/" stands in the first line, as far as that is there. */
static bool says_http(const char *data, size_t len)
{
	static const char word[] = "HTTP/";

	while (len > 0 && strchr("\r\n \t", data[0]) && data[0] != '\0') {
		data++;
		len--;
	}
	for (size_t i = 0; i + 5 <= len && data[i] != '\n'; i++)
		if (strncasecmp(data + i, word, 5) == 0)
			return true;
	return false;
}

enum http_first http_sniff(const char *data, size_t len)
{
	struct http_head head;
	int r = http_parse_head(data, len, &head);

	if (r >= 0)
		return r > 0 ? HTTP_REQUEST : HTTP_MAYBE;
	return says_http(data, len) ? HTTP_NO_REQUEST : HTTP_OTHER;
}

/* --- addresses ---------------------------------------------------------------------------- */

/* The last byte of a kind, or NULL. */
static const char *last_of(struct http_span span, char byte)
{
	for (size_t i = span.len; i > 0; i--)
		if (span.at[i - 1] == byte)
			return span.at + i - 1;
	return NULL;
}

bool http_split_authority(struct http_span authority, uint16_t default_port,
			  struct http_span *ret_host, uint16_t *ret_port)
{
	const char *colon = last_of(authority, ':');
	const char *bracket = last_of(authority, ']');
	struct http_span host = authority, digits;
	uint64_t port = default_port;

	if (colon && (!bracket || colon > bracket)) {
		host.len = (size_t)(colon - authority.at);
		digits = (struct http_span){ colon + 1, authority.len - host.len - 1 };
		if (!span_number(digits, 65535, &port))
			return false;
	}
	if (host.len > 2 && host.at[0] == '[' && host.at[host.len - 1] == ']')
		host = (struct http_span){ host.at + 1, host.len - 2 };
	if (host.len == 0 || port == 0)
		return false;
	*ret_host = host;
	*ret_port = (uint16_t)port;
	return true;
}

bool http_split_uri(struct http_span uri, struct http_span *ret_authority,
		    struct http_span *ret_path)
{
	size_t at = strlen("http://"), end;

	if (uri.len <= at || strncasecmp(uri.at, "http://", at) != 0)
		return false;
	for (end = at; end < uri.len && !strchr("/?#", uri.at[end]); end++)
		;
	*ret_authority = (struct http_span){ uri.at + at, end - at };
	*ret_path = (struct http_span){ uri.at + end, uri.len - end };
	return end > at && (end == uri.len || uri.at[end] != '#');
}

/* --- the head as a server gets it --------------------------------------------------------- */

int http_append_closing(struct buf *out, const char *data, const struct http_head *head)
{
	static const char *const names[] = { "connection", "keep-alive", "proxy-connection" };
	struct http_span line, name;
	size_t at = 0;
	bool dropped;
	int r = 0;

	while (r == 0 && http_next_header(data, head, &at, &line, &name)) {
		dropped = false;
		for (size_t i = 0; i < ARRAY_LEN(names); i++)
			dropped |= name.len == strlen(names[i]) &&
				   strncasecmp(name.at, names[i], name.len) == 0;
		if (!dropped)
			r = http_append_line(out, line);
	}
	return r < 0 ? r : buf_append_str(out, "Connection: close\r\n\r\n");
}

int http_append_line(struct buf *out, struct http_span line)
{
	int r = buf_append(out, line.at, line.len);

	return r == 0 ? buf_append_str(out, "\r\n") : r;
}

bool http_next_header(const char *data, const struct http_head *head, size_t *at,
		      struct http_span *ret_line, struct http_span *ret_name)
{
	const bool first = *at == 0;
	struct http_span value;

	if (next_line(data, head->len, at, ret_line) <= 0 || ret_line->len == 0)
		return false;
	*ret_name = (struct http_span){ 0 };
	return first || split_header(*ret_line, ret_name, &value) == 0;
}

static bool is_ours(struct http_span name)
{
	return span_is(name, "host") || span_is(name, "proxy-connection") ||
	       span_is(name, "proxy-authorization") || span_is(name, "upgrade") ||
	       span_is(name, "http2-settings");
}

int http_rewrite(const char *data, const struct http_head *head, struct http_span authority,
		 struct http_span path, struct buf *out)
{
	const bool rooted = path.len > 0 && path.at[0] == '/';
	struct http_span line, name, value;
	size_t at = 0;
	int r =
	    buf_printf(out, "%.*s %s%.*s %.*s\r\nHost: %.*s\r\n", (int)head->method.len,
		       head->method.at, rooted ? "" : "/", (int)path.len, path.at,
		       (int)head->version.len, head->version.at, (int)authority.len, authority.at);

	if (r == 0 && next_line(data, head->len, &at, &line) <= 0)
		r = -EBADMSG;
	while (r == 0) {
		if (next_line(data, head->len, &at, &line) <= 0)
			return -EBADMSG;
		if (line.len == 0)
			return http_append_line(out, line);
		r = split_header(line, &name, &value);
		if (r == 0 && !is_ours(name))
			r = http_append_line(out, line);
	}
	return r;
}

/* --- bodies ------------------------------------------------------------------------------- */

enum chunk_state {
	CHUNK_SIZE,
	CHUNK_EXTENSION,
	CHUNK_SIZE_LF,
	CHUNK_DATA,
	CHUNK_DATA_CR,
	CHUNK_DATA_LF,
	TRAILER_START, /* at the beginning of a line */
	TRAILER_LINE,
	TRAILER_LF,
	TRAILER_END_LF,
};

#define SIZE_DIGITS_MAX 15
#define LINE_MAX_BYTES  4096

void http_body_init(struct http_body *b, const struct http_head *head)
{
	*b = (struct http_body){ .framing = head->framing, .left = head->length };
	b->done =
	    head->framing == HTTP_NO_BODY || (head->framing == HTTP_LENGTH && head->length == 0);
}

static int hex_value(char c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static int take_size_byte(struct http_body *b, char c)
{
	if (hex_value(c) >= 0) {
		b->left = b->left << 4 | (uint64_t)hex_value(c);
		return ++b->digits <= SIZE_DIGITS_MAX ? 0 : -EBADMSG;
	}
	if (b->digits == 0 || (c != ';' && c != '\r'))
		return -EBADMSG;
	b->state = c == ';' ? CHUNK_EXTENSION : CHUNK_SIZE_LF;
	b->digits = 0;
	return 0;
}

/* A byte of a line that is passed on without being read. */
static int take_line_byte(struct http_body *b, char c, int next)
{
	if (c == '\r') {
		b->state = next;
		return 0;
	}
	if (((unsigned char)c < 32 && c != '\t') || c == 127 || ++b->digits > LINE_MAX_BYTES)
		return -EBADMSG;
	return 0;
}

static int expect(struct http_body *b, char c, char want, int next)
{
	b->state = next;
	b->digits = 0;
	return c == want ? 0 : -EBADMSG;
}

static int take_chunk_byte(struct http_body *b, char c)
{
	switch ((enum chunk_state)b->state) {
	case CHUNK_SIZE:
		return take_size_byte(b, c);
	case CHUNK_EXTENSION:
		return take_line_byte(b, c, CHUNK_SIZE_LF);
	case CHUNK_SIZE_LF:
		return expect(b, c, '\n', b->left > 0 ? CHUNK_DATA : TRAILER_START);
	case CHUNK_DATA:
		if (--b->left == 0)
			b->state = CHUNK_DATA_CR;
		return 0;
	case CHUNK_DATA_CR:
		return expect(b, c, '\r', CHUNK_DATA_LF);
	case CHUNK_DATA_LF:
		return expect(b, c, '\n', CHUNK_SIZE);
	case TRAILER_START:
		b->state = TRAILER_LINE;
		return take_line_byte(b, c, TRAILER_END_LF);
	case TRAILER_LINE:
		return take_line_byte(b, c, TRAILER_LF);
	case TRAILER_LF:
		return expect(b, c, '\n', TRAILER_START);
	case TRAILER_END_LF:
		b->done = true;
		return expect(b, c, '\n', TRAILER_START);
	}
	return -EBADMSG;
}

ssize_t http_body_take(struct http_body *b, const char *data, size_t len)
{
	size_t n = 0, run;

	while (n < len && !b->done) {
		if (b->framing == HTTP_LENGTH || (b->state == CHUNK_DATA && b->left > 1)) {
			/* The last byte of a chunk changes the state, so it goes alone. */
			run = b->framing == HTTP_LENGTH ? b->left : b->left - 1;
			run = run < len - n ? run : len - n;
			b->left -= run;
			n += run;
			b->done = b->framing == HTTP_LENGTH && b->left == 0;
		} else if (take_chunk_byte(b, data[n++]) < 0) {
			return -EBADMSG;
		}
	}
	return (ssize_t)n;
}
