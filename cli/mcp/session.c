#include "cli/mcp/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/mcp/answer.h"
#include "cli/mcp/consent.h"
#include "cli/mcp/resource.h"

void session_init(struct session *s, const struct mcp_options *options)
{
	*s = (struct session){ .options = options };
}

static void pending_free(struct pending *p)
{
	call_done(&p->call);
	rpc_done(&p->message);
	json_done(&p->from_uri);
	free(p);
}

void session_done(struct session *s)
{
	while (s->pending) {
		struct pending *p = s->pending;

		s->pending = p->next;
		pending_free(p);
	}
	buf_done(&s->out);
}

static void remove_pending(struct session *s, struct pending *p)
{
	struct pending **at = &s->pending;

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	pending_free(p);
}

/* --- eras ------------------------------------------------------------------------------- */

#define META_VERSION "io.modelcontextprotocol/protocolVersion"
#define META_CAPABLE "io.modelcontextprotocol/clientCapabilities"

/* The newest first: it is what a client gets that asks for one we do not know. */
static const char *const legacy_versions[] = { "2025-11-25", "2025-06-18", "2025-03-26",
					       "2024-11-05" };

static struct json meta_of(const struct rpc_message *m)
{
	if (json_kind(m->params, "_meta") != JSON_OBJECT)
		return (struct json){ .doc = m->params.doc };
	return json_get_object(m->params, "_meta");
}

static const char *text_or_null(struct json j, const char *key)
{
	return json_kind(j, key) == JSON_TEXT ? json_get_text(j, key) : NULL;
}

static int reject_version(struct session *s, const struct rpc_message *m, const char *asked,
			  struct err *err)
{
	CLEANUP(rpc_answer_done) struct rpc_answer a = { 0 };
	struct json data;

	data = json_set_object(
	    rpc_error(&a, m->top, RPC_NO_VERSION, "unsupported protocol version"), "data");
	json_add_text(json_set_array(data, "supported"), MCP_VERSION);
	json_set_text(data, "requested", asked);
	return rpc_append(&a, &s->out, err);
}

/* Which era the request belongs to: 1 modern, 0 legacy; or an answer was given: -ECANCELED. */
static int choose_era(struct session *s, const struct rpc_message *m, struct err *err)
{
	const struct json meta = meta_of(m);
	const char *version = text_or_null(meta, META_VERSION);
	int r;

	if (version && strcmp(version, MCP_VERSION) != 0) {
		r = reject_version(s, m, version, err);
		return r < 0 ? r : -ECANCELED;
	}
	if (version && json_kind(meta, META_CAPABLE) == JSON_OBJECT)
		return 1;
	if (!version &&
	    (s->legacy || strcmp(m->method, "initialize") == 0 || strcmp(m->method, "ping") == 0))
		return 0;
	r = answer_error(s, m->top, RPC_INVALID_PARAMS,
			 version ? "'_meta' lacks '" META_CAPABLE "'"
				 : "'_meta' lacks '" META_VERSION
				   "', and no 'initialize' came before",
			 err);
	return r < 0 ? r : -ECANCELED;
}

static int initialize(struct session *s, const struct rpc_message *m, struct err *err)
{
	CLEANUP(rpc_answer_done) struct rpc_answer a = { 0 };
	const char *asked = text_or_null(m->params, "protocolVersion");
	struct json result, info;

	s->legacy = legacy_versions[0];
	for (size_t i = 0; asked && i < ARRAY_LEN(legacy_versions); i++)
		if (strcmp(asked, legacy_versions[i]) == 0)
			s->legacy = legacy_versions[i];
	s->legacy_can_ask =
	    json_kind(m->params, "capabilities") == JSON_OBJECT &&
	    json_kind(json_get_object(m->params, "capabilities"), "elicitation") == JSON_OBJECT;
	result = rpc_result(&a, m->top);
	json_set_text(result, "protocolVersion", s->legacy);
	answer_capabilities(json_set_object(result, "capabilities"));
	info = json_set_object(result, "serverInfo");
	answer_server_info(s, info);
	json_set_text(result, "instructions", MCP_INSTRUCTIONS);
	return rpc_append(&a, &s->out, err);
}

/* --- calls ------------------------------------------------------------------------------ */

static int start_call(struct session *s, struct pending *p, bool plan, struct err *err)
{
	CLEANUP(tool_line_done) struct tool_line line = { 0 };
	int r = tool_line(p->tool, p->args, &line, err);

	if (r < 0)
		return r;
	if (plan)
		r = tool_line_add(&line, "--dry-run", err);
	if (r < 0)
		return r;
	p->state = plan ? PENDING_PLAN : PENDING_ACT;
	return call_start(&p->call, s->options, &line, err);
}

/* Take the message into a request that waits. */
static struct pending *wait_for(struct session *s, struct rpc_message *m, bool modern)
{
	struct pending *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->call = (struct call){ .out_fd = -1, .note_fd = -1 };
	p->message = *m;
	*m = (struct rpc_message){ 0 };
	p->modern = modern;
	p->next = s->pending;
	s->pending = p;
	return p;
}

/* A failure of ours to start it, or arguments that are wrong: the model can mend those. */
static int refuse_call(struct session *s, struct pending *p, const char *sentence, struct err *err)
{
	int r = answer_refusal(s, p, "E_USAGE", sentence, err);

	remove_pending(s, p);
	return r;
}

static int begin_call(struct session *s, struct pending *p, struct err *err)
{
	struct err why = { 0 };
	const bool writes = tool_writes_project(p->tool, p->args);
	enum consent consent = CONSENT_GIVEN;

	if (writes)
		consent = consent_of(s, p);
	if (consent == CONSENT_REFUSED)
		return refuse_call(s, p, "the person who was asked did not agree", err);
	if (consent == CONSENT_IMPOSSIBLE) {
		int r = consent_tell_command(s, p, err);

		remove_pending(s, p);
		return r;
	}
	if (start_call(s, p, consent == CONSENT_NEEDED, &why) < 0)
		return refuse_call(s, p, why.msg, err);
	return 0;
}

static int call_tool(struct session *s, struct rpc_message *m, bool modern, struct err *err)
{
	const char *name = text_or_null(m->params, "name");
	const struct tool *tool = name ? tool_find(name) : NULL;
	struct pending *p;

	if (!tool || !answer_offers(s, tool))
		return answer_error(s, m->top, RPC_INVALID_PARAMS,
				    tool ? "this server was started without that tool"
					 : "there is no such tool",
				    err);
	if (json_has(m->params, "arguments") && json_kind(m->params, "arguments") != JSON_OBJECT)
		return answer_error(s, m->top, RPC_INVALID_PARAMS, "'arguments' is no object", err);
	p = wait_for(s, m, modern);
	if (!p)
		return err_nomem(err);
	p->tool = tool;
	p->args = call_arguments(&p->message);
	return begin_call(s, p, err);
}

static int read_resource(struct session *s, struct rpc_message *m, bool modern, struct err *err)
{
	const char *uri = text_or_null(m->params, "uri");
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json args = json_begin(&doc);
	const struct tool *tool = uri ? resource_find(uri, args) : NULL;
	struct pending *p;

	if (!tool)
		return answer_error(s, m->top, modern ? RPC_INVALID_PARAMS : RPC_NO_RESOURCE,
				    "there is nothing at that address", err);
	p = wait_for(s, m, modern);
	if (!p)
		return err_nomem(err);
	p->tool = tool;
	p->is_resource = true;
	p->from_uri = doc;
	doc = (struct json_doc){ 0 };
	p->args = (struct json){ .doc = &p->from_uri, .node = p->from_uri.root };
	return begin_call(s, p, err);
}

/* The dry run has ended: is there anything to ask for? */
static int finish_plan(struct session *s, struct pending *p, struct err *err)
{
	int r;

	if (!consent_worth_asking(p)) {
		r = answer_call(s, p, err);
		remove_pending(s, p);
		return r;
	}
	r = consent_ask(s, p, err);
	call_done(&p->call);
	if (p->modern)
		remove_pending(s, p);
	return r;
}

int session_step(struct session *s, struct err *err)
{
	struct pending *p, *next;
	int r = 0;

	for (p = s->pending; r >= 0 && p; p = next) {
		next = p->next;
		if (!p->tool || p->state == PENDING_ASK || !call_read(&p->call))
			continue;
		if (p->state == PENDING_PLAN) {
			r = finish_plan(s, p, err);
			continue;
		}
		r = answer_call(s, p, err);
		remove_pending(s, p);
	}
	return r;
}

/* --- messages --------------------------------------------------------------------------- */

static void cancel(struct session *s, const struct rpc_message *m)
{
	for (struct pending *p = s->pending; p; p = p->next) {
		char run[JOB_ID_MAX];

		if (!json_equal(m->params, "requestId", p->message.top, "id"))
			continue;
		call_stop(&p->call);
		memcpy(run, p->call.run, sizeof(run));
		remove_pending(s, p);
		if (*run != '\0')
			job_cancel(s->options, run);
		return;
	}
}

static int take_response(struct session *s, const struct rpc_message *m, struct err *err)
{
	const char *id = text_or_null(m->top, "id");

	for (struct pending *p = s->pending; id && p; p = p->next) {
		if (p->state != PENDING_ASK || strcmp(p->ask, id) != 0)
			continue;
		if (!consent_in_response(m))
			return refuse_call(s, p, "the person who was asked did not agree", err);
		if (start_call(s, p, false, err) < 0)
			return refuse_call(s, p, err->msg, err);
		return 0;
	}
	return 0;
}

static int listen(struct session *s, struct rpc_message *m, struct err *err)
{
	CLEANUP(rpc_answer_done) struct rpc_answer a = { 0 };
	struct json params;

	if (json_kind(m->params, "notifications") != JSON_OBJECT)
		return answer_error(s, m->top, RPC_INVALID_PARAMS, "'notifications' is no object",
				    err);
	params = rpc_notify(&a, "notifications/subscriptions/acknowledged");
	json_set_value(json_set_object(params, "_meta"), "io.modelcontextprotocol/subscriptionId",
		       m->top, "id");
	/* What is offered is the same for as long as the server runs. */
	json_set_object(params, "notifications");
	if (!wait_for(s, m, true))
		return err_nomem(err);
	return rpc_append(&a, &s->out, err);
}

static int take_request(struct session *s, struct rpc_message *m, struct err *err)
{
	int era = choose_era(s, m, err);

	if (era < 0)
		return era == -ECANCELED ? 0 : era;
	if (!era && strcmp(m->method, "initialize") == 0)
		return initialize(s, m, err);
	if (strcmp(m->method, "tools/call") == 0)
		return call_tool(s, m, era, err);
	if (strcmp(m->method, "resources/read") == 0)
		return read_resource(s, m, era, err);
	if (strcmp(m->method, "prompts/get") == 0)
		return answer_prompt(s, m, era, err);
	if (era && strcmp(m->method, "subscriptions/listen") == 0)
		return listen(s, m, err);
	return answer_listing(s, m, era, err);
}

int session_take(struct session *s, const char *line, size_t len, struct err *err)
{
	CLEANUP(rpc_done) struct rpc_message m = { 0 };
	struct err why = { 0 };
	int code = rpc_parse(&m, line, len, &why);

	if (code < 0)
		return answer_error(s, m.top, code, why.msg, err);
	switch (m.kind) {
	case RPC_REQUEST:
		return take_request(s, &m, err);
	case RPC_RESPONSE:
		return take_response(s, &m, err);
	case RPC_NOTIFICATION:
		if (strcmp(m.method, "notifications/cancelled") == 0)
			cancel(s, &m);
	}
	return 0;
}

size_t session_count(const struct session *s)
{
	size_t n = 0;

	for (const struct pending *p = s->pending; p; p = p->next)
		n += 2;
	return n;
}

size_t session_poll(const struct session *s, struct pollfd *fds, size_t max)
{
	size_t n = 0;

	for (const struct pending *p = s->pending; p && n + 2 <= max; p = p->next)
		n += call_poll(&p->call, fds + n);
	return n;
}
