/*
 * refusal.h - a refused connection: its target, the rule, and the option that would allow it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum net_rule {
	NET_RULE_HOST,     /* no rule names the host */
	NET_RULE_PORT,     /* the host is listed with other ports */
	NET_RULE_LITERAL,  /* an address instead of a name, and not listed */
	NET_RULE_NAME,     /* what was asked for is no name of a host */
	NET_RULE_ADDRESS,  /* the name leads to an address that is not of the open internet */
	NET_RULE_SELF,     /* the name leads to this machine */
	NET_RULE_SNI,      /* TLS asks for another host than the connection is for */
	NET_RULE_HTTP,     /* an HTTP request asks for another host, or cannot be read */
	NET_RULE_PROTOCOL, /* what was said is neither TLS nor HTTP */
	NET_RULE_LIMIT,    /* too many connections at once */
	NET_RULE_REQUEST,  /* the host is listed for other requests */
	NET_RULE_BYTES,    /* more would be sent out than the run may send */
	NET_RULE_TLS,      /* TLS that is inspected could not be agreed on with the program */
	NET_RULE_CERT,     /* or with the host, whose certificate must be one to believe */
	NET_N_RULES,
};

const char *net_rule_name(enum net_rule rule); /* "host", "port", ... */

#define NET_HOST_SHOWN 256
#define NET_FLAG_MAX   384

struct net_refusal {
	enum net_rule rule;
	char host[NET_HOST_SHOWN];   /* as asked for; what cannot be shown is escaped */
	uint16_t port;               /* 0: only the name was asked for */
	char detail[NET_HOST_SHOWN]; /* the address or the other host; "" if there is none */
	char flag
	    [NET_FLAG_MAX]; /* what would allow it; "" if nothing would, or nothing should be advised */
};

/* Fill in the host, with anything in it, and the flag that belongs to the rule. */
void net_refusal_init(struct net_refusal *r, enum net_rule rule, const char *host, size_t len,
		      uint16_t port, const char *detail);

/* Of NET_RULE_BYTES: name the limit, and one of twice the size. */
void net_refusal_set_bytes(struct net_refusal *r, uint64_t max);

/* Of NET_RULE_REQUEST: the request came within TLS, so the flag is a rule for such ones. */
void net_refusal_set_tls(struct net_refusal *r);

/* "evil.org:443", or without a port if only the name was asked for; returns `text`. */
char *net_refusal_target(const struct net_refusal *r, char *text, size_t size);

/* "'evil.org:443' is not in the list of allowed hosts"; returns `text`. */
char *net_refusal_explain(const struct net_refusal *r, char *text, size_t size);
