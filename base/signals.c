#include "base/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sys.h"

static int wake_fd = -1;

static void wake(int sig)
{
	const int was = errno;
	const char c = (char)sig;

	IGNORE_RESULT(write(wake_fd, &c, 1), "a full pipe wakes as well");
	errno = was;
}

/* The i-th; 0: there are no more. */
static int caught(const struct signals *s, size_t i)
{
	const int all[SIGNALS_MAX] = { SIGINT, SIGTERM, SIGHUP, s->also };

	return i < ARRAY_LEN(all) ? all[i] : 0;
}

int signals_begin(struct signals *s, int also, struct err *err)
{
	const struct sigaction ours = { .sa_handler = wake, .sa_flags = SA_RESTART };
	int r = sys_pipe(s->pipe);

	if (r < 0)
		return err_set(err, r, "making a pipe");
	IGNORE_RESULT(fcntl(s->pipe[1], F_SETFL, O_NONBLOCK), "it is empty");
	wake_fd = s->pipe[1];
	s->also = also;
	for (size_t i = 0; caught(s, i) != 0; i++) {
		sigaction(caught(s, i), NULL, &s->was[i]);
		if (s->was[i].sa_handler != SIG_IGN)
			sigaction(caught(s, i), &ours, NULL);
	}
	return 0;
}

int signals_end(struct signals *s)
{
	struct pollfd p = { .fd = s->pipe[0], .events = POLLIN };
	char sig = 0;

	for (size_t i = 0; s->pipe[0] >= 0 && caught(s, i) != 0; i++)
		sigaction(caught(s, i), &s->was[i], NULL);
	if (s->pipe[0] >= 0 && poll(&p, 1, 0) > 0 && read(s->pipe[0], &sig, 1) != 1)
		sig = 0;
	for (int i = 0; i < 2; i++)
		cleanup_close(&s->pipe[i]);
	return sig;
}
