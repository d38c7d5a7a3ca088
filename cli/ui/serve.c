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
	for (const struct orphan *o = s->orphans; o; o = o->next)
		n += 2;
	return n;
}

static size_t fill_fds(const struct server *s, struct pollfd *fds)
{
	size_t n = 2;

	for (const struct request *q = s->requests; q; q = q->next) {
		fds[n++] = (struct pollfd){ .fd = q->suspended ? q->fd : -1, .events = POLLRDHUP };
		n += child_poll(&q->child, fds + n);
	}
	for (const struct orphan *o = s->orphans; o; o = o->next)
		n += child_poll(&o->child, fds + n);
	return n;
}

static void look_at_requests(const struct server *s, const struct pollfd *fds)
{
	size_t i = 2;

	for (struct request *q = s->requests; q; q = q->next) {
		struct pollfd unused[2];

		/* Only that it has gone is asked for: more bytes of it wait for their turn. */
		if (fds[i].fd >= 0 && (fds[i].revents & (POLLRDHUP | POLLHUP | POLLERR)))
			q->gone = true;
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
	orphans_step(s);
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
	for (int i = 0; (s->requests || s->orphans) && i < LAST_TURNS; i++)
		if (turn(s, -1, LAST_TURN_MS, &err) < 0)
			break;
	for (struct request *q = s->requests; q; q = q->next) {
		q->gone = true;
		request_step(q);
	}
	IGNORE_RESULT(s->lib.run(s->daemon), "it is stopped now");
	s->lib.stop_daemon(s->daemon);
	/* What changes something ends by itself. */
	while (s->orphans) {
		struct orphan *o = s->orphans;

		s->orphans = o->next;
		buf_done(&o->child.out);
		buf_done(&o->child.notes);
		free(o);
	}
}

/* The socket of a server that was killed. */
static bool is_left_over(int dirfd, const char *name)
{
	int fd = sys_connect_at(dirfd, name);

	if (fd >= 0)
		close(fd);
	return fd == -ECONNREFUSED;
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
	if (fd == -EADDRINUSE && is_left_over(dirfd, name) && unlinkat(dirfd, name, 0) == 0)
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
	struct server s = { .options = options,
			    .door = { .token = options->token },
			    .pid = getpid() };
	char url[LISTEN_URL_MAX] = "";
	AUTO_CLOSE int fd = -1;
	int r = microhttpd_load(&s.lib, err), stop_fd = -1;

	if (r < 0)
		return r;
	r = fd = options->socket ? listen_at_path(options->socket, err)
				 : listen_at(options->listen, false, NULL, "", url, err);
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
