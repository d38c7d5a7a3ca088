/* What strangers send: asks, answers, DNS, SOCKS, the hello of TLS, requests of HTTP. */
#include "tests/lib/test.h"

#include <errno.h>
#include <stdio.h>

#include "runner/net/ask.h"
#include "runner/net/dns.h"
#include "runner/net/hello.h"
#include "runner/net/http.h"
#include "runner/net/judge.h"
#include "runner/net/socks.h"

/* --- asks --------------------------------------------------------------------------------- */

TEST(an_ask_is_read_as_it_was_written)
{
	struct ask ask = { ASK_OPEN, 443, 0x01020304, "a.example", 9 }, back;
	unsigned char bytes[ASK_MAX];
	size_t n = ask_encode(&ask, bytes);

	CHECK_EQ(n, 17);
	CHECK_OK(ask_decode(bytes, n, &back), NULL);
	CHECK(back.kind == ASK_OPEN && back.port == 443 && back.id == 0x01020304);
	CHECK_STR(back.host, "a.example");
	bytes[0] = 2;
	CHECK_EQ(ask_decode(bytes, n, &back), -EBADMSG);
	bytes[0] = 1;
	CHECK_EQ(ask_decode(bytes, 8, &back), -EBADMSG);
	bytes[1] = ASK_NAME; /* with a port */
	CHECK_EQ(ask_decode(bytes, n, &back), -EBADMSG);
	bytes[1] = 0;
	CHECK_EQ(ask_decode(bytes, n, &back), -EBADMSG);
}

TEST(an_answer_is_read_as_it_was_written)
{
	struct answer answer = { ASK_REFUSED, 7, "'x' is not allowed" }, back;
	unsigned char bytes[ANSWER_MAX];
	size_t n = answer_encode(&answer, bytes);

	CHECK_OK(answer_decode(bytes, n, &back), NULL);
	CHECK(back.status == ASK_REFUSED && back.id == 7);
	CHECK_STR(back.sentence, answer.sentence);
	bytes[1] = 5;
	CHECK_EQ(answer_decode(bytes, n, &back), -EBADMSG);
	bytes[1] = 1;
	bytes[9] = 0;
	CHECK_EQ(answer_decode(bytes, n, &back), -EBADMSG);
}

/* --- DNS ---------------------------------------------------------------------------------- */

#define QUERY                                                  \
	"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01" \
	"a\x07"                                                \
	"example\x00\x00\x01\x00\x01"

TEST(a_question_is_read_and_answered)
{
	const struct addr addr = { 4, { 127, 64, 0, 1 } };
	unsigned char out[DNS_MAX];
	struct dns_question q;
	size_t n;

	CHECK_OK(dns_parse(QUERY, sizeof(QUERY) - 1, &q), NULL);
	CHECK_STR(q.name, "a.example");
	CHECK_EQ(q.type, DNS_A);
	n = dns_answer(&q, DNS_NO_ERROR, &addr, out);
	CHECK_EQ(n, sizeof(QUERY) - 1 + 16);
	CHECK(out[0] == 0x12 && out[2] == 0x85 && out[3] == 0x80 && out[7] == 1);
	CHECK_MEM(out + n - 4, 4, addr.b, 4);
	q.type = DNS_AAAA;
	CHECK_EQ(dns_answer(&q, DNS_NO_ERROR, &addr, out), sizeof(QUERY) - 1);
	CHECK_EQ(dns_answer(&q, DNS_NO_SUCH_NAME, NULL, out), sizeof(QUERY) - 1);
	CHECK_EQ(out[3] & 15, 3);
}

TEST(what_is_no_plain_question_gets_no_answer)
{
	char bytes[] = QUERY;
	struct dns_question q;

	for (size_t n = 0; n < sizeof(QUERY) - 1; n++)
		CHECK_EQ(dns_parse(bytes, n, &q), -EBADMSG);
	bytes[2] = (char)0x81; /* an answer */
	CHECK_EQ(dns_parse(bytes, sizeof(QUERY) - 1, &q), -EBADMSG);
	bytes[2] = 1;
	bytes[12] = (char)0xc0; /* a pointer */
	CHECK_EQ(dns_parse(bytes, sizeof(QUERY) - 1, &q), -EBADMSG);
}

/* --- SOCKS -------------------------------------------------------------------------------- */

TEST(a_socks_request_is_whole_or_waits)
{
	static const unsigned char request[] = "\x05\x01\x00\x03\x03"
					       "a.b\x01\xbb";
	struct socks_request q;

	for (size_t n = 0; n < sizeof(request) - 1; n++)
		CHECK_EQ(socks_parse_request(request, n, &q), 0);
	CHECK_EQ(socks_parse_request(request, sizeof(request) - 1, &q), 10);
	CHECK(q.problem == SOCKS_OK && q.port == 443 && q.host_len == 3);
	CHECK_EQ(socks_parse_request((const unsigned char *)"\x04\x01\0\3\1", 5, &q), -EBADMSG);
	CHECK_EQ(socks_parse_request((const unsigned char *)"\x05\x01\0\2\1", 5, &q), -EBADMSG);
}

/* --- TLS ---------------------------------------------------------------------------------- */

/* A hello with one extension, in a record; its length is returned. */
static size_t make_hello(const char *sni, unsigned char *out)
{
	const size_t name = strlen(sni), ext = name + 5, body = 2 + 32 + 1 + 4 + 2 + 2 + 4 + ext;
	unsigned char *p = out;

	memset(out, 0, 9 + body);
	*p++ = 22, *p++ = 3, *p++ = 1, *p++ = 0, *p++ = (unsigned char)(body + 4);
	*p++ = 1, *p++ = 0, *p++ = 0, *p++ = (unsigned char)body;
	p += 34 + 1; /* version, random, no session */
	p[1] = 2, p += 4;
	p[0] = 1, p += 2;
	p[1] = (unsigned char)(ext + 4), p += 2;
	p[3] = (unsigned char)ext, p += 4;
	p[1] = (unsigned char)(name + 3), p[4] = (unsigned char)name;
	memcpy(p + 5, sni, name);
	return 9 + body;
}

TEST(the_host_of_a_hello_is_found_when_it_is_whole)
{
	unsigned char hello[256];
	char name[HELLO_NAME_MAX + 1];
	size_t len = make_hello("a.example", hello);

	for (size_t n = 0; n < len; n++)
		CHECK_EQ(hello_read(hello, n, name), HELLO_MORE);
	CHECK_EQ(hello_read(hello, len, name), HELLO_READ);
	CHECK_STR(name, "a.example");
	hello[len - 3] = 0; /* a name that ends early for some */
	CHECK_EQ(hello_read(hello, len, name), HELLO_BAD);
}

TEST(what_is_no_hello_is_told_apart)
{
	unsigned char hello[256];
	char name[HELLO_NAME_MAX + 1];
	size_t len = make_hello("a.example", hello);

	CHECK_EQ(hello_read("GET / ", 6, name), HELLO_OTHER);
	CHECK_EQ(hello_read("\x16\x04", 2, name), HELLO_OTHER);
	hello[5] = 2; /* a server's */
	CHECK_EQ(hello_read(hello, len, name), HELLO_BAD);
	hello[5] = 1;
	hello[8]--; /* shorter than its parts */
	CHECK_EQ(hello_read(hello, len, name), HELLO_BAD);
	CHECK_EQ(hello_read("\x16\x03\x01\x00\x00", 5, name), HELLO_BAD);
}

/* --- HTTP --------------------------------------------------------------------------------- */

static int parse(const char *text, struct http_head *head)
{
	return http_parse_head(text, strlen(text), head);
}

TEST(a_head_is_read_when_it_is_whole)
{
	static const char text[] =
	    "POST http://a/b HTTP/1.1\r\nhost:  a \r\nContent-Length: 12\r\n\r\n";
	struct http_head head;

	for (size_t n = 0; n < strlen(text); n++)
		CHECK_EQ(http_parse_head(text, n, &head), 0);
	CHECK_EQ(parse(text, &head), 1);
	CHECK(head.len == strlen(text) && head.length == 12 && head.framing == HTTP_LENGTH);
	CHECK_MEM(head.host.at, head.host.len, "a", 1);
}

TEST(what_servers_could_read_in_two_ways_is_not_read)
{
	static const char *const bad[] = {
		"GET / HTTP/1.1\n\n",
		"GET  / HTTP/1.1\r\n\r\n",
		"GET / HTTP/2.0\r\n\r\n",
		"GET /\r\n\r\n",
		" GET / HTTP/1.1\r\n\r\n",
		"GET / HTTP/1.1\r\nA : b\r\n\r\n",
		"GET / HTTP/1.1\r\n A: b\r\n\r\n",
		"GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n",
		"GET / HTTP/1.1\r\nA: b\rc\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
		"GET / HTTP/1.1\r\nContent-Length: +1\r\n\r\n",
		"GET / HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\n",
		"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
		"GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
		"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
		"GET / HTTP/1.1\r\nTransfer-Encoding: identity, chunked\r\n\r\n",
		"GET / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
	};
	struct http_head head;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_EQ(parse(bad[i], &head), -EBADMSG);
}

TEST(a_server_gets_the_head_without_what_was_ours)
{
	static const char text[] =
	    "GET http://a:80/b?c HTTP/1.0\r\nHost: evil\r\nProxy-Connection: x\r\n"
	    "Proxy-Authorization: y\r\nUpgrade: h2c\r\nAccept: z\r\n\r\n";
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	struct http_span authority, path, host;
	struct http_head head;
	uint16_t port;

	CHECK_EQ(parse(text, &head), 1);
	CHECK(http_split_uri(head.target, &authority, &path));
	CHECK(http_split_authority(authority, 1, &host, &port) && port == 80);
	CHECK_OK(http_rewrite(text, &head, authority, path, &out), NULL);
	CHECK_STR(buf_str(&out), "GET /b?c HTTP/1.0\r\nHost: a:80\r\nAccept: z\r\n\r\n");
}

TEST(a_chunked_body_ends_where_its_chunks_do)
{
	static const char text[] = "5;x=y\r\nhello\r\n0a\r\n0123456789\r\n0\r\nT: x\r\n\r\nGET ";
	const struct http_head head = { .framing = HTTP_CHUNKED };
	struct http_body body;
	ssize_t n = 0;

	http_body_init(&body, &head);
	CHECK_EQ(http_body_take(&body, text, strlen(text)), strlen(text) - 4);
	CHECK(body.done);
	http_body_init(&body, &head);
	for (size_t i = 0; i < strlen(text) && !body.done; i++)
		n += http_body_take(&body, text + i, 1);
	CHECK_EQ(n, strlen(text) - 4);
}

TEST(a_chunked_body_that_could_end_elsewhere_is_not_read)
{
	static const char *const bad[] = { "\r\n",
					   "g\r\n",
					   "5\nhello\r\n",
					   "5\r\nhelloX",
					   " 5\r\nhello\r\n",
					   "0x5\r\nhello\r\n",
					   "-1\r\n",
					   "1111111111111111\r\n",
					   "0\r\nT: x\n\n" };
	const struct http_head head = { .framing = HTTP_CHUNKED };
	struct http_body body;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		http_body_init(&body, &head);
		CHECK_EQ(http_body_take(&body, bad[i], strlen(bad[i])), -EBADMSG);
	}
}

static enum http_first sniff(const char *text)
{
	return http_sniff(text, strlen(text));
}

TEST(http_is_told_from_what_only_begins_like_it)
{
	CHECK_EQ(sniff("G"), HTTP_MAYBE);
	CHECK_EQ(sniff("GET "), HTTP_MAYBE);
	CHECK_EQ(sniff("PROPFIND /x HTTP/1.1\r\nHost: a\r\n"), HTTP_MAYBE);
	CHECK_EQ(sniff("PROPFIND /x HTTP/1.1\r\nHost: a\r\n\r\n"), HTTP_REQUEST);
	CHECK_EQ(sniff("GET  / HTTP/1.1\r\n"), HTTP_NO_REQUEST);
	CHECK_EQ(sniff("\r\nGET / HTTP/1.1\r\n"), HTTP_NO_REQUEST);
	CHECK_EQ(sniff("get / http/1.1\r\n"), HTTP_NO_REQUEST);
	CHECK_EQ(sniff("GET key\r\n"), HTTP_OTHER);
	CHECK_EQ(sniff("*1\r\n$4\r\nPING\r\n"), HTTP_OTHER);
	CHECK_EQ(sniff("\x16\x03"), HTTP_OTHER);
}

/* What a client says at once, to a server that says nothing. */
static int judged(const char *text, struct judge *j, size_t *ret_passed)
{
	CLEANUP(buf_done) struct buf in = BUF_INIT, out = BUF_INIT;
	int r;

	judge_init(j, "a.example");
	CHECK_EQ(buf_append(&in, text, strlen(text)), 0);
	r = judge_client(j, &in, &out, false);
	*ret_passed = out.len;
	return r;
}

#define HOST "Host: a.example\r\n\r\n"

TEST(only_a_request_for_the_allowed_host_passes)
{
	static const char *const good[] = {
		"GET / HTTP/1.1\r\n" HOST,
		"PROPFIND /x HTTP/1.1\r\n" HOST,
		"QUERY /x HTTP/1.0\r\n" HOST,
		"OPTIONS * HTTP/1.1\r\nHost: A.Example.:80\r\n\r\n",
		"PURGE http://a.example/ HTTP/1.1\r\n" HOST,
		"GET / HTTP/1.1\r\nUpgrade: h2c\r\n" HOST,
	};
	static const char *const bad[] = {
		"GET  / HTTP/1.1\r\n" HOST,
		"\r\nGET / HTTP/1.1\r\n" HOST,
		"\nGET / HTTP/1.1\r\n" HOST,
		"GET / HTTP/1.1 \r\n" HOST,
		"GET /\r\n",
		"GET / http/1.1\r\n" HOST,
		"GET / HTTP/1.2\r\n" HOST,
		"GET / HTTP/1.1\n" HOST,
		"GET /\xc3\xa9 HTTP/1.1\r\n" HOST,
		"GET /\tx HTTP/1.1\r\n" HOST,
		"GET *x HTTP/1.1\r\n" HOST,
		"GET / HTTP/1.1\r\n\r\n",
		"GET / HTTP/1.0\r\n\r\n",
		"PROPFIND / HTTP/1.1\r\nHost: b.example\r\n\r\n",
		"QUERY / HTTP/1.1\r\nHost: b.example\r\n\r\n",
		"SEARCH / HTTP/1.1\r\nHost: b.example\r\n\r\n",
		"PURGE http://b.example/ HTTP/1.1\r\n" HOST,
		"X / HTTP/1.1\r\nHost: a.example, b.example\r\n\r\n",
		"X / HTTP/1.1\r\nHost: x@a.example\r\n\r\n",
		"CONNECT a.example:80 HTTP/1.1\r\n" HOST,
		"connect b.example:80 HTTP/1.1\r\n" HOST,
		"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n" HOST,
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	};
	struct judge j;
	size_t passed;

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		CHECK_EQ(judged(good[i], &j, &passed), 0);
		CHECK_EQ(passed, strlen(good[i]));
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		CHECK_EQ(judged(bad[i], &j, &passed), -ECANCELED);
		CHECK(j.rule == NET_RULE_HTTP || j.rule == NET_RULE_PROTOCOL);
		CHECK_EQ(passed, 0);
	}
}

TEST(every_request_of_a_connection_is_judged)
{
	static const char first[] = "GET / HTTP/1.1\r\nContent-Length: 0\r\n" HOST;
	char text[1024];
	struct judge j;
	size_t passed;

	snprintf(text, sizeof(text), "%s%s%s", first, first,
		 "PURGE / HTTP/1.1\r\nHost: b.example\r\n\r\n");
	CHECK_EQ(judged(text, &j, &passed), -ECANCELED);
	CHECK_EQ(passed, 2 * strlen(first));
	CHECK_STR(j.other, "b.example");
	snprintf(text, sizeof(text), "%s\r\n%s", first, first);
	CHECK_EQ(judged(text, &j, &passed), -ECANCELED);
	CHECK_EQ(passed, strlen(first));
}

/* Some servers do not read it, and take it for the next request. */
TEST(a_request_with_a_body_is_the_last_of_its_connection)
{
	static const char *const more[] = { "Connection: keep-alive\r\n", "Keep-Alive: 9\r\n",
					    "Connection: upgrade\r\nUpgrade: websocket\r\n" };

	for (size_t i = 0; i < ARRAY_LEN(more); i++) {
		CLEANUP(buf_done) struct buf in = BUF_INIT, out = BUF_INIT;
		struct judge j;

		judge_init(&j, "a.example");
		CHECK_EQ(buf_printf(&in, "POST / HTTP/1.1\r\nContent-Length: 3\r\n%s" HOST "xyz%s",
				    more[i], "GET /two HTTP/1.1\r\n" HOST),
			 0);
		CHECK_EQ(judge_client(&j, &in, &out, false), 0);
		CHECK(buf_str(&out) && in.len == 0);
		CHECK_HAS(buf_str(&out), "\r\nConnection: close\r\n\r\nxyz");
		CHECK(!strstr(buf_str(&out), "/two") && !strcasestr(buf_str(&out), "keep-alive") &&
		      !strcasestr(buf_str(&out), "Connection: upgrade"));
		CHECK_EQ(buf_append_str(&in, "GET /three HTTP/1.1\r\n" HOST), 0);
		CHECK_EQ(judge_client(&j, &in, &out, false), 0);
		CHECK(!strstr(buf_str(&out), "/three"));
	}
}

TEST(another_protocol_is_told_apart_from_a_request_that_is_none)
{
	struct judge j;
	size_t passed;

	CHECK_EQ(judged("*1\r\n$4\r\nPING\r\n", &j, &passed), -ECANCELED);
	CHECK_EQ(j.rule, NET_RULE_PROTOCOL);
	CHECK_EQ(judged("GET  / HTTP/1.1\r\n" HOST, &j, &passed), -ECANCELED);
	CHECK_EQ(j.rule, NET_RULE_HTTP);
}

TEST_MAIN("net-bytes")
