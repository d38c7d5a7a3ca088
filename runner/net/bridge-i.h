/*
 * bridge-i.h - shared by the files of the bridge.
 */
#pragma once

#include <netinet/in.h>

#include "runner/net/ask.h"
#include "runner/net/bridge.h"
#include "runner/net/dns.h"
#include "runner/net/http.h"
#include "runner/net/relay.h"

#define BRIDGE_ALIASES_MAX   256
#define BRIDGE_LISTENERS_MAX 512
#define BRIDGE_DATAGRAMS_MAX 64 /* questions of DNS under way */

struct bridge;

enum listener_kind { LISTEN_PROXY, LISTEN_DNS, LISTEN_ALIAS };

struct listener {
	struct loop_watch watch;
	struct bridge *bridge;
	struct listener *next;
	enum listener_kind kind;
	const struct alias *alias; /* of LISTEN_ALIAS */
	uint16_t port;
};

/* An address of loopback that stands for a name. */
struct alias {
	char host[ALLOW_HOST_MAX + 1];
	struct addr addr;
};

/* A question that came as a datagram, until the proxy has said whether the name is listed. */
struct datagram {
	bool used;
	uint32_t id;
	struct sockaddr_in from;
	struct dns_question question;
};

enum client_kind {
	CLIENT_UNKNOWN,
	CLIENT_SOCKS,
	CLIENT_TUNNEL,
	CLIENT_HTTP,
	CLIENT_ALIAS,
	CLIENT_DNS
};

enum client_stage {
	STAGE_FIRST,   /* what does it speak? */
	STAGE_REQUEST, /* of SOCKS, behind the greeting */
	STAGE_HEAD,    /* of an HTTP request */
	STAGE_BODY,
	STAGE_WAIT,  /* for the proxy's answer */
	STAGE_DRAIN, /* for the end of the server before, since the next request is for another */
	STAGE_PASS,
	STAGE_DNS,
	STAGE_CLOSING, /* it knows; what it says now is not heard */
};

struct client {
	struct bridge *bridge;
	struct client *next;
	bool dead;
	enum client_kind kind;
	enum client_stage stage;
	struct relay relay;          /* side 0 is the client, side 1 what the proxy sent */
	uint64_t deadline;           /* 0: none */
	bool unsent;                 /* the ask could not be sent yet */
	struct ask ask;              /* what it wants */
	char host[ASK_HOST_MAX + 1]; /* HTTP: whom side 1 leads to */
	uint16_t port;
	struct http_body body;
	struct dns_question question;
};

struct bridge {
	struct bridge_options options;
	struct loop loop;
	loop_fn connected; /* a listener has a client */
	struct loop_watch asks, dns;
	bool ended;
	uint32_t last_id;
	struct listener *listeners;
	unsigned n_listeners;
	struct client *clients;
	unsigned n_clients;
	struct alias *aliases[BRIDGE_ALIASES_MAX];
	unsigned n_aliases;
	struct datagram datagrams[BRIDGE_DATAGRAMS_MAX];
};

/* --- bridge-ends-linux.c ---------------------------------------------------------------------- */

/* Of the proxy outside: 0, -EAGAIN, or what sending failed with.  The id of the ask is set here. */
NODISCARD int bridge_ask(struct bridge *b, struct ask *ask);
NODISCARD int bridge_listen(struct bridge *b, enum listener_kind kind, const struct addr *addr,
			    uint16_t port, const struct alias *alias);

/* --- bridge-client.c -------------------------------------------------------------------- */

void client_accept(struct listener *l);
void client_end(struct client *c);
void client_run(struct client *c);
void client_answer(struct client *c, const struct answer *answer, int fd); /* takes it */
void client_send_ask(struct client *c);
void client_overdue(struct client *c);

/* --- bridge-name.c ---------------------------------------------------------------------- */

NODISCARD int names_open(struct bridge *b, struct err *err);
void names_answer(struct datagram *d, struct bridge *b, const struct answer *answer);

/* What to say of a name, now that the proxy has; returns the length. */
size_t names_reply(struct bridge *b, const struct dns_question *q, const struct answer *answer,
		   unsigned char out[DNS_MAX]);
