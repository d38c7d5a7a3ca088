#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "runner/net/bridge-i.h"

int bridge_ask(struct bridge *b, struct ask *ask)
{
	unsigned char bytes[ASK_MAX];
	size_t n;

	ask->id = ++b->last_id;
	n = ask_encode(ask, bytes);
	if (send(b->asks.fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return -errno;
	return 0;
}

int bridge_listen(struct bridge *b, enum listener_kind kind, const struct addr *addr, uint16_t port,
		  const struct alias *alias)
{
	AUTO_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	AUTO_FREE struct listener *l = calloc(1, sizeof(*l));
	struct sockaddr_storage at;
	socklen_t len = addr_to_socket(addr, port, &at);
	const int on = 1;
	int r;

	if (!l || b->n_listeners == BRIDGE_LISTENERS_MAX)
		return -ENOMEM;
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, (struct sockaddr *)&at, len) < 0 || listen(fd, 128) < 0)
		return -errno;
	l->watch = (struct loop_watch){ .fd = fd, .ready = b->connected, .owner = l };
	l->bridge = b;
	l->kind = kind;
	l->alias = alias;
	l->port = port;
	r = loop_watch(&b->loop, &l->watch, EPOLLIN);
	if (r < 0)
		return r;
	l->next = b->listeners;
	b->n_listeners++;
	b->listeners = TAKE_PTR(l);
	b->listeners->watch.fd = TAKE_FD(fd);
	return 0;
}
