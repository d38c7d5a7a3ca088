#include "engine/verb/commits-i.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/path.h"
#include "base/vec.h"
#include "engine/find/engine-i.h"
#include "engine/find/gitdir-i.h"
#include "engine/verb/git-run-i.h"

#define HEADER_MAX ((size_t)1 << 20) /* bytes of a bundle's header, which names its branches */
#define HEADS      "refs/heads/"

void commits_done(struct commits *c)
{
	engine_commits_done(&c->told);
	cleanup_close(&c->fd);
}

/* A file without a name, so nothing is left behind. */
static int temporary(int *ret, struct err *err)
{
	FILE *f = tmpfile();

	if (!f)
		return err_sys(err, "making a temporary file");
	*ret = fcntl(fileno(f), F_DUPFD_CLOEXEC, 3);
	fclose(f);
	return *ret < 0 ? err_sys(err, "making a temporary file") : 0;
}

/* --- whose ------------------------------------------------------------------------------ */

/* The name of the clone and the path of its project, both owned by the caller. */
static int find_clone(struct engine *e, const char *named, char **ret_clone, char **ret_project,
		      struct err *err)
{
	CLEANUP(clone_done) struct clone clone = { 0 };
	CLEANUP(project_done) struct project project = { 0 };
	AUTO_FREE char *here = named ? NULL : clone_here(e);
	const char *name = named ? named : here;
	struct store *s;
	int r;

	if (!name)
		return err_set(err, -EINVAL, "which clone is to be promoted?");
	r = engine_store(e, STORE_READ, &s, err);
	if (r < 0)
		return r;
	r = clone_find(s, name, &clone, err);
	if (r < 0)
		return r;
	r = engine_as_damage(err, project_get(s, &clone.project, &project, err));
	if (r < 0)
		return r;
	*ret_clone = TAKE_PTR(clone.name);
	*ret_project = TAKE_PTR(project.path);
	return 0;
}

/* *ret, owned by the caller, is where its objects are. */
static int find_repository(struct engine *e, const char *project, char **ret, struct err *err)
{
	CLEANUP(gitdir_done) struct gitdir git = { 0 };
	AUTO_FREE char *path = path_join(project, ".git");
	struct stat st;

	if (!path)
		return err_nomem(err);
	if (lstat(path, &st) < 0)
		return err_set(err, -ECANCELED,
			       "'%s' has no git repository that commits could come to", project);
	if (S_ISDIR(st.st_mode))
		*ret = path_join(path, "objects");
	else if (gitdir_find(e, project, &git, err) > 0)
		*ret = path_join(git.common, "objects");
	else
		return err_set(err, -ECANCELED, "'%s' leads to no repository of this project: %s",
			       path, err->code ? err->msg : "it is no directory");
	return *ret ? 0 : err_nomem(err);
}

/* --- from the clone --------------------------------------------------------------------- */

/*
 * Runs in the sandbox.  It reads the project's commit ids, of which the clone knows some, and writes
 * everything that the clone's branches have beyond them.
 */
static const char script[] =
    "[ -d .git ] && [ ! -L .git ] || exit 65\n"
    "export GIT_DIR=\"$PWD/.git\"\n"
    "g() { git -c safe.directory='*' -c core.hooksPath=/dev/null -c core.fsmonitor=false \"$@\"; }\n"
    "not=$(while read -r id; do\n"
    "  g cat-file -e \"$id^{commit}\" 2>/dev/null && echo \"^$id\"\n"
    "done; true)\n"
    "new=$(echo \"$not\" | g rev-list -n 1 --branches --stdin) || exit 66\n"
    "[ -n \"$new\" ] || exit 0\n"
    "echo \"$not\" | g bundle create -q - --branches --stdin || exit 66\n";

static int judge(const struct engine_run *run, const char *clone, struct err *err)
{
	CLEANUP(buf_done) struct buf said = BUF_INIT;
	const char *text = (const char *)run->err.data;
	const size_t len = strcspn(text, "\n");

	if (run->exit_code == 0 && !run->truncated)
		return 0;
	if (run->exit_code == 65)
		return err_set(err, -ECANCELED,
			       "clone '%s' has no git repository of its own to bring commits from",
			       clone);
	/* Untrusted output must not reach the terminal as it is. */
	if (path_append_shown(&said, text, len) < 0 || !buf_str(&said))
		return err_nomem(err);
	return err_set(err, -EIO, "git in the sandbox of clone '%s' ended with %d: %s", clone,
		       run->exit_code, buf_str(&said));
}

static int make_bundle(struct engine *e, const char *project, const char *clone, int known, int out,
		       struct err *err)
{
	CLEANUP(engine_run_done) struct engine_run run = { 0 };
	const char *const argv[] = { "/bin/sh", "-c", script, NULL };
	struct engine_run_options options = {
		.from = clone,
		.argv = argv,
		.workdir = project,
		.in_fd = known,
		.out_fd = out,
		.out_is_data = true,
		.err_fd = -1,
	};
	int r;

	engine_run_limits_init(&options.limits);
	r = engine_run(e, &options, &run, err);
	if (r < 0)
		return err_wrap(err, r, "bringing commits from clone '%s'", clone);
	/* It becomes part of an error message. */
	if (buf_append_u8(&run.err, '\0') < 0)
		return err_nomem(err);
	return judge(&run, clone, err);
}

/* --- what is in it ---------------------------------------------------------------------- */

static int add_branch(struct engine_commits *c, const char *clone, const char *line, size_t len,
		      struct err *err)
{
	const char *name = memchr(line, ' ', len);
	const size_t id_len = name ? (size_t)(name - line) : 0;
	struct engine_branch *b;

	/* Prerequisites begin with '-'; HEAD and what is no branch are not fetched. */
	if (!name || line[0] == '-' || len - id_len - 1 <= strlen(HEADS) ||
	    strncmp(name + 1, HEADS, strlen(HEADS)) != 0)
		return 0;
	/* The id is printed as it is, so check it. */
	if (strspn(line, "0123456789abcdef") != id_len)
		return err_set(err, -EBADMSG,
			       "a bundle of git's names something that is no commit");
	name += 1 + strlen(HEADS);
	if (!VEC_ONE_MORE(c->list, c->n))
		return err_nomem(err);
	b = &c->list[c->n++];
	*b = (struct engine_branch){ .commit = strndup(line, id_len) };
	if (asprintf(&b->ref, HEADS "snap/%s/%.*s", clone, (int)(line + len - name), name) < 0)
		b->ref = NULL;
	return b->ref && b->commit ? 0 : err_nomem(err);
}

/* The header ends with an empty line; *ret is the offset of the objects after it, 0 if none. */
static int read_header(struct commits *c, const char *clone, off_t *ret, struct err *err)
{
	AUTO_FREE char *text = malloc(HEADER_MAX);
	const char *line, *end;
	ssize_t n;
	int r = 0;

	if (!text)
		return err_nomem(err);
	*ret = 0;
	n = fdio_pread(c->fd, text, HEADER_MAX, 0);
	if (n <= 0)
		return n < 0 ? err_set(err, (int)n, "reading a bundle of git's") : 0;
	for (line = text; r >= 0 && (end = memchr(line, '\n', (size_t)(text + n - line)));
	     line = end + 1) {
		if (end == line) {
			*ret = end + 1 - text;
			return 0;
		}
		if (*line != '#' && *line != '@')
			r = add_branch(&c->told, clone, line, (size_t)(end - line), err);
	}
	return r < 0 ? r : err_set(err, -EBADMSG, "what git gave out in the sandbox is no bundle");
}

int commits_bundle(struct engine *e, const char *named, struct commits *ret, struct err *err)
{
	CLEANUP(commits_done) struct commits c = COMMITS_INIT;
	AUTO_FREE char *clone = NULL, *project = NULL, *objects_dir = NULL;
	AUTO_CLOSE int known = -1;
	off_t objects = 0;
	int r;

	r = find_clone(e, named, &clone, &project, err);
	if (r < 0)
		return r;
	r = find_repository(e, project, &objects_dir, err);
	if (r < 0)
		return r;
	r = temporary(&known, err);
	if (r < 0)
		return r;
	r = temporary(&c.fd, err);
	if (r < 0)
		return r;
	r = git_run_check_name(project, clone, err);
	if (r < 0)
		return r;
	r = git_run_list_tips(project, known, err);
	if (r < 0)
		return r;
	r = make_bundle(e, project, clone, known, c.fd, err);
	if (r < 0)
		return r;
	r = read_header(&c, clone, &objects, err);
	if (r < 0)
		return r;
	if (objects > 0)
		r = git_run_check_objects(project, objects_dir, c.fd, objects, err);
	if (r < 0)
		return r;
	if (objects == 0) {
		cleanup_close(&c.fd);
		c.fd = -1;
	}
	*ret = c;
	c = COMMITS_INIT;
	return 0;
}

int commits_fetch(const char *project, const char *clone, const struct commits *c, struct err *err)
{
	if (c->fd < 0)
		return 0;
	if (lseek(c->fd, 0, SEEK_SET) < 0)
		return err_sys(err, "reading a bundle of git's");
	return git_run_fetch(project, clone, c->fd, err);
}
