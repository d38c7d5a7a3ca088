#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/sys.h"
#include "cli/http/listen.h"
#include "cli/http/stop.h"
#include "cli/ui/serve-i.h"

#define BACKLOG         64
#define CONNECTIONS_MAX 64
#define TIMEOUT_S       60
#define MEMORY_EACH     32768 /* of a connection, for its headers */
#define LAST_TURNS      20    /* for what is being sent when the server ends */
#define LAST_TURN_MS    50

/* --- waiting -------------------------------------------------------------------------------- */

static int until_next(const struct server *s)
{
	MHD_UNSIGNED_LONG_LONG ms;

	if (s->lib.get_timeout(s->daemon, &ms) != MHD_YES)
		return -1;
	return ms < 60000 ? (int)ms : 60000;
}

/* The two of the server, and of each request its connection and what its child prints. */
static size_t count_fds(const struct server *s)
{
	size_t n = 2;

	for (const struct request *q = s->requests; q; q = q->next)
		n += 3;
	return n;
}

static size_t fill_fds(const struct server *s, struct pollfd *fds)
{
	size_t n = 2;

	for (const struct request *q = s->requests; q; q = q->next) {
		fds[n++] = (struct pollfd){ .fd = q->suspended ? q->fd : -1, .events = POLLRDHUP };
		n += child_poll(&q->child, fds + n);
	}
	return n;
}

static void look_at_requests(const struct server *s, const struct pollfd *fds)
{
	size_t i = 2;

	for (struct request *q = s->requests; q; q = q->next) {
		struct pollfd unused[2];

		if (fds[i].fd >= 0 && fds[i].revents != 0)
			request_look(q);
		i += 1 + child_poll(&q->child, unused);
	}
}

/* One turn.  1 once the signal to end has come. */
static int turn(struct server *s, int stop_fd, int most_ms, struct err *err)
{
	AUTO_FREE struct pollfd *fds = calloc(count_fds(s), sizeof(*fds));
	const union MHD_DaemonInfo *info =
	    s->lib.get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	const int ms = until_next(s);
	size_t n;

	if (!fds)
		return err_nomem(err);
	n = fill_fds(s, fds);
	fds[0] = (struct pollfd){ .fd = stop_fd, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = info->epoll_fd, .events = POLLIN };
	if (poll(fds, n, ms < 0 || (most_ms >= 0 && most_ms < ms) ? most_ms : ms) < 0)
		return errno == EINTR ? 0 : err_sys(err, "waiting for the page");
	look_at_requests(s, fds);
	for (struct request *q = s->requests; q; q = q->next)
		request_step(q);
	/* Twice: after the one that closes a connection it begins to listen again. */
	if (s->lib.run(s->daemon) != MHD_YES || s->lib.run(s->daemon) != MHD_YES)
		return err_set(err, -EIO, "libmicrohttpd stopped");
	return fds[0].revents != 0;
}

/* --- beginning and end ---------------------------------------------------------------------- */

static int start(struct server *s, int fd, struct err *err)
{
	const unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME;

	s->daemon = s->lib.start_daemon(
	    flags, 0, NULL, NULL, request_serve, s, MHD_OPTION_LISTEN_SOCKET, fd,
	    MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
	    (unsigned)TIMEOUT_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY_EACH,
	    MHD_OPTION_NOTIFY_COMPLETED, request_over, s, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
	    MHD_OPTION_END);
	if (!s->daemon)
		return err_set(err, -ENOTSUP, "libmicrohttpd cannot serve here");
	return 0;
}

/* Answer what waits, and send what can be sent soon. */
static void finish(struct server *s)
{
	struct err err = { 0 };

	s->stopping = true;
	for (int i = 0; s->requests && i < LAST_TURNS; i++)
		if (turn(s, -1, LAST_TURN_MS, &err) < 0)
			break;
	for (struct request *q = s->requests; q; q = q->next) {
		q->gone = true;
		request_step(q);
	}
	IGNORE_RESULT(s->lib.run(s->daemon), "it is stopped now");
	s->lib.stop_daemon(s->daemon);
}

/* Only its owner can connect. */
static int listen_at_path(const char *path, struct err *err)
{
	const char *name = path_base(path);
	AUTO_FREE char *dir = name > path ? strndup(path, (size_t)(name - path)) : strdup(".");
	AUTO_CLOSE int dirfd = -1;
	int fd;

	if (!dir)
		return err_nomem(err);
	dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dirfd < 0)
		return err_sys(err, "cannot open '%s'", dir);
	fd = sys_listen_at(dirfd, name, BACKLOG);
	if (fd < 0)
		return err_wrap(err, fd, "cannot listen at '%s'", path);
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0) {
		close(fd);
		return err_sys(err, "cannot listen at '%s'", path);
	}
	return fd;
}

int ui_serve(const struct ui_options *options, struct err *err)
{
	struct server s = { .options = options, .door = { .token = options->token } };
	char url[LISTEN_URL_MAX] = "";
	AUTO_CLOSE int fd = -1;
	int r = microhttpd_load(&s.lib, err), stop_fd = -1;

	if (r < 0)
		return r;
	r = fd = options->socket ? listen_at_path(options->socket, err)
				 : listen_at(options->listen, false, "", url, err);
	if (r < 0)
		return r;
	r = stop_fd = stop_prepare(err);
	if (r < 0)
		return r;
	r = start(&s, fd, err);
	if (r < 0)
		return r;
	fd = -1; /* the daemon's now */
	options->on_ready(options->socket ? NULL : url, options->ctx);
	do
		r = turn(&s, stop_fd, -1, err);
	while (r == 0);
	finish(&s);
	if (options->socket)
		unlink(options->socket);
	return r < 0 ? r : 0;
}
