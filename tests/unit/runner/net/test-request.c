#include "tests/lib/test.h"

#include <errno.h>
#include <stdio.h>

#include "runner/net/allow.h"
#include "runner/net/judge.h"
#include "runner/net/refusal.h"

/* Is it allowed by the list, on a.example:80?  `more` are further lines of the head. */
static int judged(const char *list, const char *line, const char *more, struct judge *j)
{
	CLEANUP(allow_done) struct allow allow = ALLOW_INIT;
	CLEANUP(buf_done) struct buf in = BUF_INIT, out = BUF_INIT;
	struct allow_target target;
	struct err err = { 0 };
	int r;

	CHECK_OK(allow_parse(list, &allow, &err), &err);
	CHECK_EQ(allow_ask(&allow, "a.example", 9, 80, &target), ALLOW_YES);
	CHECK(target.requests && !target.any);
	judge_requests(j, &allow, &target, 80);
	CHECK_EQ(buf_printf(&in, "%s HTTP/1.1\r\nHost: a.example\r\n%s\r\n", line, more), 0);
	r = judge_client(j, &in, &out, false);
	CHECK(r == 0 ? in.len == 0 && out.len > 0 : out.len == 0);
	return r;
}

static bool allowed(const char *list, const char *line)
{
	struct judge j;
	int r = judged(list, line, "", &j);

	CHECK(r == 0 || (r == -ECANCELED && j.rule == NET_RULE_REQUEST));
	return r == 0;
}

TEST(a_rule_has_methods_and_a_path)
{
	CHECK(allowed("GET http://a.example/x", "GET /x"));
	CHECK(!allowed("GET http://a.example/x", "GET /x/"));
	CHECK(!allowed("GET http://a.example/x", "GET /"));
	CHECK(!allowed("GET http://a.example/x", "POST /x"));
	CHECK(!allowed("GET http://a.example/x", "get /x"));
	CHECK(!allowed("GET http://a.example/x", "GETS /x") &&
	      !allowed("GET http://a.example/x", "GE /x"));
	CHECK(allowed("GET+HEAD http://a.example/x", "HEAD /x"));
	CHECK(!allowed("GET+HEAD http://a.example/x", "GET+HEAD /x"));
	CHECK(allowed("http://a.example/x", "BREW /x") && !allowed("http://a.example/x", "GET /y"));
	CHECK(allowed("GET http://a.example", "GET /any/thing") &&
	      allowed("GET http://a.example:80", "GET /"));
	CHECK(allowed("GET http://a.example/x,PUT http://a.example/y", "PUT /y"));
	CHECK(!allowed("GET http://a.example/x,PUT http://a.example/y", "PUT /x"));
}

TEST(a_star_stands_for_anything)
{
	CHECK(allowed("GET http://a.example/v1/*", "GET /v1/") &&
	      allowed("GET http://a.example/v1/*", "GET /v1/a/b.c"));
	CHECK(!allowed("GET http://a.example/v1/*", "GET /v1") &&
	      !allowed("GET http://a.example/v1/*", "GET /v2/v1/x"));
	CHECK(allowed("GET http://a.example/*/info", "GET /a/b/info") &&
	      !allowed("GET http://a.example/*/info", "GET /a/info/b"));
	CHECK(allowed("GET http://a.example/*a*b*", "GET /xaxxaxbx") &&
	      !allowed("GET http://a.example/*a*b*c", "GET /xaxxaxbx"));
}

TEST(a_query_is_free_unless_the_rule_has_one)
{
	CHECK(allowed("GET http://a.example/x", "GET /x?a=/../b"));
	CHECK(allowed("GET http://a.example/x?k=*", "GET /x?k=1") &&
	      !allowed("GET http://a.example/x?k=*", "GET /x") &&
	      !allowed("GET http://a.example/x?k=*", "GET /x?l=1&k=1"));
	CHECK(allowed("GET http://a.example/x?", "GET /x") &&
	      !allowed("GET http://a.example/x?", "GET /x?a"));
	CHECK(!allowed("GET http://a.example/x*", "GET /y?/x"));
}

TEST(a_path_that_servers_read_differently_is_allowed_by_no_rule)
{
	static const char *const odd[] = {
		"/v1/../admin",
		"/v1/..",
		"/v1/./x",
		"/v1//x",
		"//v1/x",
		"/v1/%2e%2e/x",
		"/v1/.%2E/x",
		"/v1/..%2fadmin",
		"/v1%2f..%2fx",
		"/v1/..;/admin",
		"/v1/..;a=b/x",
		"/v1/;/x",
		"/v1/%5c..%5cx",
		"/v1/..\\admin",
		"/v1/%00",
		"/v1/%0d%0a",
		"/v1/%252e%252e",
		"/v1/%",
		"/v1/%4",
		"/v1/%zz",
		"/v1/%c0%ae/x",
		"/v1/%2e%2e%20/x",
		"/v1/...%20./x",
		"/v1/%3fx",
		"v1/x",
		"*",
		"?x",
		"/v1/%23",
		"/v1/x#y",
		"/v1/.;/x",
		"http://a.example?/v1/x",
	};
	struct judge j;
	char line[100];

	for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
		snprintf(line, sizeof(line), "GET %s", odd[i]);
		CHECK_EQ(judged("GET http://a.example/*,GET http://a.example", line, "", &j),
			 -ECANCELED);
		CHECK(j.rule == NET_RULE_REQUEST || j.rule == NET_RULE_HTTP);
	}
	CHECK(allowed("GET http://a.example/v1/*", "GET /v1/..x/.hidden/a%20b/%C3%A4/@s%2fn"));
}

TEST(a_path_must_match_as_it_is_and_decoded)
{
	CHECK(allowed("GET http://a.example/@s*", "GET /@s%2fn"));
	CHECK(!allowed("GET http://a.example/a/b", "GET /a%2fb"));
	CHECK(!allowed("GET http://a.example/admin", "GET /%61dmin"));
	CHECK(!allowed("GET http://a.example/%61dmin", "GET /%61dmin"));
}

TEST(a_whole_address_in_the_first_line_is_judged_by_its_path)
{
	struct judge j;

	CHECK(allowed("GET http://a.example/x", "GET http://a.example/x"));
	CHECK(!allowed("GET http://a.example/x", "GET http://a.example/y"));
	CHECK(allowed("GET http://a.example/", "GET http://a.example"));
	CHECK_EQ(judged("GET http://a.example/x", "GET http://b.example/x", "", &j), -ECANCELED);
	CHECK_EQ(j.rule, NET_RULE_HTTP);
	CHECK(allowed("GET http://a.example/x", "GET http://a.example:80/x"));
	CHECK_EQ(judged("GET http://a.example/x", "GET http://a.example:81/x", "", &j), -ECANCELED);
	CHECK_EQ(j.rule, NET_RULE_HTTP);
	CHECK(!allowed("GET http://a.example/x", "GET https://a.example/x"));
	CHECK(!allowed("OPTIONS http://a.example/*", "OPTIONS *"));
}

TEST(no_header_undoes_what_was_judged)
{
	static const char *const more[] = {
		"X-HTTP-Method-Override: DELETE\r\n",
		"x-method-override: PUT\r\n",
		"X-Original-URL: /admin\r\n",
		"X-Rewrite-Url: /admin\r\n",
		"X-HTTP-Method: PUT\r\n",
		"X_HTTP_Method-Override: PUT\r\n",
		"Upgrade: websocket\r\n",
		"Upgrade: h2c\r\n",
	};
	struct judge j;

	for (size_t i = 0; i < ARRAY_LEN(more); i++) {
		CHECK_EQ(judged("GET http://a.example/x", "GET /x", more[i], &j), -ECANCELED);
		CHECK_EQ(j.rule, NET_RULE_REQUEST);
	}
	CHECK_EQ(judged("GET http://a.example/x", "GET /x", "X-Other: /admin\r\n", &j), 0);
}

TEST(rules_for_requests_leave_no_way_around_them)
{
	CLEANUP(allow_done) struct allow allow = ALLOW_INIT;
	struct allow_target t;
	struct err err = { 0 };

	/* Neither a port of another protocol nor an address passes unread. */
	CHECK_OK(allow_parse("GET http://a.example:6379/x,http://8.8.8.8/x,b.example:80,"
			     "GET http://b.example/x,http://[2001:db8::1]:81/",
			     &allow, &err),
		 &err);
	CHECK_EQ(allow_ask(&allow, "a.example", 9, 6379, &t), ALLOW_YES);
	CHECK(t.requests && !t.any);
	CHECK_EQ(allow_ask(&allow, "8.8.8.8", 7, 80, &t), ALLOW_YES);
	CHECK(t.requests && !t.any && t.literal);
	CHECK_EQ(allow_ask(&allow, "2001:db8::1", 11, 81, &t), ALLOW_YES);
	CHECK(t.requests);
	/* Rules add up: a host that is allowed whole is. */
	CHECK_EQ(allow_ask(&allow, "b.example", 9, 80, &t), ALLOW_YES);
	CHECK(!t.requests);
	CHECK_EQ(allow_ask(&allow, "a.example", 9, 80, &t), ALLOW_NO_PORT);
}

TEST(an_address_is_judged_as_the_host_that_it_is)
{
	CLEANUP(allow_done) struct allow allow = ALLOW_INIT;
	static const struct {
		const char *text;
		int r;
	} cases[] = {
		{ "GET /x HTTP/1.1\r\nHost: 8.8.8.8\r\n\r\n", 0 },
		{ "GET /x HTTP/1.1\r\nHost: 8.8.8.8:80\r\n\r\n", 0 },
		{ "GET /x HTTP/1.1\r\nHost: 8.8.8.8:8080\r\n\r\n", -ECANCELED },
		{ "GET /x HTTP/1.1\r\nHost: 8.8.4.4\r\n\r\n", -ECANCELED },
		{ "GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n", -ECANCELED },
		{ "GET /y HTTP/1.1\r\nHost: 8.8.8.8\r\n\r\n", -ECANCELED },
	};
	struct allow_target t;
	struct judge j;

	CHECK_OK(allow_parse("http://8.8.8.8/x", &allow, NULL), NULL);
	CHECK_EQ(allow_ask(&allow, "8.8.8.8", 7, 80, &t), ALLOW_YES);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(buf_done) struct buf in = BUF_INIT, out = BUF_INIT;

		judge_requests(&j, &allow, &t, 80);
		CHECK_EQ(buf_append_str(&in, cases[i].text), 0);
		CHECK_EQ(judge_client(&j, &in, &out, false), cases[i].r);
	}
}

TEST(what_is_no_rule_is_refused_with_a_sentence)
{
	static const struct {
		const char *text, *words;
	} bad[] = {
		{ "httpss://a.example/x", "'https://'; allow" },
		{ "HTTPS://a.example/x", "'https://'; allow" },
		{ "https://a.example/../x", "no request" },
		{ "https:///x", "no host" },
		{ "ftp://a.example/x", "http://" },
		{ "get http://a.example/", "no method" },
		{ "GET+ http://a.example/", "no method" },
		{ " http://a.example/", "no method" },
		{ "GET  http://a.example/", "http://" },
		{ "http:///x", "no host" },
		{ "http://u@a.example/x", "no host name" },
		{ "http://a.example:x/", "no port" },
		{ "http://a.example/../x", "no request" },
		{ "http://a.example/a b", "no method" },
		{ "http://a.example/'x", "no request" },
		{ "http://*.com/x", "top-level" },
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		CLEANUP(allow_done) struct allow allow = ALLOW_INIT;
		struct err err = { 0 };
		int r = allow_parse(bad[i].text, &allow, &err);

		CHECK_EQ(r, -EINVAL);
		CHECK_HAS(err.msg, bad[i].words);
	}
}

static bool within(const char *inner, const char *outer)
{
	CLEANUP(allow_done) struct allow a = ALLOW_INIT, b = ALLOW_INIT;
	struct err err = { 0 };

	CHECK_OK(allow_parse(inner, &a, &err), &err);
	CHECK_OK(allow_parse(outer, &b, &err), &err);
	return allow_within(&a, &b);
}

TEST(rules_for_requests_lie_within_others)
{
	CHECK(within("GET http://a.example/x", "a.example:80"));
	CHECK(!within("a.example:80", "GET http://a.example/x") &&
	      !within("a.example:80", "http://a.example"));
	CHECK(within("GET http://a.example/x", "GET+PUT http://a.example/x") &&
	      !within("GET+PUT http://a.example/x", "GET http://a.example/x") &&
	      !within("http://a.example/x", "GET http://a.example/x"));
	CHECK(within("GET http://a.example/x/y", "http://a.example/x/*") &&
	      within("GET http://a.example/x/*", "http://a.example/*") &&
	      !within("GET http://a.example/*", "http://a.example/x/*") &&
	      !within("GET http://a.example", "http://a.example/x/*"));
	CHECK(within("http://a.example/x?a=1", "http://a.example/x") &&
	      !within("http://a.example/x", "http://a.example/x?a=1") &&
	      within("http://a.example/x?a=1", "http://a.example/x?a=*"));
	CHECK(!within("http://b.example/x", "http://a.example/x") &&
	      !within("http://a.example:81/x", "http://a.example/x"));
}

static bool voids(const char *more, const char *list)
{
	CLEANUP(allow_done) struct allow a = ALLOW_INIT, b = ALLOW_INIT;

	CHECK_OK(allow_parse(more, &a, NULL), NULL);
	CHECK_OK(allow_parse(list, &b, NULL), NULL);
	return allow_voids(&a, &b);
}

TEST(a_whole_host_voids_the_rules_for_its_requests)
{
	static const char list[] = "b.example:443,GET http://a.example/x,http://8.8.8.8/x";

	CHECK(voids("a.example:80", list) && voids("a.example:1-99/tcp", list) &&
	      voids("c.example:80,A.example.:80", list) && voids("8.8.8.0/24:80", list));
	CHECK(!voids("a.example:81", list) && !voids("b.example:443", list) &&
	      !voids("x.a.example:80", list) && !voids("GET http://a.example/y", list) &&
	      !voids("8.8.4.0/24:80", list) && !voids("*.a.example:80", list));
	CHECK(voids("x.a.example:80", "http://*.a.example/x") &&
	      voids("*.a.example:80", "http://x.a.example/x") &&
	      voids("*.x.a.example:80", "http://*.a.example/x") &&
	      !voids("a.example:80", "http://*.a.example/x"));
}

TEST(the_option_that_is_offered_can_be_pasted)
{
	static const struct {
		const char *detail, *flag;
	} cases[] = {
		{ "POST /v1/a", "--net 'POST http://a.org/v1/a'" },
		{ "POST /v1/$(id)", "" },
		{ "POST /v1/'x'", "" },
		{ "POST /../x", "" },
		{ "P;ST /x", "" },
		{ "(TLS, which hides it)", "" },
		{ "POST /a,b.org:443", "" },
		{ "OPTIONS *", "" },
	};
	struct net_refusal r;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		net_refusal_init(&r, NET_RULE_REQUEST, "a.org", 5, 80, cases[i].detail);
		CHECK_STR(r.flag, cases[i].flag);
	}
	net_refusal_init(&r, NET_RULE_REQUEST, "a.org", 5, 8080, "GET /");
	CHECK_STR(r.flag, "--net 'GET http://a.org:8080/'");
	net_refusal_init(&r, NET_RULE_REQUEST, "10.0.0.1", 8, 80, "GET /");
	CHECK_STR(r.flag, "");
}

TEST_MAIN("request")
