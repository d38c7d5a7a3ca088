#include "remote/ssh-line.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"

#define PROGRAM_VARIABLE "SNAPCOW_SSH_PROGRAM"
#define PROGRAM          "snapcow"

void ssh_line_close(struct ssh_line *l)
{
	ssh_end(&l->child);
	stream_done(&l->stream);
	l->stream = (struct stream){ .in = -1, .out = -1 };
}

void ssh_line_done(struct ssh_line *l)
{
	ssh_line_close(l);
	ssh_place_done(&l->place);
}

/* The connection broke; why, if ssh says so. */
static int lost(struct ssh_line *l, struct err *err)
{
	int r = ssh_explain(&l->child, &l->place, err);

	ssh_line_close(l);
	return r;
}

int ssh_line_receive(struct ssh_line *l, struct err *err)
{
	const int type = stream_receive(&l->stream);

	if (type == STREAM_FAIL)
		return stream_take_fail(&l->stream, err);
	if (type == -ENOMEM)
		return err_nomem(err);
	/* Nobody knows where the next message would begin. */
	if (type == -EINTR || type == -ETIMEDOUT)
		ssh_line_close(l);
	if (type == -ETIMEDOUT)
		return err_set(err, type, "'%s' stops in the middle of an answer", l->place.host);
	if (type == -EINTR)
		return -EINTR;
	return type <= 0 ? lost(l, err) : type;
}

int ssh_line_send(struct ssh_line *l, struct err *err)
{
	const int r = stream_send(&l->stream);

	if (r == -ENOMEM)
		return err_nomem(err);
	return r < 0 ? lost(l, err) : 0;
}

int ssh_line_strange(struct ssh_line *l, struct err *err)
{
	ssh_line_close(l);
	return err_set(err, -EPROTO, "'%s' answers something that this version cannot read",
		       l->place.host);
}

bool ssh_line_may_pass(int r)
{
	return r == -ECONNRESET || r == -ECONNREFUSED || r == -EHOSTUNREACH || r == -ETIMEDOUT;
}

/* The other end said something that snapcow does not say. */
static int not_ours(struct ssh_line *l, const void *said, size_t len, struct err *err)
{
	CLEANUP(buf_done) struct buf shown = BUF_INIT;

	IGNORE_RESULT(path_append_shown(&shown, said, len), "then it is not shown");
	ssh_line_close(l);
	return err_set(err, -EPROTO, "'%s' does not answer as snapcow does: '%s'", l->place.host,
		       buf_str(&shown) ? buf_str(&shown) : "");
}

/* 1 if there is something to read, or the end.  Signals interrupt poll() always, and read() not with SA_RESTART. */
static int wait_for_greeting(const struct ssh_line *l, uint64_t until)
{
	for (;;) {
		struct pollfd fds[2] = { { .fd = l->child.in, .events = POLLIN },
					 { .fd = l->stop_fd, .events = POLLIN } };
		const uint64_t now = sys_boot_ms();
		const int n = poll(fds, 2,
				   l->greet_ms < 0 ? -1
				   : now < until   ? (int)(until - now)
						   : 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ETIMEDOUT;
		return fds[1].revents != 0 ? -EINTR : 1;
	}
}

/* As fdio_read(). */
static ssize_t read_greeting(const struct ssh_line *l, char magic[STREAM_MAGIC_SIZE])
{
	const uint64_t until = sys_boot_ms() + (uint64_t)(l->greet_ms > 0 ? l->greet_ms : 0);
	size_t got = 0;

	while (got < STREAM_MAGIC_SIZE) {
		const int r = wait_for_greeting(l, until);
		const ssize_t n =
		    r < 0 ? r : read(l->child.in, magic + got, STREAM_MAGIC_SIZE - got);

		if (r < 0)
			return r;
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : (ssize_t)got;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

static int greet(struct ssh_line *l, struct err *err)
{
	char magic[STREAM_MAGIC_SIZE];
	const ssize_t n = read_greeting(l, magic);

	if (n == -EINTR || n == -ETIMEDOUT)
		ssh_line_close(l);
	if (n == -EINTR)
		return -EINTR;
	if (n == -ETIMEDOUT)
		return err_set(err, -ETIMEDOUT, "'%s' says nothing: snapcow there does not begin",
			       l->place.host);
	/* Also one that broke off while it greeted. */
	if (n <= 0 || (n < STREAM_MAGIC_SIZE && memcmp(magic, STREAM_MAGIC, (size_t)n) == 0))
		return lost(l, err);
	if (n < STREAM_MAGIC_SIZE || memcmp(magic, STREAM_MAGIC, sizeof(magic)) != 0)
		return not_ours(l, magic, (size_t)n, err);
	return 1;
}

int ssh_line_open(struct ssh_line *l, const char *words, bool stays, struct err *err)
{
	const char *program = getenv(PROGRAM_VARIABLE);
	AUTO_FREE char *command = NULL;
	int r;

	if (l->child.pid > 0)
		return 0;
	command = text_format("%s %s", program && *program ? program : PROGRAM, words);
	if (!command)
		return err_nomem(err);
	r = ssh_start(&l->place, command, stays, &l->child, err);
	if (r < 0)
		return r;
	l->stream = (struct stream){ .in = l->child.in, .out = l->child.out };
	return greet(l, err);
}
