#include "cli/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/path.h"
#include "base/sys.h"

extern char **environ;

static bool is_on_path(const char *name)
{
	const char *given = getenv("PATH");
	AUTO_FREE char *path = given ? strdup(given) : NULL;
	char *rest = path;

	for (const char *dir; path && (dir = strsep(&rest, ":"));) {
		AUTO_FREE char *file = path_join(*dir != '\0' ? dir : ".", name);

		if (file && access(file, X_OK) == 0)
			return true;
	}
	return false;
}

/* As a shell takes it; NULL: none is wanted. */
static const char *choose(void)
{
	const char *given = getenv("SNAP_PAGER");

	if (!given)
		given = getenv("PAGER");
	if (given)
		return *given == '\0' || strcmp(given, "cat") == 0 ? NULL : given;
	return is_on_path("less") ? "less -FRX" : NULL;
}

/* With the pipe for its input, and the signals of a terminal as anybody has them. */
static int spawn(const char *command, int input, pid_t *ret)
{
	const char *const argv[] = { "sh", "-c", command, NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t normal;
	int rc;

	sigemptyset(&normal);
	sigaddset(&normal, SIGPIPE);
	sigaddset(&normal, SIGINT);
	sigaddset(&normal, SIGQUIT);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigdefault(&attr, &normal);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, input, 0);
	rc = posix_spawn(ret, "/bin/sh", &actions, &attr, (char **)(uintptr_t)argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	return -rc;
}

/* A key that ends the pager must not end us before it: it has the terminal. */
static void ignore_signals(struct pager *p)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };

	sigaction(SIGPIPE, &ignore, &p->pipe);
	sigaction(SIGINT, &ignore, &p->interrupt);
	sigaction(SIGQUIT, &ignore, &p->quit);
}

static void restore_signals(const struct pager *p)
{
	sigaction(SIGPIPE, &p->pipe, NULL);
	sigaction(SIGINT, &p->interrupt, NULL);
	sigaction(SIGQUIT, &p->quit, NULL);
}

/* Standard output becomes the pipe. */
static int redirect(struct pager *p, int to)
{
	fflush(p->out);
	p->saved = fcntl(fileno(p->out), F_DUPFD_CLOEXEC, 3);
	if (p->saved < 0)
		return -errno;
	return dup2(to, fileno(p->out)) < 0 ? -errno : 0;
}

static int start(struct pager *p, const char *command)
{
	AUTO_CLOSE int input = -1, output = -1;
	int fds[2], r;

	r = sys_pipe(fds);
	if (r < 0)
		return r;
	input = fds[0];
	output = fds[1];
	p->command = strdup(command);
	if (!p->command)
		return -ENOMEM;
	r = spawn(command, input, &p->pid);
	if (r < 0)
		return r;
	ignore_signals(p);
	return redirect(p, output);
}

void pager_begin(struct pager *p, const struct invocation *inv)
{
	const char *command;
	int r;

	*p = (struct pager){ .saved = -1, .out = inv->out };
	command = inv->json || !isatty(fileno(inv->out)) ? NULL : choose();
	r = command ? start(p, command) : 0;
	if (r < 0)
		log_warn("pager '%s': %s, continuing", command, strerror(-r));
}

bool pager_was_left(const struct pager *p)
{
	return p->pid > 0 && ferror(p->out);
}

void pager_end(struct pager *p)
{
	int status = 0;

	if (p->pid > 0) {
		fflush(p->out);
		/* What was not taken any more is gone, and so is the failure of it. */
		clearerr(p->out);
		if (p->saved >= 0)
			dup2(p->saved, fileno(p->out));
		while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
			continue;
		restore_signals(p);
		if (WIFEXITED(status) && (WEXITSTATUS(status) == 126 || WEXITSTATUS(status) == 127))
			log_warn("pager '%s' could not be run, and nothing was shown", p->command);
	}
	cleanup_close(&p->saved);
	free(p->command);
	*p = (struct pager){ .saved = -1 };
}
