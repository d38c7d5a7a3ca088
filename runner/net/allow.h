/*
 * allow.h - which hosts and ports a run may reach: parses the value of --net, and answers by it.
 *
 *   none | loopback | host | RULE,RULE,...
 *
 *   example.org:443          this name, on this port
 *   *.example.org:80-89      every name below it, not itself; a range of ports
 *   db.example.org:7000/tcp  any protocol: neither TLS nor HTTP is expected, and nothing is read
 *   192.0.2.7:22             this address, also where a name leads to it
 *   10.1.0.0/16:5432         addresses; IPv6 in brackets, [2001:db8::/32]:443
 *   GET http://a.example/x*  such requests and nothing else (request.h); https:// too
 *
 * A listed name may lead only to addresses of the open internet, unless the list has the address
 * too. Names are compared as lower-case ASCII, without one dot at their end. Portable and pure:
 * nothing is looked up here.
 */
#pragma once

#include "base/err.h"
#include "runner/net/addr.h"
#include "runner/net/request.h"

#define ALLOW_HOST_MAX  253 /* bytes in a name */
#define ALLOW_RULES_MAX 256

struct allow_rule {
	char host[ALLOW_HOST_MAX + 1]; /* canonical; "" if it is a range */
	bool below;                    /* names below `host`, not itself */
	struct addr_range range;
	uint16_t low, high; /* ports, both included */
	bool any;           /* may speak anything */
	struct request_rule request;
};

enum net_mode { NET_NONE, NET_LOOPBACK, NET_HOST, NET_LIST };

struct allow {
	enum net_mode mode;
	struct allow_rule *rules; /* owned; only of NET_LIST */
	size_t n;
};

#define ALLOW_INIT ((struct allow){ 0 })

/* -EINVAL with a sentence that names the rule; `ret` is then untouched. */
NODISCARD int allow_parse(const char *text, struct allow *ret, struct err *err);
void allow_done(struct allow *a); /* frees; it is then NET_NONE */

/* The form in which names are compared.  False for what is no name, such as any number. */
bool allow_canonical(const char *name, size_t len, char ret[ALLOW_HOST_MAX + 1]);

/* What the list says of a connection. */
enum allow_answer {
	ALLOW_YES,
	ALLOW_NO_HOST, /* no rule has the name, or for an address no rule has it */
	ALLOW_NO_PORT, /* some rule has it, with other ports */
	ALLOW_NO_NAME, /* what was asked for is neither a name nor an address */
};

struct allow_target {
	bool literal; /* an address, in `addr`; else a name, in `host` */
	struct addr addr;
	char host[ALLOW_HOST_MAX + 1]; /* canonical name, or the address as text */
	bool any; /* may speak anything: by its rule, by its port, or because it is an address */
	bool requests; /* may make requests, each of which allow_request() has to allow */
};

/* May somebody connect to host[0..len) on that port?  `ret` is filled unless it is no name. */
enum allow_answer allow_ask(const struct allow *a, const char *host, size_t len, uint16_t port,
			    struct allow_target *ret);

/* May this be asked for on a connection that allow_ask() allowed? */
bool allow_request(const struct allow *a, const struct allow_target *target, uint16_t port,
		   const struct request *request);

/* Is the name in the list with any port at all? */
bool allow_has_name(const struct allow *a, const char *canonical);

/* Is the address itself in the list, with that port?  Then a listed name may lead to it. */
bool allow_has_addr(const struct allow *a, const struct addr *addr, uint16_t port);

/* Does `inner` allow nothing that `outer` does not?  Each of its rules must lie within one there. */
bool allow_within(const struct allow *inner, const struct allow *outer);

/* Would `more` allow anything where `list` allows single requests only? */
bool allow_voids(const struct allow *more, const struct allow *list);
