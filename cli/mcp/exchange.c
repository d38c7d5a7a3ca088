#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "cli/mcp/http-i.h"
#include "cli/mcp/progress.h"

#define ENDPOINT "/mcp"

#define STREAM_AFTER_MS 2000  /* an answer that takes longer comes as a stream */
#define SIGN_OF_LIFE_MS 15000 /* on a stream that has nothing to say */
#define BLOCK_SIZE      16384

/* --- answers of HTTP -------------------------------------------------------------------- */

static bool add_headers(const struct exchange *x, struct MHD_Response *response, const char *type)
{
	const struct microhttpd *lib = &x->http->lib;
	bool ok = true;

	if (type)
		ok = lib->add_response_header(response, "Content-Type", type) == MHD_YES;
	if (x->status == 401)
		ok = ok && lib->add_response_header(response, "WWW-Authenticate", "Bearer");
	if (x->status == 405)
		ok = ok && lib->add_response_header(response, "Allow", "POST");
	if (x->is_new && x->client)
		ok = ok && lib->add_response_header(response, "Mcp-Session-Id", x->client->id);
	return ok && lib->add_response_header(response, "Cache-Control", "no-store") == MHD_YES;
}

/* Queue the response, which it takes.  The connection is closed if that cannot be done. */
static enum MHD_Result queue(const struct exchange *x, struct MHD_Response *response,
			     const char *type)
{
	const struct microhttpd *lib = &x->http->lib;
	enum MHD_Result result = MHD_NO;

	if (!response)
		return MHD_NO;
	if (add_headers(x, response, type))
		result = lib->queue_response(x->connection, x->status, response);
	lib->destroy_response(response);
	return result;
}

static enum MHD_Result queue_body(struct exchange *x, struct buf *body)
{
	char nothing[1];

	return queue(
	    x,
	    x->http->lib.create_response_from_buffer(
		body->len, body->len > 0 ? (void *)body->data : nothing, MHD_RESPMEM_MUST_COPY),
	    body->len > 0 ? "application/json" : NULL);
}

static enum MHD_Result queue_refusal(struct exchange *x)
{
	CLEANUP(rpc_answer_done) struct rpc_answer a = { 0 };
	CLEANUP(buf_done) struct buf body = BUF_INIT;

	rpc_error(&a, (struct json){ .doc = &a.doc }, RPC_INVALID_REQUEST, x->why);
	return rpc_append(&a, &body, NULL) < 0 ? MHD_NO : queue_body(x, &body);
}

/* --- streams ---------------------------------------------------------------------------- */

static void suspend(struct exchange *x)
{
	x->suspended = true;
	x->http->lib.suspend_connection(x->connection);
}

static void resume(struct exchange *x)
{
	if (!x->suspended)
		return;
	x->suspended = false;
	x->http->lib.resume_connection(x->connection);
}

/* What libmicrohttpd asks for the next bytes of a stream. */
static ssize_t read_stream(void *exchange, uint64_t pos, char *to, size_t max)
{
	struct exchange *x = exchange;
	size_t n = x->wire.len - x->sent;

	if (x->gone)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	if (n == 0 && x->ended)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (n == 0) {
		suspend(x);
		return 0;
	}
	n = n < max ? n : max;
	memcpy(to, x->wire.data + x->sent, n);
	x->sent += n;
	if (x->sent == x->wire.len) {
		buf_reset(&x->wire);
		x->sent = 0;
	}
	return (ssize_t)n;
}

static enum MHD_Result queue_stream(struct exchange *x)
{
	struct MHD_Response *response = x->http->lib.create_response_from_callback(
	    MHD_SIZE_UNKNOWN, BLOCK_SIZE, read_stream, x, NULL);

	x->status = 200;
	if (response &&
	    x->http->lib.add_response_header(response, "X-Accel-Buffering", "no") != MHD_YES) {
		x->http->lib.destroy_response(response);
		return MHD_NO;
	}
	return queue(x, response, "text/event-stream");
}

static int frame_line(struct buf *wire, const char *line, size_t len)
{
	if (buf_append_str(wire, "event: message\ndata: ") < 0 || buf_append(wire, line, len) < 0)
		return -ENOMEM;
	return buf_append_str(wire, "\n\n");
}

/* Each line becomes an event. */
static int frame_lines(struct exchange *x, struct buf *lines)
{
	const char *at = (const char *)lines->data, *end = lines->len > 0 ? at + lines->len : at;
	int r = 0;

	while (r >= 0 && at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		const size_t len = (size_t)((stop ? stop : end) - at);

		r = frame_line(&x->wire, at, len);
		at += len + 1;
		x->since_ms = clock_ms();
	}
	buf_done(lines);
	return r;
}

static bool owes(struct exchange *x)
{
	struct session *s = http_request_session(x);

	if (x->ended || !s)
		return false;
	return x->method == METHOD_GET || session_owes(s, &x->lines);
}

static void step_stream(struct exchange *x)
{
	const uint64_t now = clock_ms();
	int r = frame_lines(x, &x->lines);

	x->ended = !owes(x);
	if (r >= 0 && x->method == METHOD_GET && x->client)
		r = frame_lines(x, &x->client->aside);
	if (r >= 0 && !x->ended && x->since_ms + SIGN_OF_LIFE_MS <= now) {
		r = buf_append_str(&x->wire, ":\n\n");
		x->since_ms = now;
	}
	/* One that is not read for too long, or that there is no memory for. */
	if (r < 0 || x->wire.len - x->sent > x->http->how->max_unread)
		x->gone = true;
}

/* --- one answer ------------------------------------------------------------------------- */

/* The code of the error that the line is; 0: it is none. */
static int error_code(const struct buf *line)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json top, error;

	if (json_parse(&doc, (const char *)line->data, line->len - 1, &top, NULL) < 0 ||
	    json_kind(top, "error") != JSON_OBJECT)
		return 0;
	error = json_get_object(top, "error");
	return json_kind(error, "code") == JSON_INT ? (int)json_get_int(error, "code") : 0;
}

static unsigned status_of(const struct exchange *x)
{
	int code;

	if (x->status != 0)
		return x->status;
	/* The older revisions have errors travel as any answer does. */
	code = x->has_own ? error_code(&x->lines) : 0;
	if (code == RPC_NO_METHOD)
		return 404;
	return code == RPC_NO_CAPABILITY ? 400 : 200;
}

/* The last line alone: what came before it was for a stream, which this client cannot read. */
static void keep_last_line(struct buf *lines)
{
	size_t at = lines->len - 1;

	while (at > 0 && lines->data[at - 1] != '\n')
		at--;
	memmove(lines->data, lines->data + at, lines->len - at);
	lines->len -= at;
}

static bool is_one_line(const struct buf *lines)
{
	return lines->len > 0 && (const unsigned char *)memchr(lines->data, '\n', lines->len) ==
				     lines->data + lines->len - 1;
}

/* Should the answer begin to be a stream? */
static bool wants_stream(struct exchange *x, bool waits)
{
	if (x->streams || !x->takes_streams)
		return x->streams;
	if (x->lines.len > 0)
		return waits || !is_one_line(&x->lines);
	return waits && x->since_ms + STREAM_AFTER_MS <= clock_ms();
}

/* Queue what there is to answer with, or leave the connection alone until there is. */
static enum MHD_Result answer(struct exchange *x)
{
	const bool waits = owes(x);

	if (x->gone)
		return MHD_NO;
	if (x->why)
		return queue_refusal(x);
	if (wants_stream(x, waits)) {
		x->streams = true;
		step_stream(x);
		return queue_stream(x);
	}
	if (waits) {
		suspend(x);
		return MHD_YES;
	}
	x->ended = true;
	if (x->lines.len > 0) {
		keep_last_line(&x->lines);
		x->status = status_of(x);
	} else if (x->status == 0) {
		exchange_refuse(x, 500, "the request was not answered");
		return queue_refusal(x);
	}
	return queue_body(x, &x->lines);
}

void exchange_step(struct exchange *x)
{
	if (!x->taken)
		return;
	if (x->streams)
		step_stream(x);
	if (!x->suspended)
		return;
	if (x->gone || x->ended || x->wire.len > x->sent || (!x->streams && !owes(x)) ||
	    (!x->streams && wants_stream(x, true)))
		resume(x);
}

int exchange_timeout(const struct exchange *x)
{
	const uint64_t now = clock_ms();
	const uint64_t due = x->since_ms + (x->streams ? SIGN_OF_LIFE_MS : STREAM_AFTER_MS);

	if (!x->suspended || (!x->streams && !x->takes_streams))
		return -1;
	return due <= now ? 0 : (int)(due - now);
}

void exchange_look(struct exchange *x)
{
	char byte;
	const ssize_t n = recv(x->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	if (n > 0)
		x->talks = true;
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		x->gone = true;
}

/* --- requests --------------------------------------------------------------------------- */

static const char *header(struct exchange *x, const char *name)
{
	return x->http->lib.lookup_connection_value(x->connection, MHD_HEADER_KIND, name);
}

static bool has_word(const char *list, const char *word)
{
	return list && strcasestr(list, word) != NULL;
}

static bool choose_method(struct exchange *x, const char *method)
{
	static const char *const names[] = {
		[METHOD_POST] = "POST", [METHOD_GET] = "GET", [METHOD_DELETE] = "DELETE"
	};

	for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
		if (strcmp(method, names[i]) != 0)
			continue;
		x->method = i;
		return true;
	}
	return false;
}

static void judge_post(struct exchange *x)
{
	const char *type = header(x, "Content-Type"), *accept = header(x, "Accept");
	const char *length = header(x, "Content-Length");

	x->takes_streams =
	    !accept || has_word(accept, "text/event-stream") || has_word(accept, "*/*");
	if (!type || strncasecmp(type, "application/json", 16) != 0)
		exchange_refuse(x, 415, "the header 'Content-Type' must be application/json");
	else if (!x->takes_streams && !has_word(accept, "application/json"))
		exchange_refuse(
		    x, 406,
		    "the header 'Accept' must allow application/json and text/event-stream");
	else if (length && strtoull(length, NULL, 10) > x->http->how->max_body)
		exchange_refuse(x, 413, "the request is too long");
}

/* Everything that can be judged before its body is read. */
static void judge(struct exchange *x, const char *url, const char *method)
{
	const struct door_request who = { .host = header(x, "Host"),
					  .origin = header(x, "Origin"),
					  .authorization = header(x, "Authorization") };
	const char *why;
	const unsigned status = door_check(&x->http->door, &who, &why);

	if (status != 0)
		exchange_refuse(x, status, why);
	else if (strcmp(url, ENDPOINT) != 0)
		exchange_refuse(x, 404, "there is nothing but " ENDPOINT);
	else if (!choose_method(x, method))
		exchange_refuse(x, 405, "use POST");
	else if (x->http->stopping)
		exchange_refuse(x, 503, "the server is ending");
	else if (x->method == METHOD_POST)
		judge_post(x);
	else
		x->takes_streams = has_word(header(x, "Accept"), "text/event-stream");
	x->mirror = (struct mirror){ .version = header(x, "MCP-Protocol-Version"),
				     .method = header(x, "Mcp-Method"),
				     .name = header(x, "Mcp-Name") };
	x->session_id = header(x, "Mcp-Session-Id");
}

static struct exchange *exchange_new(struct http *h, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
	    h->lib.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct exchange *x = info ? calloc(1, sizeof(*x)) : NULL;

	if (!x)
		return NULL;
	x->http = h;
	x->connection = connection;
	x->fd = info->connect_fd;
	x->since_ms = clock_ms();
	x->next = h->exchanges;
	h->exchanges = x;
	return x;
}

static enum MHD_Result take_piece(struct exchange *x, const char *data, size_t *size)
{
	struct http *h = x->http;
	const size_t n = *size;

	*size = 0;
	if (x->why) /* of one that is refused nothing is kept, and it gets to know that */
		return MHD_YES;
	if (x->body.len + n > h->how->max_body || h->body_bytes + n > h->how->max_bodies)
		exchange_refuse(x, 413, "the request is too long, or there are too many at once");
	else if (buf_append(&x->body, data, n) < 0)
		exchange_refuse(x, 503, "out of memory");
	else
		h->body_bytes += n;
	return MHD_YES;
}

enum MHD_Result exchange_serve(void *http, struct MHD_Connection *connection, const char *url,
			       const char *method, const char *version, const char *data,
			       size_t *size, void **exchange)
{
	struct exchange *x = *exchange;

	if (!x) {
		x = exchange_new(http, connection);
		if (!x)
			return MHD_NO;
		*exchange = x;
		judge(x, url, method);
		/* Of one that is too long nothing is waited for. */
		return x->status == 413 ? queue_refusal(x) : MHD_YES;
	}
	if (*size > 0)
		return take_piece(x, data, size);
	if (!x->taken && !x->why)
		http_request_take(x);
	return answer(x);
}

void exchange_over(void *http, struct MHD_Connection *connection, void **exchange,
		   enum MHD_RequestTerminationCode why)
{
	struct http *h = http;
	struct exchange *x = *exchange, **at = &h->exchanges;

	if (!x)
		return;
	while (*at != x)
		at = &(*at)->next;
	*at = x->next;
	if (x->has_own) {
		session_cancel_all(&x->own);
		session_done(&x->own);
	}
	if (x->client && x->client->listener == x)
		x->client->listener = NULL;
	if (x->client)
		session_forget(&x->client->session, &x->lines);
	h->body_bytes -= x->body.len;
	buf_done(&x->body);
	buf_done(&x->lines);
	buf_done(&x->wire);
	free(x);
	*exchange = NULL;
}
