#include "cowfs/fuse/fusermount.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fdio.h"

#define PROGRAM "fusermount3"
#define COMM_FD 3 /* the number its end of the socket has there */

extern char **environ;

struct helper {
	pid_t pid;
	int said; /* owned: what it writes to stderr */
};

static int no_helper(struct err *err)
{
	return err_set(err, -ENOTSUP,
		       "there is no " PROGRAM
		       ", which mounts for users other than root: install fuse3");
}

/* The environment and where it finds its socket.  Borrowed strings in an owned array. */
static char **helper_environment(void)
{
	static char comm[] = "_FUSE_COMMFD=3";
	size_t n = 0, kept = 0;
	char **env;

	while (environ[n] != NULL)
		n++;
	env = calloc(n + 2, sizeof(*env));
	if (env == NULL)
		return NULL;
	for (size_t i = 0; i < n; i++)
		if (strncmp(environ[i], comm, strcspn(comm, "=") + 1) != 0)
			env[kept++] = environ[i];
	env[kept] = comm;
	return env;
}

/* An end of a pipe or socket at a number that none of the standard ones needs. */
static int away_from_std(int *fd)
{
	const int moved = fcntl(*fd, F_DUPFD_CLOEXEC, COMM_FD + 1);

	if (moved < 0)
		return -errno;
	close(*fd);
	*fd = moved;
	return 0;
}

/*
 * posix_spawn() and not fork(): the process has threads.  `comm` is given on as COMM_FD; -1: none.
 * Signals are as a program expects them, whatever the calling thread blocks.
 */
static int spawn(char *const argv[], int comm, int err_fd, pid_t *ret)
{
	AUTO_FREE char **env = helper_environment();
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none;
	int rc;

	if (env == NULL)
		return -ENOMEM;
	sigemptyset(&none);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	posix_spawn_file_actions_init(&actions);
	rc = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDWR, 0);
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDOUT_FILENO);
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(&actions, err_fd, STDERR_FILENO);
	if (rc == 0 && comm >= 0)
		rc = posix_spawn_file_actions_adddup2(&actions, comm, COMM_FD);
	if (rc == 0)
		rc = posix_spawnp(ret, PROGRAM, &actions, &attr, argv, env);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	return -rc;
}

static int start_helper(struct helper *h, char *const argv[], int comm, struct err *err)
{
	int fds[2], r;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_sys(err, "making a pipe");
	r = away_from_std(&fds[1]);
	if (r == 0)
		r = spawn(argv, comm, fds[1], &h->pid);
	close(fds[1]);
	if (r < 0) {
		close(fds[0]);
		return r == -ENOENT ? no_helper(err) : err_set(err, r, "cannot run " PROGRAM);
	}
	h->said = fds[0];
	return 0;
}

/* Its exit status; in `text` the first line of what it said, without its own name. */
static int finish(struct helper *h, char *text, size_t size)
{
	static const char prefix[] = PROGRAM ": ";
	ssize_t n;
	int status;
	pid_t pid;

	n = fdio_read(h->said, text, size - 1);
	close(h->said);
	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	if (strncmp(text, prefix, strlen(prefix)) == 0)
		memmove(text, text + strlen(prefix), strlen(text) - strlen(prefix) + 1);
	do {
		pid = waitpid(h->pid, &status, 0);
	} while (pid < 0 && errno == EINTR);
	/* A process that ignores SIGCHLD has no status to tell; then the text must do. */
	if (pid < 0)
		return text[0] == '\0' ? 0 : -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The descriptor that comes through a socket, or -1 if it was closed without one. */
static int receive_fd(int sock)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	char byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = sizeof(control.room),
	};
	const struct cmsghdr *c;
	ssize_t n;
	int fd;

	do {
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
	if (c == NULL || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return -1;
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

static int refused(const char *path, const char *said, struct err *err)
{
	const char *hint = "";

	if (strstr(said, "allow_other") != NULL)
		hint = "; put 'user_allow_other' into /etc/fuse.conf";
	else if (strstr(said, "/dev/fuse") != NULL)
		hint = "; it must have mode 0666, as udev gives it";
	return err_set(err, -ENOTSUP, PROGRAM " does not mount at '%s': %s%s", path,
		       said[0] != '\0' ? said : "it does not say why", hint);
}

int fusermount_mount(const char *path, const char *options, int *ret_fd, struct err *err)
{
	char *const argv[] = {
		(char[]){ PROGRAM }, (char[]){ "-o" },        (char *)(uintptr_t)options,
		(char[]){ "--" },    (char *)(uintptr_t)path, NULL,
	};
	AUTO_CLOSE int ours = -1, theirs = -1, fd = -1;
	struct helper h = { .said = -1 };
	char said[160];
	int fds[2], r, status;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return err_sys(err, "making a socket");
	ours = fds[0];
	theirs = fds[1];
	r = away_from_std(&theirs);
	if (r < 0)
		return err_set(err, r, "cannot run " PROGRAM);
	r = start_helper(&h, argv, theirs, err);
	if (r < 0)
		return r;
	close(TAKE_FD(theirs));
	fd = receive_fd(ours);
	status = finish(&h, said, sizeof(said));
	if (fd < 0 || status != 0)
		return refused(path, said, err);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int fusermount_unmount(const char *path, bool lazy, struct err *err)
{
	char *const argv[] = {
		(char[]){ PROGRAM },
		lazy ? (char[]){ "-uz" } : (char[]){ "-u" },
		(char[]){ "--" },
		(char *)(uintptr_t)path,
		NULL,
	};
	struct helper h = { .said = -1 };
	char said[160];
	int r = start_helper(&h, argv, -1, err);

	if (r < 0)
		return r;
	if (finish(&h, said, sizeof(said)) == 0)
		return 0;
	if (strstr(said, "not found in") != NULL || strstr(said, "not mounted") != NULL)
		return 0;
	if (strstr(said, "busy") != NULL)
		return err_set(err, -EBUSY, "'%s' is in use", path);
	return err_set(err, -EPERM, PROGRAM " does not unmount '%s': %s", path, said);
}
