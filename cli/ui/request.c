#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/sys.h"
#include "base/via.h"
#include "cli/ui/page.h"
#include "cli/ui/route.h"
#include "cli/ui/serve-i.h"

#define QUESTIONS    "/api/"
#define STREAM       "events"
#define METRICS      "/metrics"
#define BODY_MAX     ((size_t)1 << 20)
#define CHILDREN_MAX 16
#define UNREAD_MAX   ((size_t)4 << 20) /* bytes of a stream that a client does not read */
#define BLOCK_SIZE   16384
#define ANSWER_MAX   ((size_t)32 << 20)

/*
 * No script but the page's own (the page names it by its hash), nothing from elsewhere, no frame
 * around it.
 */
static const char *const page_headers[][2] = {
	{ "Content-Type", "text/html; charset=utf-8" },
	{ "Content-Encoding", "gzip" },
	{ "Content-Security-Policy", "frame-ancestors 'none'" },
	{ "X-Frame-Options", "DENY" },
	{ NULL, NULL },
};

static const char *const answer_headers[][2] = {
	{ "Content-Type", "application/json" },
	{ NULL, NULL },
};

static const char *const metrics_headers[][2] = {
	{ "Content-Type", "text/plain; version=0.0.4; charset=utf-8" },
	{ NULL, NULL },
};

static const char *const stream_headers[][2] = {
	{ "Content-Type", "application/x-ndjson" },
	{ NULL, NULL },
};

static void refuse(struct request *q, unsigned status, const char *why)
{
	q->status = status;
	err_set(&q->why, -EPERM, "%s", why);
}

/* --- answers -------------------------------------------------------------------------------- */

static bool add_headers(const struct request *q, struct MHD_Response *response,
			const char *const headers[][2])
{
	static const char *const all[][2] = {
		{ "Cache-Control", "no-store" },
		{ "X-Content-Type-Options", "nosniff" },
		{ "Referrer-Policy", "no-referrer" },
		{ "Cross-Origin-Resource-Policy", "same-origin" },
	};
	const struct microhttpd *lib = &q->server->lib;
	bool ok = true;

	for (size_t i = 0; ok && i < ARRAY_LEN(all); i++)
		ok = lib->add_response_header(response, all[i][0], all[i][1]) == MHD_YES;
	for (size_t i = 0; ok && headers[i][0]; i++)
		ok = lib->add_response_header(response, headers[i][0], headers[i][1]) == MHD_YES;
	return ok;
}

/* Queue the response, which it takes.  The connection is closed if that cannot be done. */
static enum MHD_Result queue(const struct request *q, struct MHD_Response *response,
			     const char *const headers[][2])
{
	const struct microhttpd *lib = &q->server->lib;
	enum MHD_Result result = MHD_NO;

	if (!response)
		return MHD_NO;
	if (add_headers(q, response, headers))
		result = lib->queue_response(q->connection, q->status, response);
	lib->destroy_response(response);
	return result;
}

static enum MHD_Result queue_page(struct request *q)
{
	/* libmicrohttpd only reads it, but says so with a cast of its own. */
	void *page = (void *)(uintptr_t)ui_page;

	q->status = 200;
	return queue(
	    q,
	    q->server->lib.create_response_from_buffer(ui_page_len, page, MHD_RESPMEM_PERSISTENT),
	    page_headers);
}

static enum MHD_Result queue_buffer(struct request *q, const struct buf *body,
				    const char *const headers[][2])
{
	char nothing[1];

	return queue(
	    q,
	    q->server->lib.create_response_from_buffer(
		body->len, body->len > 0 ? (void *)body->data : nothing, MHD_RESPMEM_MUST_COPY),
	    headers);
}

/* In the form of the failures of a command. */
static enum MHD_Result queue_refusal(struct request *q)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	CLEANUP(buf_done) struct buf body = BUF_INIT;
	struct json j = json_begin(&doc);

	json_set_text(j, "schema", "snap.error/1");
	j = json_set_object(j, "error");
	json_set_text(j, "code", q->status == 404 ? "E_NOT_FOUND" : "E_REFUSED");
	json_set_text(j, "message", q->why.msg);
	return json_append(&doc, &body, NULL) < 0 ? MHD_NO : queue_buffer(q, &body, answer_headers);
}

/* The page tells a failure by `error` in the object; what died printed none. */
static enum MHD_Result queue_answer(struct request *q)
{
	if (q->child.out.len > ANSWER_MAX) {
		refuse(q, 413, "the answer is too long for the page: ask on the command line");
		return queue_refusal(q);
	}
	/* Half of the numbers would be wrong ones. */
	if (q->is_metrics && q->child.status != 0) {
		refuse(q, 503, "the numbers cannot be had: 'snap metrics' says why");
		return queue_refusal(q);
	}
	if (q->child.status < 0 || q->child.out.len == 0) {
		refuse(q, 500, "the command ended without an answer");
		return queue_refusal(q);
	}
	q->status = 200;
	return queue_buffer(q, &q->child.out, q->is_metrics ? metrics_headers : answer_headers);
}

/* --- waiting -------------------------------------------------------------------------------- */

static void suspend(struct request *q)
{
	q->suspended = true;
	q->server->lib.suspend_connection(q->connection);
}

static void resume(struct request *q)
{
	if (!q->suspended)
		return;
	q->suspended = false;
	q->server->lib.resume_connection(q->connection);
}

void request_step(struct request *q)
{
	if (q->has_child && !q->ended)
		q->ended = child_read(&q->child);
	if (q->is_stream && q->child.out.len - q->sent > UNREAD_MAX)
		q->gone = true;
	if (!q->is_stream && !q->ended && !q->changes && q->child.out.len > ANSWER_MAX) {
		child_kill(&q->child);
		q->ended = true;
	}
	if (q->gone || q->ended || q->server->stopping ||
	    (q->is_stream && q->child.out.len > q->sent))
		resume(q);
}

/* --- streams -------------------------------------------------------------------------------- */

/* What libmicrohttpd asks for the next bytes of a stream. */
static ssize_t read_stream(void *request, uint64_t pos, char *to, size_t max)
{
	struct request *q = request;
	size_t n = q->child.out.len - q->sent;

	if (q->gone)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	if (n == 0 && (q->ended || q->server->stopping))
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (n == 0) {
		suspend(q);
		return 0;
	}
	n = n < max ? n : max;
	memcpy(to, q->child.out.data + q->sent, n);
	q->sent += n;
	if (q->sent == q->child.out.len) {
		buf_reset(&q->child.out);
		q->sent = 0;
	}
	return (ssize_t)n;
}

static enum MHD_Result queue_stream(struct request *q)
{
	q->status = 200;
	return queue(q,
		     q->server->lib.create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_SIZE,
								  read_stream, q, NULL),
		     stream_headers);
}

/* --- children ------------------------------------------------------------------------------- */

static int run_line(FILE *out, void *ctx)
{
	const struct request *q = ctx;
	const struct ui_options *o = q->server->options;

	if (setenv(VIA_VARIABLE, "ui", 1) < 0)
		return 1;
	return o->run_line((int)q->line.n, q->line.list, out, o->ctx);
}

static int print_metrics(FILE *out, void *ctx)
{
	const struct request *q = ctx;
	const struct ui_options *o = q->server->options;

	return o->print_metrics(out, o->ctx);
}

/* First the number of the first event that follows: the page then shows what it has. */
static int follow(FILE *out, void *ctx)
{
	const struct request *q = ctx;
	const struct ui_options *o = q->server->options;
	int never[2] = { -1, -1 };

	if (pipe(never) < 0)
		return 1;
	sys_end_with(q->server->pid);
	fprintf(out, "{\"since\": %llu}\n", (unsigned long long)q->since);
	if (fflush(out) == EOF)
		return 1;
	o->follow(q->since, never[0], out, o->ctx);
	return 0;
}

static void start_child(struct request *q)
{
	struct server *s = q->server;
	struct err err = { 0 };
	int r;

	if (s->n_children >= CHILDREN_MAX) {
		refuse(q, 503, "there are too many questions at once");
		return;
	}
	if (q->is_stream)
		q->since = s->options->newest(s->options->ctx);
	r = child_start(&q->child,
			q->is_stream    ? follow
			: q->is_metrics ? print_metrics
					: run_line,
			q, &err);
	if (r < 0) {
		refuse(q, 503, err.msg);
		return;
	}
	q->has_child = true;
	s->n_children++;
}

/* The body is complete. */
static void take(struct request *q)
{
	const struct ui_options *o = q->server->options;
	int r;

	if (!q->is_stream && !q->is_metrics) {
		r = route_find(q->question, (const char *)q->body.data, q->body.len, o->read_only,
			       &q->line, &q->changes, &q->why);
		if (r < 0) {
			q->status = r == -ENOENT ? 404 : r == -EPERM ? 403 : 400;
			return;
		}
	}
	start_child(q);
}

/* --- requests ------------------------------------------------------------------------------- */

static const char *header(struct request *q, const char *name)
{
	return q->server->lib.lookup_connection_value(q->connection, MHD_HEADER_KIND, name);
}

/* The page itself is no secret; the token in its address never reaches the server. */
static void judge_page(struct request *q, const char *method)
{
	const struct door open = { .token = NULL };
	const struct door_request who = { .host = header(q, "Host") };
	const char *why;
	const unsigned status = door_check(&open, &who, &why);

	q->is_page = true;
	if (status != 0)
		refuse(q, status, why);
	else if (strcmp(method, "GET") != 0)
		refuse(q, 405, "use GET");
}

static void judge_question(struct request *q, const char *name, const char *method)
{
	const struct door_request who = { .host = header(q, "Host"),
					  .origin = header(q, "Origin"),
					  .authorization = header(q, "Authorization") };
	const char *type = header(q, "Content-Type"), *why;
	const unsigned status = door_check(&q->server->door, &who, &why);

	if (status != 0)
		refuse(q, status, why);
	else if (strcmp(method, "POST") != 0)
		refuse(q, 405, "use POST");
	else if (!type || strncasecmp(type, "application/json", 16) != 0)
		refuse(q, 415, "the header 'Content-Type' must be application/json");
	else if (q->server->stopping)
		refuse(q, 503, "the server is ending");
	else if (strlen(name) >= sizeof(q->question))
		refuse(q, 404, "there is no such question");
	else
		memcpy(q->question, name, strlen(name) + 1);
	q->is_stream = strcmp(q->question, STREAM) == 0;
}

static void judge_metrics(struct request *q, const char *method)
{
	const struct door_request who = { .host = header(q, "Host"),
					  .origin = header(q, "Origin"),
					  .authorization = header(q, "Authorization") };
	const char *why;
	const unsigned status = door_check(&q->server->door, &who, &why);

	q->is_metrics = true;
	if (status != 0)
		refuse(q, status, why);
	else if (strcmp(method, "GET") != 0)
		refuse(q, 405, "use GET");
	else if (q->server->stopping)
		refuse(q, 503, "the server is ending");
}

static void judge(struct request *q, const char *url, const char *method)
{
	if (strcmp(url, METRICS) == 0)
		judge_metrics(q, method);
	else if (q->server->options->only_metrics)
		refuse(q, 404, "there is nothing here but " METRICS);
	else if (strcmp(url, "/") == 0)
		judge_page(q, method);
	else if (strncmp(url, QUESTIONS, strlen(QUESTIONS)) == 0)
		judge_question(q, url + strlen(QUESTIONS), method);
	else
		refuse(q, 404, "there is nothing here");
}

static struct request *request_new(struct server *s, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
	    s->lib.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct request *q = info ? calloc(1, sizeof(*q)) : NULL;

	if (!q)
		return NULL;
	q->server = s;
	q->connection = connection;
	q->fd = info->connect_fd;
	q->child = (struct child){ .out_fd = -1, .note_fd = -1 };
	q->next = s->requests;
	s->requests = q;
	return q;
}

static enum MHD_Result take_piece(struct request *q, const char *data, size_t *size)
{
	if (q->status == 0 && q->body.len + *size > BODY_MAX)
		refuse(q, 413, "the request is too long");
	else if (q->status == 0 && buf_append(&q->body, data, *size) < 0)
		refuse(q, 503, "out of memory");
	*size = 0;
	return MHD_YES;
}

static enum MHD_Result answer(struct request *q)
{
	if (q->gone)
		return MHD_NO;
	if (q->status == 0 && q->is_page)
		return queue_page(q);
	if (q->status == 0 && !q->has_child)
		take(q);
	if (q->status != 0)
		return queue_refusal(q);
	if (q->is_stream)
		return queue_stream(q);
	if (q->ended)
		return queue_answer(q);
	if (q->server->stopping) {
		refuse(q, 503, "the server is ending");
		return queue_refusal(q);
	}
	suspend(q);
	return MHD_YES;
}

enum MHD_Result request_serve(void *server, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *data,
			      size_t *size, void **request)
{
	struct request *q = *request;

	if (!q) {
		q = request_new(server, connection);
		if (!q)
			return MHD_NO;
		*request = q;
		judge(q, url, method);
		return q->status != 0 ? queue_refusal(q) : MHD_YES;
	}
	return *size > 0 ? take_piece(q, data, size) : answer(q);
}

/* Without memory for an orphan its end is waited for. */
static void leave_child(struct server *s, struct child *child)
{
	struct orphan *o = calloc(1, sizeof(*o));

	if (!o) {
		while (!child_read(child))
			IGNORE_RESULT(poll(NULL, 0, 1), "it is read again");
		child_done(child);
		s->n_children--;
		return;
	}
	o->child = *child;
	o->next = s->orphans;
	s->orphans = o;
}

/* A page that was closed stops no command that changes something: half of that would be worse. */
static void end_child(struct request *q)
{
	struct server *s = q->server;

	if (q->has_child && q->changes && !q->ended) {
		leave_child(s, &q->child);
		return;
	}
	child_kill(&q->child);
	child_done(&q->child);
	if (q->has_child)
		s->n_children--;
}

void orphans_step(struct server *s)
{
	struct orphan **at = &s->orphans;

	while (*at) {
		struct orphan *o = *at;

		if (!child_read(&o->child)) {
			at = &o->next;
			continue;
		}
		*at = o->next;
		child_done(&o->child);
		free(o);
		s->n_children--;
	}
}

void request_over(void *server, struct MHD_Connection *connection, void **request,
		  enum MHD_RequestTerminationCode why)
{
	struct server *s = server;
	struct request *q = *request, **at = &s->requests;

	if (!q)
		return;
	while (*at != q)
		at = &(*at)->next;
	*at = q->next;
	end_child(q);
	strlist_done(&q->line);
	buf_done(&q->body);
	free(q);
	*request = NULL;
}
