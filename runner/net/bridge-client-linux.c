/*
 * One client of the bridge. The filter of way 0 reads its bytes, in stages; our own replies go into
 * way 1 before the server's bytes.
 *
 * HTTP without CONNECT: each request is read, and makes a new request to the proxy if it is for
 * another server than the one before. The bridge does not read answers. So it first ends the stream
 * to the old server and passes that server's answers on to their end, and then connects the next
 * one.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/sys.h"
#include "runner/net/bridge-i.h"
#include "runner/net/socks.h"

#define CLOSING_MS 5000

void client_end(struct client *c)
{
	for (int i = 0; i < 2; i++)
		loop_stop(&c->bridge->loop, &c->relay.side[i]);
	c->dead = true;
}

/* --- telling the client ------------------------------------------------------------------- */

static int queue_bytes(struct client *c, const void *data, size_t len)
{
	return buf_append(&c->relay.way[1].out, data, len);
}

/* The last that it hears. */
static int close_after(struct client *c, int r)
{
	c->stage = STAGE_CLOSING;
	c->deadline = clock_ms() + CLOSING_MS;
	c->relay.way[1].eof = true;
	return r;
}

static int say_http(struct client *c, const char *status, const char *sentence)
{
	return close_after(c,
			   buf_printf(&c->relay.way[1].out,
				      "HTTP/1.1 %s\r\nContent-Type: text/plain\r\n"
				      "Content-Length: %zu\r\nConnection: close\r\n\r\nsnap: %s\n",
				      status, strlen(sentence) + 7, sentence));
}

static int say_socks(struct client *c, enum socks_reply code)
{
	unsigned char reply[SOCKS_REPLY_SIZE];
	int r;

	socks_write_reply(code, reply);
	r = queue_bytes(c, reply, sizeof(reply));
	return code == SOCKS_OK ? r : close_after(c, r);
}

static int say_no(struct client *c, const struct answer *answer)
{
	static const struct {
		const char *http;
		enum socks_reply socks;
	} words[] = {
		[ASK_REFUSED] = { "403 Forbidden", SOCKS_REFUSED },
		[ASK_NOT_FOUND] = { "502 Bad Gateway", SOCKS_HOST_UNREACHABLE },
		[ASK_UNREACHABLE] = { "502 Bad Gateway", SOCKS_CONNECTION_REFUSED },
		[ASK_FAILED] = { "503 Service Unavailable", SOCKS_FAILED },
	};

	if (c->kind == CLIENT_SOCKS)
		return say_socks(c, words[answer->status].socks);
	if (c->kind == CLIENT_TUNNEL || c->kind == CLIENT_HTTP)
		return say_http(c, words[answer->status].http, answer->sentence);
	return close_after(c, 0);
}

/* --- asking the proxy --------------------------------------------------------------------- */

void client_send_ask(struct client *c)
{
	const struct answer failed = { .status = ASK_FAILED, .sentence = "no way to the proxy" };
	int r = bridge_ask(c->bridge, &c->ask);

	c->unsent = r == -EAGAIN;
	if (c->unsent)
		r = loop_watch(&c->bridge->loop, &c->bridge->asks, EPOLLIN | EPOLLOUT);
	else if (r == 0)
		r = loop_watch(&c->bridge->loop, &c->bridge->asks, EPOLLIN);
	if (r < 0 && say_no(c, &failed) < 0)
		client_end(c);
}

static int want(struct client *c, enum ask_kind kind, const char *host, size_t len, uint16_t port)
{
	/* The end of what is too long for any name tells the proxy as much as all of it. */
	const size_t n = len < ASK_HOST_MAX ? len : ASK_HOST_MAX;

	c->ask = (struct ask){ .kind = kind, .port = port, .host_len = n };
	memcpy(c->ask.host, host, n);
	c->stage = STAGE_WAIT;
	c->deadline = 0; /* the proxy has its own, and always answers */
	client_send_ask(c);
	return 0;
}

static int go_on(struct client *c)
{
	switch (c->kind) {
	case CLIENT_SOCKS:
		c->stage = STAGE_PASS;
		return say_socks(c, SOCKS_OK);
	case CLIENT_TUNNEL:
		c->stage = STAGE_PASS;
		return buf_printf(&c->relay.way[1].out,
				  "HTTP/1.1 200 Connection established\r\n\r\n");
	case CLIENT_HTTP:
		memcpy(c->host, c->ask.host, sizeof(c->host));
		c->port = c->ask.port;
		c->stage = STAGE_HEAD;
		return 0;
	case CLIENT_ALIAS:
		c->stage = STAGE_PASS;
		return 0;
	case CLIENT_UNKNOWN:
	case CLIENT_DNS:
		break;
	}
	return -EINVAL;
}

static int answer_dns(struct client *c, const struct answer *answer)
{
	unsigned char bytes[2 + DNS_MAX];
	size_t n = names_reply(c->bridge, &c->question, answer, bytes + 2);

	bytes[0] = (unsigned char)(n >> 8);
	bytes[1] = (unsigned char)n;
	c->stage = STAGE_DNS;
	c->deadline = clock_ms() + c->bridge->options.head_ms;
	return queue_bytes(c, bytes, n + 2);
}

void client_answer(struct client *c, const struct answer *answer, int fd)
{
	AUTO_CLOSE int server = fd;
	int r;

	if (c->kind == CLIENT_DNS)
		r = answer_dns(c, answer);
	else if (answer->status != ASK_OK || server < 0)
		r = say_no(c, answer);
	else
		r = go_on(c);
	if (r == 0 && server >= 0 && answer->status == ASK_OK && c->kind != CLIENT_DNS)
		relay_attach(&c->relay, 1, TAKE_FD(server));
	if (r < 0)
		client_end(c);
	else
		client_run(c);
}

/* --- hearing the client ------------------------------------------------------------------- */

static int hear_socks_greeting(struct client *c, struct buf *in)
{
	static const unsigned char open_reply[] = { SOCKS_VERSION, 0 },
				   none_reply[] = { SOCKS_VERSION, 0xff };
	bool open = false;
	int n = socks_parse_greeting(in->data, in->len, &open);

	if (n <= 0)
		return n;
	relay_consume(in, (size_t)n);
	if (!open)
		return close_after(c, queue_bytes(c, none_reply, sizeof(none_reply)));
	c->stage = STAGE_REQUEST;
	return queue_bytes(c, open_reply, sizeof(open_reply));
}

static int hear_socks_request(struct client *c, struct buf *in)
{
	struct socks_request q;
	int n = socks_parse_request(in->data, in->len, &q);

	if (n <= 0)
		return n;
	relay_consume(in, (size_t)n);
	if (q.problem != SOCKS_OK)
		return say_socks(c, q.problem);
	return want(c, ASK_OPEN, q.host, q.host_len, q.port);
}

static bool leads_to(const struct client *c, struct http_span host, uint16_t port)
{
	return c->relay.side[1].fd >= 0 && c->port == port && strlen(c->host) == host.len &&
	       memcmp(c->host, host.at, host.len) == 0;
}

/* The head stays in `in` until there is a server to send it to. */
static int hear_request(struct client *c, const struct http_head *head, struct buf *in,
			struct buf *out)
{
	struct http_span authority, path, host;
	uint16_t port;
	int r;

	if (!http_split_uri(head->target, &authority, &path) ||
	    !http_split_authority(authority, 80, &host, &port))
		return say_http(c, "400 Bad Request",
				"this is a proxy, for 'http://HOST/PATH' and CONNECT");
	c->kind = CLIENT_HTTP;
	if (!leads_to(c, host, port)) {
		if (c->relay.side[1].fd < 0)
			return want(c, ASK_OPEN, host.at, host.len, port);
		c->stage = STAGE_DRAIN;
		c->deadline = clock_ms() + c->bridge->options.head_ms;
		return c->relay.way[1].shut ? -EPIPE : 0;
	}
	r = http_rewrite((const char *)in->data, head, authority, path, out);
	if (r < 0)
		return r;
	http_body_init(&c->body, head);
	c->stage = STAGE_BODY;
	relay_consume(in, head->len);
	return 0;
}

static int hear_head(struct client *c, struct buf *in, struct buf *out)
{
	struct http_span host;
	struct http_head head;
	uint16_t port;
	int r = http_parse_head((const char *)in->data, in->len, &head);

	if (r < 0)
		return say_http(c, "400 Bad Request", "this is no request of HTTP/1");
	if (r == 0)
		return 0;
	c->deadline = 0;
	if (head.method.len != 7 || strncmp(head.method.at, "CONNECT", 7) != 0)
		return hear_request(c, &head, in, out);
	if (c->kind == CLIENT_HTTP || !http_split_authority(head.target, 0, &host, &port))
		return say_http(c, "400 Bad Request", "CONNECT needs HOST:PORT");
	c->kind = CLIENT_TUNNEL;
	r = want(c, ASK_OPEN, host.at, host.len, port);
	relay_consume(in, head.len);
	return r;
}

static int hear_body(struct client *c, struct buf *in, struct buf *out)
{
	ssize_t n = http_body_take(&c->body, (const char *)in->data, in->len);

	if (n < 0)
		return (int)n;
	if (c->body.done)
		c->stage = STAGE_HEAD;
	return relay_pass(in, out, (size_t)n);
}

static int hear_dns(struct client *c, struct buf *in)
{
	const size_t n = in->len >= 2 ? (size_t)(in->data[0] << 8 | in->data[1]) : 0;

	if (in->len < 2 || in->len - 2 < n)
		return 0;
	if (dns_parse(in->data + 2, n, &c->question) < 0)
		return -EBADMSG;
	relay_consume(in, n + 2);
	return want(c, ASK_NAME, c->question.name, strlen(c->question.name), 0);
}

static int hear_first(struct client *c, struct buf *in)
{
	if (in->data[0] == SOCKS_VERSION) {
		c->kind = CLIENT_SOCKS;
		return hear_socks_greeting(c, in);
	}
	c->stage = STAGE_HEAD;
	return 0;
}

static int hear(struct client *c, struct buf *in, struct buf *out)
{
	switch (c->stage) {
	case STAGE_FIRST:
		return hear_first(c, in);
	case STAGE_REQUEST:
		return hear_socks_request(c, in);
	case STAGE_HEAD:
		return hear_head(c, in, out);
	case STAGE_BODY:
		return hear_body(c, in, out);
	case STAGE_PASS:
		return relay_pass(in, out, in->len);
	case STAGE_DNS:
		return hear_dns(c, in);
	case STAGE_CLOSING:
		buf_reset(in);
		return 0;
	case STAGE_WAIT:
	case STAGE_DRAIN:
		break;
	}
	return 0;
}

static int filter_client(void *ctx, struct buf *in, struct buf *out, bool eof)
{
	struct client *c = ctx;
	enum client_stage before;
	int r;

	do {
		before = c->stage;
		r = in->len > 0 || c->stage == STAGE_BODY ? hear(c, in, out) : 0;
	} while (r == 0 && c->stage != before);
	/* Between two requests it may take its time; in the middle of one it may not. */
	if (c->stage == STAGE_HEAD && in->len > 0 && c->deadline == 0)
		c->deadline = clock_ms() + c->bridge->options.head_ms;
	if (r == 0 && eof && c->stage != STAGE_WAIT && c->stage != STAGE_DRAIN && in->len > 0)
		return -EBADMSG; /* it left in the middle of a word */
	return r;
}

static int filter_server(void *ctx, struct buf *in, struct buf *out, bool eof)
{
	struct client *c = ctx;
	int r = relay_pass(in, out, in->len);

	if (r < 0 || !eof || c->stage != STAGE_DRAIN)
		return r;
	/* All answers of the server before are on their way: now the next one may come. */
	loop_stop(&c->bridge->loop, &c->relay.side[1]);
	c->relay.way[1].eof = false;
	c->stage = STAGE_HEAD;
	c->deadline = 0;
	return 0;
}

/* --- life --------------------------------------------------------------------------------- */

void client_run(struct client *c)
{
	int r = c->dead ? 0 : relay_run(&c->relay);

	if (r == 0 && c->stage == STAGE_DRAIN && c->relay.way[0].out.len == 0)
		shutdown(c->relay.side[1].fd, SHUT_WR);
	/* Nobody leaves without having been asked to: a reset could overtake our last word. */
	if (r == 0 && c->stage == STAGE_CLOSING && c->relay.way[0].eof && c->relay.way[1].shut)
		r = 1;
	if (r != 0)
		client_end(c);
}

static void on_client(struct loop_watch *w)
{
	client_run(w->owner);
}

void client_accept(struct listener *l)
{
	struct bridge *b = l->bridge;
	AUTO_CLOSE int fd = sys_accept(l->watch.fd);
	struct client *c = NULL;

	if (fd >= 0 && b->n_clients < b->options.connections)
		c = calloc(1, sizeof(*c));
	if (!c)
		return;
	c->bridge = b;
	c->next = b->clients;
	b->clients = c;
	b->n_clients++;
	c->deadline = clock_ms() + b->options.head_ms;
	relay_init(&c->relay, &b->loop, on_client, c);
	relay_attach(&c->relay, 0, TAKE_FD(fd));
	c->relay.way[0].filter = filter_client;
	c->relay.way[1].filter = filter_server;
	if (l->kind == LISTEN_DNS) {
		c->kind = CLIENT_DNS;
		c->stage = STAGE_DNS;
	} else if (l->kind == LISTEN_ALIAS) {
		c->kind = CLIENT_ALIAS;
		IGNORE_RESULT(want(c, ASK_OPEN, l->alias->host, strlen(l->alias->host), l->port),
			      "it never fails; a client that could not ask gets an answer");
	}
	client_run(c);
}

void client_overdue(struct client *c)
{
	c->deadline = 0;
	client_end(c);
}
