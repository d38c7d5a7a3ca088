/*
 * The process is forked twice.  The one in between ends at once, with the errno of the second fork,
 * and leads the new session: so the other is an orphan and can never get a terminal.
 */
#include "engine/ask/detach-i.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/find/engine-i.h"

NORETURN static void fork_again(detach_fn fn, void *ctx)
{
	pid_t child;

	setsid();
	child = fork();
	if (child == 0)
		fn(ctx);
	_exit(child < 0 ? errno : 0);
}

int detach_process(struct engine *e, const char *what, detach_fn fn, void *ctx, struct err *err)
{
	pid_t between;
	int status;

	if (e) {
		store_close(e->store);
		e->store = NULL;
	}
	/* Text that is buffered would be printed twice. */
	fflush(NULL);
	between = fork();
	if (between == 0)
		fork_again(fn, ctx);
	if (between < 0)
		return err_sys(err, "making a process for %s", what);
	while (waitpid(between, &status, 0) < 0)
		if (errno != EINTR)
			return err_sys(err, "making a process for %s", what);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	errno = WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
	return err_sys(err, "making a process for %s", what);
}

int detach_line(int ret[2], struct err *err)
{
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ret) < 0)
		return err_sys(err, "making the line to another process");
	for (int i = 0; i < 2; i++)
		fcntl(ret[i], F_SETFD, FD_CLOEXEC);
	return 0;
}
