#include "cli/agents/agents.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/path.h"
#include "base/sys.h"
#include "cli/agents/client-file.h"
#include "cli/agents/jsonc.h"
#include "cli/agents/toml.h"

#define ENTRY "snap" /* our name in every list */

const struct agent agents[] = {
	{ "claude-code", "Claude Code", "claude", ".claude", ".claude.json", AGENT_JSON_STDIO,
	  "mcpServers", ".claude/skills" },
	{ "codex", "Codex", "codex", ".codex", ".codex/config.toml", AGENT_TOML,
	  "mcp_servers." ENTRY, ".agents/skills" },
	{ "gemini", "Gemini CLI", "gemini", ".gemini", ".gemini/settings.json", AGENT_JSON,
	  "mcpServers", ".gemini/skills" },
	{ "cursor", "Cursor", "cursor", ".cursor", ".cursor/mcp.json", AGENT_JSON, "mcpServers",
	  ".cursor/skills" },
	{ "vscode", "Visual Studio Code", "code", ".config/Code", ".config/Code/User/mcp.json",
	  AGENT_JSON_STDIO, "servers" },
	{ "windsurf", "Windsurf", "windsurf", ".codeium/windsurf",
	  ".codeium/windsurf/mcp_config.json", AGENT_JSON, "mcpServers" },
	{ "zed", "Zed", "zed", ".config/zed", ".config/zed/settings.json", AGENT_JSON,
	  "context_servers" },
	{ "opencode", "opencode", "opencode", ".config/opencode", ".config/opencode/opencode.json",
	  AGENT_JSON_LOCAL, "mcp", ".config/opencode/skills" },
	{ "openhands", "OpenHands", "openhands", ".openhands", ".openhands/mcp.json", AGENT_JSON,
	  "mcpServers" },
	{ 0 },
};

int agent_find(const char *name, const struct agent **ret, struct err *err)
{
	CLEANUP(buf_done) struct buf names = BUF_INIT;

	for (const struct agent *a = agents; a->name; a++) {
		if (strcmp(a->name, name) == 0) {
			*ret = a;
			return 0;
		}
		if (buf_append_str(&names, a == agents ? "" : ", ") < 0 ||
		    buf_append_str(&names, a->name) < 0)
			return err_nomem(err);
	}
	return err_set(err, -ENOENT, "there is no agent '%s'; there are %s", name, buf_str(&names));
}

void agent_state_done(struct agent_state *s)
{
	free(s->file);
	free(s->text);
}

/* --- where things are ------------------------------------------------------------------- */

static bool is_on_path(const char *program)
{
	const char *at = getenv("PATH");

	while (at && *at != '\0') {
		const size_t n = strcspn(at, ":");
		char file[PATH_MAX];

		if (n > 0 &&
		    snprintf(file, sizeof(file), "%.*s/%s", (int)n, at, program) <
			(int)sizeof(file) &&
		    access(file, X_OK) == 0)
			return true;
		at += n + (at[n] == ':');
	}
	return false;
}

static bool is_here(const struct agent *a)
{
	AUTO_FREE char *mark = client_path(a->mark);

	return (a->program && is_on_path(a->program)) || (mark && access(mark, F_OK) == 0);
}

/* --- our entry -------------------------------------------------------------------------- */

static void add_words(struct json list, const char *const *args)
{
	for (size_t i = 0; args[i]; i++)
		json_add_text(list, args[i]);
}

/* As one line of JSON, with blanks where people put them. */
static int entry_json(const struct agent *a, const char *self, const char *const *args,
		      struct buf *ret, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	const struct json j = json_begin(&doc);
	struct json words;
	int r;

	if (a->form == AGENT_JSON_STDIO)
		json_set_text(j, "type", "stdio");
	if (a->form == AGENT_JSON_LOCAL) {
		json_set_text(j, "type", "local");
		words = json_set_array(j, "command");
		json_add_text(words, self);
	} else {
		json_set_text(j, "command", self);
		words = json_set_array(j, "args");
	}
	add_words(words, args);
	r = json_append(&doc, ret, err);
	if (r < 0)
		return r;
	ret->len--; /* the newline */
	return buf_append(ret, "", 1) < 0 ? err_nomem(err) : 0;
}

/* TOML writes strings and lists of strings as JSON does. */
static int entry_toml(const char *self, const char *const *args, struct buf *ret, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	const struct json j = json_begin(&doc);
	struct json command = json_set_array(j, "command"), words = json_set_array(j, "args");
	const char *text;
	int r = 0;

	json_add_text(command, self);
	add_words(words, args);
	text = json_text_of(command);
	if (!text || !json_text_of(words))
		return err_nomem(err);
	/* ["x"] is a list, and "x" what stands in it. */
	r |= buf_append_str(ret, "command = ");
	r |= buf_append(ret, text + 1, strlen(text) - 2);
	r |= buf_append_str(ret, "\nargs = ");
	r |= buf_append_str(ret, json_text_of(words));
	r |= buf_append(ret, "\n", 2);
	return r < 0 ? err_nomem(err) : 0;
}

char *agent_self(void)
{
	char link[PATH_MAX];
	const char *exe = sys_self_path(link, sizeof(link));

	return exe ? realpath(exe, NULL) : NULL;
}

static int entry_of(const struct agent *a, const char *const *args, struct buf *ret,
		    struct err *err)
{
	AUTO_FREE char *self = agent_self();

	if (!self)
		return err_set(err, -ENOENT, "nobody knows where this program is");
	return a->form == AGENT_TOML ? entry_toml(self, args, ret, err)
				     : entry_json(a, self, args, ret, err);
}

/* The file as it would be with our entry; `entry` NULL: without it, -ENOENT if it is not there. */
static int change_text(const struct agent *a, const struct buf *text, const char *entry,
		       struct buf *ret, struct err *err)
{
	const char *bytes = text->len > 0 ? (const char *)text->data : "";

	if (a->form == AGENT_TOML)
		return entry ? toml_set(bytes, text->len, a->list, entry, ret, err)
			     : toml_remove(bytes, text->len, a->list, ret, err);
	return entry ? jsonc_set(bytes, text->len, a->list, ENTRY, entry, ret, err)
		     : jsonc_remove(bytes, text->len, a->list, ENTRY, ret, err);
}

static bool has_entry(const struct agent *a, const struct buf *text)
{
	const char *bytes = text->len > 0 ? (const char *)text->data : "";
	struct jsonc_span unused;

	return a->form == AGENT_TOML
		   ? toml_has(bytes, text->len, a->list)
		   : jsonc_find(bytes, text->len, a->list, ENTRY, &unused, NULL) == 0;
}

/* Is the first absolute path in our entry a program?  Other entries do not count. */
static bool names_program(const struct agent *a, const struct buf *text)
{
	const char *bytes = (const char *)text->data;
	struct jsonc_span at = { 0, text->len };
	AUTO_FREE char *entry = NULL;
	char *path, *end;

	if (a->form != AGENT_TOML && jsonc_find(bytes, text->len, a->list, ENTRY, &at, NULL) < 0)
		return true;
	entry = strndup(bytes + at.from, at.to - at.from);
	path = entry && a->form == AGENT_TOML ? strstr(entry, "["
							      "mcp_servers." ENTRY "]")
					      : entry;
	path = path ? strstr(path, "\"/") : NULL;
	end = path ? strchr(path + 1, '"') : NULL;
	if (!end)
		return true;
	*end = '\0';
	return access(path + 1, X_OK) == 0;
}

/* What somebody would type into an empty file. */
static int describe(const struct agent *a, const struct buf *entry, char **ret, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	const struct buf nothing = BUF_INIT;
	int r = change_text(a, &nothing, (const char *)entry->data, &text, err);

	if (r < 0)
		return r;
	*ret = strndup((const char *)text.data, text.len);
	return *ret ? 0 : err_nomem(err);
}

int agent_look(const struct agent *a, const char *const *args, struct agent_state *ret,
	       struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT, entry = BUF_INIT, after = BUF_INIT;
	struct err why = { 0 };
	bool there;
	int r;

	ret->found = is_here(a);
	r = client_find(a->title, a->file, &ret->file, err);
	if (r < 0)
		return r;
	r = entry_of(a, args, &entry, err);
	if (r < 0)
		return r;
	/* One that cannot be read or understood has nothing of ours in it, as far as anybody can see. */
	if (client_read(ret->file, &text, &there, &why) >= 0)
		ret->set_up = has_entry(a, &text);
	if (ret->set_up)
		ret->starts = names_program(a, &text);
	if (ret->set_up)
		ret->same = change_text(a, &text, (const char *)entry.data, &after, &why) >= 0 &&
			    client_same_text(&text, &after);
	return describe(a, &entry, &ret->text, err);
}

/* --- changing --------------------------------------------------------------------------- */

struct entering {
	const struct agent *agent;
	const char *entry; /* NULL: it is taken out */
};

static int enter(const struct buf *text, void *ctx, struct buf *ret, struct err *err)
{
	const struct entering *e = ctx;

	return change_text(e->agent, text, e->entry, ret, err);
}

int agent_change(const struct agent *a, const char *const *args, bool dry_run, char **ret_file,
		 char **ret_backup, struct err *err)
{
	CLEANUP(buf_done) struct buf entry = BUF_INIT;
	struct entering e = { .agent = a };
	const struct client_edit edit = {
		.title = a->title, .path = a->file, .fn = enter, .ctx = &e, .dry_run = dry_run
	};
	int r = args ? entry_of(a, args, &entry, err) : 0;

	if (r < 0)
		return r;
	e.entry = args ? (const char *)entry.data : NULL;
	return client_change(&edit, ret_file, ret_backup, err);
}
