#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fdio.h"
#include "cli/mcp/session.h"

#define LINE_MAX_BYTES ((size_t)64 << 20)

struct reader {
	struct buf in;
	bool skipping; /* a line that is too long: up to its end */
	bool ended;
};

static int flush_out(struct session *s, struct err *err)
{
	int r = fdio_write(STDOUT_FILENO, s->out->data, s->out->len);

	buf_reset(s->out);
	return r < 0 ? err_wrap(err, r, "writing to the client") : 0;
}

/* Every whole line that was read so far. */
static int take_lines(struct session *s, struct reader *in, struct err *err)
{
	const char *data = (const char *)in->in.data, *stop;
	size_t at = 0;
	int r = 0;

	while (r >= 0 && (stop = memchr(data + at, '\n', in->in.len - at))) {
		size_t len = (size_t)(stop - data) - at;

		if (len > 0 && data[at + len - 1] == '\r')
			len--;
		if (len > 0 && !in->skipping)
			r = session_take(s, data + at, len, err);
		in->skipping = false;
		at = (size_t)(stop - data) + 1;
	}
	memmove(in->in.data, in->in.data + at, in->in.len - at);
	in->in.len -= at;
	return r;
}

static int read_input(struct session *s, struct reader *in, struct err *err)
{
	const size_t piece = 65536;
	char *to = buf_extend(&in->in, piece);
	ssize_t n;
	int r;

	if (!to)
		return err_nomem(err);
	do
		n = read(STDIN_FILENO, to, piece);
	while (n < 0 && errno == EINTR);
	in->in.len -= piece - (n > 0 ? (size_t)n : 0);
	if (n < 0)
		return err_sys(err, "reading from the client");
	in->ended = n == 0;
	r = take_lines(s, in, err);
	if (r < 0 || in->in.len <= LINE_MAX_BYTES)
		return r;
	/* Its first part is answered once, as a message that cannot be parsed. */
	if (!in->skipping)
		r = session_take(s, (const char *)in->in.data, in->in.len, err);
	in->skipping = true;
	buf_done(&in->in);
	return r;
}

static int wait_and_step(struct session *s, struct reader *in, struct pollfd *fds, size_t n,
			 struct err *err)
{
	int r;

	fds[0] = (struct pollfd){ .fd = STDIN_FILENO, .events = POLLIN };
	n = 1 + session_poll(s, fds + 1, n - 1);
	if (poll(fds, n, session_timeout(s)) < 0)
		return errno == EINTR ? 0 : err_sys(err, "waiting for the client");
	r = session_step(s, err);
	if (r < 0)
		return r;
	if (fds[0].revents != 0)
		r = read_input(s, in, err);
	return r < 0 ? r : flush_out(s, err);
}

static int serve(struct session *s, struct reader *in, struct err *err)
{
	int r = 0;

	while (r >= 0 && !in->ended) {
		const size_t n = 1 + session_count(s);
		AUTO_FREE struct pollfd *fds = calloc(n, sizeof(*fds));

		r = fds ? wait_and_step(s, in, fds, n, err) : err_nomem(err);
	}
	return r;
}

int mcp_serve_stdio(const struct mcp_options *options, struct err *err)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	struct reader in = { 0 };
	struct session s;
	int r;

	/* A client that has gone is an end of input, not a death. */
	signal(SIGPIPE, SIG_IGN);
	session_init(&s, options, &out);
	r = serve(&s, &in, err);
	session_done(&s);
	buf_done(&in.in);
	return r == -EPIPE ? 0 : r;
}
