#include "cli/mcp/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sys.h"

enum { OUT_FD = STDERR_FILENO + 1, STOP_FD };

/* Above those that it is moved to. */
static int move_up(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, STOP_FD + 1);
}

NORETURN static void run_child(const struct mcp_options *o, uint64_t since, int out_fd, int stop_fd)
{
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC), up = move_up(out_fd),
		  stop = move_up(stop_fd);
	FILE *out;

	signal(SIGPIPE, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGINT, SIG_IGN); /* of a terminal: the server decides */
	signal(SIGHUP, SIG_DFL);
	if (null < 0 || up < 0 || stop < 0 || dup2(null, STDIN_FILENO) < 0 ||
	    dup2(null, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0 ||
	    dup2(up, OUT_FD) < 0 || dup2(stop, STOP_FD) < 0)
		_exit(125);
	sys_close_from(STOP_FD + 1);
	out = fdopen(OUT_FD, "w");
	if (out)
		o->follow(since, STOP_FD, out, o->ctx);
	_exit(0);
}

static int open_pipes(int out[2], int life[2], struct err *err)
{
	int r = sys_pipe(out);

	if (r >= 0)
		r = sys_pipe(life);
	if (r < 0)
		return err_wrap(err, r, "a pipe for what happens");
	if (fcntl(out[0], F_SETFL, O_NONBLOCK) < 0)
		return err_sys(err, "a pipe for what happens");
	return 0;
}

int watch_start(struct watch *w, const struct mcp_options *o, struct err *err)
{
	int out[2] = { -1, -1 }, life[2] = { -1, -1 };
	int r;
	uint64_t since;

	watch_done(w); /* one that died by itself */
	r = o->follow ? open_pipes(out, life, err)
		      : err_set(err, -ENOTSUP, "this server cannot follow what happens");
	since = r < 0 ? 0 : o->newest(o->ctx);

	if (r >= 0) {
		w->pid = fork();
		if (w->pid == 0)
			run_child(o, since, out[1], life[0]);
		if (w->pid < 0)
			r = err_sys(err, "a process for what happens");
	}
	if (r >= 0) {
		w->fd = out[0];
		w->life_fd = life[1];
		out[0] = life[1] = -1;
	}
	cleanup_close(&out[0]);
	cleanup_close(&out[1]);
	cleanup_close(&life[0]);
	cleanup_close(&life[1]);
	return r;
}

void watch_done(struct watch *w)
{
	int status;

	cleanup_close(&w->life_fd);
	cleanup_close(&w->fd);
	if (w->pid > 0)
		kill(w->pid, SIGKILL); /* it holds nothing */
	while (w->pid > 0 && waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
		continue;
	buf_done(&w->in);
	*w = WATCH_INIT;
}

void watch_read(struct watch *w)
{
	char piece[4096];
	ssize_t n;

	while (w->fd >= 0) {
		n = read(w->fd, piece, sizeof(piece));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0 || buf_append(&w->in, piece, (size_t)n) < 0)
			cleanup_close(&w->fd);
	}
}

bool watch_next(struct watch *w, struct change *ret)
{
	const char *data = (const char *)w->in.data;
	const char *end = w->in.len > 0 ? memchr(data, '\n', w->in.len) : NULL;
	const size_t len = end ? (size_t)(end - data) : 0;
	struct json j;
	bool ok;

	*ret = (struct change){ 0 };
	if (!end)
		return false;
	ok = json_parse(&ret->doc, data, len, &j, NULL) >= 0;
	memmove(w->in.data, w->in.data + len + 1, w->in.len - len - 1);
	w->in.len -= len + 1;
	if (ok) {
		ret->kind = json_text_if(j, "kind");
		ret->clone = json_text_if(j, "clone");
		ret->run = json_text_if(j, "run");
		if (json_kind(j, "data") == JSON_OBJECT)
			ret->experiment = json_text_if(json_get_object(j, "data"), "experiment");
	}
	return true;
}
