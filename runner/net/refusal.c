#include "runner/net/refusal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "base/size.h"
#include "runner/net/allow.h"

static const char *const names[NET_N_RULES] = {
	[NET_RULE_HOST] = "host",         [NET_RULE_PORT] = "port",
	[NET_RULE_LITERAL] = "literal",   [NET_RULE_NAME] = "name",
	[NET_RULE_ADDRESS] = "address",   [NET_RULE_SELF] = "self",
	[NET_RULE_SNI] = "sni",           [NET_RULE_HTTP] = "http",
	[NET_RULE_PROTOCOL] = "protocol", [NET_RULE_LIMIT] = "limit",
	[NET_RULE_REQUEST] = "request",   [NET_RULE_BYTES] = "bytes",
	[NET_RULE_TLS] = "tls",           [NET_RULE_CERT] = "certificate",
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

/*
 * A flag is an advice, and what asks may choose its words: it names what anybody could have on the
 * open internet, and never this machine, its neighbours, or what only they could resolve.
 */
static bool may_be_offered(const char *host, size_t len)
{
	static const char *const local[] = { ".localhost", ".local",    ".internal", ".home.arpa",
					     ".lan",       ".intranet", ".corp",     ".home" };
	char text[ALLOW_HOST_MAX + 1];
	struct addr addr;
	size_t n;

	if (!allow_canonical(host, len, text)) {
		if (len >= sizeof(text) || memchr(host, '\0', len))
			return false;
		memcpy(text, host, len);
		text[len] = '\0';
		return addr_parse(text, &addr) == 0 && !addr_special(&addr);
	}
	n = strlen(text);
	for (size_t i = 0; i < ARRAY_LEN(local); i++)
		if (n > strlen(local[i]) && strcmp(text + n - strlen(local[i]), local[i]) == 0)
			return false;
	return strchr(text, '.') != NULL;
}

/* Only plain words: what asks has chosen them, and somebody may paste them into a shell. */
static void offer_request(struct net_refusal *r, const char *detail, bool tls)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", digits[] = "0123456789",
			  small[] = "abcdefghijklmnopqrstuvwxyz";
	const size_t method = strspn(detail, letters);
	const char *path = detail[method] == ' ' ? detail + method + 1 : "";
	char port[8] = "";

	for (const char *c = path; *c != '\0'; c++)
		if (!strchr(letters, *c) && !strchr(digits, *c) && !strchr(small, *c) &&
		    !strchr("/._~@%+-", *c))
			return;
	if (method == 0 || strlen(detail) > 100 || strchr(r->host, ':') ||
	    !request_path_is_plain((struct http_span){ path, strlen(path) }))
		return;
	if (r->port != (tls ? 443 : 80))
		snprintf(port, sizeof(port), ":%u", r->port);
	snprintf(r->flag, sizeof(r->flag), "--net '%.*s http%s://%.200s%s%s'", (int)method, detail,
		 tls ? "s" : "", r->host, port, path);
}

void net_refusal_set_tls(struct net_refusal *r)
{
	if (r->rule == NET_RULE_REQUEST && *r->flag != '\0')
		offer_request(r, r->detail, true);
}

void net_refusal_init(struct net_refusal *r, enum net_rule rule, const char *host, size_t len,
		      uint16_t port, const char *detail)
{
	char target[NET_HOST_SHOWN + 16];

	*r = (struct net_refusal){ .rule = rule, .port = port };
	show(r->host, sizeof(r->host), host, len);
	show(r->detail, sizeof(r->detail), detail, strlen(detail));
	with_port(target, sizeof(target), r->host, port);
	if (!may_be_offered(host, len))
		return;
	switch (rule) {
	case NET_RULE_HOST:
	case NET_RULE_PORT:
	case NET_RULE_LITERAL:
		snprintf(r->flag, sizeof(r->flag), "--net %.370s", target);
		break;
	case NET_RULE_PROTOCOL:
		snprintf(r->flag, sizeof(r->flag), "--net %.370s/tcp", target);
		break;
	case NET_RULE_REQUEST:
		offer_request(r, detail, false);
		break;
	case NET_RULE_ADDRESS:
	case NET_RULE_SELF:
	case NET_RULE_NAME:
	case NET_RULE_SNI:
	case NET_RULE_HTTP:
	case NET_RULE_LIMIT:
	case NET_RULE_BYTES:
	case NET_RULE_TLS:
	case NET_RULE_CERT:
	case NET_N_RULES:
		break;
	}
}

void net_refusal_set_bytes(struct net_refusal *r, uint64_t max)
{
	static const char units[] = "KMGT";
	const uint64_t offered = max <= UINT64_MAX / 2 ? max * 2 : max;
	uint64_t n = offered;
	size_t unit = 0;
	char size[SIZE_TEXT_MAX];

	while (n % 1024 == 0 && n > 0 && units[unit] != '\0') {
		n /= 1024;
		unit++;
	}
	snprintf(r->detail, sizeof(r->detail), "%s", size_format(max, size));
	snprintf(r->flag, sizeof(r->flag), "--net-out %" PRIu64 "%.*s", n, unit > 0,
		 units + (unit > 0 ? unit - 1 : 0));
}

char *net_refusal_target(const struct net_refusal *r, char *text, size_t size)
{
	if (r->port == 0)
		snprintf(text, size, "%s", r->host);
	else
		with_port(text, size, r->host, r->port);
	return text;
}

/* What is wrong with a target, for rules that need no more words. */
static const char *const about_target[NET_N_RULES] = {
	[NET_RULE_HOST] = " is not in the list of allowed hosts",
	[NET_RULE_PORT] = ": the host is allowed, but not this port",
	[NET_RULE_LITERAL] = ": addresses are not allowed unless listed",
	[NET_RULE_NAME] = " is not the name of a host",
	[NET_RULE_PROTOCOL] = ": what was said there is neither TLS nor HTTP",
	[NET_RULE_LIMIT] = ": too many connections at once",
};

char *net_refusal_explain(const struct net_refusal *r, char *text, size_t size)
{
	char to[NET_HOST_SHOWN + 16];

	net_refusal_target(r, to, sizeof(to));
	switch (r->rule) {
	case NET_RULE_HOST:
	case NET_RULE_PORT:
	case NET_RULE_LITERAL:
	case NET_RULE_NAME:
	case NET_RULE_PROTOCOL:
	case NET_RULE_LIMIT:
		snprintf(text, size, "'%s'%s", to, about_target[r->rule]);
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
	case NET_RULE_REQUEST:
		snprintf(text, size, "'%s': the request '%s' is not allowed", to, r->detail);
		break;
	case NET_RULE_BYTES:
		snprintf(text, size, "'%s': the run may send no more than %s", to, r->detail);
		break;
	case NET_RULE_TLS:
		snprintf(text, size, "'%s': TLS with the program failed (--tls-inspect %s): %s", to,
			 r->host, r->detail);
		break;
	case NET_RULE_CERT:
		snprintf(text, size, "'%s': TLS with the server failed (--tls-inspect %s): %s", to,
			 r->host, r->detail);
		break;
	case NET_N_RULES:
		assert(!"no rule");
	}
	return text;
}
