/*
 * The daemon and its parent, the keeper (keeper.h), are this program under other names. The keeper
 * is a detached process (detach-i.h).
 *
 * Exactly one struct err comes through a pipe: code 0 means ready, and its sentence, if any, is for
 * the user. If cowfsd dies first, the pipe just closes. Under systemd the keeper holds the pipe
 * too, until systemd has moved both out of our group: otherwise the end of the command could kill
 * cowfsd.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/log.h"
#include "base/path.h"
#include "base/sys.h"
#include "engine/api/daemon.h"
#include "engine/api/keeper.h"
#include "engine/ask/ask-i.h"
#include "engine/ask/detach-i.h"

#define READY_MAX_MS 60000 /* after a crash there may be many clones to mount */
#define MOVED_MAX_MS 5000  /* then we go on without systemd's answer */

NORETURN static void fail(int fd, const char *what)
{
	struct err err = { 0 };

	err_sys(&err, "cannot start cowfsd: %s", what);
	IGNORE_RESULT(fdio_write(fd, &err, sizeof(err)), "then the pipe ends without a word");
	_exit(1);
}

/* cowfsd starts with default signals, the standard streams, the pipe and perhaps its socket. */
NORETURN static void become(const char *self, char *const argv[], int log_fd, int ready_fd,
			    int lock_fd, int listen_fd)
{
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	const int log = fcntl(log_fd >= 0 ? log_fd : null, F_DUPFD_CLOEXEC, 16);
	const int ready = fcntl(ready_fd, F_DUPFD_CLOEXEC, 16);
	const int lock = fcntl(lock_fd, F_DUPFD_CLOEXEC, 16);
	const int listens = listen_fd < 0 ? -1 : fcntl(listen_fd, F_DUPFD_CLOEXEC, 16);
	sigset_t none;

	if (null < 0 || log < 0 || ready < 0 || lock < 0)
		fail(ready_fd, "opening its streams");
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (dup2(null, STDIN_FILENO) < 0 || dup2(log, STDOUT_FILENO) < 0 ||
	    dup2(log, STDERR_FILENO) < 0 || dup2(ready, DAEMON_READY_FD) < 0 ||
	    dup2(lock, DAEMON_START_FD) < 0 ||
	    (listen_fd >= 0 && dup2(listens, DAEMON_LISTEN_FD) < 0))
		fail(ready, "opening its streams");
	sys_close_from(listen_fd < 0 ? DAEMON_LISTEN_FD : DAEMON_LISTEN_FD + 1);
	execv(self, argv);
	fail(DAEMON_READY_FD, self);
}

struct keeper {
	const char *self;
	char *const *argv;
	int log_fd, ready_fd, lock_fd;
};

NORETURN static void become_keeper(void *ctx)
{
	const struct keeper *k = ctx;

	become(k->self, k->argv, k->log_fd, k->ready_fd, k->lock_fd, -1);
}

/* Wait for data or the end; false if neither came in time. */
static bool wait_for_pipe(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int rc;

	do
		rc = poll(&p, 1, ms);
	while (rc < 0 && errno == EINTR);
	return rc != 0;
}

static int wait_ready(int fd, const char *log, struct err *err)
{
	struct err word;
	ssize_t n;

	if (!wait_for_pipe(fd, READY_MAX_MS))
		return err_set(err, -ETIMEDOUT, "cowfsd is not ready after %d s: see '%s'",
			       READY_MAX_MS / 1000, log);
	n = fdio_read(fd, &word, sizeof(word));
	if (n != sizeof(word))
		return err_set(err, -EIO, "cowfsd ended before it was ready: see '%s'", log);
	word.msg[sizeof(word.msg) - 1] = '\0';
	if (word.code < 0)
		return err_set(err, word.code, "%s", word.msg);
	if (!wait_for_pipe(fd, MOVED_MAX_MS))
		log_debug("systemd has not moved cowfsd within %d s", MOVED_MAX_MS / 1000);
	if (*word.msg != '\0')
		log_warn("%s", word.msg);
	return 0;
}

int launch_daemon(const char *store, bool create, int lock_fd, struct err *err)
{
	char path[PATH_MAX];
	const char *self = sys_self_path(path, sizeof(path));
	AUTO_FREE char *log = path_join(store, CONTROL_LOG);
	AUTO_FREE char *store_arg = strdup(store);
	char name[] = KEEPER_NAME, create_arg[] = "--create";
	char *argv[] = { name, store_arg, create ? create_arg : NULL, NULL };
	AUTO_CLOSE int log_fd = -1, from = -1, to = -1;
	struct keeper keeper = { .self = self, .argv = argv, .lock_fd = lock_fd };
	int fds[2], r;

	if (!log || !store_arg)
		return err_nomem(err);
	if (!self)
		return err_set(err, -ENOTSUP,
			       "cannot start cowfsd: this program does not find its own file "
			       "(is /proc mounted?)");
	keeper.log_fd = log_fd =
	    open(log, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	r = sys_pipe(fds);
	if (r < 0)
		return err_set(err, r, "cannot start cowfsd: no pipe");
	from = fds[0];
	keeper.ready_fd = to = fds[1];
	r = detach_process(NULL, "cowfsd", become_keeper, &keeper, err);
	if (r < 0)
		return r;
	close(TAKE_FD(to));
	return wait_ready(from, log, err);
}

int launch_here(const char *store, int lock_fd, int listen_fd, struct err *err)
{
	char path[PATH_MAX];
	const char *self = sys_self_path(path, sizeof(path));
	AUTO_FREE char *store_arg = strdup(store);
	AUTO_CLOSE int unread = open("/dev/null", O_WRONLY | O_CLOEXEC);
	char name[] = DAEMON_NAME, create[] = "--create", again[] = DAEMON_AGAIN;
	char listens[] = DAEMON_LISTEN;
	char *argv[] = { name, store_arg, create, again, listen_fd < 0 ? NULL : listens, NULL };

	if (!store_arg)
		return err_nomem(err);
	if (!self || unread < 0)
		return err_set(err, -ENOTSUP,
			       "cannot become cowfsd: this program does not find its own file "
			       "(is /proc mounted?)");
	become(self, argv, STDERR_FILENO, unread, lock_fd, listen_fd);
}
