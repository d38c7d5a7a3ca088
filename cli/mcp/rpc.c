#include "cli/mcp/rpc.h"

#include <string.h>

#include "base/cleanup.h"

#define MAX_MESSAGE ((size_t)64 << 20)

void rpc_done(struct rpc_message *m)
{
	json_done(&m->doc);
	*m = (struct rpc_message){ 0 };
}

/* A text that is JSON but no object was understood, and is no request. */
static int code_of(const char *text, size_t len)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };

	return json_set_parsed(json_begin(&doc), "message", text, len) ? RPC_INVALID_REQUEST
								       : RPC_PARSE_ERROR;
}

static bool has_id(const struct rpc_message *m)
{
	const enum json_kind kind = json_kind(m->top, "id");

	return kind == JSON_TEXT || kind == JSON_INT;
}

static int judge(struct rpc_message *m, struct err *err)
{
	const char *version = json_text_if(m->top, "jsonrpc");
	const bool has_method = json_kind(m->top, "method") == JSON_TEXT;

	if (!version || strcmp(version, "2.0") != 0)
		return err_set(err, RPC_INVALID_REQUEST, "'jsonrpc' is not \"2.0\"");
	if (json_has(m->top, "id") && !has_id(m))
		return err_set(err, RPC_INVALID_REQUEST, "'id' is neither a string nor an integer");
	if (!has_method && has_id(m) && (json_has(m->top, "result") || json_has(m->top, "error"))) {
		m->kind = RPC_RESPONSE;
		return 0;
	}
	m->method = has_method ? json_get_text(m->top, "method") : NULL;
	if (!m->method)
		return err_set(err, RPC_INVALID_REQUEST, "'method' is missing or no string");
	m->kind = has_id(m) ? RPC_REQUEST : RPC_NOTIFICATION;
	if (!json_has(m->top, "params"))
		return 0;
	if (json_kind(m->top, "params") != JSON_OBJECT)
		return err_set(err, RPC_INVALID_PARAMS, "'params' is no object");
	m->params = json_get_object(m->top, "params");
	return 0;
}

int rpc_parse(struct rpc_message *m, const char *text, size_t len, struct err *err)
{
	if (len > MAX_MESSAGE)
		return err_set(err, RPC_INVALID_REQUEST, "the message has more than %zu bytes",
			       MAX_MESSAGE);
	if (json_parse(&m->doc, text, len, &m->top, err) < 0) {
		err->code = code_of(text, len);
		return err->code;
	}
	return judge(m, err);
}

struct json rpc_meta(const struct rpc_message *m)
{
	return json_object_if(m->params, "_meta");
}

void rpc_answer_done(struct rpc_answer *a)
{
	json_done(&a->doc);
	*a = (struct rpc_answer){ 0 };
}

static void begin(struct rpc_answer *a)
{
	rpc_answer_done(a);
	a->top = json_begin(&a->doc);
	json_set_text(a->top, "jsonrpc", "2.0");
}

struct json rpc_result(struct rpc_answer *a, struct json request)
{
	begin(a);
	json_set_value(a->top, "id", request, "id");
	return json_set_object(a->top, "result");
}

struct json rpc_error(struct rpc_answer *a, struct json request, int code, const char *sentence)
{
	const enum json_kind kind = json_kind(request, "id");
	struct json error;

	begin(a);
	/* An id that could not be read is left out: null is not one. */
	if (kind == JSON_TEXT || kind == JSON_INT)
		json_set_value(a->top, "id", request, "id");
	error = json_set_object(a->top, "error");
	json_set_int(error, "code", code);
	json_set_text(error, "message", sentence);
	return error;
}

struct json rpc_notify(struct rpc_answer *a, const char *method)
{
	begin(a);
	json_set_text(a->top, "method", method);
	return json_set_object(a->top, "params");
}

struct json rpc_request(struct rpc_answer *a, const char *id, const char *method)
{
	begin(a);
	json_set_text(a->top, "id", id);
	json_set_text(a->top, "method", method);
	return json_set_object(a->top, "params");
}

int rpc_append(const struct rpc_answer *a, struct buf *out, struct err *err)
{
	return json_append(&a->doc, out, err);
}
