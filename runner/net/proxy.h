/*
 * proxy.h - makes the connections that a run asks for, if the list allows them.
 *
 * It lives outside. The run asks through one socket (ask.h) and is trusted with nothing: the proxy
 * checks name and port against the list, looks the name up and keeps the answer as long as it
 * lives, checks the addresses, and compares the client's first bytes with what it asked for
 * (judge.h). Every refusal is an event.
 *
 * One loop, no threads; each lookup is a short-lived child. The caller waits for proxy_fd() to be
 * readable and calls proxy_step(), which never blocks.
 */
#pragma once

#include "base/cleanup.h"
#include "base/err.h"
#include "runner/net/allow.h"
#include "runner/net/refusal.h"
#include "runner/net/secret.h"
#include "runner/net/tls.h"

struct proxy;

typedef void (*net_refusal_fn)(void *ctx, const struct net_refusal *refusal);

/*
 * Asked about a connection that no rule allows, before it is refused: to a name, or to an address of
 * the open internet.  NET_ASK_WAITS: proxy_decide() follows with that number, for all that wait by then.
 */
enum net_verdict { NET_ASK_NO, NET_ASK_YES, NET_ASK_WAITS };
typedef enum net_verdict (*net_ask_fn)(void *ctx, const struct net_refusal *refusal,
				       unsigned *ret_number);

/* 0 stands for the default, in brackets. */
struct proxy_options {
	const struct allow *allow;         /* borrowed as long as the proxy lives */
	const struct net_secrets *secrets; /* borrowed too; NULL: none */
	const struct tls_plan *tls;        /* hosts whose TLS is ended here; the same */
	net_refusal_fn refused;            /* NULL: nobody wants to know */
	void *refused_ctx;
	net_ask_fn ask; /* NULL: what no rule allows is refused */
	void *ask_ctx;
	unsigned connections; /* at once [256] */
	uint64_t lookup_ms;   /* for a name [10 s] */
	uint64_t connect_ms;  /* for each address of it [10 s] */
	uint64_t hello_ms;    /* from the first byte to a whole hello or request [30 s] */
	uint64_t max_out;     /* bytes that may be sent, names that are looked up included [any] */
};

/*
 * The two ends of what a proxy and a bridge speak through.  Close on exec; neither blocks.
 */
NODISCARD int proxy_socketpair(int *ret_outside, int *ret_inside, struct err *err);

/* Takes `fd`, the end outside, whether it fails or not. */
NODISCARD int proxy_open(const struct proxy_options *options, int fd, struct proxy **ret,
			 struct err *err);
void proxy_close(struct proxy *p); /* with all its connections and children; NULL is fine */
DEFINE_CLEANUP(struct proxy *, proxy_close)

int proxy_fd(const struct proxy *p);

/* The answer to a question: make the connections that wait for it, or refuse them. */
void proxy_decide(struct proxy *p, unsigned number, bool allow);

/* Bytes that were let out so far, over all connections; `ret_capped`: more was refused. */
uint64_t proxy_sent(const struct proxy *p, bool *ret_capped);

/* 0, or 1 when nobody is left inside; a failure is of the whole proxy. */
NODISCARD int proxy_step(struct proxy *p, struct err *err);
