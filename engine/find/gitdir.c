#include "engine/find/gitdir-i.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/fdio.h"
#include "base/path.h"

#define LINE_MAX_BYTES ((size_t)64 << 10) /* of a file that holds one path */
#define SETTINGS_MAX   ((size_t)4 << 20)
#define PREFIX         "gitdir: "

void gitdir_done(struct gitdir *g)
{
	free(g->own);
	free(g->common);
	*g = (struct gitdir){ 0 };
}

/* --- settings --------------------------------------------------------------------------- */

static size_t blanks(const char *s, size_t len)
{
	size_t n = 0;

	while (n < len && (s[n] == ' ' || s[n] == '\t' || s[n] == '\r'))
		n++;
	return n;
}

/* The length of a section header such as "[core]" at the start of the line; 0: there is none. */
static size_t read_section(const char *line, size_t len, bool *in_core)
{
	const size_t at = blanks(line, len);
	const char *end = at < len && line[at] == '[' ? memchr(line, ']', len) : NULL;

	if (!end)
		return 0;
	*in_core = len - at >= 6 && strncasecmp(line + at, "[core]", 6) == 0;
	return (size_t)(end + 1 - line);
}

/* The value without quotes if the line sets this key; NULL if not, or without memory. */
static char *value_of(const char *key, const char *s, size_t len)
{
	const size_t n = strlen(key);
	size_t at;

	if (len < n || strncasecmp(s, key, n) != 0)
		return NULL;
	at = n + blanks(s + n, len - n);
	if (at == len)
		return strdup("true");
	if (s[at] != '=')
		return NULL;
	at++;
	at += blanks(s + at, len - at);
	while (len > at && strchr(" \t\r\"", s[len - 1]))
		len--;
	if (len > at && s[at] == '"')
		at++;
	return strndup(s + at, len - at);
}

/* Is it a setting that we read and do not copy? */
static bool take_setting(const char *s, size_t len, struct gitdir_settings *ret)
{
	const size_t at = blanks(s, len);
	AUTO_FREE char *bare = value_of("bare", s + at, len - at);
	char *worktree = value_of("worktree", s + at, len - at);

	if (bare)
		ret->bare = strcasecmp(bare, "true") == 0 || strcasecmp(bare, "yes") == 0 ||
			    strcasecmp(bare, "on") == 0 || strcmp(bare, "1") == 0;
	if (worktree) {
		free(ret->worktree);
		ret->worktree = worktree;
	}
	return bare || worktree;
}

int gitdir_read_settings(const char *text, size_t len, struct buf *out, struct gitdir_settings *ret,
			 struct err *err)
{
	bool in_core = false, goes_on = false, drops = false;
	int r = 0;

	for (size_t at = 0, next; r >= 0 && at < len; at = next) {
		const char *line = text + at, *end = memchr(line, '\n', len - at);
		const size_t n = end ? (size_t)(end - line) : len - at;
		size_t section = 0;

		next = at + n + (end != NULL);
		if (!goes_on) {
			section = read_section(line, n, &in_core);
			drops = in_core && take_setting(line + section, n - section, ret);
		}
		goes_on = n > 0 && line[n - 1] == '\\';
		if (!drops)
			r = buf_append(out, line, next - at);
		else if (section > 0)
			r = buf_printf(out, "%.*s\n", (int)section, line);
	}
	return r < 0 ? err_nomem(err) : 0;
}

/* --- where it is ------------------------------------------------------------------------ */

/* The only line of a file, owned; NULL if there is no such file or line. */
static char *read_line(const char *dir, const char *name)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	AUTO_FREE char *path = path_join(dir, name);

	if (!path || fdio_read_file(AT_FDCWD, path, LINE_MAX_BYTES, &text, NULL) < 0)
		return NULL;
	while (text.len > 0 && (text.data[text.len - 1] == '\n' || text.data[text.len - 1] == '\r'))
		text.len--;
	if (text.len == 0 || memchr(text.data, '\0', text.len))
		return NULL;
	return strndup((const char *)text.data, text.len);
}

/* Resolve a path, which may be relative to `dir`; NULL if it does not exist. */
static char *resolve(const char *dir, const char *path)
{
	AUTO_FREE char *whole = path[0] == '/' ? strdup(path) : path_join(dir, path);

	return whole ? realpath(whole, NULL) : NULL;
}

static bool is_same(const char *dir, const char *path, const char *wanted)
{
	AUTO_FREE char *real = resolve(dir, path);

	return real && strcmp(real, wanted) == 0;
}

/*
 * Does the repository name the project?  Those of worktrees and submodules do.  One that was placed
 * elsewhere (git init --separate-git-dir) names nothing, but it is not bare and has no other work tree.
 */
static bool names_project(const struct gitdir *g, const char *project)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT, rest = BUF_INIT;
	AUTO_FREE char *back = read_line(g->own, "gitdir"), *mark = path_join(project, ".git");
	AUTO_FREE char *config = path_join(g->own, "config"), *worktree = NULL;
	struct gitdir_settings said = { 0 };

	if (strcmp(g->own, g->common) != 0)
		return back && mark && is_same(g->own, back, mark);
	if (!config || fdio_read_file(AT_FDCWD, config, SETTINGS_MAX, &text, NULL) < 0 ||
	    gitdir_read_settings((const char *)text.data, text.len, &rest, &said, NULL) < 0)
		return false;
	worktree = said.worktree;
	if (worktree)
		return is_same(g->own, worktree, project);
	return !said.bare && strcmp(path_base(g->own), ".git") != 0;
}

/* Find both directories, after asking for each whether we may look at it. */
static int find_directories(struct engine *e, const char *project, const char *named,
			    struct gitdir *g, struct err *err)
{
	AUTO_FREE char *clean = path_clean(project, named), *head = NULL, *up = NULL;
	struct stat st;
	int r = clean ? engine_may_read(e, clean, err) : err_nomem(err);

	if (r < 0)
		return r;
	g->own = realpath(clean, NULL);
	head = g->own ? path_join(g->own, "HEAD") : NULL;
	if (!head || lstat(head, &st) < 0)
		return err_set(err, -ENOENT, "'%s/.git' leads to '%s', which is no repository",
			       project, clean);
	r = engine_may_read(e, g->own, err);
	if (r < 0)
		return r;
	up = read_line(g->own, "commondir");
	g->common = up ? resolve(g->own, up) : strdup(g->own);
	if (!g->common || !path_is_below(g->own, g->common))
		return err_set(err, -ENOENT, "'%s' names no directory above it that has objects",
			       g->own);
	return engine_may_read(e, g->common, err);
}

int gitdir_find(struct engine *e, const char *project, struct gitdir *ret, struct err *err)
{
	CLEANUP(gitdir_done) struct gitdir g = { 0 };
	AUTO_FREE char *mark = path_join(project, ".git"), *line = NULL;
	struct stat st;
	int r;

	if (!mark)
		return err_nomem(err);
	if (lstat(mark, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	line = read_line(project, ".git");
	if (!line || strncmp(line, PREFIX, strlen(PREFIX)) != 0)
		return 0;
	r = find_directories(e, project, line + strlen(PREFIX), &g, err);
	if (r < 0)
		return r;
	if (!names_project(&g, project))
		return err_set(err, -EXDEV, "'%s' leads to '%s', which does not name '%s'", mark,
			       g.own, project);
	*ret = TAKE_STRUCT(g);
	return 1;
}
