#include "cli/mcp/era.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/mcp/answer.h"
#include "cli/mcp/record.h"
#include "cli/mcp/response.h"

#define META_CAPABLE "io.modelcontextprotocol/clientCapabilities"

/* The newest first: it is what a client gets that asks for one we do not know. */
static const char *const legacy_versions[] = { "2025-11-25", "2025-06-18", "2025-03-26",
					       "2024-11-05" };

static const char *find_legacy(const char *version)
{
	for (size_t i = 0; i < ARRAY_LEN(legacy_versions); i++)
		if (strcmp(version, legacy_versions[i]) == 0)
			return legacy_versions[i];
	return NULL;
}

bool era_is_legacy(const char *version)
{
	return find_legacy(version) != NULL;
}

static int reject_version(struct session *s, const struct rpc_message *m, const char *asked,
			  struct err *err)
{
	CLEANUP(rpc_answer_done) struct rpc_answer a = { 0 };
	struct json data = json_set_object(
	    rpc_error(&a, m->top, RPC_NO_VERSION, "unsupported protocol version"), "data");

	json_add_text(json_set_array(data, "supported"), MCP_VERSION);
	json_set_text(data, "requested", asked);
	return rpc_append(&a, s->out, err);
}

int era_choose(struct session *s, const struct rpc_message *m, struct err *err)
{
	const struct json meta = rpc_meta(m);
	const char *version = json_text_if(meta, META_VERSION);
	int r;

	if (version && strcmp(version, MCP_VERSION) != 0) {
		r = reject_version(s, m, version, err);
		return r < 0 ? r : -ECANCELED;
	}
	if (version && json_kind(meta, META_CAPABLE) == JSON_OBJECT)
		return 1;
	if (!version && !s->modern_only &&
	    (s->legacy || strcmp(m->method, "initialize") == 0 || strcmp(m->method, "ping") == 0))
		return 0;
	r = response_error(s, m->top, RPC_INVALID_PARAMS,
			   version ? "'_meta' lacks '" META_CAPABLE "'"
				   : "'_meta' lacks '" META_VERSION
				     "', and no 'initialize' came before",
			   err);
	return r < 0 ? r : -ECANCELED;
}

int era_initialize(struct session *s, const struct rpc_message *m, struct err *err)
{
	CLEANUP(rpc_answer_done) struct rpc_answer a = { 0 };
	const char *asked = json_text_if(m->params, "protocolVersion");
	struct json result, info;

	s->legacy = asked ? find_legacy(asked) : NULL;
	if (!s->legacy)
		s->legacy = legacy_versions[0];
	record_client(s, m);
	s->legacy_can_ask =
	    json_kind(m->params, "capabilities") == JSON_OBJECT &&
	    json_kind(json_get_object(m->params, "capabilities"), "elicitation") == JSON_OBJECT;
	result = rpc_result(&a, m->top);
	json_set_text(result, "protocolVersion", s->legacy);
	answer_capabilities(s, json_set_object(result, "capabilities"));
	info = json_set_object(result, "serverInfo");
	response_server_info(s, info);
	json_set_text(result, "instructions", MCP_INSTRUCTIONS);
	return rpc_append(&a, s->out, err);
}
