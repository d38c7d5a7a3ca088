/*
 * resource.h - things that an agent can read by an address: snap://clones, snap://clone/NAME/diff,
 * ...
 *
 * An address stands for the call of a tool that only reads, with arguments from the address.
 */
#pragma once

#include "base/json.h"
#include "cli/mcp/tool.h"

/* Those with a fixed address, and those with a part in braces, as their lists have them. */
void resource_list(struct json list);
void resource_list_templates(struct json list);

/*
 * The tool that an address stands for, and its arguments, put into `args`.  NULL: there is none at
 * that address.
 */
const struct tool *resource_find(const char *uri, struct json args);
