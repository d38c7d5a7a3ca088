#include "runner/net/bridge.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/cleanup.h"
#include "runner/net/bridge-i.h"

/* --- the proxy outside -------------------------------------------------------------------- */

/* One answer; 0 at the end, a negative errno if there is none now. */
static ssize_t receive(int fd, struct answer *ret, int *ret_fd)
{
	unsigned char bytes[ANSWER_MAX];
	struct iovec iov = { .iov_base = bytes, .iov_len = sizeof(bytes) };
	_Alignas(struct cmsghdr) unsigned char control[CMSG_SPACE(sizeof(int))];
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *c;

	*ret_fd = -1;
	if (n < 0)
		return -errno;
	c = CMSG_FIRSTHDR(&msg);
	if (n > 0 && c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(ret_fd, CMSG_DATA(c), sizeof(int));
	if (n == 0 || answer_decode(bytes, (size_t)n, ret) < 0)
		return 0;
	return n;
}

static void deliver(struct bridge *b, const struct answer *answer, int fd)
{
	for (struct client *c = b->clients; c; c = c->next) {
		if (!c->dead && !c->unsent && c->stage == STAGE_WAIT && c->ask.id == answer->id) {
			client_answer(c, answer, fd);
			return;
		}
	}
	for (size_t i = 0; i < BRIDGE_DATAGRAMS_MAX; i++)
		if (b->datagrams[i].used && b->datagrams[i].id == answer->id)
			names_answer(&b->datagrams[i], b, answer);
	if (fd >= 0)
		close(fd);
}

static void on_answers(struct loop_watch *w)
{
	struct bridge *b = w->owner;
	struct answer answer;
	ssize_t n;
	int fd;

	while ((n = receive(w->fd, &answer, &fd)) > 0)
		deliver(b, &answer, fd);
	if (n == 0)
		b->ended = true;
	for (struct client *c = b->clients; c; c = c->next)
		if (c->unsent && !c->dead)
			client_send_ask(c);
}

static void on_connection(struct loop_watch *w)
{
	client_accept(w->owner);
}

/* --- life --------------------------------------------------------------------------------- */

static void free_dead(struct bridge *b)
{
	struct client **at = &b->clients, *c;

	while ((c = *at)) {
		if (!c->dead) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		relay_done(&c->relay);
		free(c);
		b->n_clients--;
	}
}

static void bridge_done(struct bridge *b)
{
	struct listener *l;

	for (struct client *c = b->clients; c; c = c->next)
		client_end(c);
	free_dead(b);
	while ((l = b->listeners)) {
		b->listeners = l->next;
		loop_stop(&b->loop, &l->watch);
		free(l);
	}
	for (unsigned i = 0; i < b->n_aliases; i++)
		free(b->aliases[i]);
	loop_stop(&b->loop, &b->dns);
	loop_stop(&b->loop, &b->asks);
	loop_close(&b->loop);
}

static int bridge_open(struct bridge *b, struct err *err)
{
	static const struct addr loopback = { 4, { 127, 0, 0, 1 } };
	int r = loop_open(&b->loop, err);

	if (r < 0)
		return r;
	r = loop_watch(&b->loop, &b->asks, EPOLLIN);
	if (r == 0)
		r = bridge_listen(b, LISTEN_PROXY, &loopback, b->options.port, NULL);
	if (r < 0)
		return err_wrap(err, r, "listening on port %u of the run's loopback",
				b->options.port);
	if (b->options.dns_port == 0)
		return 0;
	r = names_open(b, err);
	if (r == 0)
		r = bridge_listen(b, LISTEN_DNS, &loopback, b->options.dns_port, NULL);
	if (r < 0)
		return err_wrap(err, r, "answering names on port %u of the run's loopback",
				b->options.dns_port);
	return 0;
}

static void look_at_clock(struct bridge *b)
{
	const uint64_t now = clock_ms();

	for (struct client *c = b->clients; c; c = c->next) {
		if (!c->dead && c->deadline != 0 && c->deadline <= now)
			client_overdue(c);
		else if (!c->dead && c->deadline != 0)
			loop_wake(&b->loop, c->deadline);
	}
}

int bridge_main(const struct bridge_options *options, int fd, int ready_fd, struct err *err)
{
	CLEANUP(bridge_done) struct bridge b = { .options = *options,
						 .connected = on_connection,
						 .dns.fd = -1 };
	AUTO_CLOSE int ready = ready_fd;
	int r;

	b.asks = (struct loop_watch){ .fd = fd, .ready = on_answers, .owner = &b };
	b.options.connections = options->connections ? options->connections : 256;
	b.options.head_ms = options->head_ms ? options->head_ms : 30000;
	/* A process that could trace it would have its socket, and no more than the bridge gives anyway. */
	if (prctl(PR_SET_DUMPABLE, 0) < 0)
		return err_sys(err, "closing the bridge to other processes");
	r = bridge_open(&b, err);
	if (r == 0 && write(ready, "1", 1) != 1)
		r = err_sys(err, "saying that the bridge is ready");
	close(TAKE_FD(ready));
	while (r == 0 && !b.ended) {
		r = loop_step(&b.loop, -1, err);
		look_at_clock(&b);
		free_dead(&b);
	}
	return r;
}
