#include "cli/mcp/answer.h"

#include <string.h>

#include "base/cleanup.h"
#include "cli/mcp/app.h"
#include "cli/mcp/failure.h"
#include "cli/mcp/prompt.h"
#include "cli/mcp/resource.h"
#include "cli/mcp/response.h"
#include "cli/mcp/task.h"

#define TTL_MS 3600000 /* the lists stay the same for as long as the server runs */

void answer_capabilities(const struct session *s, struct json j)
{
	struct json resources;

	json_set_object(j, "tools");
	resources = json_set_object(j, "resources");
	if (s->options->follow)
		json_set_bool(resources, "subscribe", true);
	json_set_object(j, "prompts");
	if (s->options->extra)
		s->options->extra->describe(j);
}

/* --- lists ------------------------------------------------------------------------------ */

void answer_set_cacheable(struct json result)
{
	json_set_int(result, "ttlMs", TTL_MS);
	json_set_text(result, "cacheScope", "private");
}

void mcp_list_tools(const struct mcp_options *options, struct json list)
{
	for (const struct tool *t = tools; t->name; t++)
		if (tool_is_offered(options, t))
			tool_describe(t, json_add_object(list));
}

static void list_tools(const struct session *s, struct json result, bool modern)
{
	mcp_list_tools(s->options, json_set_array(result, "tools"));
	if (modern)
		answer_set_cacheable(result);
}

static void list_resources(const struct session *s, struct json result, bool modern)
{
	struct json resources = json_set_array(result, "resources");

	resource_list(resources);
	app_list(resources);
	if (modern)
		answer_set_cacheable(result);
}

static void list_templates(const struct session *s, struct json result, bool modern)
{
	resource_list_templates(json_set_array(result, "resourceTemplates"));
	if (modern)
		answer_set_cacheable(result);
}

static void list_prompts(const struct session *s, struct json result, bool modern)
{
	prompt_list(json_set_array(result, "prompts"));
	if (modern)
		answer_set_cacheable(result);
}

static void set_extensions(struct json capabilities)
{
	struct json extensions = json_set_object(capabilities, "extensions");

	json_set_object(extensions, TASK_EXTENSION);
	json_add_text(json_set_array(json_set_object(extensions, APP_EXTENSION), "mimeTypes"),
		      APP_TYPE);
}

static void discover(const struct session *s, struct json result, bool modern)
{
	struct json capabilities;

	json_add_text(json_set_array(result, "supportedVersions"), MCP_VERSION);
	capabilities = json_set_object(result, "capabilities");
	answer_capabilities(s, capabilities);
	set_extensions(capabilities);
	json_set_text(result, "instructions", MCP_INSTRUCTIONS);
	answer_set_cacheable(result);
}

static void pong(const struct session *s, struct json result, bool modern)
{
}

static const struct {
	const char *method;
	bool modern, legacy;
	void (*fill)(const struct session *s, struct json result, bool modern);
} listings[] = {
	{ "server/discover", true, false, discover },
	{ "ping", false, true, pong },
	{ "tools/list", true, true, list_tools },
	{ "resources/list", true, true, list_resources },
	{ "resources/templates/list", true, true, list_templates },
	{ "prompts/list", true, true, list_prompts },
};

int answer_listing(struct session *s, const struct rpc_message *m, bool modern, struct err *err)
{
	CLEANUP(rpc_answer_done) struct rpc_answer a = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(listings); i++) {
		if (strcmp(listings[i].method, m->method) != 0 ||
		    !(modern ? listings[i].modern : listings[i].legacy))
			continue;
		listings[i].fill(s, response_begin(s, &a, m->top, modern), modern);
		return rpc_append(&a, s->out, err);
	}
	return response_error(s, m->top, RPC_NO_METHOD, "there is no such method", err);
}

int answer_prompt(struct session *s, const struct rpc_message *m, bool modern, struct err *err)
{
	CLEANUP(rpc_answer_done) struct rpc_answer a = { 0 };
	const char *name =
	    json_kind(m->params, "name") == JSON_TEXT ? json_get_text(m->params, "name") : "";
	struct err why = { 0 };

	if (prompt_get(name, call_arguments(m), response_begin(s, &a, m->top, modern), &why) < 0)
		return response_error(s, m->top, RPC_INVALID_PARAMS, why.msg, err);
	return rpc_append(&a, s->out, err);
}

/* --- calls ------------------------------------------------------------------------------ */

struct json call_arguments(const struct rpc_message *m)
{
	return json_object_if(m->params, "arguments");
}

static void add_text_block(struct json content, const char *text, size_t len)
{
	struct json block = json_add_object(content);

	json_set_text(block, "type", "text");
	json_set_text_len(block, "text", text, len);
}

/* Each line that the command said beside its result. */
static void set_notes(struct json structured, const struct buf *notes)
{
	const char *at = (const char *)notes->data, *end = notes->len > 0 ? at + notes->len : at;
	struct json list = { 0 };
	bool any = false;

	while (at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		const size_t len = (size_t)((stop ? stop : end) - at);

		if (len > 0 && !any) {
			list = json_set_array(structured, "notes");
			any = true;
		}
		if (len > 0)
			json_add_text_len(list, at, len);
		at += len + 1;
	}
}

static bool is_failure(struct json structured)
{
	return json_kind(structured, "schema") == JSON_TEXT &&
	       strcmp(json_get_text(structured, "schema"), "snap.error/1") == 0;
}

/* The text for clients that show no structured content: the sentence, or the whole as JSON. */
static int add_mirror(struct json content, const struct json_doc *doc, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	int r = json_append(doc, &text, err);

	if (r < 0)
		return r;
	add_text_block(content, (const char *)text.data, text.len - 1);
	return r;
}

/* What stands at an address changes with every call, so nobody should keep it. */
static int answer_resource(struct session *s, const struct pending_call *p, struct json_doc *doc,
			   struct json structured, struct err *err)
{
	CLEANUP(rpc_answer_done) struct rpc_answer a = { 0 };
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct json result, one;
	int r;

	if (is_failure(structured)) {
		const struct json error = json_get_object(structured, "error");

		return response_no_resource(s, &p->message, p->modern,
					    json_get_text(error, "message"), err);
	}
	r = json_append(doc, &text, err);
	if (r < 0)
		return r;
	result = response_begin(s, &a, p->message.top, p->modern);
	one = json_add_object(json_set_array(result, "contents"));
	json_set_value(one, "uri", p->message.params, "uri");
	json_set_text(one, "mimeType", "application/json");
	json_set_text_len(one, "text", (const char *)text.data, text.len - 1);
	if (p->modern) {
		json_set_int(result, "ttlMs", 0);
		json_set_text(result, "cacheScope", "private");
	}
	return rpc_append(&a, s->out, err);
}

int answer_page(struct session *s, const struct rpc_message *m, bool modern, struct err *err)
{
	CLEANUP(rpc_answer_done) struct rpc_answer a = { 0 };
	const char *uri = json_get_text(m->params, "uri");
	struct json result = response_begin(s, &a, m->top, modern);

	if (!app_read(uri, json_add_object(json_set_array(result, "contents"))))
		return response_no_resource(s, m, modern, "there is no page at that address", err);
	if (modern)
		answer_set_cacheable(result);
	return rpc_append(&a, s->out, err);
}

static int set_result(struct json result, const struct json_doc *doc, struct json structured,
		      struct err *err)
{
	int r = add_mirror(json_set_array(result, "content"), doc, err);

	if (r < 0)
		return r;
	json_set_root(result, "structuredContent", doc);
	json_set_bool(result, "isError", is_failure(structured));
	return r;
}

struct told {
	const struct json_doc *doc;
	struct json structured;
};

static int set_told(struct json to, void *ctx, struct err *err)
{
	const struct told *t = ctx;

	json_set_text(to, "resultType", "complete");
	return set_result(to, t->doc, t->structured, err);
}

static int answer_made(struct session *s, const struct pending_call *p, struct json structured,
		       struct err *err)
{
	CLEANUP(rpc_answer_done) struct rpc_answer a = { 0 };
	struct json result = response_begin(s, &a, p->message.top, true);

	json_set_text(result, "resultType", "task");
	task_set(result, structured);
	return rpc_append(&a, s->out, err);
}

/* Build the result around what the command printed, or around a failure of ours. */
static int answer_with(struct session *s, const struct pending_call *p, struct json_doc *doc,
		       struct json structured, struct err *err)
{
	CLEANUP(rpc_answer_done) struct rpc_answer a = { 0 };
	struct told told = { .doc = doc, .structured = structured };
	int r;

	if (p->is_resource)
		return answer_resource(s, p, doc, structured, err);
	if (p->task != TASK_NONE)
		return task_answer(s, p, structured, set_told, &told, err);
	if (task_is_made(p, structured))
		return answer_made(s, p, structured, err);
	r = set_result(response_begin(s, &a, p->message.top, p->modern), doc, structured, err);
	return r < 0 ? r : rpc_append(&a, s->out, err);
}

int answer_refusal(struct session *s, const struct pending_call *p, const char *code,
		   const char *sentence, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = json_begin(&doc);

	failure_set(j, code, sentence);
	return answer_with(s, p, &doc, j, err);
}

int answer_call(struct session *s, const struct pending_call *p, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	const struct buf *out = &p->call.child.out;
	size_t len = out->len;
	struct json j;

	while (len > 0 && out->data[len - 1] == '\n')
		len--;
	if (p->call.child.status < 0 ||
	    json_parse(&doc, (const char *)out->data, len, &j, NULL) < 0)
		return answer_refusal(s, p, "E_FAILED",
				      "the call ended without an answer; it may be made again",
				      err);
	set_notes(j, &p->call.child.notes);
	return answer_with(s, p, &doc, j, err);
}
