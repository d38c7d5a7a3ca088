/*
 * Everything that strangers say to the network of a run; the first byte chooses the reader.
 * What decodes encodes to itself; whatever a client says, and however it is cut, what the judge
 * lets pass is a beginning of it.
 */
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "runner/net/ask.h"
#include "runner/net/dns.h"
#include "runner/net/inspect.h"
#include "runner/net/judge.h"
#include "runner/net/socks.h"
#include "tests/fuzz/fuzz.h"

static void fuzz_frames(const uint8_t *data, size_t len)
{
	unsigned char again[ANSWER_MAX];
	struct answer answer;
	struct ask ask;

	if (ask_decode(data, len, &ask) == 0)
		FUZZ_CHECK(ask_encode(&ask, again) == len && memcmp(again, data, len) == 0);
	if (answer_decode(data, len, &answer) == 0)
		FUZZ_CHECK(answer_encode(&answer, again) == len && memcmp(again, data, len) == 0);
}

static void fuzz_dns(const uint8_t *data, size_t len)
{
	const struct addr addr = { 4, { 127, 64, 0, 1 } };
	unsigned char out[DNS_MAX];
	struct dns_question q, again;

	if (dns_parse(data, len, &q) < 0)
		return;
	FUZZ_CHECK(q.packet_len <= len && strlen(q.name) > 0);
	FUZZ_CHECK(dns_answer(&q, DNS_NO_ERROR, &addr, out) >= q.packet_len);
	FUZZ_CHECK(dns_parse(q.packet, q.packet_len, &again) == 0 && again.type == q.type);
}

static void fuzz_socks(const uint8_t *data, size_t len)
{
	struct socks_request q;
	bool open;
	int n = socks_parse_greeting(data, len, &open);

	FUZZ_CHECK(n <= 0 || (size_t)n <= len);
	n = socks_parse_request(data, len, &q);
	FUZZ_CHECK(n <= 0 || ((size_t)n <= len && q.host_len > 0 && q.host_len < sizeof(q.host)));
}

/* What has passed of plain HTTP is requests for that host, one after the other, the last one cut. */
static void check_passed(const char *data, size_t len)
{
	struct http_body body;
	struct http_head head;
	ssize_t n;

	while (len > 0) {
		FUZZ_CHECK(http_parse_head(data, len, &head) == 1);
		FUZZ_CHECK(head.host.len >= 9 && strncasecmp(head.host.at, "a.example", 9) == 0);
		http_body_init(&body, &head);
		n = http_body_take(&body, data + head.len, len - head.len);
		FUZZ_CHECK(n >= 0);
		data += head.len + (size_t)n;
		len -= head.len + (size_t)n;
	}
}

static void fuzz_judge(const uint8_t *data, size_t len, size_t piece, bool tls)
{
	CLEANUP(buf_done) struct buf in = BUF_INIT, out = BUF_INIT;
	struct judge j;
	int r = 0;

	judge_init(&j, "a.example");
	j.tls = tls; /* then nothing passes that is no request, TLS neither */
	for (size_t at = 0; at < len && r == 0; at += piece) {
		const size_t n = len - at < piece ? len - at : piece;

		FUZZ_CHECK(buf_append(&in, data + at, n) == 0);
		r = judge_client(&j, &in, &out, at + n == len);
		FUZZ_CHECK(r == 0 || r == -ECANCELED);
		/* The head of a request with a body gets a wish to close; nothing follows that one. */
		FUZZ_CHECK(j.last || (out.len <= at + n &&
				      (out.len == 0 || memcmp(out.data, data, out.len) == 0)));
	}
	FUZZ_CHECK(!tls || out.len == 0 || out.data[0] != 0x16);
	if (out.len > 0 && out.data[0] != 0x16)
		check_passed((const char *)out.data, out.len);
}

/* What is read as a list of hosts is names on one port each, and those alone are inspected. */
static void fuzz_inspect(const char *data, size_t len)
{
	CLEANUP(allow_done) struct allow hosts = ALLOW_INIT;
	struct allow_target target = { 0 };
	char text[4096];

	if (len >= sizeof(text))
		return;
	memcpy(text, data, len);
	text[len] = '\0';
	if (inspect_parse(text, &hosts, NULL) < 0)
		return;
	FUZZ_CHECK(hosts.n > 0 && hosts.n <= INSPECT_MAX);
	for (size_t i = 0; i < hosts.n; i++) {
		memcpy(target.host, hosts.rules[i].host, sizeof(target.host));
		FUZZ_CHECK(*target.host != '\0' && hosts.rules[i].low == hosts.rules[i].high);
		FUZZ_CHECK(inspect_has(&hosts, &target, hosts.rules[i].low));
	}
}

static void fuzz_rewrite(const char *data, size_t len)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	struct http_span authority, path, host;
	struct http_head head, again;
	uint16_t port;

	if (http_parse_head(data, len, &head) <= 0 ||
	    !http_split_uri(head.target, &authority, &path) ||
	    !http_split_authority(authority, 80, &host, &port))
		return;
	/* A server reads one request of the same length and kind in it, for that host. */
	FUZZ_CHECK(http_rewrite(data, &head, authority, path, &out) == 0);
	if (http_parse_head((const char *)out.data, out.len, &again) <= 0)
		return; /* longer than a head may be, by its new beginning */
	FUZZ_CHECK(again.len == out.len && again.framing == head.framing &&
		   again.length == head.length && !again.upgrade);
	FUZZ_CHECK(again.host.len == authority.len);
}

/* A request that gets a secret stays one request, of the same length and kind, with one such header. */
static void fuzz_secrets(const uint8_t *data, size_t len)
{
	static const char value[] = "s3cret", line[] = "X-Key: s3cret";
	struct net_secret one = { .name = { line, 5 },
				  .line = { line, 13 },
				  .value = { value, 6 } };
	const struct net_secrets secrets = { &one, 1 };
	CLEANUP(allow_done) struct allow allow = ALLOW_INIT;
	CLEANUP(buf_done) struct buf out = BUF_INIT, said = BUF_INIT;
	struct http_head head, again;
	struct allow_target target;
	struct request q;
	struct net_mask mask = { 0 };
	size_t clear;

	FUZZ_CHECK(buf_append(&said, data, len) == 0);
	FUZZ_CHECK(allow_parse("http://a.example/v1/*", &one.rule, NULL) == 0);
	FUZZ_CHECK(allow_parse("a.example:80", &allow, NULL) == 0);
	FUZZ_CHECK(allow_ask(&allow, "a.example", 9, 80, &target) == ALLOW_YES);
	clear = net_secrets_mask(&secrets, &target, 80, &mask, &said, len % 2);
	FUZZ_CHECK(clear == (len % 2 ? len : len > 35 ? len - 35 : 0) && said.len == len);
	FUZZ_CHECK(clear == 0 || !memmem(said.data, clear, value, 6));
	if (http_parse_head((const char *)data, len, &head) > 0 && request_of(&head, &q) &&
	    net_secrets_add(&secrets, &target, 80, (const char *)data, &head, &q, &out) == 0 &&
	    http_parse_head((const char *)out.data, out.len, &again) > 0) {
		const char *first = memmem(out.data, out.len, line, 13);

		FUZZ_CHECK(again.len == out.len && again.framing == head.framing);
		FUZZ_CHECK(again.length == head.length && again.target.len == head.target.len);
		FUZZ_CHECK(again.host.len == head.host.len);
		/* A client that knows the line may say it anywhere. */
		FUZZ_CHECK(!first || memmem(data, len, line, 13) ||
			   memmem(q.path.at, q.path.len, "/v1/", 4) == q.path.at);
	}
	allow_done(&one.rule);
}

/* The first line is a rule, the rest what a client says: what passes is what the rule means. */
static void fuzz_requests(const uint8_t *data, size_t len)
{
	CLEANUP(allow_done) struct allow allow = ALLOW_INIT;
	CLEANUP(buf_done) struct buf in = BUF_INIT, out = BUF_INIT;
	const uint8_t *end = memchr(data, '\n', len);
	struct allow_target target;
	struct http_head head;
	struct request q;
	struct judge j;
	char rule[700];
	size_t n = end ? (size_t)(end - data) : 0;

	if (!end || n >= sizeof(rule) || memchr(data, '\0', n))
		return;
	memcpy(rule, data, n);
	rule[n] = '\0';
	if (allow_parse(rule, &allow, NULL) < 0 || !allow_within(&allow, &allow) ||
	    allow_ask(&allow, "a.example", 9, 80, &target) != ALLOW_YES || !target.requests)
		return;
	judge_requests(&j, &allow, &target, 80);
	FUZZ_CHECK(buf_append(&in, end + 1, len - n - 1) == 0);
	if (judge_client(&j, &in, &out, true) < 0 && out.len == 0)
		return;
	for (size_t at = 0; at < out.len;) {
		struct http_body body;
		ssize_t took;

		FUZZ_CHECK(http_parse_head((const char *)out.data + at, out.len - at, &head) == 1);
		FUZZ_CHECK(request_of(&head, &q) && request_path_is_plain(q.path));
		FUZZ_CHECK(allow_request(&allow, &target, 80, &q));
		FUZZ_CHECK(!memmem(q.path.at, q.path.len, "/../", 4));
		http_body_init(&body, &head);
		at += head.len;
		took = http_body_take(&body, (const char *)out.data + at, out.len - at);
		FUZZ_CHECK(took >= 0);
		at += (size_t)took;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len == 0)
		return 0;
	switch (data[0] % 10) {
	case 0:
		fuzz_frames(data + 1, len - 1);
		break;
	case 1:
		fuzz_dns(data + 1, len - 1);
		break;
	case 2:
		fuzz_socks(data + 1, len - 1);
		break;
	case 3:
		fuzz_judge(data + 1, len - 1, len, false);
		break;
	case 4:
		fuzz_judge(data + 1, len - 1, 1, false);
		break;
	case 5:
		fuzz_rewrite((const char *)data + 1, len - 1);
		break;
	case 6:
		fuzz_requests(data + 1, len - 1);
		break;
	case 7:
		fuzz_secrets(data + 1, len - 1);
		break;
	case 8:
		fuzz_judge(data + 1, len - 1, 1 + len % 7, true);
		break;
	case 9:
		fuzz_inspect((const char *)data + 1, len - 1);
		break;
	}
	return 0;
}
