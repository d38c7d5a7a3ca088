/*
 * Connections whose TLS the proxy ends (--tls-inspect): two handshakes, one with the program of the
 * run and one with the real host, and between them the judge, which reads them like plain HTTP.
 *
 *   program == TLS ==> from_run  -> conn_hear_client -> == TLS ==> host
 *   program <== TLS == <- conn_hear_server <- from_host <== TLS == host
 *
 * The handshake with the host begins when the program has asked for it by the right name. None of
 * the program's bytes go on before the certificate of the host was found good. If it is not, the
 * handshake with the program is still completed, because only then can it receive the reason.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "runner/net/hello.h"
#include "runner/net/proxy-i.h"

struct conn_tls {
	struct tls_end *run, *host;
	bool hello;                     /* the program has asked for the host by its name */
	bool run_done, host_done;       /* the handshakes */
	bool lost;                      /* there is no host to speak to */
	bool run_ended, host_ended;     /* it has said all */
	bool run_bye, host_bye;         /* it knows that it has heard all */
	struct buf from_run, from_host; /* what they said, as far as it is not judged */
};

void conn_tls_free(struct conn *c)
{
	struct conn_tls *t = c->tls;

	if (!t)
		return;
	tls_end_free(t->run);
	tls_end_free(t->host);
	buf_done(&t->from_run);
	buf_done(&t->from_host);
	free(t);
	c->tls = NULL;
}

/* --- what goes wrong ---------------------------------------------------------------------- */

static int refuse(struct conn *c, enum net_rule rule, const char *why)
{
	proxy_refuse(c, rule, why);
	return -ECANCELED;
}

/* The connection ends; the program may still hear an alert. */
static int lose_run(struct conn *c, const char *why)
{
	const struct relay_way *back = &c->relay.way[1];

	IGNORE_RESULT(send(c->relay.side[0].fd, back->out.data + back->sent,
			   back->out.len - back->sent, MSG_DONTWAIT | MSG_NOSIGNAL),
		      "nobody waits for a program that does not listen");
	return refuse(c, NET_RULE_TLS, why);
}

/* From here on only the program is left, which is to hear why. */
static void lose_host(struct conn *c, const char *why)
{
	struct relay_way *out = &c->relay.way[0];

	proxy_refuse(c, NET_RULE_CERT, why);
	c->tls->lost = c->closing = true;
	c->deadline = clock_ms() + c->proxy->options.hello_ms;
	buf_reset(&out->out);
	out->sent = 0;
	loop_stop(&c->proxy->loop, &c->relay.side[1]);
}

/* The program hears this, and that it was all. */
static int answer(struct conn *c, const struct buf *last)
{
	struct buf *out = &c->relay.way[1].out;
	int r = tls_end_write(c->tls->run, last, out);

	if (r == 0 && !c->tls->run_bye)
		tls_end_bye(c->tls->run, out);
	c->tls->run_bye = true;
	return r;
}

/* The program hears why it was refused, and that it was all. */
static int answer_refused(struct conn *c)
{
	CLEANUP(buf_done) struct buf last = BUF_INIT;
	int r = conn_say_refused(c, &last);

	return r < 0 ? r : answer(c, &last);
}

/* A program that has asked for something gets an answer; one that has not heard all that there is. */
static int answer_lost(struct conn *c)
{
	const struct buf nothing = BUF_INIT;
	struct conn_tls *t = c->tls;
	int r;

	if (t->run_bye || !t->run_done || (t->from_run.len == 0 && !t->run_ended))
		return 0;
	r = t->from_run.len > 0 ? answer_refused(c) : answer(c, &nothing);
	buf_reset(&t->from_run);
	c->relay.way[1].eof = true;
	return r;
}

/* --- handshakes --------------------------------------------------------------------------- */

static int check_hello(struct conn *c, const struct buf *in)
{
	char name[HELLO_NAME_MAX + 1], canonical[ALLOW_HOST_MAX + 1];

	switch (hello_read(in->data, in->len, name)) {
	case HELLO_MORE:
		return 0;
	case HELLO_OTHER:
		return refuse(c, NET_RULE_TLS, "it does not begin with TLS");
	case HELLO_BAD:
		return refuse(c, NET_RULE_SNI, "(a hello that cannot be read)");
	case HELLO_READ:
		break;
	}
	if (name[0] != '\0' && (!allow_canonical(name, strlen(name), canonical) ||
				strcmp(canonical, c->target.host) != 0))
		return refuse(c, NET_RULE_SNI, name);
	c->tls->hello = true;
	return 0;
}

static void shake_host(struct conn *c, struct buf *in, bool eof)
{
	struct conn_tls *t = c->tls;
	struct err err = { 0 };
	char why[NET_HOST_SHOWN];
	int r = tls_end_shake(t->host, in, eof, &c->relay.way[0].out, &err);

	t->host_done = r > 0;
	if (r >= 0)
		return;
	snprintf(why, sizeof(why), "%s%.200s",
		 r == -EKEYREJECTED ? "its certificate is refused: " : "", err.msg);
	lose_host(c, why);
}

static int shake_run(struct conn *c, struct buf *in, bool eof)
{
	struct err err = { 0 };
	char why[NET_HOST_SHOWN];
	int r = tls_end_shake(c->tls->run, in, eof, &c->relay.way[1].out, &err);

	c->tls->run_done = r > 0;
	if (r >= 0)
		return 0;
	snprintf(why, sizeof(why), "%.100s%s", err.msg,
		 r == -ECONNABORTED ? " (does it know the certificate that SSL_CERT_FILE names?)"
				    : "");
	return lose_run(c, why);
}

bool conn_tls_overdue(struct conn *c)
{
	static const char why[] = "the handshake took too long";
	struct conn_tls *t = c->tls;

	if (t->lost || !t->hello || (t->run_done && t->host_done))
		return false;
	if (!t->run_done) {
		proxy_refuse(c, NET_RULE_TLS, why);
		return false;
	}
	lose_host(c, why);
	return answer_lost(c) == 0;
}

/* Both handshakes together have the time that a hello has; what is said later has its own. */
static void set_time(struct conn *c, bool began, bool was_done)
{
	const struct conn_tls *t = c->tls;
	const bool done = t->run_done && t->host_done;

	if (done && !was_done && t->from_run.len == 0)
		c->deadline = 0;
	else if (!done && began && c->deadline == 0)
		c->deadline = clock_ms() + c->proxy->options.hello_ms;
}

/* --- what is said ------------------------------------------------------------------------- */

/* 1 if a buffer was full and has room again: then the library may have more. */
static int pass_from_run(struct conn *c, struct buf *in, struct buf *out, bool eof)
{
	CLEANUP(buf_done) struct buf plain = BUF_INIT;
	const bool was_closing = c->closing;
	struct conn_tls *t = c->tls;
	size_t had;
	int r = 0;

	if (!t->run_ended)
		r = tls_end_read(t->run, in, eof, &c->relay.way[1].out, &t->from_run, RELAY_CHUNK);
	if (r < 0 && r != -EPIPE)
		return r;
	t->run_ended |= r != 0;
	if (t->run_ended) {
		buf_reset(in);
		c->relay.way[0].eof = true;
	}
	if (t->lost)
		return answer_lost(c);
	if (!t->host_done)
		return 0;
	had = t->from_run.len;
	r = conn_hear_client(c, &t->from_run, &plain, t->run_ended);
	if (r == 0 && !was_closing && c->closing && c->judge.first_request)
		r = answer_refused(c);
	if (r == 0 && plain.len > 0)
		r = tls_end_write(t->host, &plain, out);
	if (r < 0)
		return r;
	if (!t->host_bye && (c->closing || (t->run_ended && t->from_run.len == 0))) {
		tls_end_bye(t->host, out);
		t->host_bye = true;
	}
	return had == RELAY_CHUNK && t->from_run.len < had;
}

static int filter_run(void *ctx, struct buf *in, struct buf *out, bool eof)
{
	struct conn *c = ctx;
	struct conn_tls *t = c->tls;
	const bool began = in->len > 0 || t->hello, done = t->run_done && t->host_done;
	int r = 0;

	if (!t->hello && in->len > 0) {
		r = check_hello(c, in);
		if (t->hello)
			shake_host(c, NULL, false);
	}
	if (r == 0 && !t->hello && eof)
		buf_reset(in);
	if (r == 0 && t->hello && !t->run_done)
		r = shake_run(c, in, eof);
	set_time(c, began, done);
	while (r == 0 && t->run_done) {
		r = pass_from_run(c, in, out, eof);
		if (r <= 0)
			break;
		r = 0;
	}
	c->relay.way[0].held = t->hello && !t->lost && (t->from_run.len > 0 || !t->host_done);
	return r;
}

static int pass_from_host(struct conn *c, struct buf *in, struct buf *out, bool eof)
{
	CLEANUP(buf_done) struct buf plain = BUF_INIT;
	struct conn_tls *t = c->tls;
	bool cut = false;
	size_t had;
	int r = 0;

	if (!t->host_ended)
		r = tls_end_read(t->host, in, eof, &c->relay.way[0].out, &t->from_host,
				 RELAY_CHUNK);
	if (r < 0 && r != -EPIPE)
		return r;
	cut = r == -EPIPE;
	t->host_ended |= r != 0;
	if (t->host_ended)
		buf_reset(in);
	if (!t->run_done)
		return 0;
	had = t->from_host.len;
	r = conn_hear_server(c, &t->from_host, &plain, t->host_ended);
	if (r == 0 && plain.len > 0)
		r = tls_end_write(t->run, &plain, out);
	if (r < 0)
		return r;
	if (t->host_ended && t->from_host.len == 0) {
		/* An answer that was cut off must not look like a whole one. */
		if (!cut && !t->run_bye)
			tls_end_bye(t->run, out);
		t->run_bye = true;
		c->relay.way[1].eof = true;
	}
	return had == RELAY_CHUNK && t->from_host.len < had;
}

static int filter_host(void *ctx, struct buf *in, struct buf *out, bool eof)
{
	struct conn *c = ctx;
	struct conn_tls *t = c->tls;
	const bool done = t->run_done && t->host_done;
	int r = 0;

	if (t->hello && !t->host_done && !t->lost)
		shake_host(c, in, eof);
	if (t->lost) {
		buf_reset(in);
		c->relay.way[1].held = !t->run_bye;
		return 0;
	}
	set_time(c, t->hello, done);
	while (r == 0 && t->host_done) {
		r = pass_from_host(c, in, out, eof);
		if (r <= 0)
			break;
		r = 0;
	}
	c->relay.way[1].held = t->from_host.len > 0;
	return r;
}

/* --- beginning ---------------------------------------------------------------------------- */

int conn_tls_begin(struct conn *c)
{
	struct proxy *p = c->proxy;
	struct err err = { 0 };
	int r = p->tls ? 0 : tls_open(p->options.tls, &p->tls, &err);

	c->tls = r < 0 ? NULL : calloc(1, sizeof(*c->tls));
	if (r == 0 && !c->tls)
		r = err_nomem(&err);
	if (r == 0)
		r = tls_end_as(p->tls, c->target.host, c->port, &c->tls->run, &err);
	if (r == 0)
		r = tls_end_with(p->tls, c->target.host, &c->tls->host, &err);
	if (r < 0)
		return refuse(c, NET_RULE_TLS, err.msg);
	c->judge.tls = true;
	c->relay.way[0].filter = filter_run;
	c->relay.way[1].filter = filter_host;
	return 0;
}
