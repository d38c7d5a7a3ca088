/*
 * judge.h - are a client's bytes meant for the host of its connection, and allowed?
 *
 * The judge reads the beginning of TLS that the proxy does not end (which host SNI names) and every
 * request of plain HTTP (Host, and the host of an absolute address). It refuses bytes that are not
 * certainly one of the two, because a server may read a request in them that we do not. Encrypted
 * bytes pass unread: a host that shares a server with an allowed one can be reached through it.
 *
 * Some servers answer without reading the body, and take it for the next request. So a request with
 * a body is the last of its connection: the server is asked to close, and no other follows.
 */
#pragma once

#include "base/buf.h"
#include "runner/net/allow.h"
#include "runner/net/http.h"
#include "runner/net/refusal.h"
#include "runner/net/secret.h"

enum judge_stage {
	JUDGE_FIRST, /* nothing is known yet */
	JUDGE_HEAD,  /* of an HTTP request */
	JUDGE_BODY,
	JUDGE_UPGRADE, /* the client wants another protocol; the server has not said yet */
	JUDGE_OVER,    /* behind a body: nothing more is for the server */
	JUDGE_PASS,
};

struct judge {
	const char *host; /* canonical, borrowed */
	/* Where the list tells requests apart; borrowed, NULL elsewhere. */
	const struct allow *allow;
	const struct net_secrets *secrets; /* of which some are for this host; borrowed, or NULL */
	const struct allow_target *target; /* for these two; borrowed, or NULL */
	uint16_t port; /* of the connection; 0: any that a request names is fine */
	bool tls;      /* what it hears came within TLS that the proxy ended */
	enum judge_stage stage;
	struct http_body body;
	bool first_request;
	bool last;    /* the request has a body */
	bool is_http; /* at least one request could be read */
	struct net_mask mask;
	char reply[12]; /* how the server began: "HTTP/1.1 101" */
	size_t reply_len;
	enum net_rule rule;         /* of a refusal */
	char other[NET_HOST_SHOWN]; /* the host that the client asked for instead */
};

/* A NULL host: nothing is looked at, for addresses and for what may speak anything. */
void judge_init(struct judge *j, const char *host);

/* Only requests pass that the list allows, and nothing that is no request. */
void judge_requests(struct judge *j, const struct allow *allow, const struct allow_target *target,
		    uint16_t port);

/* Requests get what is for them; behind the two above. */
void judge_secrets(struct judge *j, const struct net_secrets *secrets,
		   const struct allow_target *target, uint16_t port);

/* As filters of a relay.  -ECANCELED is a refusal, with rule and other. */
NODISCARD int judge_client(struct judge *j, struct buf *in, struct buf *out, bool eof);
NODISCARD int judge_server(struct judge *j, struct buf *in, struct buf *out, bool eof);
