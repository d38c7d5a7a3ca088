#include "cli/mcp/task.h"

#include <string.h>

#include "base/cleanup.h"
#include "cli/mcp/response.h"

#define POLL_MS 2000
#define TTL_MS  3600000 /* the record of a run is kept for longer, unless very many follow */

static const struct {
	const char *method, *tool;
	enum task_act act;
} methods[] = {
	{ "tasks/get", "snap_logs", TASK_GET },
	{ "tasks/update", "snap_logs", TASK_UPDATE },
	{ "tasks/cancel", "snap_cancel", TASK_CANCEL },
};

/* Every request says anew what its client can do. */
static bool is_declared(const struct rpc_message *m)
{
	const struct json capable = json_object_if(json_object_if(m->params, "_meta"),
						   "io.modelcontextprotocol/clientCapabilities");

	return json_kind(json_object_if(capable, "extensions"), TASK_EXTENSION) == JSON_OBJECT;
}

bool task_method(const char *method)
{
	return strncmp(method, "tasks/", strlen("tasks/")) == 0;
}

static int answer_undeclared(struct session *s, const struct rpc_message *m, struct err *err)
{
	CLEANUP(rpc_answer_done) struct rpc_answer a = { 0 };
	struct json error =
	    rpc_error(&a, m->top, RPC_NO_CAPABILITY, "the client does not declare " TASK_EXTENSION);

	json_set_object(
	    json_set_object(json_set_object(json_set_object(error, "data"), "requiredCapabilities"),
			    "extensions"),
	    TASK_EXTENSION);
	return rpc_append(&a, s->out, err);
}

int task_may_listen(struct session *s, const struct rpc_message *m, struct err *err)
{
	if (!json_has(json_object_if(m->params, "notifications"), "taskIds") || is_declared(m))
		return 1;
	return answer_undeclared(s, m, err);
}

int task_begin(struct session *s, const struct rpc_message *m, enum task_act *ret,
	       const struct tool **ret_tool, struct json args, struct err *err)
{
	const char *id = json_text_if(m->params, "taskId");
	size_t i = 0;

	while (i < ARRAY_LEN(methods) && strcmp(methods[i].method, m->method) != 0)
		i++;
	if (i == ARRAY_LEN(methods))
		return response_error(s, m->top, RPC_NO_METHOD, "there is no such method", err);
	if (!is_declared(m))
		return answer_undeclared(s, m, err);
	*ret = methods[i].act;
	*ret_tool = tool_find(methods[i].tool);
	if (!id || !tool_is_offered(s->options, *ret_tool))
		return response_error(s, m->top, RPC_INVALID_PARAMS,
				      id ? "this server was started without that tool"
					 : "'taskId' must name a task",
				      err);
	json_set_text(args, "run", id);
	return 1;
}

bool task_is_made(const struct pending_call *p, struct json structured)
{
	const char *status = json_text_if(structured, "status");

	return p->modern && strcmp(p->tool->command, "run") == 0 && status &&
	       strcmp(status, "running") == 0 && is_declared(&p->message);
}

void task_set(struct json to, struct json structured)
{
	const char *status = json_text_if(structured, "status");
	const bool runs = status && strcmp(status, "running") == 0;
	const bool cancelled = status && strcmp(status, "cancelled") == 0;

	json_set_value(to, "taskId", structured, "run");
	json_set_text(to, "status", runs ? "working" : cancelled ? "cancelled" : "completed");
	json_set_value(to, "createdAt", structured, "started");
	json_set_value(to, "lastUpdatedAt", structured,
		       json_kind(structured, "ended") == JSON_TEXT ? "ended" : "started");
	json_set_int(to, "ttlMs", TTL_MS);
	json_set_int(to, "pollIntervalMs", POLL_MS);
}

int task_answer(struct session *s, const struct pending_call *p, struct json structured,
		int (*result)(struct json to, void *ctx, struct err *err), void *ctx,
		struct err *err)
{
	CLEANUP(rpc_answer_done) struct rpc_answer a = { 0 };
	const char *status = json_text_if(structured, "status");
	struct json to;
	int r = 0;

	if (!status) {
		const struct json error = json_object_if(structured, "error");
		const char *why = json_text_if(error, "message");

		return response_error(s, p->message.top, RPC_INVALID_PARAMS,
				      why ? why : "there is no such task", err);
	}
	to = response_begin(s, &a, p->message.top, true);
	if (p->task == TASK_GET) {
		task_set(to, structured);
		if (strcmp(status, "running") != 0 && strcmp(status, "cancelled") != 0)
			r = result(json_set_object(to, "result"), ctx, err);
	}
	return r < 0 ? r : rpc_append(&a, s->out, err);
}
