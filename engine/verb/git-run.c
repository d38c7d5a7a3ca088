#include "engine/verb/git-run-i.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/log.h"
#include "base/path.h"
#include "base/text.h"

#define BUNDLE_FD 3 /* git reads the bundle from this descriptor */
#define WORDS_MAX 40
#define SAID_MAX  200

extern char **environ;

/* Options before the subcommand: git runs nothing else, and checks what it fetches. */
static const char *const guarded[] = {
	"-c", "core.hooksPath=/dev/null",
	"-c", "core.fsmonitor=false",
	"-c", "fetch.fsckObjects=true",
	"-c", "transfer.fsckObjects=true",
	"-c", "gc.auto=0",
	"-c", "maintenance.auto=false",
	"-c", "submodule.recurse=false",
	"-c", "fetch.recurseSubmodules=false",
	"-c", "fetch.writeCommitGraph=false",
};

/* One call of git; -1 and NULL: none. */
struct git_call {
	const char *const *words;
	int in, out, bundle;
	char *const *env; /* two more variables */
};

/* GIT_DIR, GIT_INDEX_FILE and the like would lead git to another repository. */
static char **clean_environment(const struct git_call *c)
{
	static char locale[] = "LC_ALL=C";
	size_t n = 0, kept = 0;
	char **env;

	while (environ[n])
		n++;
	env = calloc(n + 4, sizeof(*env));
	for (size_t i = 0; env && i < n; i++)
		if (strncmp(environ[i], "GIT_", 4) != 0 && strncmp(environ[i], "LC_", 3) != 0)
			env[kept++] = environ[i];
	if (env)
		env[kept++] = locale;
	for (int i = 0; env && c->env && i < 2; i++)
		env[kept++] = c->env[i];
	return env;
}

static int spawn(const char *const *argv, const struct git_call *c, int said, pid_t *ret)
{
	AUTO_FREE char **env = clean_environment(c);
	posix_spawn_file_actions_t actions;
	int rc;

	if (!env)
		return -ENOMEM;
	posix_spawn_file_actions_init(&actions);
	if (c->in >= 0)
		posix_spawn_file_actions_adddup2(&actions, c->in, 0);
	else
		posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	if (c->out >= 0)
		posix_spawn_file_actions_adddup2(&actions, c->out, 1);
	else
		posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, said, 2);
	if (c->bundle >= 0)
		posix_spawn_file_actions_adddup2(&actions, c->bundle, BUNDLE_FD);
	rc = posix_spawnp(ret, "git", &actions, NULL, (char **)(uintptr_t)argv, env);
	posix_spawn_file_actions_destroy(&actions);
	return -rc;
}

/* The last line of its output says why it failed. */
static void read_said(int fd, char text[SAID_MAX])
{
	off_t size = lseek(fd, 0, SEEK_END);
	ssize_t n;
	char *line;

	if (size > SAID_MAX - 1)
		size = SAID_MAX - 1;
	n = size > 0 && lseek(fd, -size, SEEK_END) >= 0 ? fdio_read(fd, text, (size_t)size) : 0;
	text[n > 0 ? n : 0] = '\0';
	while (n > 0 && text[n - 1] == '\n')
		text[--n] = '\0';
	line = strrchr(text, '\n');
	if (line)
		memmove(text, line + 1, strlen(line + 1) + 1);
	/* It may contain names from the clone, so control bytes must not reach a terminal. */
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
}

/* `text` gets the complaint of a git that ran. */
static int spawn_and_wait(const char *const *argv, const struct git_call *c, int said,
			  int *ret_status, char text[SAID_MAX])
{
	pid_t pid;
	int r = spawn(argv, c, said, &pid);

	if (r < 0)
		return r;
	while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR)
		continue;
	read_said(said, text);
	return 0;
}

static int run(const char *git_dir, const struct git_call *c, struct err *err)
{
	const char *const *words = c->words;
	const char *argv[WORDS_MAX] = { "git" };
	char text[SAID_MAX];
	int status = 0, r;
	size_t n = 1;
	FILE *f;
	AUTO_FREE char *dir = text_format("--git-dir=%s", git_dir);

	if (!dir)
		return err_nomem(err);
	argv[n++] = dir;
	for (size_t i = 0; i < ARRAY_LEN(guarded); i++)
		argv[n++] = guarded[i];
	for (; *words && n < WORDS_MAX - 1; words++)
		argv[n++] = *words;
	f = tmpfile();
	if (!f)
		return err_sys(err, "making a temporary file");
	r = spawn_and_wait(argv, c, fileno(f), &status, text);
	fclose(f);
	if (r < 0)
		return err_set(err, r == -ENOENT ? -ENOTSUP : r, "git cannot be run: %s",
			       strerror(-r));
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return err_set(err, -EIO, "git in '%s': %s", git_dir, *text ? text : "it failed");
	return 0;
}

int git_run_check_name(const char *git_dir, const char *clone, struct err *err)
{
	const char *words[] = { "check-ref-format", NULL, NULL };
	int r;
	AUTO_FREE char *ref = text_format("refs/heads/snap/%s/x", clone);

	if (!ref)
		return err_nomem(err);
	words[1] = ref;
	r = run(git_dir, &(struct git_call){ .words = words, .in = -1, .out = -1, .bundle = -1 },
		err);
	if (r == -EIO)
		return err_set(err, -ECANCELED, "no branch of git's can have '%s' in its name",
			       clone);
	return r;
}

int git_run_configure(const char *git_dir, const char *key, const char *value, struct err *err)
{
	AUTO_FREE char *config = path_join(git_dir, "config");
	/* This file and no other: what a repository names as shared is not asked. */
	const char *const words[] = {
		"config", "--file", config, "--replace-all", key, value, NULL
	};

	if (!config)
		return err_nomem(err);
	return run(git_dir, &(struct git_call){ .words = words, .in = -1, .out = -1, .bundle = -1 },
		   err);
}

int git_run_list_tips(const char *git_dir, int fd, struct err *err)
{
	static const char *const words[] = { "for-each-ref", "--format=%(objectname)", NULL };
	const struct git_call c = { .words = words, .in = -1, .out = fd, .bundle = -1 };
	int r = run(git_dir, &c, err);

	if (r < 0)
		return r;
	return lseek(fd, 0, SEEK_SET) < 0 ? err_sys(err, "reading what git listed") : r;
}

/* --- a place beside the repository -------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	return remove(path) < 0 ? -1 : 0;
}

static void remove_all(const char *dir)
{
	if (nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS) < 0)
		log_warn("'%s' is left: %s, continuing", dir, strerror(errno));
}

int git_run_check_objects(const char *git_dir, const char *objects, int fd, off_t at,
			  struct err *err)
{
	static const char *const words[] = { "index-pack", "--stdin", "--fix-thin", "--strict",
					     NULL };
	const char *tmp = getenv("TMPDIR");
	AUTO_FREE char *dir = path_join(tmp && *tmp == '/' ? tmp : "/tmp", "snapcow-XXXXXX");
	AUTO_FREE char *into = NULL, *from = NULL;
	char *env[2];
	const struct git_call c = { .words = words, .in = fd, .out = -1, .bundle = -1, .env = env };
	int r;

	if (!dir)
		return err_nomem(err);
	if (lseek(fd, at, SEEK_SET) < 0)
		return err_sys(err, "reading a bundle of git's");
	if (!mkdtemp(dir))
		return err_sys(err, "making directory '%s'", dir);
	into = text_format("GIT_OBJECT_DIRECTORY=%s", dir);
	from = text_format("GIT_ALTERNATE_OBJECT_DIRECTORIES=%s", objects);
	env[0] = into;
	env[1] = from;
	r = into && from ? run(git_dir, &c, err) : err_nomem(err);
	remove_all(dir);
	return r;
}

int git_run_fetch(const char *git_dir, const char *clone, const char *detached, int bundle,
		  struct err *err)
{
	AUTO_FREE char *spec = NULL, *head = NULL;
	const char *words[] = { "fetch",
				"--quiet",
				"--no-tags",
				"--no-write-fetch-head",
				"--no-recurse-submodules",
				"--no-auto-maintenance",
				"/dev/fd/3",
				NULL,
				NULL,
				NULL };

	_Static_assert(BUNDLE_FD == 3, "the path above says so");
	spec = text_format("+refs/heads/*:refs/heads/snap/%s/*", clone);
	if (!spec)
		return err_nomem(err);
	head = text_format("+HEAD:refs/heads/snap/%s/%s", clone, detached);
	if (!head)
		return err_nomem(err);
	words[ARRAY_LEN(words) - 3] = spec;
	words[ARRAY_LEN(words) - 2] = *detached != '\0' ? head : NULL;
	return run(git_dir,
		   &(struct git_call){ .words = words, .in = -1, .out = -1, .bundle = bundle },
		   err);
}
