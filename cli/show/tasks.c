#include "cli/show/tasks.h"

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
#include "base/vec.h"
#include "engine/api/events.h"
#include "engine/api/settings.h"

#define FILE_MAX  ((size_t)1 << 20)
#define NAME_MAX_ 64
#define TASKS_MAX 256

#define NAME_BYTES "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-"

void tasks_done(struct tasks *t)
{
	for (size_t i = 0; i < t->n; i++) {
		free(t->list[i].name);
		free(t->list[i].line);
	}
	free(t->list);
}

const struct task *tasks_find(const struct tasks *t, const char *name)
{
	return VEC_FIND(it, t->list, t->n, strcmp(it->name, name) == 0);
}

static bool is_name(const char *name, size_t len)
{
	return len > 0 && len <= NAME_MAX_ && name[0] != '.' && name[0] != '-' &&
	       strspn(name, NAME_BYTES) >= len;
}

/* What has a name that nobody can type, or that is taken, is left out.  `line`: printf's, for the name. */
static int add(struct tasks *t, const char *source, const char *name, size_t len, const char *line,
	       struct err *err)
{
	struct task one = { .source = source };

	if (!is_name(name, len) || t->n >= TASKS_MAX)
		return 0;
	one.name = strndup(name, len);
	one.line = strdup(line);
	if (!one.name || !one.line || !VEC_ROOM(t->list, t->n, t->cap)) {
		free(one.name);
		free(one.line);
		return err_nomem(err);
	}
	if (tasks_find(t, one.name)) {
		free(one.name);
		free(one.line);
		return 0;
	}
	t->list[t->n++] = one;
	return 0;
}

/* --- the project's files ---------------------------------------------------------------- */

struct place {
	const char *dir;
	struct tasks *tasks;
	struct err *err;
};

static bool has_file(const struct place *p, const char *name)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/%s", p->dir, name) < (int)sizeof(path) &&
	       access(path, F_OK) == 0;
}

/* False: it is not there, or cannot be read.  The text ends with a NUL. */
static bool read_text(const struct place *p, const char *name, struct buf *ret)
{
	AUTO_CLOSE int dir = open(p->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct err why = { 0 };
	struct stat st;

	return dir >= 0 && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISREG(st.st_mode) && fdio_read_file(dir, name, FILE_MAX, ret, &why) >= 0 &&
	       buf_append(ret, "", 1) >= 0;
}

static const char *find_manager(const struct place *p)
{
	static const char *const locks[][2] = { { "pnpm-lock.yaml", "pnpm" },
						{ "yarn.lock", "yarn" },
						{ "bun.lock", "bun" },
						{ "bun.lockb", "bun" } };

	for (size_t i = 0; i < ARRAY_LEN(locks); i++)
		if (has_file(p, locks[i][0]))
			return locks[i][1];
	return "npm";
}

static int add_script(const char *key, const char *text, void *ctx)
{
	const struct place *p = ctx;
	char line[NAME_MAX_ + 32];

	if (!is_name(key, strlen(key)))
		return 0;
	snprintf(line, sizeof(line), "%s run %s", find_manager(p), key);
	return add(p->tasks, "package.json", key, strlen(key), line, p->err);
}

static int read_package(struct place *p, const char *text)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json top;

	if (json_parse(&doc, text, strlen(text), &top, NULL) < 0 ||
	    json_kind(top, "scripts") != JSON_OBJECT)
		return 0;
	return json_each_text(json_get_object(top, "scripts"), add_script, p);
}

/* Lines `name other: ...` that set no variable and have no pattern. */
static int read_makefile(struct place *p, const char *text)
{
	int r = 0;

	for (const char *at = text; r >= 0 && *at != '\0';
	     at += strcspn(at, "\n"), at += *at == '\n') {
		const size_t colon = strcspn(at, ":\n=#\t$%");

		if (at[colon] != ':' || at[colon + 1] == '=' || at[colon + 1] == ':')
			continue;
		for (size_t i = 0, n; r >= 0 && i < colon; i += n) {
			char line[NAME_MAX_ + 8];

			i += strspn(at + i, " ");
			n = strcspn(at + i, " :\n");
			if (n == 0 || !is_name(at + i, n))
				continue;
			snprintf(line, sizeof(line), "make %.*s", (int)n, at + i);
			r = add(p->tasks, "Makefile", at + i, n, line, p->err);
		}
	}
	return r;
}

/* Keys of the section [tool.poe.tasks]; and what everybody has who has tests. */
static int read_pyproject(struct place *p, const char *text)
{
	static const char section[] = "[tool.poe.tasks]";
	const char *at = strstr(text, section);
	int r = 0;

	for (at = at ? strchr(at, '\n') : NULL; r >= 0 && at && at[1] != '\0' && at[1] != '[';
	     at = strchr(at + 1, '\n')) {
		const size_t n = strcspn(at + 1, " =.\n");
		char line[NAME_MAX_ + 8];

		if (!is_name(at + 1, n) || !strchr("= ", at[1 + n]))
			continue;
		snprintf(line, sizeof(line), "poe %.*s", (int)n, at + 1);
		r = add(p->tasks, "pyproject.toml", at + 1, n, line, p->err);
	}
	return r < 0 ? r : add(p->tasks, "pyproject.toml", "test", 4, "python3 -m pytest", p->err);
}

static int read_cargo(struct place *p, const char *text)
{
	static const char *const words[] = { "build", "test", "check", "clippy", "fmt", "bench" };
	int r = 0;

	for (size_t i = 0; r >= 0 && i < ARRAY_LEN(words); i++) {
		char line[32];

		snprintf(line, sizeof(line), "cargo %s", words[i]);
		r = add(p->tasks, "Cargo.toml", words[i], strlen(words[i]), line, p->err);
	}
	return r;
}

static int read_meson(struct place *p, const char *text)
{
	static const char setup[] = "{ [ -d build ] || meson setup build; } && meson ";
	char line[sizeof(setup) + 32];
	int r;

	snprintf(line, sizeof(line), "%scompile -C build", setup);
	r = add(p->tasks, "meson.build", "build", 5, line, p->err);
	snprintf(line, sizeof(line), "%stest -C build", setup);
	return r < 0 ? r : add(p->tasks, "meson.build", "test", 4, line, p->err);
}

static int read_files(struct place *p)
{
	static const struct {
		const char *name;
		int (*read)(struct place *p, const char *text);
	} files[] = {
		{ "package.json", read_package },     { "Makefile", read_makefile },
		{ "pyproject.toml", read_pyproject }, { "Cargo.toml", read_cargo },
		{ "meson.build", read_meson },
	};
	int r = 0;

	for (size_t i = 0; r >= 0 && i < ARRAY_LEN(files); i++) {
		CLEANUP(buf_done) struct buf text = BUF_INIT;

		if (read_text(p, files[i].name, &text))
			r = files[i].read(p, (const char *)text.data);
	}
	return r;
}

/* --- all -------------------------------------------------------------------------------- */

static int read_settings(const struct invocation *inv, struct tasks *ret, struct err *err)
{
	CLEANUP(strlist_done) struct strlist names = { 0 }, lines = { 0 };
	int r = engine_tasks(inv->engine, &names, &lines, err);

	for (size_t i = 0; r >= 0 && i < names.n; i++)
		r = add(ret, "config.yaml", names.list[i], strlen(names.list[i]), lines.list[i],
			err);
	return r;
}

int tasks_load(const struct invocation *inv, struct tasks *ret, struct err *err)
{
	AUTO_FREE char *project = engine_project_here(inv->engine, NULL);
	struct place p = { .dir = project    ? project
				  : inv->dir ? inv->dir
					     : ".",
			   .tasks = ret,
			   .err = err };
	int r = read_settings(inv, ret, err);

	return r < 0 ? r : read_files(&p);
}
