#include "cli/mcp/resource.h"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/hex.h"

static const struct {
	const char *uri; /* {name} is an argument up to the next '/', {+name} up to the end */
	const char *tool;
	const char *name, *description;
} resources[] = {
	{ "snap://clones", "snap_list", "clones", "The clones of this project." },
	{ "snap://snapshots", "snap_log", "snapshots", "The snapshots of the project." },
	{ "snap://status", "snap_status", "status", "What changed in the project." },
	{ "snap://clone/{clone}/status", "snap_status", "clone status",
	  "What changed in a clone, and how far it is behind the project." },
	{ "snap://clone/{clone}/snapshots", "snap_log", "clone snapshots",
	  "The snapshots of a clone." },
	{ "snap://clone/{from}/diff", "snap_diff", "clone diff",
	  "What a clone changed, as a patch." },
	{ "snap://clone/{clone}/tree/{+path}", "snap_read", "clone tree",
	  "A file or a directory of a clone." },
	{ "snap://experiments", "snap_experiment_show", "experiments",
	  "The experiments of this project." },
	{ "snap://experiment/{experiment}", "snap_experiment_show", "experiment",
	  "An experiment, its arms and what came of them." },
	{ "snap://run/{run}/log", "snap_logs", "run log", "The end of what a run wrote." },
};

static void describe(size_t i, struct json j, const char *key)
{
	json_set_text(j, key, resources[i].uri);
	json_set_text(j, "name", resources[i].name);
	json_set_text(j, "description", resources[i].description);
	json_set_text(j, "mimeType", "application/json");
}

void resource_list(struct json list)
{
	for (size_t i = 0; i < ARRAY_LEN(resources); i++)
		if (!strchr(resources[i].uri, '{'))
			describe(i, json_add_object(list), "uri");
}

void resource_list_templates(struct json list)
{
	for (size_t i = 0; i < ARRAY_LEN(resources); i++)
		if (strchr(resources[i].uri, '{'))
			describe(i, json_add_object(list), "uriTemplate");
}

/* --- taking an address apart ------------------------------------------------------------ */

/* The bytes that %NN and the rest stand for; false if that is no text. */
static bool decode(const char *text, size_t len, struct buf *ret)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char byte = (unsigned char)text[i];

		if (byte == '%' &&
		    (i + 2 >= len || hex_decode(text + i + 1, 2, &byte, 1) < 0 || byte == '\0'))
			return false;
		if (text[i] == '%')
			i += 2;
		if (buf_append_u8(ret, byte) < 0)
			return false;
	}
	return true;
}

/* Takes the argument at {name} of the pattern; returns how long it is in the address, or -1. */
static ssize_t take_argument(const char *pattern, size_t name_len, const char *at, struct json args)
{
	CLEANUP(buf_done) struct buf name = BUF_INIT, value = BUF_INIT;
	const bool to_end = pattern[1] == '+';
	const size_t len = to_end ? strlen(at) : strcspn(at, "/");

	if (buf_append(&name, pattern + 1 + to_end, name_len - 2 - to_end) < 0 || !buf_str(&name) ||
	    !decode(at, len, &value) || !buf_str(&value) || (len == 0 && !to_end))
		return -1;
	json_set_text(args, buf_str(&name), buf_str(&value));
	return (ssize_t)len;
}

static bool match(const char *pattern, const char *uri, struct json args)
{
	while (*pattern != '\0') {
		const size_t len = *pattern == '{' ? strcspn(pattern, "}") + 1 : 1;
		const ssize_t n = *pattern == '{'    ? take_argument(pattern, len, uri, args)
				  : *pattern == *uri ? 1
						     : -1;

		if (n < 0)
			return false;
		pattern += len;
		uri += n;
	}
	return *uri == '\0';
}

const struct tool *resource_find(const char *uri, struct json args)
{
	for (size_t i = 0; i < ARRAY_LEN(resources); i++) {
		CLEANUP(json_done) struct json_doc trial = { 0 };

		if (!match(resources[i].uri, uri, json_begin(&trial)))
			continue;
		return match(resources[i].uri, uri, args) ? tool_find(resources[i].tool) : NULL;
	}
	return NULL;
}
