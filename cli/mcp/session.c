#include "cli/mcp/session.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/mcp/answer.h"
#include "cli/mcp/consent.h"
#include "cli/mcp/era.h"
#include "cli/mcp/pending.h"
#include "cli/mcp/progress.h"
#include "cli/mcp/record.h"
#include "cli/mcp/resource.h"
#include "cli/mcp/response.h"
#include "cli/mcp/subscribe.h"
#include "cli/mcp/task.h"

void session_init(struct session *s, const struct mcp_options *options, struct buf *out)
{
	*s = (struct session){ .options = options, .out = out, .watch = WATCH_INIT };
}

void session_done(struct session *s)
{
	while (s->pending)
		pending_finish(s, s->pending);
	watch_done(&s->watch);
	strlist_done(&s->subscribed);
	buf_done(&s->unheard);
}

/* --- calls ------------------------------------------------------------------------------ */

static int start_call(struct session *s, struct pending_call *p, bool plan, struct err *err)
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
	IGNORE_RESULT(
	    traceparent_take(json_text_if(rpc_meta(&p->message), "traceparent"), line.trace),
	    "without one the call belongs to no trace");
	record_via(s, p, line.via, sizeof(line.via));
	return call_start(&p->call, s->options, &line, err);
}

/* A failure of ours to start it, or arguments that are wrong: the model can mend those. */
static int refuse_call(struct session *s, struct pending_call *p, const char *sentence,
		       struct err *err)
{
	int r = answer_refusal(s, p, "E_USAGE", sentence, err);

	record_call(s, p, "refused");
	pending_finish(s, p);
	return r;
}

static int begin_call(struct session *s, struct pending_call *p, struct err *err)
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

		record_call(s, p, "refused");
		pending_finish(s, p);
		return r;
	}
	if (start_call(s, p, consent == CONSENT_NEEDED, &why) < 0)
		return refuse_call(s, p, why.msg, err);
	return 0;
}

static int call_tool(struct session *s, struct rpc_message *m, bool modern, struct err *err)
{
	const char *name = json_text_if(m->params, "name");
	const struct tool *tool = name ? tool_find(name) : NULL;
	struct pending_call *p;

	if (!tool || !tool_is_offered(s->options, tool))
		return response_error(s, m->top, RPC_INVALID_PARAMS,
				      tool ? "this server was started without that tool"
					   : "there is no such tool",
				      err);
	if (json_has(m->params, "arguments") && json_kind(m->params, "arguments") != JSON_OBJECT)
		return response_error(s, m->top, RPC_INVALID_PARAMS, "'arguments' is no object",
				      err);
	p = pending_keep(s, m, modern);
	if (!p)
		return err_nomem(err);
	p->tool = tool;
	p->args = call_arguments(&p->message);
	return begin_call(s, p, err);
}

static int read_resource(struct session *s, struct rpc_message *m, bool modern, struct err *err)
{
	const char *uri = json_text_if(m->params, "uri");
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json args = json_begin(&doc);
	const struct tool *tool = uri ? resource_find(uri, args) : NULL;
	struct pending_call *p;

	if (uri && strncmp(uri, "ui:", 3) == 0)
		return answer_page(s, m, modern, err);
	if (!tool)
		return response_no_resource(s, m, modern, "there is nothing at that address", err);
	p = pending_keep(s, m, modern);
	if (!p)
		return err_nomem(err);
	p->tool = tool;
	p->is_resource = true;
	p->from_uri = TAKE_STRUCT(doc);
	p->args = (struct json){ .doc = &p->from_uri, .node = p->from_uri.root };
	return begin_call(s, p, err);
}

static int take_task(struct session *s, struct rpc_message *m, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	const struct json args = json_begin(&doc);
	const struct tool *tool;
	enum task_act act;
	struct pending_call *p;
	int r = task_begin(s, m, &act, &tool, args, err);

	if (r <= 0)
		return r;
	p = pending_keep(s, m, true);
	if (!p)
		return err_nomem(err);
	p->tool = tool;
	p->task = act;
	p->from_uri = TAKE_STRUCT(doc);
	p->args = (struct json){ .doc = &p->from_uri, .node = p->from_uri.root };
	return begin_call(s, p, err);
}

/* The dry run has ended: is there anything to ask for? */
static int finish_plan(struct session *s, struct pending_call *p, struct err *err)
{
	int r;

	if (!consent_worth_asking(p)) {
		r = answer_call(s, p, err);
		record_call(s, p, NULL);
		pending_finish(s, p);
		return r;
	}
	r = consent_ask(s, p, err);
	record_call(s, p, "asked");
	call_done(&p->call);
	if (p->modern)
		pending_finish(s, p);
	return r;
}

int session_step(struct session *s, struct err *err)
{
	struct buf *const out = s->out;
	struct pending_call *p, *next;
	int r = 0;

	buf_done(&s->unheard);
	r = subscribe_step(s, err);
	for (p = s->pending; r >= 0 && p; p = next) {
		next = p->next;
		s->out = p->out;
		if (!p->tool || p->state == PENDING_ASK)
			continue;
		if (!call_read(&p->call)) {
			r = progress_tell(s, p, err);
			continue;
		}
		if (p->state == PENDING_PLAN) {
			r = finish_plan(s, p, err);
			continue;
		}
		r = answer_call(s, p, err);
		record_call(s, p, NULL);
		pending_finish(s, p);
	}
	s->out = out;
	return r;
}

int session_timeout(const struct session *s)
{
	int least = -1;

	for (const struct pending_call *p = s->pending; p; p = p->next) {
		const int ms = p->tool ? progress_due(p) : -1;

		if (ms >= 0 && (least < 0 || ms < least))
			least = ms;
	}
	return least;
}

bool session_owes(const struct session *s, const struct buf *out)
{
	for (const struct pending_call *p = s->pending; p; p = p->next)
		if (!out || p->out == out)
			return true;
	return false;
}

void session_forget(struct session *s, const struct buf *out)
{
	for (struct pending_call *p = s->pending; p; p = p->next)
		if (p->out == out)
			p->out = &s->unheard;
	if (s->out == out)
		s->out = &s->unheard;
}

/* --- messages --------------------------------------------------------------------------- */

static void cancel_pending(struct session *s, struct pending_call *p)
{
	char run[JOB_ID_MAX];

	call_stop(&p->call);
	record_call(s, p, "cancelled");
	memcpy(run, p->call.run, sizeof(run));
	pending_finish(s, p);
	if (*run != '\0')
		job_cancel(s->options, run);
}

void session_cancel_all(struct session *s)
{
	while (s->pending)
		cancel_pending(s, s->pending);
}

static void cancel(struct session *s, const struct rpc_message *m)
{
	for (struct pending_call *p = s->pending; p; p = p->next) {
		if (!json_equal(m->params, "requestId", p->message.top, "id"))
			continue;
		cancel_pending(s, p);
		return;
	}
}

/* The person has answered the question about that call. */
static int take_decision(struct session *s, struct pending_call *p, bool agrees, struct err *err)
{
	struct err why = { 0 };

	if (!agrees)
		return refuse_call(s, p, "the person who was asked did not agree", err);
	if (start_call(s, p, false, &why) < 0)
		return refuse_call(s, p, why.msg, err);
	return 0;
}

static int take_response(struct session *s, const struct rpc_message *m, struct err *err)
{
	struct buf *const out = s->out;
	const char *id = json_text_if(m->top, "id");
	int r;

	for (struct pending_call *p = s->pending; id && p; p = p->next) {
		if (p->state != PENDING_ASK || strcmp(p->ask, id) != 0)
			continue;
		s->out = p->out;
		r = p->tool ? take_decision(s, p, consent_in_response(m), err)
			    : s->options->extra->answered(s, p, m, err);
		s->out = out;
		return r;
	}
	return 0;
}

int session_end_listening(struct session *s, struct err *err)
{
	struct pending_call *p, *next;
	int r = 0;

	for (p = s->pending; r >= 0 && p; p = next) {
		CLEANUP(rpc_answer_done) struct rpc_answer a = { 0 };

		next = p->next;
		if (p->tool || p->state == PENDING_ASK)
			continue;
		json_set_value(
		    json_set_object(response_begin(s, &a, p->message.top, true), "_meta"),
		    "io.modelcontextprotocol/subscriptionId", p->message.top, "id");
		r = rpc_append(&a, p->out, err);
		pending_finish(s, p);
	}
	return r;
}

static int take_request(struct session *s, struct rpc_message *m, struct err *err)
{
	int era = era_choose(s, m, err);

	s->rejected = era == -ECANCELED;
	if (era < 0)
		return era == -ECANCELED ? 0 : era;
	if (!era && strcmp(m->method, "initialize") == 0)
		return era_initialize(s, m, err);
	if (s->options->extra) {
		const int r = s->options->extra->take(s, m, era, err);

		if (r != 0)
			return r < 0 ? r : 0;
	}
	if (strcmp(m->method, "tools/call") == 0)
		return call_tool(s, m, era, err);
	if (strcmp(m->method, "resources/read") == 0)
		return read_resource(s, m, era, err);
	if (strcmp(m->method, "prompts/get") == 0)
		return answer_prompt(s, m, era, err);
	if (era && task_method(m->method))
		return take_task(s, m, err);
	if (era && strcmp(m->method, "subscriptions/listen") == 0)
		return subscribe_listen(s, m, err);
	if (!era && s->options->follow && strcmp(m->method, "resources/subscribe") == 0)
		return subscribe_take(s, m, true, err);
	if (!era && s->options->follow && strcmp(m->method, "resources/unsubscribe") == 0)
		return subscribe_take(s, m, false, err);
	return answer_listing(s, m, era, err);
}

int session_take_message(struct session *s, struct rpc_message *m, struct err *err)
{
	switch (m->kind) {
	case RPC_REQUEST:
		return take_request(s, m, err);
	case RPC_RESPONSE:
		return take_response(s, m, err);
	case RPC_NOTIFICATION:
		if (strcmp(m->method, "notifications/cancelled") == 0)
			cancel(s, m);
	}
	return 0;
}

int session_take(struct session *s, const char *line, size_t len, struct err *err)
{
	CLEANUP(rpc_done) struct rpc_message m = { 0 };
	struct err why = { 0 };
	int code = rpc_parse(&m, line, len, &why);

	if (code < 0)
		return response_error(s, m.top, code, why.msg, err);
	return session_take_message(s, &m, err);
}

size_t session_count(const struct session *s)
{
	size_t n = s->watch.fd >= 0;

	for (const struct pending_call *p = s->pending; p; p = p->next)
		n += 2;
	return n;
}

size_t session_poll(const struct session *s, struct pollfd *fds, size_t max)
{
	size_t n = 0;

	if (s->watch.fd >= 0 && n < max)
		fds[n++] = (struct pollfd){ .fd = s->watch.fd, .events = POLLIN };
	for (const struct pending_call *p = s->pending; p && n + 2 <= max; p = p->next)
		n += call_poll(&p->call, fds + n);
	return n;
}
