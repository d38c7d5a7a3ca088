#include "remote/ssh.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/path.h"
#include "base/strlist.h"
#include "base/sys.h"
#include "base/text.h"

#define PROGRAM_VARIABLE "SNAPCOW_SSH"
#define TOLD_MAX         160  /* bytes of what it says, in a sentence */
#define END_MS           5000 /* that it has to end by itself, and once more after SIGTERM */

extern char **environ;

/* --- addresses ---------------------------------------------------------------------------- */

void ssh_place_done(struct ssh_place *p)
{
	free(p->host);
	free(p->port);
	free(p->path);
	*p = (struct ssh_place){ 0 };
}

/* ssh hands the host to ProxyCommand and such: nothing but what names are made of. */
static bool is_host(const char *text)
{
	for (const char *c = text; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("._-@:[]%", *c))
			return false;
	return *text != '\0' && *text != '-' && *text != '@' && !strstr(text, "@-");
}

static bool is_port(const char *text)
{
	return strlen(text) > 0 && strlen(text) < 6 && strspn(text, "0123456789") == strlen(text);
}

int ssh_place_parse(const char *url, struct ssh_place *ret, struct err *err)
{
	CLEANUP(ssh_place_done) struct ssh_place p = { 0 };
	const char *at = url + strlen("ssh://"), *slash = strchr(at, '/');
	char *colon, *bracket;

	if (!slash)
		return err_set(err, -EINVAL, "'%s' has no path: ssh://host/path", url);
	p.host = strndup(at, (size_t)(slash - at));
	p.path = strdup(slash);
	if (!p.host || !p.path)
		return err_nomem(err);
	bracket = strrchr(p.host, ']');
	colon = strrchr(bracket ? bracket : p.host, ':');
	if (colon) {
		*colon = '\0';
		p.port = strdup(colon + 1);
		if (!p.port)
			return err_nomem(err);
	}
	if (!is_host(p.host) || (p.port && !is_port(p.port)))
		return err_set(err, -EINVAL, "'%s' is no address: ssh://[user@]host[:port]/path",
			       url);
	if (p.path[1] == '\0')
		return err_set(err, -EINVAL, "'%s' names no directory of its own", url);
	*ret = TAKE_STRUCT(p);
	return 0;
}

bool ssh_is_host(const char *text)
{
	return strncmp(text, "ssh:", 4) == 0;
}

int ssh_place_parse_host(const char *text, struct ssh_place *ret, struct err *err)
{
	const char *host = text + strlen("ssh:");
	AUTO_FREE char *url = NULL;

	host += strncmp(host, "//", 2) == 0 ? 2 : 0;
	url = text_format("ssh://%s/~", host);
	if (!url)
		return err_nomem(err);
	return strchr(host, '/') || ssh_place_parse(url, ret, NULL) < 0
		   ? err_set(err, -EINVAL, "'%.200s' is no machine: ssh:[user@]host[:port]", text)
		   : 0;
}

/* --- the process -------------------------------------------------------------------------- */

static int add_words(struct strlist *l, const char *text)
{
	int r = 0;

	while (r == 0 && *(text += strspn(text, " \t")) != '\0') {
		AUTO_FREE char *word = strndup(text, strcspn(text, " \t"));

		r = word ? strlist_add(l, word) : -ENOMEM;
		text += strcspn(text, " \t");
	}
	return r;
}

/* A dead network ends a transfer after a minute. */
static int make_words(const struct ssh_place *p, const char *command, struct strlist *l)
{
	static const char *const fixed[] = { "-T", "-oConnectTimeout=20",
					     "-oServerAliveInterval=15", "-oServerAliveCountMax=4",
					     "-oClearAllForwardings=yes" };
	const char *program = getenv(PROGRAM_VARIABLE);
	int r = add_words(l, program && *program ? program : "ssh");

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(fixed); i++)
		r = strlist_add(l, fixed[i]);
	if (r < 0 || (p->port && (strlist_add(l, "-p") < 0 || strlist_add(l, p->port) < 0)) ||
	    strlist_add(l, "--") < 0 || strlist_add(l, p->host) < 0)
		return -ENOMEM;
	return strlist_add(l, command);
}

/* A file without a name for what it says beside: a pipe would have to be read meanwhile. */
static int open_errors(void)
{
	const char *dir = getenv("TMPDIR");
	AUTO_FREE char *path = path_join(dir && *dir == '/' ? dir : "/tmp", "snapcow-ssh-XXXXXX");
	int fd = path ? mkostemp(path, O_CLOEXEC) : -1;

	if (fd >= 0)
		unlink(path);
	return fd;
}

/*
 * An ignored signal stays ignored in what is started, and ssh heeds that.  One that comes to us meanwhile is blocked,
 * so it waits for our own handler.
 */
static int spawn_deaf(struct strlist *words, const posix_spawn_file_actions_t *actions, pid_t *ret)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct sigaction was;
	posix_spawnattr_t attr;
	sigset_t interrupt, before;
	int rc;

	sigemptyset(&interrupt);
	sigaddset(&interrupt, SIGINT);
	pthread_sigmask(SIG_BLOCK, &interrupt, &before);
	sigaction(SIGINT, &ignore, &was);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &before);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	rc = posix_spawnp(ret, words->list[0], actions, &attr, words->list, environ);
	posix_spawnattr_destroy(&attr);
	sigaction(SIGINT, &was, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

static int spawn(struct strlist *words, int in, int out, int errors, bool deaf, pid_t *ret)
{
	posix_spawn_file_actions_t actions;
	int rc;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in, 0);
	posix_spawn_file_actions_adddup2(&actions, out, 1);
	if (errors >= 0)
		posix_spawn_file_actions_adddup2(&actions, errors, 2);
	rc = deaf ? spawn_deaf(words, &actions, ret)
		  : posix_spawnp(ret, words->list[0], &actions, NULL, words->list, environ);
	posix_spawn_file_actions_destroy(&actions);
	return -rc;
}

int ssh_start(const struct ssh_place *p, const char *command, bool stays, struct ssh_child *ret,
	      struct err *err)
{
	CLEANUP(strlist_done) struct strlist words = { 0 };
	int to[2] = { -1, -1 }, from[2] = { -1, -1 };
	struct ssh_child c = SSH_CHILD_INIT;
	int r = make_words(p, command, &words);

	if (r == 0)
		r = sys_pipe(to);
	if (r == 0)
		r = sys_pipe(from);
	if (r == 0) {
		c.errors = open_errors();
		r = spawn(&words, to[0], from[1], c.errors, stays, &c.pid);
	}
	cleanup_close(&to[0]);
	cleanup_close(&from[1]);
	c.out = to[1];
	c.in = from[0];
	if (r < 0) {
		c.pid = 0;
		ssh_end(&c);
		return err_set(err, r == -ENOENT ? -ENOTSUP : r, "cannot start '%s': %s",
			       words.n > 0 ? words.list[0] : "ssh", strerror(-r));
	}
	*ret = c;
	return 0;
}

/* The last line that it printed, shown; owned, NULL: none. */
static char *last_line(int fd)
{
	CLEANUP(buf_done) struct buf shown = BUF_INIT;
	char text[4096];
	const off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : 0;
	const off_t from = size > (off_t)sizeof(text) ? size - (off_t)sizeof(text) : 0;
	ssize_t n = size > 0 ? fdio_pread(fd, text, sizeof(text), from) : 0, at;

	while (n > 0 && isspace((unsigned char)text[n - 1]))
		n--;
	for (at = n; at > 0 && text[at - 1] != '\n' && text[at - 1] != '\r';)
		at--;
	if (n <= 0 || path_append_shown(&shown, text + at, (size_t)(n - at)) < 0 ||
	    !buf_str(&shown))
		return NULL;
	return strndup(buf_str(&shown), TOLD_MAX);
}

/* Once its pipes are closed it has nothing left to do; one that stays all the same is killed. */
static int wait_for(struct ssh_child *c)
{
	static const int signals[] = { SIGTERM, SIGKILL };
	uint64_t until = sys_boot_ms() + END_MS;
	int status = 0;
	size_t n = 0;

	cleanup_close(&c->in);
	cleanup_close(&c->out);
	while (c->pid > 0 && waitpid(c->pid, &status, WNOHANG) == 0) {
		const uint64_t now = sys_boot_ms();

		if (now < until) {
			/* In steps: not every system tells of the end at once. */
			sys_wait_process(c->pid, 20);
			continue;
		}
		if (n < ARRAY_LEN(signals))
			kill(c->pid, signals[n++]);
		until = now + END_MS;
	}
	c->pid = 0;
	return status;
}

int ssh_explain(struct ssh_child *c, const struct ssh_place *p, struct err *err)
{
	const int status = wait_for(c);
	AUTO_FREE char *told = last_line(c->errors);
	int code = -ECONNRESET;

	ssh_end(c);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return err_set(err, -ENOTSUP,
			       "'%s' has no snapcow in its PATH (SNAPCOW_SSH_PROGRAM names it)%s%s",
			       p->host, told ? ": " : "", told ? told : "");
	if (told && (strstr(told, "Permission denied") || strstr(told, "verification failed")))
		code = -EACCES;
	else if (told && (strstr(told, "resolve") || strstr(told, "No route")))
		code = -EHOSTUNREACH;
	else if (told && strstr(told, "refused"))
		code = -ECONNREFUSED;
	return err_set(err, code, "ssh to '%s' ended: %s", p->host, told ? told : "without a word");
}

void ssh_end(struct ssh_child *c)
{
	IGNORE_RESULT(wait_for(c), "nothing depends on its status");
	cleanup_close(&c->errors);
}
