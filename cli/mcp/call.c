#include "cli/mcp/call.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sys.h"
#include "cli/mcp/failure.h"

#define NOTES_MAX 65536 /* bytes that are kept */
#define END_MS    5000  /* that a cancelled call has to end by itself */

/*
 * What ends the output: the exit code behind this byte, which no JSON holds.  A process that the
 * call started may keep the pipe open for longer than the call lives.
 */
#define END_MARK '\x04'

/* --- in the child ----------------------------------------------------------------------- */

static int check_states(const struct mcp_options *o, const struct tool_line *line, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < line->n_states; i++)
		r = o->check_state(line->states[i].text, line->states[i].is_clone, o->ctx, err);
	return r;
}

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

NORETURN static void run_child(const struct mcp_options *o, struct tool_line *line, int out_fd,
			       int note_fd)
{
	struct err err = { 0 };
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
	if (check_states(o, line, &err) < 0)
		status =
		    failure_print(out, err.code == -ENOENT ? "E_NOT_FOUND" : "E_FAILED", err.msg);
	else if (line->is_job)
		status = job_run(o, line, out);
	else
		status = o->run_line(line->argc, line->argv, out, o->ctx);
	fprintf(out, "%c%d\n", END_MARK, status);
	fflush(out);
	_exit(0);
}

/* --- in the server ---------------------------------------------------------------------- */

static int open_pipe(int fds[2], struct err *err)
{
	int r = sys_pipe(fds);

	if (r < 0)
		return err_wrap(err, r, "a pipe for a call");
	if (fcntl(fds[0], F_SETFL, O_NONBLOCK) < 0)
		return err_sys(err, "a pipe for a call");
	return 0;
}

static void close_pipe(int fds[2])
{
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static int fork_call(struct call *c, const struct mcp_options *options, struct tool_line *line,
		     int out[2], int note[2], struct err *err)
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
		return err_sys(err, "a process for a call");
	}
	if (c->pid == 0)
		run_child(options, line, out[1], note[1]);
	c->out_fd = out[0];
	c->note_fd = note[0];
	out[0] = note[0] = -1;
	return 0;
}

int call_start(struct call *c, const struct mcp_options *options, struct tool_line *line,
	       struct err *err)
{
	int out[2] = { -1, -1 }, note[2] = { -1, -1 };
	int r;

	*c = (struct call){ .out_fd = -1, .note_fd = -1, .status = -1 };
	r = fork_call(c, options, line, out, note, err);
	close_pipe(out);
	close_pipe(note);
	tool_line_done(line);
	return r;
}

size_t call_poll(const struct call *c, struct pollfd fds[2])
{
	size_t n = 0;

	if (c->out_fd >= 0)
		fds[n++] = (struct pollfd){ .fd = c->out_fd, .events = POLLIN };
	if (c->note_fd >= 0)
		fds[n++] = (struct pollfd){ .fd = c->note_fd, .events = POLLIN };
	return n;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
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
			close_fd(fd);
			return;
		}
		if (into->len < max &&
		    buf_append(into, piece,
			       (size_t)n < max - into->len ? (size_t)n : max - into->len) < 0)
			close_fd(fd); /* without memory its answer is cut, and that is seen */
	}
}

static void reap(struct call *c)
{
	int status;

	while (c->pid > 0 && waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
		continue;
	c->pid = 0;
	close_fd(&c->out_fd);
	drain(&c->note_fd, &c->notes, NOTES_MAX);
	close_fd(&c->note_fd);
}

/* The exit code behind the mark, which is cut off; false: it is not there yet. */
static bool take_status(struct call *c)
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

/* The id of a run comes first, as a line of its own. */
static void take_run(struct call *c)
{
	const char *data = (const char *)c->out.data, *end;
	size_t len;

	if (c->out.len == 0 || *data != JOB_ID_MARK)
		return;
	end = memchr(data, '\n', c->out.len);
	if (!end)
		return;
	len = (size_t)(end - data) + 1;
	snprintf(c->run, sizeof(c->run), "%.*s", (int)len - 2, data + 1);
	memmove(c->out.data, c->out.data + len, c->out.len - len);
	c->out.len -= len;
}

bool call_read(struct call *c)
{
	drain(&c->note_fd, &c->notes, NOTES_MAX);
	drain(&c->out_fd, &c->out, SIZE_MAX);
	take_run(c);
	if (!take_status(c) && c->out_fd >= 0)
		return false;
	reap(c);
	return true;
}

/* All that it still prints is the id of a run; its end closes the pipe. */
static bool ends_in_time(struct call *c)
{
	struct pollfd pfd = { .fd = c->out_fd, .events = POLLIN };
	int rc = 1;

	while (c->out_fd >= 0 && rc > 0) {
		rc = poll(&pfd, 1, END_MS);
		if (rc > 0)
			drain(&c->out_fd, &c->out, SIZE_MAX);
		take_run(c);
	}
	return c->out_fd < 0;
}

void call_stop(struct call *c)
{
	if (c->pid <= 0)
		return;
	kill(c->pid, SIGTERM);
	if (!ends_in_time(c))
		kill(c->pid, SIGKILL);
	reap(c);
}

void call_done(struct call *c)
{
	call_stop(c);
	close_fd(&c->out_fd);
	close_fd(&c->note_fd);
	buf_done(&c->out);
	buf_done(&c->notes);
}
