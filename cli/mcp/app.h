/*
 * app.h - pages that a client can show beside the answer of a tool (MCP Apps).
 *
 * A tool names its page by an address. The client reads the page there, shows it in a frame of its
 * own, and passes it the tool's answer.
 */
#pragma once

#include "base/json.h"

#define APP_EXTENSION  "io.modelcontextprotocol/ui"
#define APP_TYPE       "text/html;profile=mcp-app"
#define APP_EXPERIMENT "ui://snap/experiment"

/* The page of experiments: web/app.html, which the build puts here as it is. */
extern const unsigned char app_experiment[];
extern const size_t app_experiment_len;

/* The pages, as the list of resources has them. */
void app_list(struct json list);

/* Fill in the content of the page at that address; false: there is none. */
bool app_read(const char *uri, struct json content);
