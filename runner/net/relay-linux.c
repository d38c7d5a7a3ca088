#include "runner/net/relay.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

void relay_init(struct relay *r, struct loop *loop, loop_fn ready, void *owner)
{
	*r = (struct relay){ .loop = loop };
	for (int i = 0; i < 2; i++)
		r->side[i] = (struct loop_watch){ .fd = -1, .ready = ready, .owner = owner };
	r->ctx = owner;
}

void relay_done(struct relay *r)
{
	for (int i = 0; i < 2; i++) {
		if (r->loop)
			loop_stop(r->loop, &r->side[i]);
		buf_done(&r->way[i].in);
		buf_done(&r->way[i].out);
	}
}

void relay_attach(struct relay *r, int side, int fd)
{
	r->side[side].fd = fd;
	r->side[side].events = 0;
}

void relay_consume(struct buf *b, size_t n)
{
	memmove(b->data, b->data + n, b->len - n);
	b->len -= n;
}

int relay_pass(struct buf *in, struct buf *out, size_t n)
{
	int r = n > 0 ? buf_append(out, in->data, n) : 0;

	if (r == 0 && n > 0)
		relay_consume(in, n);
	return r;
}

static size_t pending(const struct relay_way *w)
{
	return w->out.len - w->sent;
}

static bool wants_more(const struct relay_way *w)
{
	return !w->eof && w->in.len + pending(w) < RELAY_CHUNK;
}

static int receive(struct relay_way *w, int fd)
{
	size_t room = RELAY_CHUNK - w->in.len;
	ssize_t n;

	if (buf_reserve(&w->in, room) < 0)
		return -ENOMEM;
	n = recv(fd, w->in.data + w->in.len, room, MSG_DONTWAIT);
	if (n > 0)
		w->in.len += (size_t)n;
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		w->eof = true; /* a reset says no more than an end does */
	return 0;
}

static int filter(struct relay *r, struct relay_way *w)
{
	if (w->filter)
		return w->filter(r->ctx, &w->in, &w->out, w->eof);
	return relay_pass(&w->in, &w->out, w->in.len);
}

/* A side that takes no more ends this way; the other side may still send. */
static void give_up(struct relay_way *w)
{
	buf_reset(&w->in);
	buf_reset(&w->out);
	w->sent = 0;
	w->eof = w->shut = true;
}

static void deliver(struct relay_way *w, int fd)
{
	ssize_t n;

	while (pending(w) > 0) {
		n = send(fd, w->out.data + w->sent, pending(w), MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			give_up(w);
			return;
		}
		w->sent += (size_t)n;
	}
	buf_reset(&w->out);
	w->sent = 0;
	if (w->eof && w->in.len == 0 && !w->held && !w->shut) {
		shutdown(fd, SHUT_WR);
		w->shut = true;
	}
}

static int run_way(struct relay *r, int i)
{
	struct relay_way *w = &r->way[i];
	int ret = 0;

	if (w->shut)
		return 0;
	if (r->side[i].fd >= 0 && wants_more(w))
		ret = receive(w, r->side[i].fd);
	if (ret == 0 && (w->in.len > 0 || w->eof || w->held))
		ret = filter(r, w);
	if (ret == 0 && r->side[1 - i].fd >= 0)
		deliver(w, r->side[1 - i].fd);
	return ret;
}

/* Way 1 first: what a server says may decide how the client's next words are taken. */
int relay_run(struct relay *r)
{
	int ret;

	for (int i = 1; i >= 0; i--) {
		ret = run_way(r, i);
		if (ret < 0)
			return ret;
	}
	/* A client that has ended, and whose rest its filter keeps back, need not be waited for. */
	if (r->way[1].shut && (r->way[0].shut || (r->way[0].eof && pending(&r->way[0]) == 0)))
		return 1;
	for (int i = 0; i < 2; i++) {
		uint32_t events = wants_more(&r->way[i]) ? EPOLLIN : 0;

		if (pending(&r->way[1 - i]) > 0)
			events |= EPOLLOUT;
		ret = loop_watch(r->loop, &r->side[i], events);
		if (ret < 0)
			return ret;
	}
	return 0;
}
