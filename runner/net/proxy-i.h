/*
 * proxy-i.h - shared by the files of the proxy: requests and answers on the one side, connections
 * on the other.
 */
#pragma once

#include "runner/net/ask.h"
#include "runner/net/judge.h"
#include "runner/net/lookup.h"
#include "runner/net/proxy.h"
#include "runner/net/relay.h"

#define PROXY_NAMES_MAX   1024 /* different ones in the life of a proxy */
#define PROXY_LOOKUPS_MAX 32   /* at once */
#define PROXY_REFUSED_MAX 1000 /* after which asks wait */
#define PROXY_PACE_MS     1
#define PROXY_HELD_MAX    256 /* asks that wait for somebody's decision */

/* A name that was asked for, and where it leads for the rest of the run. */
struct pinned_host {
	struct proxy *proxy;
	struct pinned_host *next;
	char host[ALLOW_HOST_MAX + 1];
	bool looking; /* the lookup is under way */
	uint64_t deadline;
	struct lookup lookup;
	struct addr addrs[LOOKUP_ADDRS_MAX];
	size_t n;
};

struct conn {
	struct proxy *proxy;
	struct conn *next;
	bool dead; /* freed at the end of the step */
	uint32_t id;
	struct allow_target target;
	uint16_t port;
	struct pinned_host
	    *pin;          /* that it waits for or has its addresses from; NULL for an address */
	size_t next_addr;  /* of the pin's */
	uint64_t deadline; /* 0: none */
	struct loop_watch outer;
	bool relaying;
	bool closing; /* it was refused a request: told so after the answers to those before */
	struct relay relay;
	struct judge judge;
	struct conn_tls *tls; /* owned; NULL: whatever it carries stays closed to us */
	char last_words[ASK_SENTENCE_MAX + 1]; /* why it is closing */
};

/* An ask that no rule allows, and that somebody decides about. */
struct held_ask {
	unsigned question;
	struct ask ask;
	struct allow_target target;
	enum net_rule rule;
	struct held_ask *next;
};

struct proxy {
	struct proxy_options options;
	struct tls *tls; /* owned; NULL until a connection needs it */
	struct loop loop;
	struct loop_watch asks;
	bool ended;
	uint64_t hear_at; /* asks are not read before that; 0: at once */
	struct pinned_host *pins;
	unsigned n_pins, n_looking;
	struct conn *conns;
	unsigned n_conns;
	struct held_ask *held; /* the newest first */
	unsigned n_held;
	uint64_t refused;
	uint64_t sent; /* bytes, never more than max_out */
	bool capped;   /* that was not enough */
};

/* --- proxy-tell-linux.c ----------------------------------------------------------------------- */

/*
 * To the bridge, with a descriptor unless it is -1.  One that does not read its answers has lost the
 * connection; nothing waits for it.
 */
void proxy_send(struct proxy *p, const struct answer *answer, int fd);
void proxy_answer(struct conn *c, enum ask_status status, const char *sentence, int fd);

/* Report the refusal and, unless the client has a connection already, answer it. */
void proxy_refuse_ask(struct proxy *p, const struct ask *ask, enum net_rule rule);
void proxy_refuse(struct conn *c, enum net_rule rule, const char *detail);

/* May so many bytes more go out?  If so, they are counted. */
bool proxy_charge(struct proxy *p, uint64_t n);

/* --- proxy-tls-linux.c ------------------------------------------------------------------------ */

/*
 * End TLS here, between a relay that has both sides and the judge.  -ECANCELED: it cannot be, and
 * was refused.
 */
NODISCARD int conn_tls_begin(struct conn *c);
void conn_tls_free(struct conn *c);

/* Its time is over: false if all that is left is to end it. */
bool conn_tls_overdue(struct conn *c);

/* --- proxy-held-linux.c ------------------------------------------------------------------- */

/* No rule allows it.  Somebody may: then it waits, or is opened.  Else it is refused. */
void proxy_no_rule(struct proxy *p, const struct ask *ask, const struct allow_target *target,
		   enum net_rule rule);
void proxy_drop_held(struct proxy *p);

/* --- proxy-hear-linux.c ------------------------------------------------------------------- */

/* What goes out and what comes back, as filters of a relay: judged, counted, answered. */
NODISCARD int conn_hear_client(void *ctx, struct buf *in, struct buf *out, bool eof);
NODISCARD int conn_hear_server(void *ctx, struct buf *in, struct buf *out, bool eof);

/* Append the last that a client hears which speaks HTTP: why it was refused. */
NODISCARD int conn_say_refused(struct conn *c, struct buf *out);

/* --- proxy-conn-linux.c ------------------------------------------------------------------- */

/* The target is allowed by name: look it up, connect, relay. */
void proxy_take_open(struct proxy *p, const struct ask *ask, const struct allow_target *target);
void conn_end(struct conn *c);
void conn_overdue(struct conn *c);

void pinned_host_overdue(struct pinned_host *pin);
