#include "cli/http/stop.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/sys.h"

static struct {
	int pipe[2];
	pid_t server;
} stop = { .pipe = { -1, -1 } };

/* A child has the handler until it resets it: it ends then, and not the server. */
static void note_stop(int signo)
{
	if (getpid() != stop.server)
		_exit(128 + signo);
	IGNORE_RESULT(write(stop.pipe[1], "", 1), "a full pipe says it already");
}

int stop_prepare(struct err *err)
{
	const struct sigaction action = { .sa_handler = note_stop };
	int r = sys_pipe(stop.pipe);

	if (r < 0)
		return err_wrap(err, r, "a pipe for signals");
	stop.server = getpid();
	if (fcntl(stop.pipe[1], F_SETFL, O_NONBLOCK) < 0 || sigaction(SIGTERM, &action, NULL) < 0 ||
	    sigaction(SIGINT, &action, NULL) < 0 || sigaction(SIGHUP, &action, NULL) < 0)
		return err_sys(err, "preparing for signals");
	signal(SIGPIPE, SIG_IGN);
	return stop.pipe[0];
}
