#include "engine/worker/slot-i.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"

#define MESSAGE_MAX ((size_t)128 << 10) /* a ticket, or a result; less than what a socket takes */

static int say(int sock, enum slot_word word, const void *data, size_t len)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;

	if (buf_append_u8(&text, (uint8_t)word) < 0 || buf_append(&text, data, len) < 0)
		return -ENOMEM;
	return send(sock, text.data, text.len, MSG_NOSIGNAL) == (ssize_t)text.len ? 0 : -errno;
}

/* --- in the child ------------------------------------------------------------------------- */

/* Whoever made us is gone if the parent is another one already. */
static void die_with(pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(1);
}

_Noreturn static void be_child(const struct perform_config *c, const struct buf *ticket,
			       const struct slot *s, pid_t parent)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	CLEANUP(result_done) struct result res = { 0 };
	struct err err = { 0 };
	int r;

	die_with(parent);
	signal(SIGTERM, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	r = perform_text(c, ticket, s->out, s->err, &res, &err);
	if (r == 0)
		r = result_encode(&res, &text, &err);
	if (r == 0)
		r = say(s->sock, SLOT_RESULT, text.data, text.len);
	else
		r = say(s->sock, SLOT_LATER, err.msg, strlen(err.msg));
	_exit(r < 0);
}

/* --- in the slot -------------------------------------------------------------------------- */

static void on_signal(int sig)
{
}

_Noreturn static void be_slot(const struct perform_config *c, const struct slot *s, pid_t parent)
{
	/* A handler, which no program inherits.  To end us, one signals the worker. */
	const struct sigaction stays = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	const pid_t self = getpid();

	die_with(parent);
	setsid();
	sigaction(SIGTERM, &stays, NULL);
	sigaction(SIGINT, &stays, NULL);
	sys_name_process("snap-worker-slot");
	if (!buf_extend(&text, MESSAGE_MAX))
		_exit(1);
	for (;;) {
		ssize_t n = recv(s->sock, text.data, MESSAGE_MAX, 0);
		uint32_t said;
		pid_t pid;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_exit(0);
		text.len = (size_t)n;
		pid = fork();
		if (pid == 0)
			be_child(c, &text, s, self);
		said = (uint32_t)pid;
		if (pid > 0 && say(s->sock, SLOT_CHILD, &said, sizeof(said)) < 0)
			_exit(1);
		while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
		if (say(s->sock, SLOT_ENDED, "", 0) < 0)
			_exit(1);
	}
}

/* --- in the worker ------------------------------------------------------------------------ */

static int make_pair(int pair[2], struct err *err)
{
	const int size = 2 * (int)MESSAGE_MAX;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, "making a socket");
	for (int i = 0; i < 2; i++)
		setsockopt(pair[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	return 0;
}

static int start(struct slot *slots, size_t i, const struct perform_config *c, struct err *err)
{
	int pair[2] = { -1, -1 }, out[2] = { -1, -1 }, errs[2] = { -1, -1 };
	const pid_t self = getpid();
	struct slot *s = &slots[i];
	int r = make_pair(pair, err);

	if (r == 0 && (sys_pipe(out) < 0 || sys_pipe(errs) < 0))
		r = err_set(err, -EMFILE, "making a pipe");
	if (r == 0) {
		s->pid = fork();
		if (s->pid < 0)
			r = err_sys(err, "making a process for tickets");
	}
	if (r == 0 && s->pid == 0) {
		/* The ends of others must not stay open here, or nobody would see them close. */
		for (size_t k = 0; k < i; k++) {
			close(slots[k].sock);
			close(slots[k].out);
			close(slots[k].err);
		}
		close(pair[0]);
		close(out[0]);
		close(errs[0]);
		be_slot(c, &(struct slot){ .sock = pair[1], .out = out[1], .err = errs[1] }, self);
	}
	cleanup_close(&pair[1]);
	cleanup_close(&out[1]);
	cleanup_close(&errs[1]);
	s->sock = pair[0];
	s->out = out[0];
	s->err = errs[0];
	for (int k = 0; r == 0 && k < 3; k++)
		if (fcntl((int[]){ s->sock, s->out, s->err }[k], F_SETFL, O_NONBLOCK) < 0)
			r = err_sys(err, "a pipe");
	return r;
}

int slots_start(struct slot *slots, size_t n, const struct perform_config *config, struct err *err)
{
	int r = 0;

	fflush(NULL);
	for (size_t i = 0; i < n; i++)
		slots[i] = (struct slot){ .state = SLOT_DEAD, .sock = -1, .out = -1, .err = -1 };
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = start(slots, i, config, err);
		if (r == 0)
			slots[i].state = SLOT_IDLE;
	}
	return r;
}

void slots_end(struct slot *slots, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct slot *s = &slots[i];

		/* The child goes with its parent, and all that it runs with it. */
		if (s->pid > 0) {
			kill(s->pid, SIGKILL);
			while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
				;
		}
		cleanup_close(&s->sock);
		cleanup_close(&s->out);
		cleanup_close(&s->err);
		ticket_done(&s->ticket);
		buf_done(&s->result);
		free(s->reply);
	}
}

int slot_send(struct slot *s, const struct buf *text, struct err *err)
{
	return send(s->sock, text->data, text->len, MSG_NOSIGNAL) == (ssize_t)text->len
		   ? 0
		   : err_sys(err, "handing a ticket on");
}

int slot_read(struct slot *s, enum slot_word *ret_word, struct buf *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	ssize_t n;

	if (!buf_extend(&text, MESSAGE_MAX))
		return err_nomem(err);
	do
		n = recv(s->sock, text.data, MESSAGE_MAX, 0);
	while (n < 0 && errno == EINTR);
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	if (n <= 0)
		return -ECHILD;
	*ret_word = (enum slot_word)text.data[0];
	buf_reset(ret);
	return buf_append(ret, text.data + 1, (size_t)n - 1) < 0 ? err_nomem(err) : 1;
}
