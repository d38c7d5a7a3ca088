/*
 * Names inside. The proxy decides whether a name exists; the address is ours: one in 127.64.0.0/16
 * for each name, on which the ports of its rules are served.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "runner/net/bridge-i.h"

#define ALIAS_PORTS_MAX 8 /* of one name; a range of ports is served from its beginning */

/* A port that cannot be had (a program of the run may have it) leaves the name without it. */
static void serve_ports(struct bridge *b, const struct alias *alias)
{
	struct allow_target target;
	unsigned n = 0;

	for (size_t i = 0; b->options.allow && i < b->options.allow->n; i++) {
		const struct allow_rule *rule = &b->options.allow->rules[i];

		for (unsigned port = rule->low; port <= rule->high && n < ALIAS_PORTS_MAX; port++) {
			if (allow_ask(b->options.allow, alias->host, strlen(alias->host),
				      (uint16_t)port, &target) != ALLOW_YES)
				break;
			n += bridge_listen(b, LISTEN_ALIAS, &alias->addr, (uint16_t)port, alias) ==
			     0;
		}
	}
}

static const struct alias *find_alias(struct bridge *b, const char *host)
{
	struct alias *alias;
	const unsigned n = b->n_aliases;

	for (unsigned i = 0; i < n; i++)
		if (strcmp(b->aliases[i]->host, host) == 0)
			return b->aliases[i];
	alias = n < BRIDGE_ALIASES_MAX ? calloc(1, sizeof(*alias)) : NULL;
	if (!alias)
		return NULL;
	memcpy(alias->host, host, sizeof(alias->host));
	alias->addr =
	    (struct addr){ 4, { 127, 64, (uint8_t)((n + 1) / 256), (uint8_t)((n + 1) % 256) } };
	b->aliases[b->n_aliases++] = alias;
	serve_ports(b, alias);
	return alias;
}

size_t names_reply(struct bridge *b, const struct dns_question *q, const struct answer *answer,
		   unsigned char out[DNS_MAX])
{
	char host[ALLOW_HOST_MAX + 1];
	const struct alias *alias = NULL;

	if (answer->status != ASK_OK || !allow_canonical(q->name, strlen(q->name), host))
		return dns_answer(q, DNS_NO_SUCH_NAME, NULL, out);
	if (q->type == DNS_A)
		alias = find_alias(b, host);
	return dns_answer(q, DNS_NO_ERROR, alias ? &alias->addr : NULL, out);
}

void names_answer(struct datagram *d, struct bridge *b, const struct answer *answer)
{
	unsigned char bytes[DNS_MAX];
	size_t n = names_reply(b, &d->question, answer, bytes);

	d->used = false;
	IGNORE_RESULT(
	    sendto(b->dns.fd, bytes, n, MSG_DONTWAIT, (struct sockaddr *)&d->from, sizeof(d->from)),
	    "the client asks again, as with any datagram");
}

/* The oldest question gives way: its client asks again. */
static struct datagram *free_slot(struct bridge *b)
{
	struct datagram *oldest = &b->datagrams[0];

	for (size_t i = 0; i < BRIDGE_DATAGRAMS_MAX; i++) {
		if (!b->datagrams[i].used)
			return &b->datagrams[i];
		if (b->datagrams[i].id < oldest->id)
			oldest = &b->datagrams[i];
	}
	return oldest;
}

static void on_datagram(struct loop_watch *w)
{
	struct bridge *b = w->owner;
	struct datagram *d = free_slot(b), next = { 0 };
	struct ask ask = { .kind = ASK_NAME };
	socklen_t len = sizeof(next.from);
	unsigned char bytes[DNS_MAX];
	ssize_t n = recvfrom(w->fd, bytes, sizeof(bytes), MSG_DONTWAIT,
			     (struct sockaddr *)&next.from, &len);

	if (n < 0 || dns_parse(bytes, (size_t)n, &next.question) < 0)
		return;
	ask.host_len = strlen(next.question.name);
	memcpy(ask.host, next.question.name, ask.host_len);
	if (bridge_ask(b, &ask) < 0)
		return;
	next.id = ask.id;
	next.used = true;
	*d = next;
}

int names_open(struct bridge *b, struct err *err)
{
	AUTO_CLOSE int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const struct sockaddr_in at = { .sin_family = AF_INET,
					.sin_port = htons(b->options.dns_port),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	if (fd < 0 || bind(fd, (const struct sockaddr *)&at, sizeof(at)) < 0)
		return err_sys(err, "making a socket for names");
	b->dns = (struct loop_watch){ .fd = TAKE_FD(fd), .ready = on_datagram, .owner = b };
	return loop_watch(&b->loop, &b->dns, EPOLLIN);
}
