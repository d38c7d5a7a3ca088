/*
 * line-linux.c - messages between the three processes of a run: one message, one packet.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runner/sandbox-i.h"

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int) * LINE_FDS_MAX)];
};

int line_send(int line, const struct line_msg *msg, const int *fds, size_t n_fds)
{
	struct line_msg copy = *msg;
	struct iovec iov = { .iov_base = &copy, .iov_len = sizeof(copy) };
	union control control = { 0 };
	struct msghdr hdr = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	if (n_fds > 0) {
		struct cmsghdr *c = &control.align;

		hdr.msg_control = control.bytes;
		hdr.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * n_fds);
	}
	do {
		n = sendmsg(line, &hdr, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

int line_receive(int line, struct line_msg *ret, int *fds, size_t *n_fds)
{
	struct iovec iov = { .iov_base = ret, .iov_len = sizeof(*ret) };
	union control control = { 0 };
	struct msghdr hdr = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	int resets = 0;
	ssize_t n;

	*n_fds = 0;
	/*
	 * ECONNRESET comes once, before what the other side still sent: it ended without
	 * reading all that we sent.
	 */
	do {
		n = recvmsg(line, &hdr, MSG_CMSG_CLOEXEC);
	} while (n < 0 && (errno == EINTR || (errno == ECONNRESET && resets++ == 0)));
	if (n < 0)
		return errno == ECONNRESET ? 0 : -errno;
	if (n == 0)
		return 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&hdr); c; c = CMSG_NXTHDR(&hdr, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		*n_fds = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds, CMSG_DATA(c), *n_fds * sizeof(int));
	}
	ret->err.msg[sizeof(ret->err.msg) - 1] = '\0';
	return n == sizeof(*ret) ? 1 : -EBADMSG;
}

int line_say_ids(struct run *run, struct err *err)
{
	const struct line_msg ids = { .kind = LINE_IDS };
	int r = line_send(run->line, &ids, NULL, 0);

	return r < 0 ? err_wrap(err, r, "starting the run") : 0;
}

int line_say_go(struct run *run, struct err *err)
{
	struct line_msg go = { .kind = LINE_GO, .value = (int)run->held, .walls = run->walls };
	int fds[LINE_FDS_MAX];
	size_t n = 0;
	int r;

	if (run->clone >= 0)
		fds[n++] = run->clone;
	for (size_t i = 0; i < run->spec->n_mounts; i++) {
		if (run->trees[i] < 0)
			continue;
		if (n == LINE_FDS_MAX)
			return err_set(err, -EINVAL, "a run can have no more than %d owned mounts",
				       LINE_FDS_MAX);
		fds[n++] = run->trees[i];
	}
	r = line_send(run->line, &go, fds, n);
	return r < 0 ? err_wrap(err, r, "starting the run") : 0;
}

void line_leave(int status)
{
	syscall(SYS_exit_group, status);
	__builtin_trap();
}

void line_give_up(int line, const struct err *err, bool at_exec)
{
	struct line_msg msg = { .kind = LINE_FAILED, .value = at_exec, .err = *err };

	IGNORE_RESULT(line_send(line, &msg, NULL, 0), "nobody is left to read it");
	line_leave(at_exec ? 127 : 125);
}
