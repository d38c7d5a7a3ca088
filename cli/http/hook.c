#include "cli/http/hook.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "cli/http/door.h"
#include "cli/http/listen.h"
#include "cli/http/microhttpd.h"
#include "cli/http/stop.h"

#define PLACE           "/hook/"
#define CONNECTIONS_MAX 16
#define TIMEOUT_S       10
#define MEMORY_EACH     ((size_t)16 << 10)
#define BODY_MAX        ((size_t)1 << 20) /* of which HOOK_TEXT_MAX bytes are kept */

struct server {
	const struct hook_options *options;
	struct door door;
	struct microhttpd lib;
	struct MHD_Daemon *daemon;
};

struct request {
	char name[HOOK_NAME_MAX + 1];
	char text[HOOK_TEXT_MAX + 1];
	size_t kept, length; /* of the body */
};

/* --- answers -------------------------------------------------------------------------------- */

static enum MHD_Result answer(const struct server *s, struct MHD_Connection *c, unsigned status,
			      const char *key, const char *text)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	CLEANUP(buf_done) struct buf body = BUF_INIT;
	enum MHD_Result result = MHD_NO;
	struct MHD_Response *response;

	json_set_text(json_begin(&doc), key, text);
	if (json_append(&doc, &body, NULL) < 0)
		return MHD_NO;
	response = s->lib.create_response_from_buffer(body.len, body.data, MHD_RESPMEM_MUST_COPY);
	if (!response)
		return MHD_NO;
	if (s->lib.add_response_header(response, "Content-Type", "application/json") == MHD_YES &&
	    s->lib.add_response_header(response, "Connection", "close") == MHD_YES)
		result = s->lib.queue_response(c, status, response);
	s->lib.destroy_response(response);
	return result;
}

static enum MHD_Result refuse(const struct server *s, struct MHD_Connection *c, unsigned status,
			      const char *why)
{
	return answer(s, c, status, "error", why);
}

/* --- requests ------------------------------------------------------------------------------- */

static const char *header(const struct server *s, struct MHD_Connection *c, const char *name)
{
	return s->lib.lookup_connection_value(c, MHD_HEADER_KIND, name);
}

/* Before a byte of its body is read. */
static enum MHD_Result begin(const struct server *s, struct MHD_Connection *c, const char *url,
			     const char *method, void **ret)
{
	const struct door_request asked = { .host = header(s, c, "Host"),
					    .origin = header(s, c, "Origin"),
					    .authorization = header(s, c, "Authorization") };
	const char *name = url + strlen(PLACE), *why = "";
	const unsigned status = door_check(&s->door, &asked, &why);
	struct request *q;

	if (status != 0)
		return refuse(s, c, status, why);
	if (strncmp(url, PLACE, strlen(PLACE)) != 0 || *name == '\0' ||
	    strlen(name) > HOOK_NAME_MAX)
		return refuse(s, c, 404, "the path is " PLACE "RULE");
	if (strcmp(method, "POST") != 0)
		return refuse(s, c, 405, "only POST is taken");
	q = calloc(1, sizeof(*q));
	if (!q)
		return MHD_NO;
	strcpy(q->name, name);
	*ret = q;
	return MHD_YES;
}

/* One line, which a terminal can show. */
static void keep(struct request *q, const char *data, size_t len)
{
	q->length += len;
	for (size_t i = 0; i < len && q->kept < HOOK_TEXT_MAX; i++)
		q->text[q->kept++] = (unsigned char)data[i] < ' ' || data[i] == 127 ? ' ' : data[i];
}

static enum MHD_Result call(const struct server *s, struct MHD_Connection *c, struct request *q)
{
	char id[HOOK_ID_MAX] = "";
	struct err err = { 0 };
	int r;

	if (q->length > BODY_MAX)
		return refuse(s, c, 413, "the body is above 1 MiB");
	r = s->options->call(q->name, q->kept > 0 ? q->text : NULL, id, s->options->ctx, &err);
	if (r >= 0)
		return answer(s, c, 202, "firing", id);
	return refuse(s, c, r == -ENOENT ? 404 : r == -ECANCELED ? 409 : 500, err.msg);
}

static enum MHD_Result serve(void *ctx, struct MHD_Connection *c, const char *url,
			     const char *method, const char *version, const char *data,
			     size_t *size, void **request)
{
	const struct server *s = ctx;
	struct request *q = *request;

	if (!q)
		return begin(s, c, url, method, request);
	if (*size == 0)
		return call(s, c, q);
	keep(q, data, *size);
	*size = 0;
	/* What is too long is not read to its end. */
	return q->length > 2 * BODY_MAX ? MHD_NO : MHD_YES;
}

static void over(void *ctx, struct MHD_Connection *c, void **request,
		 enum MHD_RequestTerminationCode why)
{
	free(*request);
	*request = NULL;
}

/* --- the loop ------------------------------------------------------------------------------- */

/* One turn.  1 once the signal to end has come. */
static int turn(struct server *s, int stop_fd, struct err *err)
{
	const union MHD_DaemonInfo *info =
	    s->lib.get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	struct pollfd fds[] = { { .fd = stop_fd, .events = POLLIN },
				{ .fd = info->epoll_fd, .events = POLLIN } };
	MHD_UNSIGNED_LONG_LONG ms;
	const bool due = s->lib.get_timeout(s->daemon, &ms) == MHD_YES;

	if (poll(fds, ARRAY_LEN(fds), !due ? -1 : ms < 60000 ? (int)ms : 60000) < 0)
		return errno == EINTR ? 0 : err_sys(err, "waiting for calls");
	/* Twice: after the one that closes a connection it begins to listen again. */
	if (s->lib.run(s->daemon) != MHD_YES || s->lib.run(s->daemon) != MHD_YES)
		return err_set(err, -EIO, "libmicrohttpd stopped");
	return fds[0].revents != 0;
}

int hook_serve(const struct hook_options *options, struct err *err)
{
	struct server s = { .options = options, .door = { .token = options->token } };
	char url[LISTEN_URL_MAX] = "";
	AUTO_CLOSE int fd = -1;
	int r = microhttpd_load(&s.lib, err), stop_fd = -1;

	if (r < 0)
		return r;
	r = fd = listen_at(options->listen, false, NULL, &PLACE[1], url, err);
	if (r < 0)
		return r;
	r = stop_fd = stop_prepare(err);
	if (r < 0)
		return r;
	s.daemon = s.lib.start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, serve, &s,
				      MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
				      (unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
				      (unsigned)TIMEOUT_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
				      MEMORY_EACH, MHD_OPTION_NOTIFY_COMPLETED, over, &s,
				      MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
	if (!s.daemon)
		return err_set(err, -ENOTSUP, "libmicrohttpd cannot serve here");
	fd = -1; /* the daemon's now */
	options->on_ready(url, options->ctx);
	do
		r = turn(&s, stop_fd, err);
	while (r == 0);
	s.lib.stop_daemon(s.daemon);
	return r < 0 ? r : 0;
}
