#include "tests/lib/test.h"

#include <errno.h>
#include <string.h>

#include "runner/net/judge.h"
#include "runner/net/relay.h"
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

#define FILL "0123456789012345678901234567890" /* with 4 more: one less than waits */

TEST(how_long_an_answer_waits_does_not_depend_on_what_it_says)
{
	/* A beginning of the secret, none, and a whole one. */
	static const char *const texts[] = { "abcdefgh" FILL "abcs", "abcdefgh" FILL "abs3",
					     "abcdefgh" FILL "abxx", "abs3cre7" FILL "abcd",
					     "abs3cret" FILL "abcd" };

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		CLEANUP(buf_done) struct buf in = BUF_INIT, out = BUF_INIT;
		struct judge j;

		CHECK_EQ(heard(&j, texts[i], &in), 8);
		CHECK_EQ(judge_server(&j, &in, &out, true), 0);
		CHECK(in.len == 0 && out.len == 35);
		CHECK(memcmp(out.data, texts[i] + 8, 35) == 0);
		teardown();
	}
}

/* All that the run hears of an answer that comes in two pieces, cut at `cut`. */
static void hear_cut(const char *text, size_t cut, struct buf *out)
{
	CLEANUP(buf_done) struct buf in = BUF_INIT, sent = BUF_INIT;
	struct judge j;

	CHECK_EQ(asked(&j, "/v1/x", "", &sent), 0);
	CHECK_EQ(buf_append(&in, text, cut), 0);
	CHECK_EQ(judge_server(&j, &in, out, false), 0);
	CHECK_EQ(buf_append_str(&in, text + cut), 0);
	CHECK_EQ(judge_server(&j, &in, out, false), 0);
	CHECK_EQ(judge_server(&j, &in, out, true), 0);
	CHECK(buf_str(out) != NULL);
	teardown();
}

static void check_heard(const char *text, const char *want)
{
	for (size_t cut = 0; cut <= strlen(text); cut++) {
		CLEANUP(buf_done) struct buf out = BUF_INIT;

		hear_cut(text, cut, &out);
		CHECK_STR(buf_str(&out), want);
	}
}

TEST(a_secret_in_two_pieces_is_covered_and_one_of_another_host_is_not_looked_for)
{
	check_heard("longer-than-it s3cret! and more than what waits for an end",
		    "longer-than-it ******! and more than what waits for an end");
	check_heard("s3cres3crets3cre", "s3cre******s3cre");
}

TEST(the_ends_of_chunks_in_a_secret_hide_nothing_of_it)
{
	check_heard("x s3\r\n4\r\ncret y", "x **\r\n4\r\n**** y");
	check_heard("1\r\ns\r\n1\r\n3\r\n1\r\nc\r\n1\r\nr\r\n1\r\ne\r\n1\r\nt\r\n0\r\n\r\n",
		    "1\r\n*\r\n1\r\n*\r\n1\r\n*\r\n1\r\n*\r\n1\r\n*\r\n1\r\n*\r\n0\r\n\r\n");
	check_heard("s3c\r\n0a;x=y\r\nret", "***\r\n0a;x=y\r\n***");
	/* What is no end of a chunk divides a text. */
	check_heard("s3c\r\nret s3c\r\nx\r\nret", "s3c\r\nret s3c\r\nx\r\nret");
}

TEST(of_secrets_that_overlap_nothing_stays_readable)
{
	static const struct http_span both[] = { { "s3cret", 6 }, { "retold-tale", 11 } };
	static const char text[] = "a s3cretold-tale retold-tales3cret s3c\r\n3\r\nretold-tale z",
			  want[] = "a ************** ***************** ***\r\n3\r\n*********** z";

	_Static_assert(sizeof(text) == sizeof(want), "stars take the place of what they cover");
	for (size_t order = 0; order < 2; order++)
		for (size_t cut = 0; cut < sizeof(text); cut++) {
			CLEANUP(buf_done) struct buf in = BUF_INIT, out = BUF_INIT;
			struct net_mask m = { 0 };
			struct judge j;
			size_t n;

			setup(&j);
			allow_done(&list[1].rule);
			CHECK_OK(allow_parse("http://a.example", &list[1].rule, NULL), NULL);
			list[order].value = both[0];
			list[!order].value = both[1];
			CHECK_EQ(buf_append(&in, text, cut), 0);
			n = net_secrets_mask(&secrets, &target, 80, &m, &in, false);
			CHECK_EQ(relay_pass(&in, &out, n), 0);
			CHECK_EQ(buf_append_str(&in, text + cut), 0);
			n = net_secrets_mask(&secrets, &target, 80, &m, &in, true);
			CHECK_EQ(relay_pass(&in, &out, n), 0);
			CHECK_STR(buf_str(&out), want);
			teardown();
		}
	list[0].value = (struct http_span){ line + 7, 6 };
	list[1].value = (struct http_span){ "longer-than-it", 14 };
}

TEST_MAIN("secret")
