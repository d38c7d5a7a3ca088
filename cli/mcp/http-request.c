#include <string.h>

#include "base/cleanup.h"
#include "cli/mcp/answer.h"
#include "cli/mcp/era.h"
#include "cli/mcp/http-i.h"

struct session *http_request_session(struct exchange *x)
{
	if (x->has_own)
		return &x->own;
	return x->client ? &x->client->session : NULL;
}

static void answer_failed(struct exchange *x, struct json top, int code, const char *sentence)
{
	CLEANUP(rpc_answer_done) struct rpc_answer a = { 0 };

	rpc_error(&a, top, code, sentence);
	x->status = 400;
	if (rpc_append(&a, &x->lines, NULL) < 0)
		exchange_refuse(x, 500, "out of memory");
}

/* Give the message to the session; what it answers with at once stands in `lines` then. */
static void give(struct exchange *x, struct rpc_message *m)
{
	struct session *s = http_request_session(x);
	struct buf *const before = s->out;
	struct err err = { 0 };

	s->out = &x->lines;
	s->rejected = false;
	if (session_take_message(s, m, &err) < 0)
		exchange_refuse(x, 500, "out of memory");
	else if (x->has_own && s->rejected)
		x->status = 400;
	s->out = before;
}

static void take_modern(struct exchange *x, struct rpc_message *m)
{
	struct err why = { 0 };
	int code = mirror_check(&x->mirror, m, &why);

	if (code < 0) {
		answer_failed(x, m->top, code, why.msg);
		return;
	}
	if (!x->takes_streams && strcmp(m->method, "subscriptions/listen") == 0) {
		exchange_refuse(x, 406, "the header 'Accept' must allow text/event-stream");
		return;
	}
	session_init(&x->own, x->http->options, &x->lines);
	x->own.modern_only = true;
	x->has_own = true;
	give(x, m);
}

static bool find_client(struct exchange *x)
{
	if (!x->session_id) {
		exchange_refuse(
		    x, 400,
		    "the header 'Mcp-Session-Id' is missing: begin with 'initialize', or "
		    "send the headers and '_meta' of revision " MCP_VERSION);
		return false;
	}
	x->client = http_client_find(x->http, x->session_id);
	if (!x->client) {
		exchange_refuse(x, 404,
				"there is no such session, or it has expired: begin anew "
				"with 'initialize'");
		return false;
	}
	if (x->mirror.version && !era_is_legacy(x->mirror.version)) {
		exchange_refuse(x, 400,
				"the header 'MCP-Protocol-Version' names no version that "
				"begins with a handshake");
		return false;
	}
	return true;
}

static void take_legacy(struct exchange *x, struct rpc_message *m)
{
	if (strcmp(m->method, "initialize") == 0 && !x->session_id) {
		x->client = http_client_new(x->http);
		x->is_new = true;
		if (!x->client) {
			exchange_refuse(x, 503, "there are too many sessions: end one with DELETE");
			return;
		}
	} else if (!find_client(x)) {
		return;
	}
	give(x, m);
}

/* A notification, or the answer to a question of ours: neither is answered. */
static void take_unanswered(struct exchange *x, struct rpc_message *m)
{
	const bool modern =
	    !x->session_id && x->mirror.version && !era_is_legacy(x->mirror.version);

	if (modern && m->kind == RPC_RESPONSE) {
		exchange_refuse(x, 400, "this server asks nothing that is answered by a response");
		return;
	}
	if (!modern && !find_client(x))
		return;
	if (!modern)
		give(x, m);
	if (x->status == 0)
		x->status = 202;
	x->ended = true;
}

static void take_post(struct exchange *x)
{
	CLEANUP(rpc_done) struct rpc_message m = { 0 };
	struct err why = { 0 };
	int code = rpc_parse(&m, (const char *)x->body.data, x->body.len, &why);

	if (code < 0)
		answer_failed(x, m.top, code, why.msg);
	else if (m.kind != RPC_REQUEST)
		take_unanswered(x, &m);
	else if (mirror_is_modern(&x->mirror, &m))
		take_modern(x, &m);
	else
		take_legacy(x, &m);
}

static void take_get(struct exchange *x)
{
	if (!x->session_id) {
		exchange_refuse(x, 405,
				"only a session that began with 'initialize' has a stream: "
				"use POST");
		return;
	}
	if (!find_client(x))
		return;
	if (!x->takes_streams)
		exchange_refuse(x, 406, "the header 'Accept' must allow text/event-stream");
	else if (x->client->listener)
		exchange_refuse(x, 409, "the session has a stream already");
	else
		x->client->listener = x;
	x->streams = x->status == 0;
}

static void take_delete(struct exchange *x)
{
	struct http_client *c;

	if (!x->session_id) {
		exchange_refuse(x, 405, "only a session can be deleted: use POST");
		return;
	}
	if (!find_client(x))
		return;
	c = x->client;
	x->client = NULL;
	http_client_end(x->http, c);
	x->status = 200;
	x->ended = true;
}

void http_request_take(struct exchange *x)
{
	x->taken = true;
	if (x->method == METHOD_POST)
		take_post(x);
	else if (x->method == METHOD_GET)
		take_get(x);
	else
		take_delete(x);
	x->http->body_bytes -= x->body.len;
	buf_done(&x->body);
}
