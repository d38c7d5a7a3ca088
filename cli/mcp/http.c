#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/http/listen.h"
#include "cli/http/stop.h"
#include "cli/mcp/http-i.h"
#include "cli/mcp/progress.h"

#define FLUSH_MS    1000  /* that answers may take to be sent when the server ends */
#define MEMORY_EACH 65536 /* of a connection, for its headers */

/* --- waiting ---------------------------------------------------------------------------- */

static int sooner(int a, int b)
{
	if (a < 0 || b < 0)
		return a < 0 ? b : a;
	return a < b ? a : b;
}

static int until_next(struct http *h)
{
	MHD_UNSIGNED_LONG_LONG lib_ms;
	int ms = http_client_expire(h);

	if (h->lib.get_timeout(h->daemon, &lib_ms) == MHD_YES)
		ms = sooner(ms, lib_ms < 60000 ? (int)lib_ms : 60000);
	for (const struct http_client *c = h->clients; c; c = c->next)
		ms = sooner(ms, session_timeout(&c->session));
	for (const struct exchange *x = h->exchanges; x; x = x->next) {
		ms = sooner(ms, exchange_timeout(x));
		if (x->has_own)
			ms = sooner(ms, session_timeout(&x->own));
	}
	return ms;
}

static size_t count_fds(const struct http *h)
{
	size_t n = 2;

	for (const struct http_client *c = h->clients; c; c = c->next)
		n += session_count(&c->session);
	for (const struct exchange *x = h->exchanges; x; x = x->next)
		n += 1 + (x->has_own ? session_count(&x->own) : 0);
	return n;
}

/* Connections come first, in the order of the exchanges: those that are not watched as -1. */
static size_t fill_fds(const struct http *h, struct pollfd *fds, size_t max)
{
	size_t n = 2;

	for (const struct exchange *x = h->exchanges; x; x = x->next)
		fds[n++] = (struct pollfd){ .fd = x->suspended ? x->fd : -1,
					    .events = x->talks ? 0 : POLLIN };
	for (const struct exchange *x = h->exchanges; x; x = x->next)
		if (x->has_own)
			n += session_poll(&x->own, fds + n, max - n);
	for (const struct http_client *c = h->clients; c; c = c->next)
		n += session_poll(&c->session, fds + n, max - n);
	return n;
}

static void look_at_connections(struct http *h, const struct pollfd *fds)
{
	size_t i = 2;

	for (struct exchange *x = h->exchanges; x; x = x->next, i++)
		if (fds[i].fd >= 0 && fds[i].revents != 0)
			exchange_look(x);
}

static int step_all(struct http *h, struct err *err)
{
	int r = 0;

	for (struct http_client *c = h->clients; r >= 0 && c; c = c->next) {
		r = session_step(&c->session, err);
		if (!c->listener)
			buf_done(&c->aside);
	}
	for (struct exchange *x = h->exchanges; r >= 0 && x; x = x->next)
		if (x->has_own)
			r = session_step(&x->own, err);
	for (struct exchange *x = h->exchanges; x; x = x->next)
		exchange_step(x);
	return r;
}

/* One turn.  1 once the signal to end has come. */
static int turn(struct http *h, int most_ms, struct err *err)
{
	const size_t max = count_fds(h);
	AUTO_FREE struct pollfd *fds = calloc(max, sizeof(*fds));
	const union MHD_DaemonInfo *info =
	    h->lib.get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	size_t n;
	int r;

	if (!fds)
		return err_nomem(err);
	fds[0] = (struct pollfd){ .fd = h->stop_fd, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = info->epoll_fd, .events = POLLIN };
	n = fill_fds(h, fds, max);
	if (poll(fds, n, sooner(most_ms, until_next(h))) < 0)
		return errno == EINTR ? 0 : err_sys(err, "waiting for clients");
	look_at_connections(h, fds);
	r = step_all(h, err);
	if (r < 0)
		return r;
	/*
	 * Twice: with as many connections as it may have it stops to listen, and the run after the one
	 * that closes a connection is where it begins to again.
	 */
	if (h->lib.run(h->daemon) != MHD_YES || h->lib.run(h->daemon) != MHD_YES)
		return err_set(err, -EIO, "libmicrohttpd stopped");
	return fds[0].revents != 0;
}

/* --- beginning and end ------------------------------------------------------------------ */

static int start(struct http *h, int fd, struct err *err)
{
	const unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME;

	h->daemon = h->lib.start_daemon(
	    flags, 0, NULL, NULL, exchange_serve, h, MHD_OPTION_LISTEN_SOCKET, fd,
	    MHD_OPTION_CONNECTION_LIMIT, h->how->max_connections, MHD_OPTION_CONNECTION_TIMEOUT,
	    h->how->timeout_s, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY_EACH,
	    MHD_OPTION_NOTIFY_COMPLETED, exchange_over, h, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
	    MHD_OPTION_END);
	if (!h->daemon)
		return err_set(err, -ENOTSUP, "libmicrohttpd cannot serve here");
	return 0;
}

/* End every stream with a result, and send what can be sent soon. */
static void finish(struct http *h)
{
	const uint64_t until = clock_ms() + FLUSH_MS;
	struct err err = { 0 };

	h->stopping = true;
	for (struct exchange *x = h->exchanges; x; x = x->next) {
		if (x->has_own && session_end_listening(&x->own, &err) < 0)
			x->gone = true;
		if (!x->streams && x->suspended && x->lines.len == 0)
			exchange_refuse(x, 503, "the server is ending");
		x->ended = true;
	}
	while (h->exchanges && clock_ms() < until)
		if (turn(h, 50, &err) < 0)
			break;
	for (struct exchange *x = h->exchanges; x; x = x->next) {
		x->gone = x->ended = true;
		exchange_step(x);
	}
	IGNORE_RESULT(h->lib.run(h->daemon), "it is stopped now");
	h->lib.stop_daemon(h->daemon);
	while (h->clients)
		http_client_end(h, h->clients);
}

int mcp_serve_http(const struct mcp_options *options, const struct mcp_http *how, struct err *err)
{
	struct http h = { .options = options,
			  .how = how,
			  .door = { .token = how->token, .remote = how->remote } };
	char url[LISTEN_URL_MAX];
	AUTO_CLOSE int fd = -1;
	int r = microhttpd_load(&h.lib, err);

	if (r < 0)
		return r;
	fd = listen_at(how->listen, how->remote, "http-remote", "mcp", url, err);
	if (fd < 0)
		return fd;
	h.stop_fd = stop_prepare(err);
	if (h.stop_fd < 0)
		return h.stop_fd;
	r = start(&h, fd, err);
	if (r < 0)
		return r;
	fd = -1; /* the daemon's now */
	how->on_ready(url, how->ctx);
	do
		r = turn(&h, -1, err);
	while (r == 0);
	finish(&h);
	return r < 0 ? r : 0;
}
