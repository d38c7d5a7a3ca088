#include "cli/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/sys.h"

static int interrupted[2] = { -1, -1 };

static void on_interrupt(int sig)
{
	const int code = errno;
	const char byte = (char)sig;

	if (write(interrupted[1], &byte, 1) < 0)
		errno = code; /* then it is full, and heard already */
	errno = code;
}

int interrupt_catch(const int *signals, size_t n, struct err *err)
{
	const struct sigaction ours = { .sa_handler = on_interrupt, .sa_flags = SA_RESTART };
	int r = sys_pipe(interrupted);

	if (r < 0)
		return err_set(err, r, "making a pipe");
	for (int i = 0; i < 2; i++)
		fcntl(interrupted[i], F_SETFL, O_NONBLOCK);
	for (size_t i = 0; i < n; i++) {
		struct sigaction was;

		/* What nohup ignores stays ignored. */
		if (sigaction(signals[i], NULL, &was) < 0 || was.sa_handler != SIG_IGN)
			sigaction(signals[i], &ours, NULL);
	}
	return interrupted[0];
}
