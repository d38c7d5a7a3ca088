#include "tests/lib/test.h"

#include <errno.h>
#include <string.h>

#include "runner/net/judge.h"
#include "runner/net/secret.h"

#define LINE "X-Key: s3cret"

static const char line[] = LINE;

static struct net_secret list[] = {
	{ .name = { line, 5 }, .line = { line, 13 }, .value = { line + 7, 6 } },
	{ .name = { "X-Other", 7 },
	  .line = { "X-Other: longer-than-it", 23 },
	  .value = { "longer-than-it", 14 } },
};
static const struct net_secrets secrets = { list, 2 };
static struct allow_target target;

/* The first secret is for a.example, the second for another host. */
static void setup(struct judge *j)
{
	CLEANUP(allow_done) struct allow allow = ALLOW_INIT;

	CHECK_OK(allow_parse("http://a.example/v1/*", &list[0].rule, NULL), NULL);
	CHECK_OK(allow_parse("http://b.example", &list[1].rule, NULL), NULL);
	CHECK_OK(allow_parse("a.example:80", &allow, NULL), NULL);
	CHECK_EQ(allow_ask(&allow, "a.example", 9, 80, &target), ALLOW_YES);
	judge_init(j, target.host);
	judge_secrets(j, &secrets, &target, 80);
}

static void teardown(void)
{
	allow_done(&list[0].rule);
	allow_done(&list[1].rule);
}

/* What the server gets, in `out`. */
static int asked(struct judge *j, const char *path, const char *more, struct buf *out)
{
	CLEANUP(buf_done) struct buf in = BUF_INIT;

	setup(j);
	CHECK_EQ(buf_printf(&in, "GET %s HTTP/1.1\r\nHost: a.example\r\n%s\r\n", path, more), 0);
	return judge_client(j, &in, out, false);
}

TEST(the_server_is_asked_for_one_whole_plain_answer_and_an_end)
{
	static const char *const paths[] = { "/v1/x", "/other" };

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		CLEANUP(buf_done) struct buf out = BUF_INIT;
		struct judge j;

		CHECK_EQ(asked(&j, paths[i],
			       "Connection: keep-alive\r\nRange: bytes=0-3\r\nIf-Range: x\r\n"
			       "TE: gzip\r\nExpect: 100-continue\r\nX-Mine: yes\r\n"
			       "Accept-Encoding: br\r\nSec-WebSocket-Extensions: x\r\n",
			       &out),
			 0);
		CHECK(buf_str(&out));
		CHECK_HAS(buf_str(&out), "\r\nX-Mine: yes\r\n");
		CHECK_HAS(buf_str(&out),
			  "\r\nAccept-Encoding: identity\r\nConnection: close\r\n\r\n");
		CHECK((strstr(buf_str(&out), "\r\n" LINE "\r\n") != NULL) == (i == 0));
		CHECK(!strstr(buf_str(&out), "ange: ") && !strstr(buf_str(&out), "TE: ") &&
		      !strstr(buf_str(&out), "Expect") && !strstr(buf_str(&out), "keep-alive") &&
		      !strstr(buf_str(&out), "WebSocket"));
		teardown();
	}
}

TEST(no_secret_goes_where_a_header_undoes_the_first_line)
{
	static const char *const more[] = { "X-Original-URL: /admin\r\n",
					    "X_HTTP_METHOD_OVERRIDE: TRACE\r\n",
					    "Upgrade: websocket\r\n", "Upgrade: h2c\r\n" };

	for (size_t i = 0; i < ARRAY_LEN(more); i++) {
		CLEANUP(buf_done) struct buf out = BUF_INIT;
		struct judge j;

		CHECK_EQ(asked(&j, "/v1/x", more[i], &out), -ECANCELED);
		CHECK_EQ(j.rule, NET_RULE_REQUEST);
		CHECK_EQ(out.len, 0);
		teardown();
	}
}

/* How much of an answer the run has before the server has ended; then `in` has the rest. */
static size_t heard(struct judge *j, const char *text, struct buf *in)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT, sent = BUF_INIT;

	CHECK_EQ(asked(j, "/v1/x", "", &sent), 0);
	CHECK_EQ(buf_append_str(in, text), 0);
	CHECK_EQ(judge_server(j, in, &out, false), 0);
	return out.len;
}

TEST(how_long_an_answer_waits_does_not_depend_on_what_it_says)
{
	/* A beginning of the secret, none, and a whole one. */
	static const char *const texts[] = { "0123456789abcs", "0123456789abs3", "0123456789abxx",
					     "01234567s3cre7", "01234567s3cret" };

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		CLEANUP(buf_done) struct buf in = BUF_INIT, out = BUF_INIT;
		struct judge j;

		CHECK_EQ(heard(&j, texts[i], &in), 14 - 5);
		CHECK_EQ(judge_server(&j, &in, &out, true), 0);
		CHECK(in.len == 0 && out.len == 5);
		CHECK(memcmp(out.data, i < 4 ? texts[i] + 9 : "*****", 5) == 0);
		teardown();
	}
}

TEST(a_secret_in_two_pieces_is_covered_and_one_of_another_host_is_not_looked_for)
{
	CLEANUP(buf_done) struct buf in = BUF_INIT, out = BUF_INIT;
	struct judge j;

	CHECK_EQ(heard(&j, "longer-than-it s3cr", &in), 14);
	CHECK_EQ(buf_append_str(&in, "et!"), 0);
	CHECK_EQ(judge_server(&j, &in, &out, true), 0);
	CHECK(buf_str(&out));
	CHECK_STR(buf_str(&out), " ******!");
	teardown();
}

TEST_MAIN("secret")
