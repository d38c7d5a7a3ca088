/*
 * pump-linux.c - move bytes between a run and its caller.
 */
#include "runner/pump.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { FROM_CALLER, TO_RUN, FROM_OUT, FROM_ERR };
_Static_assert(FROM_ERR + 1 == PUMP_PLACES, "one place for each direction");

static void set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (fd >= 0 && flags >= 0)
		fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

static void forget(int *fd)
{
	cleanup_close(fd);
	*fd = -1;
}

void pump_init(struct pump *p, struct run *run)
{
	p->run = run;
	p->in = run->spec->in_fd;
	p->capped = run->spec->limits.output > 0;
	p->left = run->spec->limits.output;
	/* Our own ends only: the caller's descriptors are shared with others and stay as they are. */
	for (int i = 0; i < 3; i++)
		set_nonblocking(run->our[i]);
}

void pump_take_terminal(struct pump *p, int master)
{
	forget(&p->run->our[0]);
	p->run->our[0] = master;
	p->terminal = true;
	set_nonblocking(master);
	pump_resize(p);
}

void pump_resize(struct pump *p)
{
	struct winsize size;

	if (p->terminal && p->run->spec->in_fd >= 0 &&
	    ioctl(p->run->spec->in_fd, TIOCGWINSZ, &size) == 0)
		ioctl(p->run->our[0], TIOCSWINSZ, &size);
}

static bool is_held(const struct pump *p)
{
	const bool *held = p->run->spec->hold_streams;

	return held && *held;
}

void pump_places(const struct pump *p, struct pollfd places[PUMP_PLACES])
{
	const int *our = p->run->our;
	const bool full = p->held > 0, still = is_held(p), reads = !full && our[0] >= 0 && !still;
	const int out = p->terminal ? our[0] : our[1];

	places[FROM_CALLER] = (struct pollfd){ reads ? p->in : -1, POLLIN, 0 };
	places[TO_RUN] = (struct pollfd){ full ? our[0] : -1, POLLOUT, 0 };
	places[FROM_OUT] = (struct pollfd){ still ? -1 : out, POLLIN, 0 };
	places[FROM_ERR] = (struct pollfd){ still ? -1 : our[2], POLLIN, 0 };
}

static int read_caller(struct pump *p, struct err *err)
{
	ssize_t n = read(p->in, p->input, sizeof(p->input));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n < 0)
		return err_sys(err, "reading the input of the run");
	p->held = (size_t)n;
	p->sent = 0;
	if (n == 0) {
		static const char end_of_file = 4; /* what a terminal makes of ^D */

		p->in = -1;
		if (!p->terminal)
			forget(&p->run->our[0]);
		else if (write(p->run->our[0], &end_of_file, 1) < 0)
			return 0; /* a terminal that is full or gone will not miss it */
	}
	return 0;
}

static void feed_run(struct pump *p)
{
	ssize_t n = write(p->run->our[0], p->input + p->sent, p->held - p->sent);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n < 0) {
		/* It reads no more: neither do we. */
		p->in = -1;
		p->held = p->sent = 0;
		if (!p->terminal)
			forget(&p->run->our[0]);
		return;
	}
	p->sent += (size_t)n;
	if (p->sent == p->held)
		p->held = p->sent = 0;
}

static int give(struct pump *p, enum sandbox_stream stream, const char *data, size_t len,
		struct err *err)
{
	const struct sandbox_spec *spec = p->run->spec;
	int r;

	if (p->capped && len > p->left) {
		p->truncated = true;
		len = (size_t)p->left;
	}
	if (p->capped)
		p->left -= len;
	if (len == 0 || !spec->output)
		return 0;
	r = spec->output(spec->output_ctx, stream, data, len);
	return r < 0 ? err_wrap(err, r, "passing on what the run wrote") : 0;
}

/* 1 if there may be more, 0 if not now, or what passing it on failed with. */
static int take_output(struct pump *p, int *fd, enum sandbox_stream stream, struct err *err)
{
	char data[PUMP_CHUNK];
	ssize_t n = read(*fd, data, sizeof(data));
	int r;

	if (n < 0 && errno == EINTR)
		return 1;
	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n <= 0) {
		forget(fd); /* the end; EIO is a terminal's way to say so */
		return 0;
	}
	r = give(p, stream, data, (size_t)n, err);
	return r < 0 ? r : 1;
}

int pump_move(struct pump *p, const struct pollfd places[PUMP_PLACES], struct err *err)
{
	int *our = p->run->our;
	int r = 0;

	if (places[TO_RUN].revents)
		feed_run(p);
	/* They may be held since they were found ready: not a byte may follow a question. */
	if (is_held(p))
		return 0;
	if (places[FROM_CALLER].revents)
		r = read_caller(p, err);
	if (r == 0 && places[FROM_OUT].revents)
		r = take_output(p, p->terminal ? &our[0] : &our[1], SANDBOX_OUT, err);
	if (r < 0)
		return r;
	if (places[FROM_ERR].revents)
		r = take_output(p, &our[2], SANDBOX_ERR, err);
	return r < 0 ? r : 0;
}

int pump_drain(struct pump *p, struct err *err)
{
	int *our = p->run->our;
	int *out = p->terminal ? &our[0] : &our[1];
	int r = 1;

	while (r > 0 && *out >= 0)
		r = take_output(p, out, SANDBOX_OUT, err);
	if (r < 0)
		return r;
	r = 1;
	while (r > 0 && our[2] >= 0)
		r = take_output(p, &our[2], SANDBOX_ERR, err);
	return r < 0 ? r : 0;
}
