#include "engine/run/run-output.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "engine/find/engine-i.h"

#define LOOK_MS 100 /* between two looks whether the run is to end */

void run_output_done(struct run_output *o)
{
	for (int i = 0; i < 2; i++)
		scrub_stream_done(&o->streams[i]);
	buf_done(&o->clean);
	buf_done(&o->shown);
	for (int i = 0; i < 2; i++)
		buf_done(&o->tail[i]);
}

/* Signals that end the run are blocked, so they stay pending. */
static bool is_to_end(void)
{
	sigset_t waiting;

	return sigpending(&waiting) == 0 &&
	       (sigismember(&waiting, SIGINT) == 1 || sigismember(&waiting, SIGTERM) == 1 ||
		sigismember(&waiting, SIGHUP) == 1 || sigismember(&waiting, SIGQUIT) == 1 ||
		sigismember(&waiting, SANDBOX_CANCEL) == 1);
}

/* A reader that has stopped reading must not keep the run from ending. */
static int wait_writable(const struct run_output *o, int fd)
{
	struct pollfd at = { .fd = fd, .events = POLLOUT };

	for (;;) {
		int n = poll(&at, 1, LOOK_MS);

		if (n > 0 || (n < 0 && errno != EINTR))
			return 0; /* write(2) reports the error */
		if (is_to_end())
			return -EINTR;
		if (o->deadline_ms > 0 && engine_clock_ms() > o->deadline_ms)
			return -ETIMEDOUT;
	}
}

static int pass_on(struct run_output *o, int fd, const unsigned char *data, size_t len)
{
	while (len > 0) {
		/* A writable pipe takes this much without blocking. */
		const size_t most = len < PIPE_BUF ? len : PIPE_BUF;
		ssize_t n;
		int r = wait_writable(o, fd);

		if (r < 0)
			return r;
		n = write(fd, data, most);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0)
			return -errno;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

static int capture(struct run_output *o, int stream, const unsigned char *data, size_t len)
{
	const size_t room = o->captured[stream] ? RUN_CAPTURE_MAX - o->captured[stream]->len : 0;

	if (!o->captured[stream])
		return 0;
	if (len > room)
		o->truncated = true;
	return buf_append(o->captured[stream], data, len < room ? len : room);
}

/* Pass it on to the reader, escaped if a person reads it. */
static int print(struct run_output *o, int stream, bool ends)
{
	struct buf *out = &o->clean;
	int r = 0;

	if (o->shows[stream]) {
		buf_reset(&o->shown);
		r = visible_append(&o->visible[stream], out->data, out->len, &o->shown);
		if (r < 0)
			return r;
		if (ends)
			r = visible_end(&o->visible[stream], &o->shown);
		out = &o->shown;
	}
	return r < 0 ? r : pass_on(o, o->fds[stream], out->data, out->len);
}

/* The tail only helps with hints, so running out of memory is no failure. */
static void keep_tail(struct buf *tail, const struct buf *more)
{
	const size_t n = more->len < RUN_TAIL_MAX ? more->len : RUN_TAIL_MAX;

	if (tail->len + n > 2 * RUN_TAIL_MAX) {
		memmove(tail->data, tail->data + tail->len - RUN_TAIL_MAX, RUN_TAIL_MAX);
		tail->len = RUN_TAIL_MAX;
	}
	if (n > 0)
		IGNORE_RESULT(buf_append(tail, more->data + more->len - n, n),
			      "a hint less is no failure");
}

static int distribute(struct run_output *o, int stream, bool ends)
{
	const struct buf *clean = &o->clean;
	int r;

	if (clean->len == 0 && !(ends && o->shows[stream]))
		return 0;
	if (clean->len > 0 && !(o->unlogged && stream == 0))
		run_record_log(o->record, stream, clean->data, clean->len);
	keep_tail(&o->tail[stream], clean);
	if (o->fds[stream] >= 0)
		r = print(o, stream, ends);
	else
		r = capture(o, stream, clean->data, clean->len);
	if (r < 0)
		o->failed = r;
	return r;
}

int run_output_take(void *ctx, enum sandbox_stream stream, const void *data, size_t len)
{
	struct run_output *o = ctx;
	const int i = stream == SANDBOX_ERR;
	int r;

	buf_reset(&o->clean);
	r = scrub_write(&o->streams[i], data, len, &o->clean);
	return r < 0 ? r : distribute(o, i, false);
}

int run_output_end(struct run_output *o)
{
	int r = 0;

	for (int i = 0; i < 2 && r >= 0; i++) {
		buf_reset(&o->clean);
		r = scrub_end(&o->streams[i], &o->clean);
		r = r < 0 ? r : distribute(o, i, true);
	}
	return r;
}
