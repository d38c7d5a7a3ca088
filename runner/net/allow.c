#include "runner/net/allow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/size.h"
#include "base/vec.h"

/* --- names ------------------------------------------------------------------------------ */

static bool is_label_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/*
 * Some programs read "127.1", "0x7f000001" or "017700000001" as addresses.  Like browsers we
 * take a name whose last label is a number for an address, and only four decimals are one.
 */
static bool is_number(const char *label, size_t len)
{
	size_t at = len > 1 && label[0] == '0' && label[1] == 'x' ? 2 : 0;
	bool hex = at > 0;

	for (; at < len; at++)
		if (!(label[at] >= '0' && label[at] <= '9') &&
		    !(hex && label[at] >= 'a' && label[at] <= 'f'))
			return false;
	return true;
}

bool allow_canonical(const char *name, size_t len, char ret[ALLOW_HOST_MAX + 1])
{
	char out[ALLOW_HOST_MAX + 1];
	size_t label = 0;

	if (len > 0 && name[len - 1] == '.')
		len--;
	if (len == 0 || len > ALLOW_HOST_MAX)
		return false;
	for (size_t i = 0; i <= len; i++) {
		if (i == len || name[i] == '.') {
			if (i == label || i - label > 63 || out[label] == '-' || out[i - 1] == '-')
				return false;
			if (i == len)
				break;
			label = i + 1;
			out[i] = '.';
			continue;
		}
		out[i] = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] + 32) : name[i];
		if (!is_label_byte(out[i]))
			return false;
	}
	out[len] = '\0';
	if (is_number(out + label, len - label))
		return false;
	memcpy(ret, out, len + 1);
	return true;
}

/* --- reading ---------------------------------------------------------------------------- */

static int parse_port(const char *text, size_t len, uint16_t *ret)
{
	char digits[8];
	uint64_t n;

	if (len == 0 || len >= sizeof(digits))
		return -EINVAL;
	memcpy(digits, text, len);
	digits[len] = '\0';
	if (size_parse_u64(digits, &n) < 0 || n == 0 || n > 65535)
		return -EINVAL;
	*ret = (uint16_t)n;
	return 0;
}

/* Takes "/tcp" off its end, if it is there. */
static bool take_any(char *ports)
{
	static const char word[] = "/tcp";
	size_t len = strlen(ports), n = strlen(word);

	if (len < n || strcmp(ports + len - n, word) != 0)
		return false;
	ports[len - n] = '\0';
	return true;
}

static int parse_ports(const char *text, struct allow_rule *rule)
{
	const char *dash = strchr(text, '-');

	if (parse_port(text, dash ? (size_t)(dash - text) : strlen(text), &rule->low) < 0)
		return -EINVAL;
	rule->high = rule->low;
	if (dash && parse_port(dash + 1, strlen(dash + 1), &rule->high) < 0)
		return -EINVAL;
	return rule->low <= rule->high ? 0 : -EINVAL;
}

static int parse_range(const char *text, const char *range, struct allow_rule *rule,
		       struct err *err)
{
	if (addr_parse_range(range, &rule->range) < 0)
		return err_set(err, -EINVAL, "network rule '%s': '%s' is no address or range", text,
			       range);
	/* A range that holds about everything would make of the list what --net host is openly. */
	if (rule->range.bits < (rule->range.first.len == 4 ? 8 : 16))
		return err_set(err, -EINVAL,
			       "network rule '%s': the range is too wide, at least /%d", text,
			       rule->range.first.len == 4 ? 8 : 16);
	return 0;
}

static int parse_host(const char *text, char *host, struct allow_rule *rule, struct err *err)
{
	size_t len = strlen(host);

	if (host[0] == '[' && host[len - 1] == ']') {
		host[len - 1] = '\0';
		return parse_range(text, host + 1, rule, err);
	}
	if (strchr(host, ':'))
		return err_set(err, -EINVAL,
			       "network rule '%s': an IPv6 address stands in brackets", text);
	rule->below = strncmp(host, "*.", 2) == 0;
	host += rule->below ? 2 : 0;
	if (allow_canonical(host, strlen(host), rule->host)) {
		if (rule->below && !strchr(rule->host, '.'))
			return err_set(err, -EINVAL,
				       "network rule '%s': a wildcard for a whole top-level domain",
				       text);
		return 0;
	}
	if (rule->below || !strchr("0123456789", host[0]))
		return err_set(err, -EINVAL,
			       "network rule '%s': '%s' is no host name (other alphabets are "
			       "written in their xn-- form)",
			       text, host);
	return parse_range(text, host, rule, err);
}

#define PLACE_MAX (ALLOW_HOST_MAX + 24)
#define RULE_MAX  (PLACE_MAX + REQUEST_METHODS_MAX + 2 * REQUEST_PATTERN_MAX + 16)

/* HOST:PORT of a rule for requests. */
static int read_request(const char *rule, struct request_rule *ret, char place[PLACE_MAX],
			struct err *err)
{
	struct http_span authority;
	const char *colon, *bracket;
	int r = request_rule_parse(rule, ret, &authority, err);

	if (r < 0)
		return r;
	if (authority.len == 0 || authority.len + 5 >= PLACE_MAX)
		return err_set(err, -EINVAL, "network rule '%.100s' names no host", rule);
	snprintf(place, PLACE_MAX, "%.*s", (int)authority.len, authority.at);
	colon = strrchr(place, ':');
	bracket = strchr(place, ']');
	if (!colon || (bracket && colon < bracket))
		strcat(place, ret->tls ? ":443" : ":80");
	return 0;
}

static int parse_rule(const char *text, size_t len, struct allow_rule *ret, struct err *err)
{
	char rule[RULE_MAX], host[PLACE_MAX];
	struct request_rule request = { 0 };
	char *colon;
	int r = 0;

	if (len == 0)
		return err_set(err, -EINVAL, "the list of hosts has an empty rule");
	if (len >= sizeof(rule))
		return err_set(err, -EINVAL, "network rule '%.40s...' is too long", text);
	memcpy(rule, text, len);
	rule[len] = '\0';
	if (strstr(rule, "://"))
		r = read_request(rule, &request, host, err);
	else if (len >= sizeof(host))
		r = err_set(err, -EINVAL, "network rule '%.40s...' is too long", text);
	else
		memcpy(host, rule, len + 1);
	if (r < 0)
		return r;
	colon = strrchr(host, ':');
	if (!colon || colon == host || strchr(colon, ']'))
		return err_set(err, -EINVAL,
			       "network rule '%s' has no port, as in 'example.org:443'", rule);
	*colon = '\0';
	*ret = (struct allow_rule){ .any = take_any(colon + 1), .request = request };
	if (parse_ports(colon + 1, ret) < 0)
		return err_set(err, -EINVAL,
			       "network rule '%s': '%s' is no port or range of ports (1-65535)",
			       rule, colon + 1);
	return parse_host(rule, host, ret, err);
}

static int parse_list(const char *text, struct allow *ret, struct err *err)
{
	CLEANUP(allow_done) struct allow list = { .mode = NET_LIST };
	size_t n = 1, len;
	int r;

	for (const char *c = text; *c != '\0'; c++)
		n += *c == ',';
	if (n > ALLOW_RULES_MAX)
		return err_set(err, -EINVAL, "a list of %zu hosts: at most %d", n, ALLOW_RULES_MAX);
	list.rules = calloc(n, sizeof(*list.rules));
	if (!list.rules)
		return err_nomem(err);
	for (; list.n < n; list.n++, text += len + 1) {
		len = strcspn(text, ",");
		r = parse_rule(text, len, &list.rules[list.n], err);
		if (r < 0)
			return r;
	}
	allow_done(ret);
	*ret = list;
	list = ALLOW_INIT;
	return 0;
}

int allow_parse(const char *text, struct allow *ret, struct err *err)
{
	static const char *const words[] = {
		[NET_NONE] = "none", [NET_LOOPBACK] = "loopback", [NET_HOST] = "host"
	};

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (strcmp(text, words[i]) == 0) {
			allow_done(ret);
			ret->mode = (enum net_mode)i;
			return 0;
		}
	}
	if (!strchr(text, ':'))
		return err_set(err, -EINVAL,
			       "network '%.100s' is not one of none, loopback, host, HOST:PORT,...",
			       text);
	return parse_list(text, ret, err);
}

void allow_done(struct allow *a)
{
	free(a->rules);
	*a = ALLOW_INIT;
}

/* --- asking ----------------------------------------------------------------------------- */

static bool has_name(const struct allow_rule *rule, const char *name)
{
	size_t len = strlen(name), end = strlen(rule->host);

	if (end == 0)
		return false;
	if (!rule->below)
		return strcmp(rule->host, name) == 0;
	return len > end + 1 && name[len - end - 1] == '.' &&
	       strcmp(name + len - end, rule->host) == 0;
}

static bool has_addr(const struct allow_rule *rule, const struct addr *addr)
{
	return rule->host[0] == '\0' && addr_in(addr, &rule->range);
}

static bool has_port(const struct allow_rule *rule, uint16_t port)
{
	return port >= rule->low && port <= rule->high;
}

/* Where something else than HTTP is at home, and a list of hosts need not say so. */
static bool is_other_port(uint16_t port)
{
	static const uint16_t ports[] = {
		22,    /* ssh */
		25,    /* smtp */
		110,   /* pop3 */
		143,   /* imap */
		389,   /* ldap */
		587,   /* smtp, submission */
		873,   /* rsync */
		1433,  /* SQL Server */
		3306,  /* MySQL */
		5432,  /* PostgreSQL */
		5672,  /* AMQP */
		6379,  /* Redis */
		9418,  /* git */
		11211, /* memcached */
		27017, /* MongoDB */
	};

	return VEC_HAS(it, ports, ARRAY_LEN(ports), *it == port);
}

bool allow_has_name(const struct allow *a, const char *canonical)
{
	return VEC_HAS(it, a->rules, a->n, has_name(it, canonical));
}

enum allow_answer allow_ask(const struct allow *a, const char *host, size_t len, uint16_t port,
			    struct allow_target *ret)
{
	struct allow_target target = { 0 };
	bool listed = false, other_port = false, whole = false;

	if (!allow_canonical(host, len, target.host)) {
		if (len >= ADDR_TEXT_MAX || memchr(host, '\0', len))
			return ALLOW_NO_NAME;
		memcpy(target.host, host, len);
		target.host[len] = '\0';
		if (addr_parse(target.host, &target.addr) < 0)
			return ALLOW_NO_NAME;
		target.literal = true;
		addr_format(&target.addr, target.host);
	}
	target.any = target.literal || is_other_port(port);
	for (size_t i = 0; i < a->n; i++) {
		const struct allow_rule *rule = &a->rules[i];

		if (target.literal ? !has_addr(rule, &target.addr) : !has_name(rule, target.host))
			continue;
		if (has_port(rule, port)) {
			listed = true;
			whole |= !rule->request.on;
			target.any |= rule->any;
		}
		other_port = true;
	}
	target.requests = listed && !whole;
	target.any &= !target.requests;
	*ret = target;
	if (listed)
		return ALLOW_YES;
	return other_port ? ALLOW_NO_PORT : ALLOW_NO_HOST;
}

bool allow_request(const struct allow *a, const struct allow_target *target, uint16_t port,
		   const struct request *request)
{
	for (size_t i = 0; i < a->n; i++) {
		const struct allow_rule *rule = &a->rules[i];

		if ((target->literal ? has_addr(rule, &target->addr)
				     : has_name(rule, target->host)) &&
		    has_port(rule, port) && request_rule_allows(&rule->request, request))
			return true;
	}
	return false;
}

bool allow_has_addr(const struct allow *a, const struct addr *addr, uint16_t port)
{
	return VEC_HAS(it, a->rules, a->n, has_addr(it, addr) && has_port(it, port));
}

/* --- comparing -------------------------------------------------------------------------- */

static bool covers(const struct allow_rule *outer, const struct allow_rule *inner)
{
	if (inner->low < outer->low || inner->high > outer->high ||
	    !request_rule_covers(&outer->request, &inner->request))
		return false;
	if (inner->host[0] == '\0')
		return has_addr(outer, &inner->range.first) &&
		       inner->range.bits >= outer->range.bits;
	if (inner->any && !outer->any)
		return false;
	if (inner->below && outer->below && strcmp(inner->host, outer->host) == 0)
		return true;
	return (!inner->below || outer->below) && has_name(outer, inner->host);
}

bool allow_within(const struct allow *inner, const struct allow *outer)
{
	if (inner->mode == NET_NONE || inner->mode == NET_LOOPBACK || outer->mode == NET_HOST)
		return true;
	if (inner->mode == NET_HOST || outer->mode != NET_LIST)
		return false;
	for (size_t i = 0; i < inner->n; i++) {
		size_t k = 0;

		while (k < outer->n && !covers(&outer->rules[k], &inner->rules[i]))
			k++;
		if (k == outer->n)
			return false;
	}
	return true;
}

/* Is there anything that both are about? */
static bool meet(const struct allow_rule *a, const struct allow_rule *b)
{
	if (a->low > b->high || b->low > a->high)
		return false;
	if (a->host[0] == '\0' || b->host[0] == '\0')
		return a->host[0] == b->host[0] &&
		       (has_addr(a, &b->range.first) || has_addr(b, &a->range.first));
	if (strcmp(a->host, b->host) == 0)
		return a->below == b->below;
	return (a->below && has_name(a, b->host)) || (b->below && has_name(b, a->host));
}

bool allow_voids(const struct allow *more, const struct allow *list)
{
	for (size_t i = 0; i < more->n; i++)
		for (size_t k = 0; k < list->n; k++)
			if (!more->rules[i].request.on && list->rules[k].request.on &&
			    meet(&more->rules[i], &list->rules[k]))
				return true;
	return false;
}
