#include "engine/host/self-process-i.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>

#include "base/sys.h"

extern char **environ;

/* posix_spawn() and not fork(): the process has threads.  All other descriptors close. */
int self_start(char *const argv[], int fd, pid_t *ret)
{
	char self[PATH_MAX];
	const char *path = sys_self_path(self, sizeof(self));
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none;
	int rc = 0;

	if (!path)
		return -ENOMEM;
	sigemptyset(&none);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	posix_spawn_file_actions_init(&actions);
	if (fd >= 0)
		rc = posix_spawn_file_actions_adddup2(&actions, fd, SELF_FD);
	if (rc == 0)
		rc = posix_spawn(ret, path, &actions, &attr, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	return -rc;
}
