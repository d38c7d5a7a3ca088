#include "cli/agents/hooks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/vec.h"
#include "cli/agents/client-file.h"
#include "cli/agents/jsonc.h"

#define MARK       " agents hook " /* what no other hook has in its command */
#define OBJECT     "hooks"
#define EVENTS_MAX 3

enum form {
	FORM_GROUPS, /* {"matcher": ..., "hooks": [{"type": "command", "command": ..., "timeout": ...}]} */
	FORM_FLAT, /* {"command": ..., "matcher": ...} */
};

static const struct client {
	const char *name, *file;
	enum form form;
	const char *empty; /* what a file must have besides; NULL: nothing */
	uint64_t timeout;  /* in the client's own unit: a minute */
	struct {
		const char *event, *tools; /* commands and edits; NULL: it has to do with no tool */
	} events[EVENTS_MAX];
} clients[] = {
	{ "claude-code",
	  ".claude/settings.json",
	  FORM_GROUPS,
	  NULL,
	  60,
	  { { "UserPromptSubmit", NULL },
	    { "PreToolUse", "Bash|Edit|MultiEdit|Write|NotebookEdit" },
	    { "PostToolUse", "Bash|Edit|MultiEdit|Write|NotebookEdit" } } },
	{ "codex",
	  ".codex/hooks.json",
	  FORM_GROUPS,
	  NULL,
	  60,
	  { { "UserPromptSubmit", NULL },
	    { "PreToolUse", "Bash|apply_patch" },
	    { "PostToolUse", "Bash|apply_patch" } } },
	{ "gemini",
	  ".gemini/settings.json",
	  FORM_GROUPS,
	  NULL,
	  60000,
	  { { "BeforeAgent", NULL },
	    { "BeforeTool", "run_shell_command|write_file|replace" },
	    { "AfterTool", "run_shell_command|write_file|replace" } } },
	{ "cursor",
	  ".cursor/hooks.json",
	  FORM_FLAT,
	  "{\n  \"version\": 1\n}\n",
	  0,
	  { { "beforeSubmitPrompt", NULL },
	    { "preToolUse", "Shell|Write|Edit|StrReplace|Delete" },
	    { "postToolUse", "Shell|Write|Edit|StrReplace|Delete" } } },
};

static const struct client *find_client(const struct agent *a)
{
	return VEC_FIND(one, clients, ARRAY_LEN(clients), strcmp(one->name, a->name) == 0);
}

bool hooks_known(const struct agent *a)
{
	return find_client(a) != NULL;
}

/* --- our element of an event's list ----------------------------------------------------- */

/* A word of a shell's: as it is, or in quotes. */
static int append_word(struct buf *to, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "/._-+,:@%";
	int r;

	if (*word != '\0' && word[strspn(word, plain)] == '\0')
		return buf_append_str(to, word);
	r = buf_append_str(to, "'");
	for (; r >= 0 && *word != '\0'; word++)
		r = *word == '\'' ? buf_append_str(to, "'\\''") : buf_append(to, word, 1);
	return r < 0 ? r : buf_append_str(to, "'");
}

static int make_command(const struct client *c, const char *store, struct buf *ret, struct err *err)
{
	AUTO_FREE char *self = agent_self();

	if (!self)
		return err_set(err, -ENOENT, "nobody knows where this program is");
	if (append_word(ret, self) < 0 ||
	    (store && (buf_append_str(ret, " --store ") < 0 || append_word(ret, store) < 0)) ||
	    buf_append_str(ret, MARK) < 0 || buf_append_str(ret, c->name) < 0 ||
	    buf_append(ret, "", 1) < 0)
		return err_nomem(err);
	return 0;
}

static int make_element(const struct client *c, size_t event, const char *command, struct buf *ret,
			struct err *err)
{
	const char *tools = c->events[event].tools;
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = json_begin(&doc);
	int r;

	if (tools)
		json_set_text(j, "matcher", tools);
	if (c->form == FORM_GROUPS) {
		j = json_add_object(json_set_array(j, "hooks"));
		json_set_text(j, "type", "command");
	}
	json_set_text(j, "command", command);
	if (c->timeout > 0)
		json_set_uint(j, "timeout", c->timeout);
	r = json_append(&doc, ret, err);
	if (r < 0)
		return r;
	ret->len--; /* the newline */
	return buf_append(ret, "", 1) < 0 ? err_nomem(err) : 0;
}

/* --- the file --------------------------------------------------------------------------- */

struct hooking {
	const struct client *client;
	const char *command; /* NULL: ours are taken out */
};

/* One event's list; `from` and `to` change places from event to event. */
static int edit_event(const struct hooking *h, size_t event, const struct buf *from, struct buf *to,
		      struct err *err)
{
	CLEANUP(buf_done) struct buf element = BUF_INIT;
	const char *name = h->client->events[event].event;
	const char *text = from->len > 0 ? (const char *)from->data : "";
	char mark[64];
	int r;

	snprintf(mark, sizeof(mark), MARK "%s", h->client->name);
	if (!h->command)
		return jsonc_list_remove(text, from->len, OBJECT, name, mark, to, err);
	r = make_element(h->client, event, h->command, &element, err);
	return r < 0 ? r
		     : jsonc_list_set(text, from->len, OBJECT, name, mark,
				      (const char *)element.data, to, err);
}

static int begin_text(const struct hooking *h, const struct buf *text, struct buf *ret)
{
	if (text->len == 0 && h->command && h->client->empty)
		return buf_append_str(ret, h->client->empty);
	return text->len > 0 ? buf_append(ret, text->data, text->len) : 0;
}

/* The text before and after an event, in turn. */
struct work {
	struct buf buf[2];
};

static void work_done(struct work *w)
{
	buf_done(&w->buf[0]);
	buf_done(&w->buf[1]);
}

static int edit(const struct buf *text, void *ctx, struct buf *ret, struct err *err)
{
	CLEANUP(work_done) struct work work = { .buf = { BUF_INIT, BUF_INIT } };
	const struct hooking *h = ctx;
	bool changed = false;
	size_t now = 0;
	int r;

	if (begin_text(h, text, &work.buf[0]) < 0)
		return err_nomem(err);
	for (size_t i = 0; i < EVENTS_MAX; i++) {
		work.buf[!now].len = 0;
		r = edit_event(h, i, &work.buf[now], &work.buf[!now], err);
		if (r == -ENOENT)
			continue;
		if (r < 0)
			return r;
		changed = true;
		now = !now;
	}
	if (!changed)
		return -ENOENT;
	return buf_append(ret, work.buf[now].data, work.buf[now].len) < 0 ? err_nomem(err) : 0;
}

int hooks_change(const struct agent *a, bool add, const char *store, bool dry_run, bool no_backup,
		 char **ret_file, char **ret_backup, struct err *err)
{
	CLEANUP(buf_done) struct buf command = BUF_INIT;
	struct hooking h = { .client = find_client(a) };
	struct client_edit how = {
		.title = a->title, .fn = edit, .ctx = &h, .dry_run = dry_run, .no_backup = no_backup
	};
	int r;

	if (!h.client && !add)
		return 1;
	if (!h.client)
		return err_set(err, -ENOTSUP, "%s has no hooks that snap knows", a->title);
	if (add) {
		r = make_command(h.client, store, &command, err);
		if (r < 0)
			return r;
		h.command = (const char *)command.data;
	}
	how.path = h.client->file;
	return client_change(&how, ret_file, ret_backup, err);
}

bool hooks_there(const struct agent *a)
{
	const struct client *c = find_client(a);
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	AUTO_FREE char *file = NULL;
	struct err why = { 0 };
	bool there;

	return c && client_find(a->title, c->file, &file, &why) >= 0 &&
	       client_read(file, &text, &there, &why) >= 0 && text.len > 0 &&
	       memmem(text.data, text.len, MARK, strlen(MARK)) != NULL;
}
