#include "engine/host/walker-process-i.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "engine/api/walker.h"
#include "engine/host/self-process-i.h"

int walker_start(const char *store, int tree, bool ahead, pid_t *ret)
{
	char name[] = WALKER_NAME;
	AUTO_FREE char *of = strdup(store); /* shown in the list of processes */
	char parent[16], *argv[] = { name, of, ahead ? parent : NULL, NULL };

	static_assert(WALKER_FD == SELF_FD, "it looks for the tree there");
	if (!of)
		return -ENOMEM;
	snprintf(parent, sizeof(parent), "%d", (int)getpid());
	return self_start(argv, tree, ret);
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
