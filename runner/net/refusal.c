#include "runner/net/refusal.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/path.h"

static const char *const names[NET_N_RULES] = {
	[NET_RULE_HOST] = "host",         [NET_RULE_PORT] = "port",
	[NET_RULE_LITERAL] = "literal",   [NET_RULE_NAME] = "name",
	[NET_RULE_ADDRESS] = "address",   [NET_RULE_SELF] = "self",
	[NET_RULE_SNI] = "sni",           [NET_RULE_HTTP] = "http",
	[NET_RULE_PROTOCOL] = "protocol", [NET_RULE_LIMIT] = "limit",
};

const char *net_rule_name(enum net_rule rule)
{
	assert(rule < NET_N_RULES);
	return names[rule];
}

static void show(char *out, size_t size, const char *text, size_t len)
{
	CLEANUP(buf_done) struct buf shown = BUF_INIT;
	const char *s = NULL;

	if (path_append_shown(&shown, text, len) == 0)
		s = buf_str(&shown);
	snprintf(out, size, "%.*s", (int)size - 1, s ? s : "");
}

/* An IPv6 address needs brackets to be read before a port. */
static void with_port(char *out, size_t size, const char *host, uint16_t port)
{
	const char *open = strchr(host, ':') ? "[" : "", *close = *open ? "]" : "";

	if (port == 0)
		snprintf(out, size, "%s%.255s%s:PORT", open, host, close);
	else
		snprintf(out, size, "%s%.255s%s:%u", open, host, close, port);
}

void net_refusal_init(struct net_refusal *r, enum net_rule rule, const char *host, size_t len,
		      uint16_t port, const char *detail)
{
	char target[NET_HOST_SHOWN + 16], other[NET_HOST_SHOWN + 16];

	*r = (struct net_refusal){ .rule = rule, .port = port };
	show(r->host, sizeof(r->host), host, len);
	show(r->detail, sizeof(r->detail), detail, strlen(detail));
	with_port(target, sizeof(target), r->host, port);
	with_port(other, sizeof(other), r->detail, port);
	switch (rule) {
	case NET_RULE_HOST:
	case NET_RULE_PORT:
	case NET_RULE_LITERAL:
		snprintf(r->flag, sizeof(r->flag), "--net %.370s", target);
		break;
	case NET_RULE_PROTOCOL:
		snprintf(r->flag, sizeof(r->flag), "--net %.370s/tcp", target);
		break;
	case NET_RULE_ADDRESS:
	case NET_RULE_SELF:
		/* A long name leaves no room for the address; then there is no flag to copy. */
		if (strlen(target) + strlen(other) + 8 < sizeof(r->flag))
			snprintf(r->flag, sizeof(r->flag), "--net %.300s,%.60s", target, other);
		break;
	case NET_RULE_NAME:
	case NET_RULE_SNI:
	case NET_RULE_HTTP:
	case NET_RULE_LIMIT:
	case NET_N_RULES:
		break;
	}
}

char *net_refusal_target(const struct net_refusal *r, char *text, size_t size)
{
	if (r->port == 0)
		snprintf(text, size, "%s", r->host);
	else
		with_port(text, size, r->host, r->port);
	return text;
}

char *net_refusal_explain(const struct net_refusal *r, char *text, size_t size)
{
	char to[NET_HOST_SHOWN + 16];

	net_refusal_target(r, to, sizeof(to));
	switch (r->rule) {
	case NET_RULE_HOST:
		snprintf(text, size, "'%s' is not in the list of allowed hosts", to);
		break;
	case NET_RULE_PORT:
		snprintf(text, size, "'%s': the host is allowed, but not this port", to);
		break;
	case NET_RULE_LITERAL:
		snprintf(text, size, "'%s': addresses are not allowed unless listed", to);
		break;
	case NET_RULE_NAME:
		snprintf(text, size, "'%s' is not the name of a host", to);
		break;
	case NET_RULE_ADDRESS:
		snprintf(text, size, "'%s' leads to '%s', which is not of the open internet", to,
			 r->detail);
		break;
	case NET_RULE_SELF:
		snprintf(text, size, "'%s' leads to '%s', which is this machine", to, r->detail);
		break;
	case NET_RULE_SNI:
		snprintf(text, size, "'%s': TLS asks for '%s' there", to, r->detail);
		break;
	case NET_RULE_HTTP:
		snprintf(text, size, "'%s': an HTTP request asks for '%s' there", to, r->detail);
		break;
	case NET_RULE_PROTOCOL:
		snprintf(text, size, "'%s': what was said there is neither TLS nor HTTP", to);
		break;
	case NET_RULE_LIMIT:
		snprintf(text, size, "'%s': too many connections at once", to);
		break;
	case NET_N_RULES:
		assert(!"no rule");
	}
	return text;
}
