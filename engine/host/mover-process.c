#include "engine/host/mover-process-i.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/sys.h"
#include "engine/api/mover.h"
#include "engine/host/self-process-i.h"

/* Anybody of this user can stop it for good, so it has a deadline. */
static int wait_for(pid_t mover, unsigned ms)
{
	const uint64_t until = sys_boot_ms() + ms;
	uint64_t now = 0;
	int status;
	pid_t pid;

	while ((pid = waitpid(mover, &status, WNOHANG)) == 0 && (now = sys_boot_ms()) < until)
		sys_wait_process(mover, (int)(until - now));
	if (pid == 0) {
		kill(mover, SIGKILL);
		while (waitpid(mover, &status, 0) < 0 && errno == EINTR)
			;
		return -ETIMEDOUT;
	}
	if (pid < 0)
		return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EINTR;
}

/* Is it this machine that does not let us? */
static bool never_can(int code)
{
	return code == -EPERM || code == -EACCES || code == -ENOSYS || code == -ENOSPC ||
	       code == -EINVAL || code == -EBUSY;
}

int mover_move(const char *from, const char *to, unsigned ms, struct err *err)
{
	char name[] = MOVER_NAME, text[64];
	AUTO_FREE char *old = strdup(from), *new = strdup(to);
	char *argv[] = { name, old, new, NULL };
	pid_t mover;
	int r;

	if (!old || !new)
		return err_nomem(err);
	r = self_start(argv, -1, &mover);
	if (r >= 0)
		r = wait_for(mover, ms);
	if (r >= 0)
		return 0;
	return err_set(err, never_can(r) ? -ENOTSUP : r, "moving the mount at '%s' to '%s': %s",
		       from, to, sys_errno_text(-r, text, sizeof(text)));
}
