#include "runner/net/lookup.h"

#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/sys.h"

_Static_assert(sizeof(struct addr) * LOOKUP_ADDRS_MAX <= 512, "one write to a pipe, never cut");

NORETURN static void ask_resolver(const char *host, int out)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct addr found[LOOKUP_ADDRS_MAX];
	struct addrinfo *list = NULL;
	size_t n = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dup2(out, 3) < 0)
		_exit(1);
	sys_close_from(4);
	memset(found, 0, sizeof(found));
	if (getaddrinfo(host, NULL, &hints, &list) == 0)
		for (struct addrinfo *a = list; a && n < LOOKUP_ADDRS_MAX; a = a->ai_next)
			n += addr_from_socket(a->ai_addr, &found[n]);
	_exit(fdio_write(3, found, n * sizeof(found[0])) < 0);
}

int lookup_start(struct lookup *l, struct loop *loop, const char *host, loop_fn done, void *owner,
		 struct err *err)
{
	int fds[2], r;

	r = sys_pipe(fds);
	if (r < 0)
		return err_set(err, r, "making a pipe to look up '%s'", host);
	l->pid = fork();
	if (l->pid == 0)
		ask_resolver(host, fds[1]);
	close(fds[1]);
	if (l->pid < 0) {
		close(fds[0]);
		return err_sys(err, "starting a process to look up '%s'", host);
	}
	l->watch = (struct loop_watch){ .fd = fds[0], .ready = done, .owner = owner };
	r = loop_watch(loop, &l->watch, EPOLLIN);
	if (r < 0) {
		lookup_stop(l, loop);
		return err_set(err, r, "waiting for the address of '%s'", host);
	}
	return 0;
}

void lookup_read(struct lookup *l)
{
	ssize_t n = read(l->watch.fd, l->addrs, sizeof(l->addrs));

	l->n = n > 0 ? (size_t)n / sizeof(l->addrs[0]) : 0;
}

void lookup_stop(struct lookup *l, struct loop *loop)
{
	loop_stop(loop, &l->watch);
	if (l->pid > 0) {
		kill(l->pid, SIGKILL);
		while (waitpid(l->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	l->pid = 0;
}
