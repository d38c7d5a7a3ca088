#include "runner/net/proxy.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "runner/net/proxy-i.h"

#define ASKS_PER_STEP 64

/* --- asks --------------------------------------------------------------------------------- */

static void take_name(struct proxy *p, const struct ask *ask)
{
	struct answer answer = { .status = ASK_OK, .id = ask->id };
	char name[ALLOW_HOST_MAX + 1];

	if (!allow_canonical(ask->host, ask->host_len, name))
		proxy_refuse_ask(p, ask, NET_RULE_NAME);
	else if (!allow_has_name(p->options.allow, name))
		proxy_refuse_ask(p, ask, NET_RULE_HOST);
	else
		proxy_send(p, &answer, -1);
}

static void take_ask(struct proxy *p, const struct ask *ask)
{
	struct allow_target target = { 0 };

	if (ask->kind == ASK_NAME) {
		take_name(p, ask);
		return;
	}
	switch (allow_ask(p->options.allow, ask->host, ask->host_len, ask->port, &target)) {
	case ALLOW_YES:
		proxy_take_open(p, ask, &target);
		break;
	case ALLOW_NO_HOST:
		proxy_no_rule(p, ask, &target, target.literal ? NET_RULE_LITERAL : NET_RULE_HOST);
		break;
	case ALLOW_NO_PORT:
		proxy_no_rule(p, ask, &target, NET_RULE_PORT);
		break;
	case ALLOW_NO_NAME:
		proxy_refuse_ask(p, ask, NET_RULE_NAME);
		break;
	}
}

/* A bridge that speaks nonsense is no bridge of ours, and gets nothing more. */
static void on_asks(struct loop_watch *w)
{
	struct proxy *p = w->owner;
	unsigned char bytes[ASK_MAX + 1];
	struct ask ask;
	ssize_t n;

	for (int i = 0; i < ASKS_PER_STEP && !p->ended && p->hear_at == 0; i++) {
		n = recv(w->fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_TRUNC);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0 || (size_t)n > sizeof(bytes) || ask_decode(bytes, (size_t)n, &ask) < 0)
			p->ended = true;
		else
			take_ask(p, &ask);
	}
}

/* --- life --------------------------------------------------------------------------------- */

int proxy_socketpair(int *ret_outside, int *ret_inside, struct err *err)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
		return err_sys(err, "making a socket between the run and its proxy");
	*ret_outside = fds[0];
	*ret_inside = fds[1];
	return 0;
}

static void set_defaults(struct proxy_options *o)
{
	o->connections = o->connections ? o->connections : 256;
	o->lookup_ms = o->lookup_ms ? o->lookup_ms : 10000;
	o->connect_ms = o->connect_ms ? o->connect_ms : 10000;
	o->hello_ms = o->hello_ms ? o->hello_ms : 30000;
}

int proxy_open(const struct proxy_options *options, int fd, struct proxy **ret, struct err *err)
{
	CLEANUP(proxy_close_p) struct proxy *p = NULL;
	AUTO_CLOSE int asks = fd;
	int r;

	p = calloc(1, sizeof(*p));
	if (!p)
		return err_nomem(err);
	p->options = *options;
	set_defaults(&p->options);
	p->asks = (struct loop_watch){ .fd = TAKE_FD(asks), .ready = on_asks, .owner = p };
	r = options->tls ? tls_load(err) : 0;
	if (r >= 0)
		r = loop_open(&p->loop, err);
	if (r < 0)
		return r;
	r = loop_watch(&p->loop, &p->asks, EPOLLIN);
	if (r < 0)
		return err_wrap(err, r, "waiting for what the run asks of its proxy");
	*ret = TAKE_PTR(p);
	return 0;
}

static void free_dead(struct proxy *p)
{
	struct conn **at = &p->conns, *c;

	while ((c = *at)) {
		if (!c->dead) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		relay_done(&c->relay);
		conn_tls_free(c);
		free(c);
		p->n_conns--;
	}
}

void proxy_close(struct proxy *p)
{
	struct pinned_host *pin;

	if (!p)
		return;
	for (struct conn *c = p->conns; c; c = c->next)
		conn_end(c);
	free_dead(p);
	proxy_drop_held(p);
	while ((pin = p->pins)) {
		p->pins = pin->next;
		if (pin->looking)
			lookup_stop(&pin->lookup, &p->loop);
		free(pin);
	}
	loop_stop(&p->loop, &p->asks);
	loop_close(&p->loop);
	tls_close(p->tls);
	free(p);
}

int proxy_fd(const struct proxy *p)
{
	return p->loop.fd;
}

uint64_t proxy_sent(const struct proxy *p, bool *ret_capped)
{
	*ret_capped = p->capped;
	return p->sent;
}

/* Asks are read, or not for a moment. */
static int pace(struct proxy *p, uint64_t now)
{
	if (p->hear_at <= now)
		p->hear_at = 0;
	else
		loop_wake(&p->loop, p->hear_at);
	return loop_watch(&p->loop, &p->asks, p->hear_at == 0 ? EPOLLIN : 0);
}

static int look_at_clock(struct proxy *p)
{
	const uint64_t now = clock_ms();

	for (struct pinned_host *pin = p->pins; pin; pin = pin->next) {
		if (pin->looking && pin->deadline <= now)
			pinned_host_overdue(pin);
		else if (pin->looking)
			loop_wake(&p->loop, pin->deadline);
	}
	for (struct conn *c = p->conns; c; c = c->next) {
		if (!c->dead && c->deadline != 0 && c->deadline <= now)
			conn_overdue(c);
		else if (!c->dead && c->deadline != 0)
			loop_wake(&p->loop, c->deadline);
	}
	return pace(p, now);
}

int proxy_step(struct proxy *p, struct err *err)
{
	int r = loop_step(&p->loop, 0, err);

	if (r < 0)
		return r;
	r = look_at_clock(p);
	if (r < 0)
		return err_wrap(err, r, "waiting for what the run asks of its proxy");
	free_dead(p);
	if (p->ended)
		loop_stop(&p->loop, &p->asks);
	return p->ended ? 1 : 0;
}
