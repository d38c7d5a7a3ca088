#include "cli/mcp/record.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/mcp/mask.h"
#include "cli/mcp/progress.h"

#define META_CLIENT "io.modelcontextprotocol/clientInfo"
#define TEXT_SHOWN  400                /* bytes of an argument */
#define LIST_SHOWN  24                 /* elements of one */
#define CLONE_MAX   255                /* bytes of a name that can be a clone's */
#define RECORD_MAX  ((size_t)12 << 10) /* bytes; the log takes no line above 16 KiB */

/* --- the client ------------------------------------------------------------------------- */

static void copy_text(struct json j, const char *key, char *to, size_t size)
{
	const char *text = json_text_if(j, key);

	snprintf(to, size, "%s", text ? text : "");
}

static void read_client(struct json info, struct client_info *ret)
{
	copy_text(info, "name", ret->name, sizeof(ret->name));
	copy_text(info, "version", ret->version, sizeof(ret->version));
}

void record_client(struct session *s, const struct rpc_message *initialize)
{
	read_client(json_object_if(initialize->params, "clientInfo"), &s->client);
}

static struct client_info find_client(const struct session *s, const struct pending_call *p)
{
	struct client_info client = s->client;

	if (p->modern)
		read_client(json_object_if(rpc_meta(&p->message), META_CLIENT), &client);
	return client;
}

void record_via(const struct session *s, const struct pending_call *p, char *text, size_t size)
{
	const struct client_info client = find_client(s, p);

	snprintf(text, size, "agent%s%s", *client.name != '\0' ? ":" : "", client.name);
}

static void set_client(struct json j, const struct session *s, const struct pending_call *p)
{
	const struct client_info client = find_client(s, p);

	json_set_text(j, "client", *client.name != '\0' ? client.name : NULL);
	json_set_text(j, "version", *client.version != '\0' ? client.version : NULL);
}

/* --- arguments -------------------------------------------------------------------------- */

/* The beginning of a text, not cut within a character. */
static size_t shown_length(const char *text)
{
	size_t n = strlen(text);

	if (n <= TEXT_SHOWN)
		return n;
	for (n = TEXT_SHOWN; n > 0 && (text[n] & 0xc0) == 0x80; n--)
		continue;
	return n;
}

/* A value that stands alone behind the word that names it, as in `--password VALUE`. */
static bool is_value_of(const char *before)
{
	return before && *before == '-' && !strchr(before, '=') && mask_is_secret_name(before);
}

static void set_list(struct json j, const char *key, struct json list)
{
	const struct json to = json_set_array(j, key);
	const char *before = NULL;

	for (size_t i = 0; i < json_length(list) && i < LIST_SHOWN; i++) {
		const char *word = json_at_text(list, i);
		AUTO_FREE char *masked = word ? mask_text(word) : NULL;

		if (is_value_of(before))
			json_add_text(to, "***");
		else if (masked)
			json_add_text_len(to, masked, shown_length(masked));
		before = word;
	}
}

static void set_text(struct json j, const char *key, const char *text)
{
	AUTO_FREE char *masked = mask_text(text);

	if (masked)
		json_set_text_len(j, key, masked, shown_length(masked));
}

static bool is_content(const char *name)
{
	return strcmp(name, "content") == 0 || strcmp(name, "old") == 0 || strcmp(name, "new") == 0;
}

static void set_argument(struct json j, const char *name, struct json args)
{
	char count[48];

	switch (json_kind(args, name)) {
	case JSON_TEXT:
		if (!is_content(name)) {
			set_text(j, name, json_get_text(args, name));
			break;
		}
		snprintf(count, sizeof(count), "(%zu bytes)", strlen(json_get_text(args, name)));
		json_set_text(j, name, count);
		break;
	case JSON_ARRAY:
		set_list(j, name, json_get_array(args, name));
		break;
	case JSON_BOOL:
	case JSON_INT:
		json_set_value(j, name, args, name);
		break;
	case JSON_MISSING:
	case JSON_DOUBLE:
	case JSON_OBJECT:
		break; /* no parameter is one */
	}
}

/* --- the record ------------------------------------------------------------------------- */

/* The code of a failure, which the command printed. */
static void set_code(struct json j, const struct pending_call *p)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	const struct buf *out = &p->call.child.out;
	struct json said;
	size_t len = out->len;

	while (len > 0 && out->data[len - 1] == '\n')
		len--;
	if (len == 0 || json_parse(&doc, (const char *)out->data, len, &said, NULL) < 0)
		return;
	json_set_value(j, "code", json_object_if(said, "error"), "code");
}

void record_call(const struct session *s, const struct pending_call *p, const char *outcome)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	const struct json j = json_begin(&doc);
	const char *clone = json_text_if(p->args, "clone");
	const int status = p->call.child.status;
	const bool is_run = *p->call.run != '\0' && *p->call.run != JOB_EXPERIMENT;
	const char *text;
	struct json args;

	/* A client that polls a task does not fill the log. */
	if (!s->options->record || !p->tool || p->is_resource || p->task == TASK_GET ||
	    p->task == TASK_UPDATE)
		return;
	set_client(j, s, p);
	json_set_text(j, "tool", p->tool->name);
	args = json_set_object(j, "arguments");
	for (const struct tool_param *at = p->tool->params; at->name; at++)
		set_argument(args, at->name, p->args);
	json_set_text(j, "outcome", outcome ? outcome : status == 0 ? "ok" : "failed");
	if (!outcome) {
		json_set_int(j, "status", status);
		if (status != 0)
			set_code(j, p);
	}
	json_set_uint(j, "ms", clock_ms() - p->began_ms);
	text = json_text_of(j);
	if (text && strlen(text) > RECORD_MAX) {
		/* The call counts, and nobody keeps it out of the log by what it says. */
		json_set_bool(json_set_object(j, "arguments"), "cut", true);
		text = json_text_of(j);
	}
	if (clone && (strcmp(clone, ".") == 0 || strlen(clone) > CLONE_MAX))
		clone = NULL;
	s->options->record(text, clone, is_run ? p->call.run : NULL, s->options->ctx);
}
