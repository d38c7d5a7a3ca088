#include "cli/mcp/response.h"

#include "base/cleanup.h"

void response_server_info(const struct session *s, struct json j)
{
	json_set_text(j, "name", "snap");
	json_set_text(j, "title", "snap: clones, save points and a sandbox for this project");
	json_set_text(j, "version", s->options->version);
}

struct json response_begin(const struct session *s, struct rpc_answer *a, struct json request,
			   bool modern)
{
	struct json result = rpc_result(a, request);

	if (!modern)
		return result;
	json_set_text(result, "resultType", "complete");
	response_server_info(s, json_set_object(json_set_object(result, "_meta"),
						"io.modelcontextprotocol/serverInfo"));
	return result;
}

int response_error(struct session *s, struct json request, int code, const char *sentence,
		   struct err *err)
{
	CLEANUP(rpc_answer_done) struct rpc_answer a = { 0 };

	rpc_error(&a, request, code, sentence);
	return rpc_append(&a, s->out, err);
}

int response_no_resource(struct session *s, const struct rpc_message *m, bool modern,
			 const char *sentence, struct err *err)
{
	CLEANUP(rpc_answer_done) struct rpc_answer a = { 0 };
	struct json error =
	    rpc_error(&a, m->top, modern ? RPC_INVALID_PARAMS : RPC_NO_RESOURCE, sentence);

	json_set_value(json_set_object(error, "data"), "uri", m->params, "uri");
	return rpc_append(&a, s->out, err);
}
