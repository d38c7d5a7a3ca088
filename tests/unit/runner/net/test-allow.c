#include "tests/lib/test.h"

#include <errno.h>
#include <stdio.h>

#include "runner/net/allow.h"
#include "runner/net/refusal.h"

static enum allow_answer ask(const char *list, const char *host, uint16_t port)
{
	CLEANUP(allow_done) struct allow allow = ALLOW_INIT;
	struct allow_target target;
	struct err err = { 0 };

	CHECK_OK(allow_parse(list, &allow, &err), &err);
	CHECK_EQ(allow.mode, NET_LIST);
	return allow_ask(&allow, host, strlen(host), port, &target);
}

TEST(the_words_of_net_are_modes_without_rules)
{
	static const char *const words[] = { "none", "loopback", "host" };

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		CLEANUP(allow_done) struct allow allow = ALLOW_INIT;

		CHECK_OK(allow_parse(words[i], &allow, NULL), NULL);
		CHECK_EQ(allow.mode, i);
		CHECK_EQ(allow.n, 0);
	}
}

TEST(a_name_is_allowed_on_its_ports_only)
{
	CHECK_EQ(ask("a.example:443", "a.example", 443), ALLOW_YES);
	CHECK_EQ(ask("a.example:443", "A.EXAMPLE.", 443), ALLOW_YES);
	CHECK_EQ(ask("A.example.:443", "a.example", 443), ALLOW_YES);
	CHECK_EQ(ask("a.example:443", "a.example", 444), ALLOW_NO_PORT);
	CHECK_EQ(ask("a.example:443", "a.example", 0), ALLOW_NO_PORT);
	CHECK_EQ(ask("a.example:443", "b.example", 443), ALLOW_NO_HOST);
	CHECK_EQ(ask("a.example:80-90", "a.example", 80), ALLOW_YES);
	CHECK_EQ(ask("a.example:80-90", "a.example", 90), ALLOW_YES);
	CHECK_EQ(ask("a.example:80-90", "a.example", 91), ALLOW_NO_PORT);
	CHECK_EQ(ask("b.example:1,a.example:2,a.example:3", "a.example", 3), ALLOW_YES);
}

TEST(a_wildcard_allows_what_is_below_it)
{
	CHECK_EQ(ask("*.a.example:1", "x.a.example", 1), ALLOW_YES);
	CHECK_EQ(ask("*.a.example:1", "x.y.a.example", 1), ALLOW_YES);
	CHECK_EQ(ask("*.a.example:1", "a.example", 1), ALLOW_NO_HOST);
	CHECK_EQ(ask("*.a.example:1", "xa.example", 1), ALLOW_NO_HOST);
	CHECK_EQ(ask("*.a.example:1", "x.a.example.evil.example", 1), ALLOW_NO_HOST);
}

TEST(an_address_is_allowed_by_its_range_only)
{
	CHECK_EQ(ask("10.1.0.0/16:5", "10.1.255.255", 5), ALLOW_YES);
	CHECK_EQ(ask("10.1.0.0/16:5", "10.2.0.0", 5), ALLOW_NO_HOST);
	CHECK_EQ(ask("10.0.0.0/9:5", "10.127.1.1", 5), ALLOW_YES);
	CHECK_EQ(ask("10.0.0.0/9:5", "10.128.1.1", 5), ALLOW_NO_HOST);
	CHECK_EQ(ask("[2001:db8::/33]:5", "2001:db8:7fff::", 5), ALLOW_YES);
	CHECK_EQ(ask("[2001:db8::/33]:5", "2001:db8:8000::", 5), ALLOW_NO_HOST);
	CHECK_EQ(ask("127.0.0.1:5", "::ffff:127.0.0.1", 5), ALLOW_NO_HOST);
	CHECK_EQ(ask("127.0.0.1:5", "localhost", 5), ALLOW_NO_HOST);
}

TEST(what_is_neither_a_name_nor_an_address_is_never_allowed)
{
	static const char *const odd[] = {
		"",           "127.1", "0x7f000001",   "2130706433", "0177.0.0.1", "1.2.3.4.5",
		"a..example", ".a",    "-a.example",   "a-.example", "a b",        "u@a.example",
		"a.example/", "[::1]", "a.example%41", "a\xc3\xa4",  "::1%lo",     "a.0x1f",
	};
	char longest[300];

	for (size_t i = 0; i < ARRAY_LEN(odd); i++)
		CHECK_EQ(ask("a.example:1,127.0.0.1:1", odd[i], 1), ALLOW_NO_NAME);
	memset(longest, 'a', sizeof(longest));
	longest[64] = '\0';
	CHECK_EQ(ask("a.example:1", longest, 1), ALLOW_NO_NAME);
	CHECK_EQ(ask("a.example:1", longest + 1, 1), ALLOW_NO_HOST);
}

TEST(a_zero_byte_does_not_end_a_name_early)
{
	CLEANUP(allow_done) struct allow allow = ALLOW_INIT;
	struct allow_target target;

	CHECK_OK(allow_parse("a.example:1,127.0.0.1:1", &allow, NULL), NULL);
	CHECK_EQ(allow_ask(&allow, "a.example\0.evil", 15, 1, &target), ALLOW_NO_NAME);
	CHECK_EQ(allow_ask(&allow, "127.0.0.1\0x", 11, 1, &target), ALLOW_NO_NAME);
}

TEST(a_rule_that_is_none_is_named_with_the_reason)
{
	static const struct {
		const char *text, *why;
	} bad[] = {
		{ "", "not one of none, loopback, host" },
		{ "hots", "not one of none, loopback, host" },
		{ "a.example:1,", "empty rule" },
		{ "a.example:1,b.example", "'b.example' has no port" },
		{ "a.example:", "'' is no port" },
		{ "a.example:0", "'0' is no port" },
		{ "a.example:65536", "'65536' is no port" },
		{ "a.example:9-8", "'9-8' is no port" },
		{ "a.example:*", "'*' is no port" },
		{ ":80", "has no port" },
		{ "*.com:80", "top-level" },
		{ "*:80", "'*' is no host name" },
		{ "a*.example:80", "is no host name" },
		{ "b\xc3\xbc.example:80", "xn--" },
		{ "a:b.example:80", "brackets" },
		{ "::1:80", "brackets" },
		{ "[::1]", "has no port" },
		{ "[::1", "brackets" },
		{ "[zz]:80", "is no address" },
		{ "10.0.0.1/8:80", "is no address" },
		{ "10.0.0.0/33:80", "is no address" },
		{ "0.0.0.0/0:80", "too wide" },
		{ "[::/0]:80", "too wide" },
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		CLEANUP(allow_done) struct allow allow = ALLOW_INIT;
		struct err err = { 0 };

		CHECK_EQ(allow_parse(bad[i].text, &allow, &err), -EINVAL);
		CHECK_HAS(err.msg, bad[i].why);
	}
}

static bool within(const char *inner, const char *outer)
{
	CLEANUP(allow_done) struct allow a = ALLOW_INIT, b = ALLOW_INIT;

	CHECK_OK(allow_parse(inner, &a, NULL), NULL);
	CHECK_OK(allow_parse(outer, &b, NULL), NULL);
	return allow_within(&a, &b);
}

TEST(a_list_lies_within_another_if_each_rule_does)
{
	CHECK(within("none", "none") && within("loopback", "none") && within("host", "host"));
	CHECK(within("a.example:1", "host") && !within("host", "a.example:1"));
	CHECK(!within("a.example:1", "none") && !within("host", "none"));
	CHECK(within("a.example:5", "b.example:1,a.example:1-9"));
	CHECK(!within("a.example:5-10", "a.example:1-9"));
	CHECK(!within("a.example:5,c.example:5", "a.example:5"));
	CHECK(within("x.a.example:1", "*.a.example:1") &&
	      within("*.x.a.example:1", "*.a.example:1"));
	CHECK(within("*.a.example:1", "*.a.example:1") && !within("a.example:1", "*.a.example:1"));
	CHECK(!within("*.a.example:1", "a.example:1") && !within("*.b.example:1", "*.a.example:1"));
	CHECK(within("10.1.0.0/16:1", "10.0.0.0/8:1") && !within("10.0.0.0/8:1", "10.1.0.0/16:1"));
	CHECK(!within("10.1.0.1:1", "a.example:1") && !within("a.example:1", "10.0.0.0/8:1"));
}

TEST(addresses_that_are_not_of_the_open_internet_are_known)
{
	static const char *const closed[] = {
		"0.0.0.0",
		"10.255.255.255",
		"100.64.0.1",
		"100.127.255.255",
		"127.255.255.255",
		"169.254.169.254",
		"172.16.0.1",
		"172.31.255.255",
		"192.0.0.1",
		"192.0.2.1",
		"192.168.255.255",
		"198.18.0.1",
		"198.19.255.255",
		"198.51.100.1",
		"203.0.113.1",
		"224.0.0.1",
		"255.255.255.255",
		"168.63.129.16",
		"::",
		"::1",
		"::ffff:8.8.8.8",
		"::8.8.8.8",
		"64:ff9b::8.8.8.8",
		"2001:db8::1",
		"2002:808:808::1",
		"2001:0:1::1",
		"fc00::1",
		"fd00:ec2::254",
		"fe80::1",
		"fec0::1",
		"ff02::1",
		"100::1",
		"4000::1",
	};
	static const char *const open[] = {
		"8.8.8.8",   "100.63.255.255", "100.128.0.0",     "172.15.255.255", "172.32.0.0",
		"192.0.1.1", "198.17.0.1",     "223.255.255.255", "2606:2800::1",   "2a00:1450::1",
	};
	struct addr a;

	for (size_t i = 0; i < ARRAY_LEN(closed); i++) {
		CHECK_EQ(addr_parse(closed[i], &a), 0);
		CHECK(addr_special(&a));
	}
	for (size_t i = 0; i < ARRAY_LEN(open); i++) {
		CHECK_EQ(addr_parse(open[i], &a), 0);
		CHECK(!addr_special(&a));
	}
}

static bool may_speak_anything(const char *list, const char *host, uint16_t port)
{
	CLEANUP(allow_done) struct allow a = ALLOW_INIT;
	struct allow_target target = { 0 };
	struct err err = { 0 };

	CHECK_OK(allow_parse(list, &a, &err), &err);
	CHECK_EQ(allow_ask(&a, host, strlen(host), port, &target), ALLOW_YES);
	return target.any;
}

TEST(what_may_speak_anything_is_said_by_rule_or_known_by_port)
{
	CHECK(!may_speak_anything("a.org:7000", "a.org", 7000));
	CHECK(may_speak_anything("a.org:7000/tcp", "a.org", 7000));
	CHECK(may_speak_anything("*.a.org:1-7000/tcp", "b.a.org", 80));
	CHECK(may_speak_anything("a.org:80,a.org:80-90/tcp", "a.org", 80));
	CHECK(!may_speak_anything("a.org:80,a.org:81/tcp", "a.org", 80));
	CHECK(may_speak_anything("a.org:22", "a.org", 22));
	CHECK(may_speak_anything("[2001:db8::/32]:80/tcp", "2001:db8::1", 80));
}

TEST(speaking_anything_is_more_than_speaking_http)
{
	CLEANUP(allow_done) struct allow any = ALLOW_INIT, http = ALLOW_INIT;
	struct err err = { 0 };

	CHECK_OK(allow_parse("a.org:7000/tcp", &any, &err), &err);
	CHECK_OK(allow_parse("a.org:7000", &http, &err), &err);
	CHECK(allow_within(&http, &any));
	CHECK(!allow_within(&any, &http));
	CHECK_EQ(allow_parse("a.org:7000/udp", &http, &err), -EINVAL);
	CHECK_HAS(err.msg, "no port");
}

TEST(a_refusal_names_the_flag_that_would_allow_it)
{
	struct net_refusal r;
	char text[512];

	net_refusal_init(&r, NET_RULE_HOST, "evil.org", 8, 443, "");
	CHECK_STR(r.flag, "--net evil.org:443");
	CHECK_STR(net_refusal_explain(&r, text, sizeof(text)),
		  "'evil.org:443' is not in the list of allowed hosts");
	net_refusal_init(&r, NET_RULE_LITERAL, "2606:2800::1", 12, 443, "");
	CHECK_STR(r.flag, "--net [2606:2800::1]:443");
	net_refusal_init(&r, NET_RULE_PROTOCOL, "a.org", 5, 7000, "");
	CHECK_STR(r.flag, "--net a.org:7000/tcp");
	net_refusal_init(&r, NET_RULE_SNI, "a.org", 5, 443, "b.org");
	CHECK_STR(r.flag, "");
	CHECK_HAS(net_refusal_explain(&r, text, sizeof(text)), "b.org");
}

TEST(no_flag_leads_to_this_machine_or_its_neighbours)
{
	static const char *const never[] = {
		"127.0.0.1",   "169.254.169.254",
		"10.0.0.1",    "::1",
		"fd00::1",     "0.0.0.0",
		"localhost",   "metadata.google.internal",
		"a.local",     "router",
		"x.localhost", "a b.org",
		"a.org,b",     "",
		"--help",
	};
	struct net_refusal r;

	for (size_t i = 0; i < ARRAY_LEN(never); i++) {
		net_refusal_init(&r, NET_RULE_HOST, never[i], strlen(never[i]), 80, "");
		CHECK_STR(r.flag, "");
		net_refusal_init(&r, NET_RULE_LITERAL, never[i], strlen(never[i]), 80, "");
		CHECK_STR(r.flag, "");
	}
	net_refusal_init(&r, NET_RULE_ADDRESS, "a.org", 5, 80, "10.0.0.1");
	CHECK_STR(r.flag, "");
	net_refusal_init(&r, NET_RULE_SELF, "a.org", 5, 80, "8.8.8.8");
	CHECK_STR(r.flag, "");
}

TEST(a_refusal_shows_no_byte_that_could_drive_a_terminal)
{
	struct net_refusal r;
	char host[300];

	net_refusal_init(&r, NET_RULE_NAME, "a\x1b[31m\0b", 8, 1, "\x07");
	CHECK_STR(r.host, "a\\x1b[31m\\x00b");
	CHECK_STR(r.detail, "\\x07");
	memset(host, 1, sizeof(host));
	net_refusal_init(&r, NET_RULE_NAME, host, 255, 1, "");
	CHECK(strlen(r.host) < sizeof(r.host));
}

TEST_MAIN("allow")
