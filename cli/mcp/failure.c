#include "cli/mcp/failure.h"

#include "base/cleanup.h"

void failure_set(struct json j, const char *code, const char *sentence)
{
	struct json error;

	json_set_text(j, "schema", "snap.error/1");
	error = json_set_object(j, "error");
	json_set_text(error, "code", code);
	json_set_text(error, "message", sentence);
	json_set_array(error, "hints");
	json_set_object(error, "data");
}

int failure_print(FILE *out, const char *code, const char *sentence)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };

	failure_set(json_begin(&doc), code, sentence);
	return json_print(&doc, out, NULL) < 0 ? 1 : 4;
}
