#include "cli/mcp/consent.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/mcp/answer.h"
#include "cli/mcp/pending.h"
#include "cli/mcp/response.h"

#define QUESTION    "approve" /* our key in the map of questions and answers */
#define NAMES_SHOWN 12

/* --- what the client can ---------------------------------------------------------------- */

/* A client that names neither form nor URL means forms. */
static bool can_ask(const struct session *s, const struct pending_call *p)
{
	const struct json capable = json_object_if(json_object_if(p->message.params, "_meta"),
						   "io.modelcontextprotocol/clientCapabilities");
	const struct json elicitation = json_object_if(capable, "elicitation");

	if (!p->modern)
		return s->legacy_can_ask;
	return elicitation.node && (json_kind(elicitation, "form") == JSON_OBJECT ||
				    json_kind(elicitation, "url") == JSON_MISSING);
}

static bool says_yes(struct json answer)
{
	const struct json content = json_object_if(answer, "content");
	const char *action = json_text_if(answer, "action");

	return action && strcmp(action, "accept") == 0 &&
	       json_kind(content, QUESTION) == JSON_BOOL && json_get_bool(content, QUESTION);
}

enum consent consent_of(const struct session *s, const struct pending_call *p)
{
	const struct json answer =
	    json_object_if(json_object_if(p->message.params, "inputResponses"), QUESTION);

	/* What was allowed in advance is the project, no other directory and no person's decision. */
	if (s->options->allow_promote && p->tool->gate != GATE_PERSON &&
	    json_kind(p->args, "to") == JSON_MISSING)
		return CONSENT_GIVEN;
	if (!can_ask(s, p))
		return CONSENT_IMPOSSIBLE;
	if (!p->modern || !answer.node)
		return CONSENT_NEEDED;
	return says_yes(answer) ? CONSENT_GIVEN : CONSENT_REFUSED;
}

bool consent_in_response(const struct rpc_message *m)
{
	return says_yes(json_object_if(m->top, "result"));
}

/* --- asking ----------------------------------------------------------------------------- */

static int parse_plan(const struct pending_call *p, struct json_doc *doc, struct json *ret)
{
	const struct buf *out = &p->call.child.out;
	size_t len = out->len;

	while (len > 0 && out->data[len - 1] == '\n')
		len--;
	return p->call.child.status < 0 ? -EINVAL
					: json_parse(doc, (const char *)out->data, len, ret, NULL);
}

/* The paths that the plan changes: promote and undo list them in "changed", rollback in "paths". */
static struct json planned(struct json plan)
{
	if (json_kind(plan, "changed") == JSON_ARRAY)
		return json_get_array(plan, "changed");
	if (json_kind(plan, "paths") == JSON_ARRAY)
		return json_get_array(plan, "paths");
	return (struct json){ .doc = plan.doc };
}

bool consent_worth_asking(const struct pending_call *p)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json plan;

	/* A plan that failed, with conflicts or held paths, is the answer. */
	return parse_plan(p, &doc, &plan) >= 0 && p->call.child.status == 0 &&
	       json_length(planned(plan)) > 0;
}

static int append_path(struct buf *text, struct json one)
{
	const char *path = json_text_if(one, "path");
	const char *status = json_text_if(one, "status");

	return buf_printf(text, "\n  %s %s", status ? status : "changed", path ? path : "?");
}

static const char *text_of(struct json j, const char *key)
{
	const char *text = json_text_if(j, key);

	return text ? text : "unknown";
}

static int append_change(struct buf *text, struct json plan, size_t n)
{
	return buf_printf(
	    text,
	    "May change %s of clone %s enter stage %s? It was asked for by %s, its risk is "
	    "%s, and it waits because: %s. In %s it changes %zu %s:",
	    text_of(plan, "change"), text_of(plan, "clone"), text_of(plan, "stage"),
	    text_of(plan, "who"), text_of(plan, "risk"), text_of(plan, "why"),
	    text_of(plan, "project"), n, n == 1 ? "path" : "paths");
}

static int append_question(struct buf *text, const struct pending_call *p)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	const struct json args = p->args;
	const char *clone = json_text_if(args, "clone");
	struct json plan, list;
	const char *to;
	int r;

	if (parse_plan(p, &doc, &plan) < 0)
		return -EINVAL;
	list = planned(plan);
	to = json_text_if(plan, "to"); /* as it was resolved; an undo may have one, too */
	if (p->tool->gate == GATE_PERSON)
		r = append_change(text, plan, json_length(list));
	else
		r = buf_printf(text, "May the agent change %zu %s of %s (snap %s%s%s)?",
			       json_length(list), json_length(list) == 1 ? "path" : "paths",
			       to ? to : "the real project", p->tool->command, clone ? " " : "",
			       clone ? clone : "");
	for (size_t i = 0; r >= 0 && i < json_length(list) && i < NAMES_SHOWN; i++)
		r = append_path(text, json_at_object(list, i));
	if (r < 0)
		return r;
	if (json_length(list) > NAMES_SHOWN)
		r = buf_printf(text, "\n  and %zu more", json_length(list) - NAMES_SHOWN);
	return r;
}

static void set_form(struct json params, const char *question)
{
	struct json schema, yes;

	json_set_text(params, "mode", "form");
	json_set_text(params, "message", question);
	schema = json_set_object(params, "requestedSchema");
	json_set_text(schema, "type", "object");
	yes = json_set_object(json_set_object(schema, "properties"), QUESTION);
	json_set_text(yes, "type", "boolean");
	json_set_text(yes, "title", "Change the project");
	json_set_text(yes, "description", "It can be taken back with `snap undo`.");
	json_add_text(json_set_array(schema, "required"), QUESTION);
}

int consent_ask(struct session *s, struct pending_call *p, struct err *err)
{
	CLEANUP(rpc_answer_done) struct rpc_answer a = { 0 };
	CLEANUP(buf_done) struct buf question = BUF_INIT;
	struct json result, ask;

	if (append_question(&question, p) < 0 || !buf_str(&question))
		return err_nomem(err);
	if (!p->modern) {
		pending_ask(s, p);
		set_form(rpc_request(&a, p->ask, "elicitation/create"), buf_str(&question));
		return rpc_append(&a, s->out, err);
	}
	result = response_begin(s, &a, p->message.top, true);
	json_set_text(result, "resultType", "input_required");
	ask = json_set_object(json_set_object(result, "inputRequests"), QUESTION);
	json_set_text(ask, "method", "elicitation/create");
	set_form(json_set_object(ask, "params"), buf_str(&question));
	return rpc_append(&a, s->out, err);
}

int consent_tell_command(struct session *s, const struct pending_call *p, struct err *err)
{
	CLEANUP(tool_line_done) struct tool_line line = { 0 };
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct err why = { 0 };
	int r = tool_line(p->tool, p->args, &line, &why);

	if (r < 0)
		return answer_refusal(s, p, "E_USAGE", why.msg, err);
	r = buf_printf(&text,
		       "a person must agree before the project is changed, and this client cannot "
		       "ask one. Ask them to type: %s",
		       s->options->program);
	for (int i = 0; r >= 0 && i < line.argc; i++)
		r = buf_printf(&text, strpbrk(line.argv[i], " '\"\\$`*?") ? " '%s'" : " %s",
			       line.argv[i]);
	if (r < 0 || !buf_str(&text))
		return err_nomem(err);
	return answer_refusal(s, p, "E_REFUSED", buf_str(&text), err);
}
