/*
 * Signals that ask a long act to end: while they are caught, each makes a descriptor readable.  One that was ignored
 * when the process began, as nohup does, stays ignored.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "base/sys.h"
#include "engine/experiment/experiment-i.h"

static int wake_fd = -1;

static void wake(int sig)
{
	const int was = errno;
	const char c = (char)sig;

	IGNORE_RESULT(write(wake_fd, &c, 1), "a full pipe wakes as well");
	errno = was;
}

static const int caught[] = { SIGINT, SIGTERM, SIGHUP };

int signals_begin(struct signals *s, struct err *err)
{
	const struct sigaction ours = { .sa_handler = wake, .sa_flags = SA_RESTART };
	int r = sys_pipe(s->pipe);

	if (r < 0)
		return err_set(err, r, "making a pipe");
	IGNORE_RESULT(fcntl(s->pipe[1], F_SETFL, O_NONBLOCK), "it is empty");
	wake_fd = s->pipe[1];
	for (size_t i = 0; i < ARRAY_LEN(caught); i++) {
		sigaction(caught[i], NULL, &s->was[i]);
		if (s->was[i].sa_handler != SIG_IGN)
			sigaction(caught[i], &ours, NULL);
	}
	return 0;
}

bool signals_end(struct signals *s)
{
	struct pollfd p = { .fd = s->pipe[0], .events = POLLIN };
	bool came;

	for (size_t i = 0; s->pipe[0] >= 0 && i < ARRAY_LEN(caught); i++)
		sigaction(caught[i], &s->was[i], NULL);
	came = s->pipe[0] >= 0 && poll(&p, 1, 0) > 0;
	for (int i = 0; i < 2; i++) {
		cleanup_close(&s->pipe[i]);
		s->pipe[i] = -1;
	}
	return came;
}
