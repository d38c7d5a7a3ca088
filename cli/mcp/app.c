#include "cli/mcp/app.h"

#include <string.h>

void app_list(struct json list)
{
	struct json j = json_add_object(list);

	json_set_text(j, "uri", APP_EXPERIMENT);
	json_set_text(j, "name", "experiment page");
	json_set_text(j, "description", "Shows an experiment, its arms and their scores.");
	json_set_text(j, "mimeType", APP_TYPE);
}

bool app_read(const char *uri, struct json content)
{
	if (strcmp(uri, APP_EXPERIMENT) != 0)
		return false;
	json_set_text(content, "uri", APP_EXPERIMENT);
	json_set_text(content, "mimeType", APP_TYPE);
	json_set_text_len(content, "text", (const char *)app_experiment, app_experiment_len);
	return true;
}
