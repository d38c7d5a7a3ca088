#include "cli/http/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sys.h"

#define NOTES_MAX 65536 /* bytes that are kept */
#define END_MS    5000  /* that a child has to end by itself */

/*
 * What ends the output: the exit code behind this byte, which no JSON holds.  A process that the
 * child started may keep the pipe open for longer than the child lives.
 */
#define END_MARK '\x04'

/* --- in the child ----------------------------------------------------------------------- */

/* Nothing of the client's streams is left: what the command prints by mistake goes to the notes. */
static void take_streams(int note_fd)
{
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(note_fd, STDOUT_FILENO) < 0 ||
	    dup2(note_fd, STDERR_FILENO) < 0)
		_exit(125);
	close(null);
	close(note_fd);
}

/* No other descriptor of the server: a client's connection would stay open with one. */
static FILE *keep_only(int out_fd)
{
	const int lowest = STDERR_FILENO + 1;

	if (out_fd != lowest && dup2(out_fd, lowest) < 0)
		return NULL;
	sys_close_from(lowest + 1);
	if (fcntl(lowest, F_SETFD, FD_CLOEXEC) < 0)
		return NULL;
	return fdopen(lowest, "w");
}

NORETURN static void run_child(child_fn fn, void *ctx, int out_fd, int note_fd)
{
	FILE *out;
	int status;

	signal(SIGPIPE, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	take_streams(note_fd);
	out = keep_only(out_fd);
	if (!out)
		_exit(125);
	status = fn(out, ctx);
	fprintf(out, "%c%d\n", END_MARK, status);
	fflush(out);
	_exit(0);
}

/* --- in the server ---------------------------------------------------------------------- */

static int open_pipe(int fds[2], struct err *err)
{
	int r = sys_pipe(fds);

	if (r < 0)
		return err_wrap(err, r, "a pipe for a request");
	if (fcntl(fds[0], F_SETFL, O_NONBLOCK) < 0)
		return err_sys(err, "a pipe for a request");
	return 0;
}

static void close_pipe(int fds[2])
{
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static int fork_child(struct child *c, child_fn fn, void *ctx, int out[2], int note[2],
		      struct err *err)
{
	int r = open_pipe(out, err);

	if (r < 0)
		return r;
	r = open_pipe(note, err);
	if (r < 0)
		return r;
	c->pid = fork();
	if (c->pid < 0) {
		c->pid = 0;
		return err_sys(err, "a process for a request");
	}
	if (c->pid == 0)
		run_child(fn, ctx, out[1], note[1]);
	c->out_fd = out[0];
	c->note_fd = note[0];
	out[0] = note[0] = -1;
	return 0;
}

int child_start(struct child *c, child_fn fn, void *ctx, struct err *err)
{
	int out[2] = { -1, -1 }, note[2] = { -1, -1 };
	int r;

	*c = (struct child){ .out_fd = -1, .note_fd = -1, .status = -1 };
	r = fork_child(c, fn, ctx, out, note, err);
	close_pipe(out);
	close_pipe(note);
	return r;
}

size_t child_poll(const struct child *c, struct pollfd fds[2])
{
	size_t n = 0;

	if (c->out_fd >= 0)
		fds[n++] = (struct pollfd){ .fd = c->out_fd, .events = POLLIN };
	if (c->note_fd >= 0)
		fds[n++] = (struct pollfd){ .fd = c->note_fd, .events = POLLIN };
	return n;
}

/* All that is there; the descriptor is closed at its end. */
static void drain(int *fd, struct buf *into, size_t max)
{
	char piece[65536];
	ssize_t n;

	while (*fd >= 0) {
		n = read(*fd, piece, sizeof(piece));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			cleanup_close(fd);
			return;
		}
		if (into->len < max &&
		    buf_append(into, piece,
			       (size_t)n < max - into->len ? (size_t)n : max - into->len) < 0)
			cleanup_close(fd); /* without memory its answer is cut, and that is seen */
	}
}

static void reap(struct child *c)
{
	int status;

	while (c->pid > 0 && waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
		continue;
	c->pid = 0;
	cleanup_close(&c->out_fd);
	drain(&c->note_fd, &c->notes, NOTES_MAX);
	cleanup_close(&c->note_fd);
}

/* The exit code behind the mark, which is cut off; false: it is not there yet. */
static bool take_status(struct child *c)
{
	const size_t end = c->out.len;
	size_t at = end;

	while (at > 0 && end - at < 8 && c->out.data[at - 1] != END_MARK)
		at--;
	if (at == 0 || c->out.data[at - 1] != END_MARK || c->out.data[end - 1] != '\n')
		return false;
	c->status = atoi((const char *)c->out.data + at);
	c->out.len = at - 1;
	return true;
}

bool child_read(struct child *c)
{
	drain(&c->note_fd, &c->notes, NOTES_MAX);
	drain(&c->out_fd, &c->out, SIZE_MAX);
	if (!take_status(c) && c->out_fd >= 0)
		return false;
	reap(c);
	return true;
}

/* Its end closes the pipe. */
static bool ends_in_time(struct child *c)
{
	struct pollfd pfd = { .fd = c->out_fd, .events = POLLIN };
	int rc = 1;

	while (c->out_fd >= 0 && rc > 0) {
		rc = poll(&pfd, 1, END_MS);
		if (rc > 0)
			drain(&c->out_fd, &c->out, SIZE_MAX);
	}
	return c->out_fd < 0;
}

void child_stop(struct child *c)
{
	if (c->pid <= 0)
		return;
	kill(c->pid, SIGTERM);
	if (!ends_in_time(c))
		kill(c->pid, SIGKILL);
	reap(c);
}

void child_kill(struct child *c)
{
	if (c->pid > 0)
		kill(c->pid, SIGKILL);
	reap(c);
}

void child_done(struct child *c)
{
	child_stop(c);
	cleanup_close(&c->out_fd);
	cleanup_close(&c->note_fd);
	buf_done(&c->out);
	buf_done(&c->notes);
}
