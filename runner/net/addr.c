#include "runner/net/addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"

struct special {
	const char *range;
	const char *what;
};

/*
 * The special-purpose registries of IANA (RFC 6890 and what came after it) and, below them,
 * one address outside of those that clouds answer on from within.  The first match counts.
 */
static const struct special specials[] = {
	{ "0.0.0.0/8", "unspecified" },
	{ "10.0.0.0/8", "private" },
	{ "100.64.0.0/10", "shared by a provider (CGNAT)" },
	{ "127.0.0.0/8", "loopback" },
	{ "169.254.0.0/16", "link-local" },
	{ "172.16.0.0/12", "private" },
	{ "192.0.0.0/24", "reserved" },
	{ "192.0.2.0/24", "for documentation" },
	{ "192.88.99.0/24", "reserved" },
	{ "192.168.0.0/16", "private" },
	{ "198.18.0.0/15", "for benchmarks" },
	{ "198.51.100.0/24", "for documentation" },
	{ "203.0.113.0/24", "for documentation" },
	{ "224.0.0.0/4", "multicast" },
	{ "240.0.0.0/4", "reserved" },
	{ "168.63.129.16", "a cloud's own" },

	{ "::", "unspecified" },
	{ "::1", "loopback" },
	{ "::ffff:0:0/96", "an IPv4 address in IPv6" },
	{ "64:ff9b::/96", "an IPv4 address in IPv6" },
	{ "64:ff9b:1::/48", "an IPv4 address in IPv6" },
	{ "2001::/32", "an IPv4 address in IPv6" },
	{ "2001::/23", "reserved" },
	{ "2001:db8::/32", "for documentation" },
	{ "2002::/16", "an IPv4 address in IPv6" },
	{ "3fff::/20", "for documentation" },
	{ "fc00::/7", "private" },
	{ "fe80::/10", "link-local" },
	{ "fec0::/10", "private" },
	{ "ff00::/8", "multicast" },
};

int addr_parse(const char *text, struct addr *ret)
{
	struct addr a = { 0 };

	/* inet_pton() takes exactly four decimal numbers, unlike inet_aton(). */
	if (inet_pton(AF_INET, text, a.b) == 1)
		a.len = 4;
	else if (inet_pton(AF_INET6, text, a.b) == 1)
		a.len = 16;
	else
		return -EINVAL;
	*ret = a;
	return 0;
}

int addr_parse_range(const char *text, struct addr_range *ret)
{
	const char *slash = strchr(text, '/');
	size_t n = slash ? (size_t)(slash - text) : strlen(text);
	char first[ADDR_TEXT_MAX];
	struct addr_range range;
	uint64_t bits;
	int r;

	if (n >= sizeof(first))
		return -EINVAL;
	memcpy(first, text, n);
	first[n] = '\0';
	r = addr_parse(first, &range.first);
	if (r < 0)
		return r;
	bits = range.first.len * 8u;
	if (slash && (size_parse_u64(slash + 1, &bits) < 0 || bits > range.first.len * 8u))
		return -EINVAL;
	range.bits = (uint8_t)bits;
	for (size_t i = bits; i < range.first.len * 8u; i++)
		if (range.first.b[i / 8] & 0x80 >> i % 8)
			return -EINVAL;
	*ret = range;
	return 0;
}

bool addr_in(const struct addr *a, const struct addr_range *range)
{
	const size_t whole = range->bits / 8, rest = range->bits % 8;

	if (a->len != range->first.len || memcmp(a->b, range->first.b, whole) != 0)
		return false;
	return rest == 0 || (a->b[whole] ^ range->first.b[whole]) >> (8 - rest) == 0;
}

bool addr_equal(const struct addr *a, const struct addr *b)
{
	return a->len == b->len && memcmp(a->b, b->b, a->len) == 0;
}

const char *addr_special(const struct addr *a)
{
	static const struct addr_range global = { { 16, { 0x20 } }, 3 };
	struct addr_range range;

	for (size_t i = 0; i < ARRAY_LEN(specials); i++)
		if (addr_parse_range(specials[i].range, &range) == 0 && addr_in(a, &range))
			return specials[i].what;
	/* Of IPv6 only 2000::/3 has been given out. */
	return a->len == 16 && !addr_in(a, &global) ? "reserved" : NULL;
}

char *addr_format(const struct addr *a, char text[ADDR_TEXT_MAX])
{
	if (!inet_ntop(a->len == 4 ? AF_INET : AF_INET6, a->b, text, ADDR_TEXT_MAX))
		snprintf(text, ADDR_TEXT_MAX, "?");
	return text;
}

socklen_t addr_to_socket(const struct addr *a, uint16_t port, struct sockaddr_storage *ret)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

	memset(ret, 0, sizeof(*ret));
	if (a->len == 4) {
		memcpy(&in.sin_addr, a->b, 4);
		memcpy(ret, &in, sizeof(in));
		return sizeof(in);
	}
	memcpy(&in6.sin6_addr, a->b, 16);
	memcpy(ret, &in6, sizeof(in6));
	return sizeof(in6);
}

bool addr_from_socket(const struct sockaddr *sa, struct addr *ret)
{
	struct sockaddr_in in;
	struct sockaddr_in6 in6;

	*ret = (struct addr){ 0 };
	if (sa->sa_family == AF_INET) {
		memcpy(&in, sa, sizeof(in));
		ret->len = 4;
		memcpy(ret->b, &in.sin_addr, 4);
		return true;
	}
	if (sa->sa_family != AF_INET6)
		return false;
	memcpy(&in6, sa, sizeof(in6));
	ret->len = 16;
	memcpy(ret->b, &in6.sin6_addr, 16);
	return true;
}
