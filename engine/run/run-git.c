#include "engine/run/run-git.h"

#include <fcntl.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/path.h"

#define SETTINGS_MAX (1 << 20)
#define VALUE_MAX    256

struct identity {
	char name[VALUE_MAX], email[VALUE_MAX]; /* "": unknown */
};

static const char *skip_blanks(const char *s)
{
	return s + strspn(s, " \t");
}

/* As git reads it, without quotes, up to a comment; anything odder is left out. */
static void take_value(const char *from, char to[VALUE_MAX])
{
	char value[VALUE_MAX];
	bool quoted = false;
	size_t n = 0;

	for (const char *s = skip_blanks(from); *s != '\0'; s++) {
		if (*s == '"') {
			quoted = !quoted;
			continue;
		}
		if (!quoted && (*s == '#' || *s == ';'))
			break;
		/* No name has escapes or control bytes. */
		if (*s == '\\' || (unsigned char)*s < 32 || n + 1 >= sizeof(value))
			return;
		value[n++] = *s;
	}
	while (n > 0 && (value[n - 1] == ' ' || value[n - 1] == '\t'))
		n--;
	value[n] = '\0';
	if (!quoted && n > 0)
		memcpy(to, value, n + 1);
}

static void take_line(const char *line, bool *in_user, struct identity *ret)
{
	const char *at = skip_blanks(line);
	const size_t key = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
	const char *value = skip_blanks(at + key);

	if (*at == '[')
		*in_user = strncasecmp(at, "[user]", 6) == 0;
	if (!*in_user || *value != '=')
		return;
	if (key == 4 && strncasecmp(at, "name", 4) == 0)
		take_value(value + 1, ret->name);
	else if (key == 5 && strncasecmp(at, "email", 5) == 0)
		take_value(value + 1, ret->email);
}

/* A file that is missing or unreadable is skipped. */
static void read_settings(const char *variable, const char *below, struct identity *ret)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	const char *dir = getenv(variable);
	AUTO_FREE char *path = dir && *dir == '/' ? path_join(dir, below) : NULL;
	bool in_user = false;
	char *line, *rest;

	if (!path || fdio_read_file(AT_FDCWD, path, SETTINGS_MAX, &text, NULL) < 0 ||
	    buf_append_u8(&text, '\0') < 0)
		return;
	for (line = strtok_r((char *)text.data, "\r\n", &rest); line;
	     line = strtok_r(NULL, "\r\n", &rest))
		take_line(line, &in_user, ret);
}

int run_git_read(char **ret, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct identity who = { 0 };
	/* As with git, a later file wins. */
	read_settings("HOME", ".config/git/config", &who);
	read_settings("XDG_CONFIG_HOME", "git/config", &who);
	read_settings("HOME", ".gitconfig", &who);
	*ret = NULL;
	if (who.name[0] == '\0' && who.email[0] == '\0')
		return 0;
	if (buf_append_str(&text, "[include]\n\tpath = /etc/gitconfig\n[user]\n") < 0 ||
	    (who.name[0] != '\0' && buf_printf(&text, "\tname = \"%s\"\n", who.name) < 0) ||
	    (who.email[0] != '\0' && buf_printf(&text, "\temail = \"%s\"\n", who.email) < 0) ||
	    !buf_str(&text))
		return err_nomem(err);
	*ret = strdup(buf_str(&text));
	return *ret ? 0 : err_nomem(err);
}

struct engine_list run_git_variables(void)
{
	static const char *const variables[] = { "GIT_CONFIG_SYSTEM=" RUN_GIT_FILE };

	return (struct engine_list){ variables, ARRAY_LEN(variables) };
}

int run_git_show(struct layout *l, const char *text, struct err *err)
{
	const struct sandbox_mount m = { .kind = SANDBOX_TEXT,
					 .host = text,
					 .guest = RUN_GIT_FILE };

	return text ? layout_add(l, &m, err) : 0;
}
