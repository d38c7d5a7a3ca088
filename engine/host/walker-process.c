#include "engine/host/walker-process-i.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sys.h"
#include "engine/api/walker.h"

extern char **environ;

/* posix_spawn() and not fork(): the process has threads.  All other descriptors close. */
int walker_start(const char *store, int tree, bool ahead, pid_t *ret)
{
	char self[PATH_MAX], name[] = WALKER_NAME;
	const char *path = sys_self_path(self, sizeof(self));
	AUTO_FREE char *of = strdup(store); /* shown in the list of processes */
	char parent[16], *argv[] = { name, of, ahead ? parent : NULL, NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none;
	int rc;

	if (!path || !of)
		return -ENOMEM;
	snprintf(parent, sizeof(parent), "%d", (int)getpid());
	sigemptyset(&none);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	posix_spawn_file_actions_init(&actions);
	rc = posix_spawn_file_actions_adddup2(&actions, tree, WALKER_FD);
	if (rc == 0)
		rc = posix_spawn(ret, path, &actions, &attr, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	return -rc;
}

void walker_kill(pid_t walker)
{
	/* It needs a processor in order to die. */
	IGNORE_RESULT(setpriority(PRIO_PROCESS, (id_t)walker, 0), "then it takes longer");
	kill(walker, SIGKILL);
}

void walker_await(pid_t walker)
{
	siginfo_t info;
	int rc;

	do
		rc = waitid(P_PID, (id_t)walker, &info, WEXITED | WNOWAIT);
	while (rc < 0 && errno == EINTR);
}

bool walker_reap(pid_t walker)
{
	int status;

	return waitpid(walker, &status, 0) == walker && WIFEXITED(status) &&
	       WEXITSTATUS(status) == 0;
}
