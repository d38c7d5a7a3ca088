/*
 * One connection of the proxy, from a name that is allowed to bytes that flow.
 *
 * A proxy looks a name up once and keeps the addresses: a second lookup, which could answer something
 * else, never happens.  Addresses are judged when they are used,
 * right before connect(2) gets that very address.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "runner/net/proxy-i.h"

void conn_end(struct conn *c)
{
	if (c->dead)
		return;
	loop_stop(&c->proxy->loop, &c->outer);
	for (int i = 0; i < 2 && c->relaying; i++)
		loop_stop(&c->proxy->loop, &c->relay.side[i]);
	c->dead = true;
}

static void fail(struct conn *c, enum ask_status status, const char *what)
{
	char sentence[ASK_SENTENCE_MAX + 1];

	snprintf(sentence, sizeof(sentence), "'%s:%u': %s", c->target.host, c->port, what);
	proxy_answer(c, status, sentence, -1);
	conn_end(c);
}

/* --- relaying ----------------------------------------------------------------------------- */

static void run_relay(struct conn *c)
{
	if (!c->dead && relay_run(&c->relay) != 0)
		conn_end(c);
	else if (!c->dead && c->closing && c->relay.way[0].out.len == 0 && c->relay.side[1].fd >= 0)
		shutdown(c->relay.side[1].fd, SHUT_WR);
}

static void on_relay(struct loop_watch *w)
{
	run_relay(w->owner);
}

/* The client gets one end of a pair of ours: a socket of the network could be connected anew. */
static void begin_relay(struct conn *c)
{
	struct proxy *p = c->proxy;
	int pair[2];

	IGNORE_RESULT(loop_watch(&p->loop, &c->outer, 0), "the kernel never refuses to forget");
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0) {
		fail(c, ASK_FAILED, "no more sockets");
		return;
	}
	relay_init(&c->relay, &p->loop, on_relay, c);
	relay_attach(&c->relay, 0, pair[0]);
	relay_attach(&c->relay, 1, c->outer.fd);
	c->outer.fd = -1;
	c->relay.way[0].filter = conn_hear_client;
	c->relay.way[1].filter = conn_hear_server;
	if (c->target.requests)
		judge_requests(&c->judge, p->options.allow, &c->target, c->port);
	else
		judge_init(&c->judge, c->target.any ? NULL : c->target.host);
	c->judge.port = c->port;
	judge_secrets(&c->judge, p->options.secrets, &c->target, c->port);
	if (p->options.tls && inspect_has(p->options.tls->hosts, &c->target, c->port) &&
	    conn_tls_begin(c) < 0) {
		close(pair[1]);
		c->relaying = true;
		conn_end(c);
		return;
	}
	proxy_answer(c, ASK_OK, "", pair[1]);
	close(pair[1]);
	c->relaying = true;
	c->deadline = 0;
	run_relay(c);
}

/* --- connecting --------------------------------------------------------------------------- */

/* An address of this machine is reached from itself.  Nothing is sent to find out. */
static bool is_own(const struct addr *a)
{
	struct sockaddr_storage to, from = { 0 };
	socklen_t len = addr_to_socket(a, 9, &to), from_len = sizeof(from);
	AUTO_CLOSE int fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct addr source;

	return fd >= 0 && connect(fd, (struct sockaddr *)&to, len) == 0 &&
	       getsockname(fd, (struct sockaddr *)&from, &from_len) == 0 &&
	       addr_from_socket((struct sockaddr *)&from, &source) && addr_equal(a, &source);
}

/* May it lead there?  If not, `ret` says by which rule. */
static bool may_connect(const struct conn *c, const struct addr *a, enum net_rule *ret)
{
	if (allow_has_addr(c->proxy->options.allow, a, c->port))
		return true;
	*ret = addr_special(a) ? NET_RULE_ADDRESS : NET_RULE_SELF;
	return !addr_special(a) && !is_own(a);
}

/* True once it is under way or done. */
static bool connect_to(struct conn *c, const struct addr *a)
{
	struct sockaddr_storage to;
	socklen_t len = addr_to_socket(a, c->port, &to);
	AUTO_CLOSE int fd =
	    socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);

	if (fd < 0 || (connect(fd, (struct sockaddr *)&to, len) < 0 && errno != EINPROGRESS))
		return false;
	c->outer.fd = TAKE_FD(fd);
	c->outer.events = 0;
	if (loop_watch(&c->proxy->loop, &c->outer, EPOLLOUT) < 0) {
		loop_stop(&c->proxy->loop, &c->outer);
		return false;
	}
	c->deadline = clock_ms() + c->proxy->options.connect_ms;
	return true;
}

static void try_next(struct conn *c)
{
	const struct addr *list = c->pin ? c->pin->addrs : &c->target.addr;
	const size_t n = c->pin ? c->pin->n : 1;
	const struct addr *refused = NULL;
	enum net_rule rule = NET_RULE_ADDRESS;
	char text[ADDR_TEXT_MAX];
	bool tried = c->next_addr > 0;

	while (c->next_addr < n) {
		const struct addr *a = &list[c->next_addr++];

		if (!may_connect(c, a, &rule)) {
			refused = a;
			continue;
		}
		tried = true;
		if (connect_to(c, a))
			return;
	}
	if (refused && !tried) {
		proxy_refuse(c, rule, addr_format(refused, text));
		conn_end(c);
	} else {
		fail(c, ASK_UNREACHABLE, "nobody answers there");
	}
}

static void on_outer(struct loop_watch *w)
{
	struct conn *c = w->owner;
	socklen_t len = sizeof(int);
	int code = 0;

	if (getsockopt(w->fd, SOL_SOCKET, SO_ERROR, &code, &len) < 0)
		code = errno;
	if (code == 0) {
		begin_relay(c);
		return;
	}
	loop_stop(&c->proxy->loop, w);
	try_next(c);
}

/* --- names -------------------------------------------------------------------------------- */

static void end_lookup(struct pinned_host *pin)
{
	struct proxy *p = pin->proxy;

	lookup_stop(&pin->lookup, &p->loop);
	pin->looking = false;
	p->n_looking--;
	for (struct conn *c = p->conns; c; c = c->next) {
		if (c->dead || c->pin != pin || c->relaying || c->outer.fd >= 0)
			continue;
		if (pin->n == 0)
			fail(c, ASK_NOT_FOUND, "the name leads nowhere");
		else
			try_next(c);
	}
}

static void on_lookup(struct loop_watch *w)
{
	struct pinned_host *pin = w->owner;

	lookup_read(&pin->lookup);
	pin->n = pin->lookup.n;
	memcpy(pin->addrs, pin->lookup.addrs, sizeof(pin->addrs));
	end_lookup(pin);
}

void pinned_host_overdue(struct pinned_host *pin)
{
	pin->n = 0;
	end_lookup(pin);
}

static struct pinned_host *find_pin(struct proxy *p, const char *host)
{
	struct pinned_host *pin;

	for (pin = p->pins; pin; pin = pin->next)
		if (strcmp(pin->host, host) == 0)
			return pin;
	pin = p->n_pins < PROXY_NAMES_MAX ? calloc(1, sizeof(*pin)) : NULL;
	if (!pin)
		return NULL;
	pin->proxy = p;
	pin->next = p->pins;
	memcpy(pin->host, host, sizeof(pin->host));
	p->pins = pin;
	p->n_pins++;
	return pin;
}

/* A name that led nowhere may do so later: only an answer is pinned. */
static int look_up(struct pinned_host *pin)
{
	struct proxy *p = pin->proxy;
	int r;

	if (p->n_looking == PROXY_LOOKUPS_MAX)
		return -EBUSY;
	if (!proxy_charge(p, strlen(pin->host)))
		return -EDQUOT;
	r = lookup_start(&pin->lookup, &p->loop, pin->host, on_lookup, pin, NULL);
	if (r < 0)
		return r;
	pin->looking = true;
	pin->deadline = clock_ms() + p->options.lookup_ms;
	p->n_looking++;
	return 0;
}

static void conn_start(struct conn *c)
{
	int r = 0;

	c->outer.ready = on_outer;
	c->outer.owner = c;
	if (c->target.literal) {
		try_next(c);
		return;
	}
	c->pin = find_pin(c->proxy, c->target.host);
	if (c->pin && c->pin->n > 0) {
		try_next(c);
		return;
	}
	if (c->pin && !c->pin->looking)
		r = look_up(c->pin);
	else if (!c->pin)
		r = -EBUSY;
	if (r == -EDQUOT) {
		proxy_refuse(c, NET_RULE_BYTES, "");
		conn_end(c);
	} else if (r < 0) {
		fail(c, ASK_FAILED, "too many names at once");
	}
}

void proxy_take_open(struct proxy *p, const struct ask *ask, const struct allow_target *target)
{
	struct conn *c = NULL;

	if (p->options.max_out > 0 && p->sent >= p->options.max_out) {
		p->capped = true;
		proxy_refuse_ask(p, ask, NET_RULE_BYTES);
		return;
	}
	if (p->n_conns < p->options.connections)
		c = calloc(1, sizeof(*c));
	if (!c) {
		proxy_refuse_ask(p, ask, NET_RULE_LIMIT);
		return;
	}
	*c = (struct conn){
		.proxy = p, .next = p->conns, .id = ask->id, .target = *target, .port = ask->port
	};
	c->outer.fd = -1;
	p->conns = c;
	p->n_conns++;
	conn_start(c);
}

void conn_overdue(struct conn *c)
{
	c->deadline = 0;
	if (c->relaying) {
		if (c->tls && conn_tls_overdue(c))
			run_relay(c);
		else
			conn_end(c);
		return;
	}
	loop_stop(&c->proxy->loop, &c->outer);
	try_next(c);
}
