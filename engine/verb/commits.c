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
#include "base/text.h"
#include "base/vec.h"
#include "engine/find/engine-i.h"
#include "engine/find/gitdir-i.h"
#include "engine/verb/git-run-i.h"
#include "engine/verb/submodules-i.h"

#define HEADER_MAX ((size_t)1 << 20) /* bytes of a bundle's header, which names its branches */
#define HEADS      "refs/heads/"

void commits_done(struct commits *c)
{
	engine_commits_done(&c->told);
	for (size_t i = 0; i < c->n; i++) {
		free(c->list[i].git_dir);
		cleanup_close(&c->list[i].fd);
	}
	free(c->list);
	*c = (struct commits){ 0 };
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
		return err_set(err, -EDESTADDRREQ,
			       "name the clone: the current directory is in none");
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

/* A repository of the project and its copy in the clone. */
struct repository {
	char *git_dir;  /* owned; what git gets as its directory */
	char *own;      /* owned; what of it is not shared with other worktrees */
	char *objects;  /* owned; where its objects are */
	char *in_clone; /* owned; from the top of the clone */
	char *
	    place; /* owned; a submodule's work tree, from the top of the project; "": the project */
};

static void repository_done(struct repository *r)
{
	free(r->git_dir);
	free(r->own);
	free(r->objects);
	free(r->in_clone);
	free(r->place);
}

static int find_repository(struct engine *e, const char *project, struct repository *ret,
			   struct err *err)
{
	CLEANUP(gitdir_done) struct gitdir git = { 0 };
	AUTO_FREE char *path = path_join(project, ".git");
	struct stat st;

	if (!path)
		return err_nomem(err);
	if (lstat(path, &st) < 0)
		return err_set(err, -ECANCELED,
			       "'%s' has no git repository that commits could come to", project);
	if (S_ISDIR(st.st_mode)) {
		ret->objects = path_join(path, "objects");
		ret->own = strdup(path);
	} else if (gitdir_find(e, project, &git, err) > 0) {
		ret->objects = path_join(git.common, "objects");
		ret->own = TAKE_PTR(git.own);
	} else {
		return err_set(err, -ECANCELED, "'%s' leads to no repository of this project: %s",
			       path, err->code ? err->msg : "it is no directory");
	}
	ret->git_dir = TAKE_PTR(path);
	ret->in_clone = strdup(".git");
	ret->place = strdup("");
	return ret->objects && ret->own && ret->in_clone && ret->place ? 0 : err_nomem(err);
}

/* --- from the clone --------------------------------------------------------------------- */

/*
 * Runs in the sandbox.  It reads the project's commit ids, of which the clone knows some, and writes
 * everything that the clone's branches have beyond them.  A submodule ($2) that the clone removed has
 * nothing to bring.
 */
static const char script[] =
    "[ -z \"$2\" ] || [ -e \"$1\" ] || [ -L \"$1\" ] || exit 0\n"
    "[ -d \"$1\" ] && [ ! -L \"$1\" ] || exit 65\n"
    "export GIT_DIR=\"$PWD/$1\"\n"
    "g() { git -c safe.directory='*' -c core.hooksPath=/dev/null -c core.fsmonitor=false \"$@\"; }\n"
    "not=$(while read -r id; do\n"
    "  g cat-file -e \"$id^{commit}\" 2>/dev/null && echo \"^$id\"\n"
    "done; true)\n"
    "head=; g symbolic-ref -q HEAD >/dev/null || head=HEAD\n"
    "new=$(echo \"$not\" | g rev-list -n 1 --branches $head --stdin) || exit 66\n"
    "[ -n \"$new\" ] || exit 0\n"
    "echo \"$not\" | g bundle create -q - --branches $head --stdin || exit 66\n";

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

static int make_bundle(struct engine *e, const char *project, const char *clone,
		       const struct repository *of, int known, int out, struct err *err)
{
	CLEANUP(engine_run_done) struct engine_run run = { 0 };
	const char *const argv[] = { "/bin/sh", "-c", script, "sh", of->in_clone, of->place, NULL };
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

static bool is_head(const char *line, size_t len)
{
	return len > 5 && line[0] != '-' && memcmp(line + len - 5, " HEAD", 5) == 0;
}

/* The name of the branch in a line of the header, or NULL: it is about something else. */
static const char *branch_in(const char *line, size_t len, size_t *ret_id, size_t *ret_len)
{
	const char *name = line[0] == '-' ? NULL : memchr(line, ' ', len);

	if (!name) /* prerequisites begin with '-' */
		return NULL;
	*ret_id = (size_t)(name++ - line);
	*ret_len = len - *ret_id - 1;
	if (*ret_len <= strlen(HEADS) || strncmp(name, HEADS, strlen(HEADS)) != 0)
		return NULL;
	*ret_len -= strlen(HEADS);
	return name + strlen(HEADS);
}

/* Does the header name the branch, or one below it, beside which git could not have it? */
static bool has_branch(const char *text, size_t n, const char *wanted)
{
	const size_t wanted_len = strlen(wanted);
	const char *line = text, *end, *name;
	size_t id_len, len;

	for (; (end = memchr(line, '\n', (size_t)(text + n - line))) && end > line;
	     line = end + 1) {
		name = branch_in(line, (size_t)(end - line), &id_len, &len);
		if (name && len >= wanted_len && strncmp(name, wanted, wanted_len) == 0 &&
		    (len == wanted_len || name[wanted_len] == '/'))
			return true;
	}
	return false;
}

static void name_detached(const char *text, size_t n, char ret[GIT_RUN_DETACHED_SIZE])
{
	snprintf(ret, GIT_RUN_DETACHED_SIZE, GIT_RUN_DETACHED);
	for (unsigned i = 2; has_branch(text, n, ret); i++)
		snprintf(ret, GIT_RUN_DETACHED_SIZE, GIT_RUN_DETACHED "-%u", i);
}

/* `detached` names HEAD, which has no branch. */
static int add_branch(struct engine_commits *c, const char *clone, const char *place,
		      const char *line, size_t len, const char *detached, struct err *err)
{
	const bool head = is_head(line, len);
	size_t id_len = len - 5, name_len = strlen(detached);
	const char *name = head ? detached : branch_in(line, len, &id_len, &name_len);
	struct engine_branch *b;

	if (!name)
		return 0;
	/* The id is printed as it is, so check it. */
	if (strspn(line, "0123456789abcdef") != id_len)
		return err_set(err, -EBADMSG,
			       "a bundle of git's names something that is no commit");
	if (!VEC_ONE_MORE(c->list, c->n))
		return err_nomem(err);
	b = &c->list[c->n++];
	*b = (struct engine_branch){
		.commit = strndup(line, id_len),
		.repository = strdup(place),
	};
	b->ref = text_format(HEADS "snap/%s/%.*s", clone, (int)name_len, name);
	return b->ref && b->commit && b->repository ? 0 : err_nomem(err);
}

/* The header ends with an empty line; *ret is the offset of the objects after it, 0 if none. */
static int read_header(struct engine_commits *told, struct bundle *c, const char *clone,
		       const char *place, off_t *ret, struct err *err)
{
	AUTO_FREE char *text = malloc(HEADER_MAX);
	char detached[GIT_RUN_DETACHED_SIZE];
	const char *line, *end;
	ssize_t n;
	int r = 0;

	if (!text)
		return err_nomem(err);
	*ret = 0;
	n = fdio_pread(c->fd, text, HEADER_MAX, 0);
	if (n <= 0)
		return n < 0 ? err_set(err, (int)n, "reading a bundle of git's") : 0;
	name_detached(text, (size_t)n, detached);
	for (line = text; r >= 0 && (end = memchr(line, '\n', (size_t)(text + n - line)));
	     line = end + 1) {
		if (end == line) {
			*ret = end + 1 - text;
			return 0;
		}
		if (*line == '#' || *line == '@')
			continue;
		if (is_head(line, (size_t)(end - line)))
			memcpy(c->detached, detached, sizeof(detached));
		r = add_branch(told, clone, place, line, (size_t)(end - line), detached, err);
	}
	return r < 0 ? r : err_set(err, -EBADMSG, "git's output in the sandbox is not a bundle");
}

static void bundle_done(struct bundle *b)
{
	free(b->git_dir);
	cleanup_close(&b->fd);
}

/* Add a bundle of what one repository lacks, if it lacks anything. */
static int add_bundle(struct engine *e, const char *project, const char *clone,
		      const struct repository *of, struct commits *to, struct err *err)
{
	CLEANUP(bundle_done) struct bundle b = { .fd = -1, .git_dir = strdup(of->git_dir) };
	AUTO_CLOSE int known = -1;
	off_t objects = 0;
	int r;

	if (!b.git_dir)
		return err_nomem(err);
	r = temporary(&known, err);
	if (r < 0)
		return r;
	r = temporary(&b.fd, err);
	if (r < 0)
		return r;
	r = git_run_list_tips(of->git_dir, known, err);
	if (r < 0)
		return r;
	r = make_bundle(e, project, clone, of, known, b.fd, err);
	if (r < 0)
		return r;
	r = read_header(&to->told, &b, clone, of->place, &objects, err);
	if (r < 0 || objects == 0)
		return r;
	r = git_run_check_objects(of->git_dir, of->objects, b.fd, objects, err);
	if (r < 0)
		return r;
	if (!VEC_ONE_MORE(to->list, to->n))
		return err_nomem(err);
	to->list[to->n++] = b;
	b = (struct bundle){ .fd = -1 };
	return 0;
}

static int add_submodules(struct engine *e, const char *project, const char *clone,
			  const struct repository *above, struct commits *to, struct err *err)
{
	CLEANUP(submodules_done) struct submodules found = { 0 };
	int r = submodules_changed(e, clone, project, above->own, &found, err);

	for (size_t i = 0; i < found.n && r >= 0; i++) {
		const struct submodule *one = &found.list[i];
		AUTO_FREE char *objects = path_join(one->git_dir, "objects");
		const struct repository of = {
			.git_dir = one->git_dir,
			.objects = objects,
			.in_clone = one->in_clone,
			.place = one->place,
		};

		r = objects ? add_bundle(e, project, clone, &of, to, err) : err_nomem(err);
		if (r < 0)
			err_wrap(err, r, "submodule '%s'", one->place);
	}
	return r;
}

int commits_bundle(struct engine *e, const char *named, struct commits *ret, struct err *err)
{
	CLEANUP(commits_done) struct commits c = { 0 };
	CLEANUP(repository_done) struct repository top = { 0 };
	AUTO_FREE char *clone = NULL, *project = NULL;
	int r = find_clone(e, named, &clone, &project, err);

	if (r < 0)
		return r;
	r = find_repository(e, project, &top, err);
	if (r < 0)
		return r;
	r = git_run_check_name(top.git_dir, clone, err);
	if (r < 0)
		return r;
	r = add_bundle(e, project, clone, &top, &c, err);
	if (r < 0)
		return r;
	r = add_submodules(e, project, clone, &top, &c, err);
	if (r < 0)
		return r;
	*ret = TAKE_STRUCT(c);
	return 0;
}

int commits_fetch(const char *clone, const struct commits *c, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < c->n && r >= 0; i++) {
		const struct bundle *b = &c->list[i];

		if (lseek(b->fd, 0, SEEK_SET) < 0)
			return err_sys(err, "reading a bundle of git's");
		r = git_run_fetch(b->git_dir, clone, b->detached, b->fd, err);
	}
	return r;
}
