/*
 * The publisher: outside, in the process that started the run.
 *
 * It accepts a client, asks the door for a connection to the server, and once that stands joins the
 * two by a relay. A server may listen on ::1 alone, as those do that say "localhost": where
 * 127.0.0.1 refuses, the publisher tries ::1. It accepts a client before it knows whether a server
 * listens; if none does, it resets the connection.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "runner/net/addr.h"
#include "runner/net/publish-i.h"
#include "runner/net/publish.h"
#include "runner/net/relay.h"

#define VISITS_MAX  256   /* connections at once; more clients wait to be accepted */
#define CONNECT_MS  10000 /* for the door to answer, and for the server to accept */
#define NO_ROOM_MS  100   /* until clients are accepted again, after there was no descriptor */
#define DRAIN_MS    1000
#define BACKLOG     128
#define ANY_TRIES   16 /* ports of IPv4 that turn out to be taken on IPv6 */
#define LISTENS_MAX (2 * PUBLISH_MAX)

enum stage { ASKED, CONNECTING, PASSING };

struct visit {
	struct publish *publish;
	struct visit *next;
	bool dead;
	enum stage stage;
	struct door_word word; /* what the door was asked */
	uint64_t deadline;     /* 0: none */
	int client;            /* owned; until PASSING */
	struct loop_watch server;
	struct relay relay; /* side 0 is the client */
};

struct listener {
	struct loop_watch watch; /* first, so that its address is the listener's */
	uint16_t inside;
};

struct publish {
	struct loop loop;
	struct loop_watch door;
	struct listener listeners[LISTENS_MAX];
	size_t n_listeners;
	struct visit *visits;
	unsigned n_visits;
	uint32_t last_id;
	uint64_t accept_at; /* not before; 0: at once */
};

/* --- one client ------------------------------------------------------------------------------- */

static void end_visit(struct visit *v)
{
	struct loop *loop = &v->publish->loop;

	if (v->dead)
		return;
	loop_stop(loop, &v->server);
	for (int i = 0; i < 2 && v->stage == PASSING; i++)
		loop_stop(loop, &v->relay.side[i]);
	cleanup_close(&v->client);
	v->dead = true;
}

/* Nobody listens there: as the client would have heard without us. */
static void reset_visit(struct visit *v)
{
	const struct linger now = { .l_onoff = 1 };

	if (v->client >= 0)
		setsockopt(v->client, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	end_visit(v);
}

static void ask_door(struct visit *v, enum door_what what)
{
	struct publish *p = v->publish;

	v->stage = ASKED;
	v->word.what = what;
	v->word.id = ++p->last_id;
	v->deadline = clock_ms() + CONNECT_MS;
	/* A door that does not read what it is asked has been stopped by the run. */
	if (p->door.fd < 0 || door_send(p->door.fd, &v->word, -1, MSG_DONTWAIT) < 0)
		reset_visit(v);
}

static void refused(struct visit *v)
{
	loop_stop(&v->publish->loop, &v->server);
	if (v->word.what == DOOR_IPV4)
		ask_door(v, DOOR_IPV6);
	else
		reset_visit(v);
}

static void on_relay(struct loop_watch *w)
{
	struct visit *v = w->owner;

	if (!v->dead && relay_run(&v->relay) != 0)
		end_visit(v);
}

static void begin_relay(struct visit *v)
{
	struct loop *loop = &v->publish->loop;

	IGNORE_RESULT(loop_watch(loop, &v->server, 0), "the kernel never refuses to forget");
	relay_init(&v->relay, loop, on_relay, v);
	relay_attach(&v->relay, 0, TAKE_FD(v->client));
	relay_attach(&v->relay, 1, TAKE_FD(v->server.fd));
	v->stage = PASSING;
	v->deadline = 0;
	on_relay(&v->relay.side[0]);
}

static void on_server(struct loop_watch *w)
{
	struct visit *v = w->owner;
	socklen_t len = sizeof(int);
	int code = 0;

	if (getsockopt(w->fd, SOL_SOCKET, SO_ERROR, &code, &len) < 0 || code != 0)
		refused(v);
	else
		begin_relay(v);
}

static bool has_option(int fd, int option, int value)
{
	int is = -1;
	socklen_t len = sizeof(is);

	return getsockopt(fd, SOL_SOCKET, option, &is, &len) == 0 && is == value;
}

/* Anything else could be made by the run to block us, or to have side effects. */
static bool is_tcp(int fd)
{
	return (has_option(fd, SO_DOMAIN, AF_INET) || has_option(fd, SO_DOMAIN, AF_INET6)) &&
	       has_option(fd, SO_TYPE, SOCK_STREAM) && has_option(fd, SO_PROTOCOL, IPPROTO_TCP);
}

static void take_answer(struct publish *p, const struct door_word *word, int fd)
{
	AUTO_CLOSE int server = fd;
	struct visit *v = p->visits;

	while (v && (v->dead || v->stage != ASKED || v->word.id != word->id))
		v = v->next;
	if (!v)
		return;
	if (word->what == DOOR_FAILED || server < 0 || !is_tcp(server)) {
		refused(v);
		return;
	}
	v->stage = CONNECTING;
	v->server = (struct loop_watch){ .fd = TAKE_FD(server), .ready = on_server, .owner = v };
	if (loop_watch(&p->loop, &v->server, EPOLLOUT) < 0)
		reset_visit(v);
}

/* From now on the kernel refuses clients. */
static void stop_listening(struct publish *p)
{
	for (size_t i = 0; i < p->n_listeners; i++)
		loop_stop(&p->loop, &p->listeners[i].watch);
}

static void on_door(struct loop_watch *w)
{
	struct publish *p = w->owner;
	struct door_word word;
	int fd = -1, r;

	while ((r = door_receive(w->fd, &word, &fd, MSG_DONTWAIT)) > 0)
		take_answer(p, &word, fd);
	if (r == -EAGAIN)
		return;
	cleanup_close(&fd);
	loop_stop(&p->loop, w);
	stop_listening(p);
	for (struct visit *v = p->visits; v; v = v->next)
		if (!v->dead && v->stage == ASKED)
			reset_visit(v);
}

static void on_client(struct loop_watch *w)
{
	struct listener *l = (struct listener *)w;
	struct publish *p = w->owner;
	const int on = 1;
	AUTO_CLOSE int fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct visit *v = fd < 0 ? NULL : calloc(1, sizeof(*v));

	if (fd < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED))
		return;
	if (!v) {
		p->accept_at = clock_ms() + NO_ROOM_MS;
		return;
	}
	/* Small answers must not wait for the one before to be confirmed. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	*v = (struct visit){ .publish = p,
			     .next = p->visits,
			     .word.port = l->inside,
			     .client = TAKE_FD(fd),
			     .server.fd = -1 };
	p->visits = v;
	p->n_visits++;
	ask_door(v, DOOR_IPV4);
}

/* --- listening -------------------------------------------------------------------------------- */

/* A socket that listens on loopback, on *port, which is set if it was 0. */
static int listen_on(const struct addr *addr, uint16_t *port)
{
	struct sockaddr_storage at;
	socklen_t len = addr_to_socket(addr, *port, &at);
	AUTO_CLOSE int fd = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const int on = 1;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (at.ss_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&at, len) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	if (getsockname(fd, (struct sockaddr *)&at, &len) < 0)
		return -errno;
	*port = ntohs(at.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&at)->sin6_port
					       : ((struct sockaddr_in *)&at)->sin_port);
	return TAKE_FD(fd);
}

static void keep_listener(struct publish *p, int fd, uint16_t inside)
{
	p->listeners[p->n_listeners++] = (struct listener){
		.watch = { .fd = fd, .ready = on_client, .owner = p },
		.inside = inside,
	};
}

/*
 * On both addresses, so that "localhost" is never somebody else's server; a machine without IPv6 has
 * one of them.
 */
static int listen_both(struct publish *p, struct publish_port *port)
{
	static const struct addr ipv4 = { 4, { 127, 0, 0, 1 } }, ipv6 = { 16, { [15] = 1 } };
	AUTO_CLOSE int fd = -1;
	int second, tries = port->outside == 0 ? ANY_TRIES : 1;
	uint16_t at;

	do {
		cleanup_close(&fd);
		at = port->outside;
		fd = listen_on(&ipv4, &at);
		if (fd < 0)
			return TAKE_FD(fd);
		second = listen_on(&ipv6, &at);
	} while (second == -EADDRINUSE && --tries > 0);
	if (second == -EADDRINUSE)
		return second;
	port->outside = at;
	keep_listener(p, TAKE_FD(fd), port->inside);
	if (second >= 0)
		keep_listener(p, second, port->inside);
	return 0;
}

static int listen_all(struct publish *p, struct publish_port *ports, size_t n, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < n && r >= 0; i++) {
		r = listen_both(p, &ports[i]);
		if (r == -EADDRINUSE)
			return err_set(err, r, "port %u of this machine is taken",
				       ports[i].outside);
		if (r < 0)
			return err_wrap(err, r, "listening on port %u of this machine",
					ports[i].outside);
	}
	return 0;
}

/* --- life ------------------------------------------------------------------------------------- */

/* Clients are accepted, or wait for a moment. */
static int pace(struct publish *p)
{
	const bool full = p->n_visits >= VISITS_MAX;
	int r = 0;

	if (p->accept_at != 0 && p->accept_at <= clock_ms())
		p->accept_at = 0;
	if (p->accept_at != 0)
		loop_wake(&p->loop, p->accept_at);
	for (size_t i = 0; i < p->n_listeners && r == 0; i++)
		r = loop_watch(&p->loop, &p->listeners[i].watch,
			       full || p->accept_at != 0 ? 0 : EPOLLIN);
	return r;
}

int publish_open(struct publish_port *ports, size_t n, struct publish **ret, int *ret_inside,
		 struct err *err)
{
	CLEANUP(publish_close_p) struct publish *p = calloc(1, sizeof(*p));
	int pair[2], r;

	if (!p)
		return err_nomem(err);
	p->door = (struct loop_watch){ .fd = -1, .ready = on_door, .owner = p };
	r = loop_open(&p->loop, err);
	if (r >= 0)
		r = listen_all(p, ports, n, err);
	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, "making a socket between the run and its published ports");
	p->door.fd = pair[0];
	r = loop_watch(&p->loop, &p->door, EPOLLIN);
	if (r == 0)
		r = pace(p);
	if (r < 0) {
		close(pair[1]);
		return err_wrap(err, r, "waiting for clients of the run");
	}
	*ret_inside = pair[1];
	*ret = TAKE_PTR(p);
	return 0;
}

static void free_dead(struct publish *p)
{
	struct visit **at = &p->visits, *v;

	while ((v = *at)) {
		if (!v->dead) {
			at = &v->next;
			continue;
		}
		*at = v->next;
		if (v->stage == PASSING)
			relay_done(&v->relay);
		free(v);
		p->n_visits--;
	}
}

void publish_close(struct publish *p)
{
	if (!p)
		return;
	for (struct visit *v = p->visits; v; v = v->next)
		end_visit(v);
	free_dead(p);
	stop_listening(p);
	loop_stop(&p->loop, &p->door);
	loop_close(&p->loop);
	free(p);
}

int publish_fd(const struct publish *p)
{
	return p->loop.fd;
}

static int step(struct publish *p, int ms, struct err *err)
{
	int r = loop_step(&p->loop, ms, err);
	uint64_t now;

	if (r < 0)
		return r;
	now = clock_ms();
	for (struct visit *v = p->visits; v; v = v->next) {
		if (!v->dead && v->deadline != 0 && v->deadline <= now)
			reset_visit(v);
		else if (!v->dead && v->deadline != 0)
			loop_wake(&p->loop, v->deadline);
	}
	free_dead(p);
	r = pace(p);
	return r < 0 ? err_wrap(err, r, "waiting for clients of the run") : 0;
}

int publish_step(struct publish *p, struct err *err)
{
	int r = step(p, 0, err);

	return r < 0 ? r : p->door.fd < 0 && !p->visits;
}

/* Is there one whose server has said something that has not arrived? */
static bool has_more(const struct publish *p)
{
	for (const struct visit *v = p->visits; v; v = v->next)
		if (v->stage == PASSING && !v->relay.way[1].shut)
			return true;
	return false;
}

void publish_drain(struct publish *p)
{
	const uint64_t end = clock_ms() + DRAIN_MS;
	struct err ignored = { 0 };

	stop_listening(p);
	for (uint64_t now = clock_ms(); has_more(p) && now < end; now = clock_ms())
		if (step(p, (int)(end - now), &ignored) < 0)
			return;
}
