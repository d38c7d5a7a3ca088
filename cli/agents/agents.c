#include "cli/agents/agents.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/json.h"
#include "base/path.h"
#include "base/sys.h"
#include "cli/agents/jsonc.h"
#include "cli/agents/toml.h"

#define ENTRY    "snap" /* our name in every list */
#define FILE_MAX ((size_t)64 << 20)
#define BACKUP   ".before-snap"

const struct agent agents[] = {
	{ "claude-code", "Claude Code", "claude", ".claude", ".claude.json", AGENT_JSON_STDIO,
	  "mcpServers" },
	{ "codex", "Codex", "codex", ".codex", ".codex/config.toml", AGENT_TOML,
	  "mcp_servers." ENTRY },
	{ "gemini", "Gemini CLI", "gemini", ".gemini", ".gemini/settings.json", AGENT_JSON,
	  "mcpServers" },
	{ "cursor", "Cursor", "cursor", ".cursor", ".cursor/mcp.json", AGENT_JSON, "mcpServers" },
	{ "vscode", "Visual Studio Code", "code", ".config/Code", ".config/Code/User/mcp.json",
	  AGENT_JSON_STDIO, "servers" },
	{ "windsurf", "Windsurf", "windsurf", ".codeium/windsurf",
	  ".codeium/windsurf/mcp_config.json", AGENT_JSON, "mcpServers" },
	{ "zed", "Zed", "zed", ".config/zed", ".config/zed/settings.json", AGENT_JSON,
	  "context_servers" },
	{ "opencode", "opencode", "opencode", ".config/opencode", ".config/opencode/opencode.json",
	  AGENT_JSON_LOCAL, "mcp" },
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

/* Below the home directory, or for what is in ".config" below $XDG_CONFIG_HOME. */
static char *below_home(const char *path)
{
	const char *home = getenv("HOME"), *config = getenv("XDG_CONFIG_HOME");

	if (config && *config == '/' && strncmp(path, ".config/", 8) == 0)
		return path_join(config, path + 8);
	return home && *home == '/' ? path_join(home, path) : NULL;
}

/* An owned path, without symlinks if there is such a file: what a link leads to is changed, not the link. */
static int find_file(const struct agent *a, char **ret, struct err *err)
{
	AUTO_FREE char *path = below_home(a->file);
	char *real;

	if (!path)
		return err_set(err, -ENOENT,
			       "$HOME is not set, so nobody knows where %s keeps '%s'", a->title,
			       a->file);
	real = realpath(path, NULL);
	if (!real && errno != ENOENT)
		return err_sys(err, "'%s'", path);
	*ret = real ? real : TAKE_PTR(path);
	return 0;
}

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
	AUTO_FREE char *mark = below_home(a->mark);

	return (a->program && is_on_path(a->program)) || (mark && access(mark, F_OK) == 0);
}

/* A file that is not there is empty. */
static int read_text(const char *file, struct buf *ret, bool *ret_there, struct err *err)
{
	int r = fdio_read_file(AT_FDCWD, file, FILE_MAX, ret, err);

	*ret_there = r >= 0;
	return r == -ENOENT ? 0 : r;
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

/* TOML's strings and lists of strings are written as those of JSON are. */
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

static int entry_of(const struct agent *a, const char *const *args, struct buf *ret,
		    struct err *err)
{
	char link[PATH_MAX];
	const char *exe = sys_self_path(link, sizeof(link));
	AUTO_FREE char *self = exe ? realpath(exe, NULL) : NULL;

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

static bool is_same(const struct buf *a, const struct buf *b)
{
	return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
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
	r = find_file(a, &ret->file, err);
	if (r < 0)
		return r;
	r = entry_of(a, args, &entry, err);
	if (r < 0)
		return r;
	/* One that cannot be read or understood has nothing of ours in it, as far as anybody can see. */
	if (read_text(ret->file, &text, &there, &why) >= 0)
		ret->set_up = has_entry(a, &text);
	if (ret->set_up)
		ret->same = change_text(a, &text, (const char *)entry.data, &after, &why) >= 0 &&
			    is_same(&text, &after);
	return describe(a, &entry, &ret->text, err);
}

/* --- changing --------------------------------------------------------------------------- */

static int write_file(const char *file, const struct buf *text, mode_t mode, struct err *err)
{
	return fdio_replace_file(AT_FDCWD, file, text->data, text->len, mode, err);
}

static int make_folder(const char *file, struct err *err)
{
	AUTO_FREE char *dir = strdup(file);
	char *end = dir ? strrchr(dir, '/') : NULL;

	if (!end)
		return err_nomem(err);
	*end = '\0';
	return path_make_dirs(dir, 0700, err);
}

/* Keep what is there, then put the new text in its place. */
static int replace(const char *file, const struct buf *was, const struct buf *text, bool there,
		   char **ret_backup, struct err *err)
{
	AUTO_FREE char *backup = NULL;
	mode_t mode = 0600;
	struct stat st;
	int r;

	if (!there) {
		r = make_folder(file, err);
		return r < 0 ? r : write_file(file, text, mode, err);
	}
	if (stat(file, &st) < 0)
		return err_sys(err, "'%s'", file);
	mode = st.st_mode & 0777;
	if (asprintf(&backup, "%s" BACKUP, file) < 0) {
		backup = NULL;
		return err_nomem(err);
	}
	r = write_file(backup, was, mode, err);
	if (r >= 0)
		r = write_file(file, text, mode, err);
	if (r < 0)
		return r;
	*ret_backup = TAKE_PTR(backup);
	return 0;
}

int agent_change(const struct agent *a, const char *const *args, bool dry_run, char **ret_file,
		 char **ret_backup, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT, entry = BUF_INIT, after = BUF_INIT;
	bool there;
	int r;

	*ret_backup = NULL;
	r = find_file(a, ret_file, err);
	if (r < 0)
		return r;
	r = args ? entry_of(a, args, &entry, err) : 0;
	if (r < 0)
		return r;
	r = read_text(*ret_file, &text, &there, err);
	if (r < 0)
		return r;
	r = change_text(a, &text, args ? (const char *)entry.data : NULL, &after, err);
	if (r == -ENOENT && !args)
		return 1;
	if (r < 0)
		return err_wrap(err, r, "'%s' is left as it is", *ret_file);
	if (is_same(&text, &after))
		return 1;
	return dry_run ? 0 : replace(*ret_file, &text, &after, there, ret_backup, err);
}
