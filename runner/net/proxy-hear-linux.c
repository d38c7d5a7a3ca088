/*
 * Bytes through a connection in either direction: judged, counted, and refused where necessary.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "runner/net/proxy-i.h"

/* Nothing of what the client says from here on is read. */
int conn_say_refused(struct conn *c, struct buf *out)
{
	return buf_printf(out,
			  "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\n"
			  "Content-Length: %zu\r\nConnection: close\r\n\r\nsnap: %s\n",
			  strlen(c->last_words) + 7, c->last_words);
}

/*
 * A request of plain HTTP is refused with an answer.  Earlier requests may still await answers, which we
 * do not read: so we end the stream to the server, and send ours when the server has ended.  Through TLS,
 * its end answers (proxy-tls-linux.c).
 */
static int close_politely(struct conn *c, struct buf *in)
{
	buf_reset(in);
	c->closing = true;
	c->deadline = clock_ms() + c->proxy->options.hello_ms;
	if (!c->judge.first_request)
		return 0;
	c->relay.way[1].eof = true;
	return c->tls ? 0 : conn_say_refused(c, &c->relay.way[1].out);
}

/* Nothing goes beyond the limit, not even in part. */
static int charge(struct conn *c, struct buf *out, size_t before, int r)
{
	if (proxy_charge(c->proxy, out->len - before))
		return r;
	out->len = before;
	c->judge.rule = NET_RULE_BYTES;
	*c->judge.other = '\0';
	return -ECANCELED;
}

/* Only where it is certain that a request of HTTP is what the client waits to have answered. */
static bool may_answer(const struct conn *c)
{
	return c->judge.is_http && c->judge.stage != JUDGE_PASS &&
	       (c->judge.rule == NET_RULE_BYTES || c->judge.rule == NET_RULE_REQUEST);
}

int conn_hear_client(void *ctx, struct buf *in, struct buf *out, bool eof)
{
	struct conn *c = ctx;
	const bool known = c->judge.stage == JUDGE_PASS;
	const size_t before = out->len;
	int r;

	if (c->closing) {
		buf_reset(in);
		return 0;
	}
	r = judge_client(&c->judge, in, out, eof);
	r = charge(c, out, before, r);
	if (r == -ECANCELED) {
		proxy_refuse(c, c->judge.rule, c->judge.other);
		if (may_answer(c))
			return close_politely(c, in);
	}
	/* What has begun must become whole in time; a pause between two requests is fine. */
	if (known || in->len == 0)
		c->deadline = 0;
	else if (c->deadline == 0)
		c->deadline = clock_ms() + c->proxy->options.hello_ms;
	return r;
}

int conn_hear_server(void *ctx, struct buf *in, struct buf *out, bool eof)
{
	struct conn *c = ctx;
	int r;

	if (c->closing && in->len > 0)
		c->deadline = clock_ms() + c->proxy->options.hello_ms;
	r = judge_server(&c->judge, in, out, eof);
	/* Once it is said: the filter is called again for as long as the way has not ended. */
	if (r == 0 && c->closing && eof && *c->last_words != '\0' && !c->judge.first_request) {
		r = conn_say_refused(c, out);
		*c->last_words = '\0';
	}
	return r;
}
