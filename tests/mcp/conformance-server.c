/*
 * conformance-server FIXTURES [LIMIT=NUMBER...] - the protocol of `snap mcp` over HTTP, with the
 * tools, resources and prompts that the conformance suite of the protocol's authors asks for.
 *
 * FIXTURES is the JSON file that holds them; this file knows how they behave: answer, tell of
 * progress, say something, ask the client in one round or more.  Nobody needs a token.
 */
#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/sha256.h"
#include "base/sys.h"
#include "cli/mcp/answer.h"
#include "cli/mcp/era.h"
#include "cli/mcp/pending.h"
#include "cli/mcp/response.h"
#include "cli/mcp/session.h"

#define META_CAPABLE "io.modelcontextprotocol/clientCapabilities"
#define META_LEVEL   "io.modelcontextprotocol/logLevel"
#define STATE_SIZE   (2 * SHA256_SIZE + 1)

static struct json_doc fixtures_doc;
static struct json fixtures;
static unsigned char secret[32];

/* The one of a group whose `key` is `value`; an empty place if there is none. */
static struct json find(const char *group, const char *key, const char *value)
{
	struct json list = json_get_array(fixtures, group);

	for (size_t i = 0; value && i < json_length(list); i++) {
		struct json one = json_at_object(list, i);

		if (strcmp(json_get_text(one, key), value) == 0)
			return one;
	}
	return (struct json){ .doc = &fixtures_doc };
}

static struct json object(struct json j, const char *key)
{
	if (json_kind(j, key) != JSON_OBJECT)
		return (struct json){ .doc = j.doc };
	return json_get_object(j, key);
}

static bool is_set(struct json j, const char *key)
{
	return json_kind(j, key) == JSON_BOOL && json_get_bool(j, key);
}

/* --- lists ------------------------------------------------------------------------------ */

static int answer_list(struct session *s, const struct rpc_message *m, bool modern,
		       const char *group, const char *as, const char *const *keys, struct err *err)
{
	CLEANUP(rpc_answer_done) struct rpc_answer a = { 0 };
	struct json result = response_begin(s, &a, m->top, modern);
	struct json list = json_get_array(fixtures, group), shown = json_set_array(result, as);

	for (size_t i = 0; i < json_length(list); i++) {
		struct json one = json_add_object(shown);

		for (const char *const *key = keys; *key; key++)
			json_set_value(one, *key, json_at_object(list, i), *key);
	}
	if (modern)
		answer_set_cacheable(result);
	return rpc_append(&a, s->out, err);
}

static const struct {
	const char *method, *group, *as;
	const char *keys[6];
} lists[] = {
	{ "tools/list", "tools", "tools", { "name", "description", "inputSchema" } },
	{ "resources/list",
	  "resources",
	  "resources",
	  { "uri", "name", "description", "mimeType" } },
	{ "resources/templates/list",
	  "templates",
	  "resourceTemplates",
	  { "uriTemplate", "name", "description", "mimeType" } },
	{ "prompts/list", "prompts", "prompts", { "name", "description", "arguments" } },
};

/* --- what a tool says while it works ---------------------------------------------------- */

static int say(struct session *s, const struct rpc_message *m, bool modern, struct err *err)
{
	static const char *const said[] = { "Tool execution started", "Tool processing data",
					    "Tool execution completed" };
	int r = 0;

	/* In the newer era, only clients that asked for it get it. */
	if (modern && json_kind(rpc_meta(m), META_LEVEL) != JSON_TEXT)
		return 0;
	for (size_t i = 0; r >= 0 && i < ARRAY_LEN(said); i++) {
		CLEANUP(rpc_answer_done) struct rpc_answer a = { 0 };
		struct json params = rpc_notify(&a, "notifications/message");

		json_set_text(params, "level", "info");
		json_set_text(params, "data", said[i]);
		r = rpc_append(&a, s->out, err);
	}
	return r;
}

static int send_progress(struct session *s, const struct rpc_message *m, struct err *err)
{
	int r = 0;

	if (!json_has(rpc_meta(m), "progressToken"))
		return 0;
	for (int i = 0; r >= 0 && i <= 100; i += 50) {
		CLEANUP(rpc_answer_done) struct rpc_answer a = { 0 };
		struct json params = rpc_notify(&a, "notifications/progress");

		json_set_value(params, "progressToken", rpc_meta(m), "progressToken");
		json_set_int(params, "progress", i);
		json_set_int(params, "total", 100);
		r = rpc_append(&a, s->out, err);
	}
	return r;
}

/* --- results ---------------------------------------------------------------------------- */

/* The text with each {name} replaced by the argument of that name. */
static int fill(struct buf *out, const char *text, struct json args)
{
	int r = 0;

	while (r >= 0 && *text != '\0') {
		const char *end = *text == '{' ? strchr(text, '}') : NULL;
		char name[32] = "";

		if (end && (size_t)(end - text) < sizeof(name))
			snprintf(name, sizeof(name), "%.*s", (int)(end - text) - 1, text + 1);
		if (*name != '\0' && json_text_if(args, name)) {
			r = buf_append_str(out, json_get_text(args, name));
			text = end + 1;
		} else {
			r = buf_append(out, text++, 1);
		}
	}
	return r;
}

static const char *const result_keys[] = { "content", "isError", "messages" };

/* The fixture's own result; its texts may name arguments, which hold nothing that JSON escapes. */
static int answer_result(struct session *s, const struct rpc_message *m, bool modern,
			 struct json one, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 }, filled_doc = { 0 };
	CLEANUP(rpc_answer_done) struct rpc_answer a = { 0 };
	CLEANUP(buf_done) struct buf text = BUF_INIT, filled = BUF_INIT;
	struct json result = response_begin(s, &a, m->top, modern), made;

	json_set_value(json_begin(&doc), "result", one, "result");
	if (json_append(&doc, &text, err) < 0 || !buf_str(&text) ||
	    fill(&filled, buf_str(&text), call_arguments(m)) < 0 ||
	    json_parse(&filled_doc, (char *)filled.data, filled.len - 1, &made, err) < 0)
		return response_error(s, m->top, RPC_INVALID_PARAMS, "an argument is no plain text",
				      err);
	made = json_get_object(made, "result");
	for (size_t i = 0; i < ARRAY_LEN(result_keys); i++)
		json_set_value(result, result_keys[i], made, result_keys[i]);
	return rpc_append(&a, s->out, err);
}

/* A text that holds what the client answered to the questions. */
static int answer_told(struct session *s, const struct rpc_message *m, bool modern, struct json one,
		       struct json from, const char *key, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	CLEANUP(rpc_answer_done) struct rpc_answer a = { 0 };
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	const char *prefix = json_text_if(one, "prefix");
	struct json block;

	if (json_has(one, "result"))
		return answer_result(s, m, modern, one, err);
	json_set_value(json_begin(&doc), "answered", from, key);
	if (buf_append_str(&text, prefix ? prefix : "") < 0 || json_append(&doc, &text, err) < 0)
		return -1;
	block = json_add_object(json_set_array(response_begin(s, &a, m->top, modern), "content"));
	json_set_text(block, "type", "text");
	json_set_text_len(block, "text", (char *)text.data, text.len - 1);
	return rpc_append(&a, s->out, err);
}

/* --- questions -------------------------------------------------------------------------- */

static struct json capabilities_of(const struct rpc_message *m)
{
	return object(rpc_meta(m), META_CAPABLE);
}

/* What the client has to give back, so that a round is neither skipped nor invented. */
static void make_state(const char *name, size_t round, char state[STATE_SIZE])
{
	struct sha256 sum;

	sha256_begin(&sum);
	sha256_add(&sum, secret, sizeof(secret));
	sha256_add(&sum, &round, sizeof(round));
	sha256_add(&sum, name, strlen(name));
	sha256_end_hex(&sum, state);
}

/* Which round the request answers; -1: none yet, -2: its state is not one of ours. */
static int answered_round(const struct rpc_message *m, struct json one, size_t n)
{
	const char *given = json_text_if(m->params, "requestState");
	char state[STATE_SIZE];

	if (!is_set(one, "state"))
		return json_has(m->params, "inputResponses") ? 0 : -1;
	if (!given)
		return json_has(m->params, "requestState") ? -2 : -1;
	for (size_t i = 0; i < n; i++) {
		make_state(json_get_text(one, "name"), i, state);
		if (strcmp(given, state) == 0)
			return (int)i;
	}
	return -2;
}

/* Is this an answer to that question? */
static bool is_answer(struct json answer, struct json ask)
{
	const char *method = json_get_text(ask, "method");

	if (!answer.node)
		return false;
	if (strcmp(method, "elicitation/create") == 0)
		return json_text_if(answer, "action") != NULL;
	return json_has(answer, strcmp(method, "roots/list") == 0 ? "roots" : "content");
}

static bool has_all(const struct rpc_message *m, struct json asks)
{
	const struct json given = object(m->params, "inputResponses"), can = capabilities_of(m);

	for (size_t i = 0; i < json_length(asks); i++) {
		const struct json ask = json_at_object(asks, i);

		if (json_has(can, json_get_text(ask, "capability")) &&
		    !is_answer(object(given, json_get_text(ask, "key")), ask))
			return false;
	}
	return true;
}

static int answer_required(struct session *s, const struct rpc_message *m, struct json one,
			   size_t round, struct json asks, struct err *err)
{
	CLEANUP(rpc_answer_done) struct rpc_answer a = { 0 };
	struct json result = response_begin(s, &a, m->top, true);
	struct json requests = json_set_object(result, "inputRequests");
	char state[STATE_SIZE];

	json_set_text(result, "resultType", "input_required");
	for (size_t i = 0; i < json_length(asks); i++) {
		const struct json ask = json_at_object(asks, i);
		struct json request;

		if (!json_has(capabilities_of(m), json_get_text(ask, "capability")))
			continue;
		request = json_set_object(requests, json_get_text(ask, "key"));
		json_set_value(request, "method", ask, "method");
		json_set_value(request, "params", ask, "params");
	}
	if (is_set(one, "state")) {
		make_state(json_get_text(one, "name"), round, state);
		json_set_text(result, "requestState", state);
	}
	return rpc_append(&a, s->out, err);
}

static int ask_modern(struct session *s, const struct rpc_message *m, struct json one,
		      struct err *err)
{
	struct json rounds = json_get_array(one, "rounds");
	const int answered = answered_round(m, one, json_length(rounds));
	size_t round = answered < 0 ? 0 : (size_t)answered;

	if (answered == -2)
		return response_error(s, m->top, RPC_INVALID_PARAMS,
				      "'requestState' is not of this server", err);
	if (answered >= 0 && has_all(m, json_get_array(json_at_object(rounds, round), "asks")))
		round++;
	if (round < json_length(rounds))
		return answer_required(s, m, one, round,
				       json_get_array(json_at_object(rounds, round), "asks"), err);
	return answer_told(s, m, true, one, m->params, "inputResponses", err);
}

/* In the older era a question is a request of ours. */
static int ask_legacy(struct session *s, struct rpc_message *m, struct json one, struct err *err)
{
	CLEANUP(rpc_answer_done) struct rpc_answer a = { 0 };
	struct json rounds = json_get_array(one, "rounds");
	struct json ask = json_at_object(json_get_array(json_at_object(rounds, 0), "asks"), 0);
	struct pending_call *p = pending_keep(s, m, false);
	struct json params, wanted = json_get_object(ask, "params");
	static const char *const keys[] = { "message", "requestedSchema", "messages", "maxTokens" };

	if (!p)
		return err_nomem(err);
	pending_ask(s, p);
	params = rpc_request(&a, p->ask, json_get_text(ask, "method"));
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		json_set_value(params, keys[i], wanted, keys[i]);
	return rpc_append(&a, s->out, err);
}

static int take_answer(struct session *s, struct pending_call *p, const struct rpc_message *m,
		       struct err *err)
{
	struct json one = find("tools", "name", json_text_if(p->message.params, "name"));
	int r = answer_told(s, &p->message, false, one, m->top, "result", err);

	pending_finish(s, p);
	return r;
}

/* --- requests --------------------------------------------------------------------------- */

static int refuse_incapable(struct session *s, const struct rpc_message *m, const char *capability,
			    struct err *err)
{
	CLEANUP(rpc_answer_done) struct rpc_answer a = { 0 };
	struct json error =
	    rpc_error(&a, m->top, RPC_NO_CAPABILITY, "the client cannot do what it takes");

	json_set_object(json_set_object(json_set_object(error, "data"), "requiredCapabilities"),
			capability);
	return rpc_append(&a, s->out, err);
}

static int use(struct session *s, struct rpc_message *m, bool modern, const char *group,
	       struct err *err)
{
	struct json one = find(group, "name", json_text_if(m->params, "name"));
	const char *needs = one.node ? json_text_if(one, "requires") : NULL;
	int r = 0;

	if (!one.node)
		return response_error(s, m->top, RPC_INVALID_PARAMS, "there is no such thing", err);
	if (needs && modern && !json_has(capabilities_of(m), needs))
		return refuse_incapable(s, m, needs, err);
	if (is_set(one, "logs"))
		r = say(s, m, modern, err);
	if (is_set(one, "progress"))
		r = send_progress(s, m, err);
	if (r < 0)
		return r;
	if (json_has(one, "rounds"))
		return modern ? ask_modern(s, m, one, err) : ask_legacy(s, m, one, err);
	return answer_result(s, m, modern, one, err);
}

static int read_resource(struct session *s, const struct rpc_message *m, bool modern,
			 struct err *err)
{
	CLEANUP(rpc_answer_done) struct rpc_answer a = { 0 };
	const char *uri = json_text_if(m->params, "uri");
	struct json one = find("resources", "uri", uri), result, content;
	char id[16] = "", text[128];

	if (!one.node && (!uri || sscanf(uri, "test://template/%15[^/]/data", id) != 1))
		return response_no_resource(s, m, modern, "there is nothing at that address", err);
	result = response_begin(s, &a, m->top, modern);
	content = json_add_object(json_set_array(result, "contents"));
	json_set_text(content, "uri", uri);
	if (one.node) {
		json_set_value(content, "mimeType", one, "mimeType");
		json_set_value(content, "text", json_get_object(one, "content"), "text");
		json_set_value(content, "blob", json_get_object(one, "content"), "blob");
	} else {
		snprintf(text, sizeof(text),
			 "{\"id\":\"%s\",\"templateTest\":true,\"data\":\"Data for ID: %s\"}", id,
			 id);
		json_set_text(content, "mimeType", "application/json");
		json_set_text(content, "text", text);
	}
	if (modern)
		answer_set_cacheable(result);
	return rpc_append(&a, s->out, err);
}

static int complete(struct session *s, const struct rpc_message *m, bool modern, struct err *err)
{
	CLEANUP(rpc_answer_done) struct rpc_answer a = { 0 };
	struct json completion =
	    json_set_object(response_begin(s, &a, m->top, modern), "completion");

	json_add_text(json_set_array(completion, "values"), "paris");
	json_set_int(completion, "total", 1);
	json_set_bool(completion, "hasMore", false);
	return rpc_append(&a, s->out, err);
}

static int answer_nothing(struct session *s, const struct rpc_message *m, struct err *err)
{
	CLEANUP(rpc_answer_done) struct rpc_answer a = { 0 };

	rpc_result(&a, m->top);
	return rpc_append(&a, s->out, err);
}

static int take(struct session *s, struct rpc_message *m, bool modern, struct err *err)
{
	static const char *const legacy_only[] = { "logging/setLevel", "resources/subscribe",
						   "resources/unsubscribe" };
	int r = 1;

	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		if (strcmp(m->method, lists[i].method) == 0)
			return answer_list(s, m, modern, lists[i].group, lists[i].as, lists[i].keys,
					   err) < 0
				   ? -1
				   : 1;
	for (size_t i = 0; !modern && i < ARRAY_LEN(legacy_only); i++)
		if (strcmp(m->method, legacy_only[i]) == 0)
			return answer_nothing(s, m, err) < 0 ? -1 : 1;
	if (strcmp(m->method, "tools/call") == 0)
		r = use(s, m, modern, "tools", err);
	else if (strcmp(m->method, "prompts/get") == 0)
		r = use(s, m, modern, "prompts", err);
	else if (strcmp(m->method, "resources/read") == 0)
		r = read_resource(s, m, modern, err);
	else if (strcmp(m->method, "completion/complete") == 0)
		r = complete(s, m, modern, err);
	else
		return 0;
	return r < 0 ? r : 1;
}

static void describe(struct json capabilities)
{
	json_set_object(capabilities, "completions");
	json_set_object(capabilities, "logging");
}

/* --- the program ------------------------------------------------------------------------ */

static void print_ready(const char *url, void *ctx)
{
	(void)ctx;
	fprintf(stderr, "listening at %s\n", url);
}

static void set_limit(struct mcp_http *how, const char *word)
{
	const char *value = strchr(word, '=');
	const unsigned long n = value ? strtoul(value + 1, NULL, 10) : 0;

	if (strncmp(word, "sessions=", 9) == 0)
		how->max_sessions = n;
	else if (strncmp(word, "idle_ms=", 8) == 0)
		how->idle_ms = n;
	else if (strncmp(word, "timeout_s=", 10) == 0)
		how->timeout_s = (unsigned)n;
	else if (strncmp(word, "connections=", 12) == 0)
		how->max_connections = (unsigned)n;
}

int main(int argc, char **argv)
{
	static const struct mcp_extra extra = { .describe = describe,
						.take = take,
						.answered = take_answer };
	const struct mcp_options options = { .program = "conformance-server",
					     .version = "0",
					     .extra = &extra };
	struct mcp_http how = { MCP_HTTP_DEFAULTS, .listen = "127.0.0.1:0",
				.on_ready = print_ready };
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct err err = { 0 };
	int r;

	if (argc < 2)
		return 2;
	for (int i = 2; i < argc; i++)
		set_limit(&how, argv[i]);
	r = sys_random(secret, sizeof(secret));
	if (r >= 0)
		r = fdio_read_file(AT_FDCWD, argv[1], (size_t)1 << 20, &text, &err);
	if (r >= 0)
		r = json_parse(&fixtures_doc, (char *)text.data, text.len, &fixtures, &err);
	if (r >= 0)
		r = mcp_serve_http(&options, &how, &err);
	if (r < 0)
		fprintf(stderr, "error: %s\n", err.msg);
	json_done(&fixtures_doc);
	return r < 0;
}
