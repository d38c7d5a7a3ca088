/*
 * clerk-linux.c - a process that does what the kernel refuses to a run with a root of its own.
 *
 * It is the process that made the mount. Of the run's namespaces it is in the user namespace only:
 * so it administers the mount, and nobody in the run can see it. The list of system calls hands
 * some calls to the caller, and the caller to the clerk: changes of owner where the run has one id
 * (owner-linux.c), and device nodes (device-linux.c).
 *
 * The clerk takes the root directory of the calling thread, and opens files as that thread would.
 * Any path leads into the run's own mounts. If the thread is gone and another has its number, the
 * clerk has no rights there: they end with the run's user namespace. The caller does not wait for
 * the clerk: one call is in progress at a time, and the answer comes as one more event of its loop.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "runner/clerk.h"
#include "runner/sandbox-i.h"

#define AT_LINE 3

/* --- the clerk ---------------------------------------------------------------------------- */

/* A string in the memory of the run, page by page; its length, or a negative errno. */
static ssize_t read_path(pid_t thread, uint64_t at, char path[static PATH_MAX])
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t len = 0;

	while (len < PATH_MAX) {
		const size_t rest = page - (size_t)((at + len) % page);
		const size_t n = rest < PATH_MAX - len ? rest : PATH_MAX - len;
		struct iovec here = { path + len, n };
		struct iovec there = { (void *)(uintptr_t)(at + len), n }; // NOLINT
		const char *end;

		if (process_vm_readv(thread, &here, 1, &there, 1, 0) != (ssize_t)n)
			return errno == EPERM ? -EPERM : -EFAULT;
		end = memchr(path + len, '\0', n);
		if (end)
			return end - path;
		len += n;
	}
	return -ENAMETOOLONG;
}

static int answer_call(const struct clerk_call *call, dev_t root)
{
	char path[PATH_MAX] = "";
	ssize_t len = 0;

	if (call->flags & ~(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW))
		return -EINVAL;
	if (call->path != 0)
		len = read_path(call->thread, call->path, path);
	if (len < 0)
		return len == -EPERM ? CLERK_BLIND : (int)len;
	return call->what == CLERK_OWNER ? owner_record(call, path, root) : device_make(call, path);
}

/* Without all else that it had when it was forked: pipes of the run must end with the run. */
static int keep_only(int line)
{
	AUTO_CLOSE int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	AUTO_CLOSE int far_line = fcntl(line, F_DUPFD_CLOEXEC, 16);
	AUTO_CLOSE int far_proc = proc < 0 ? -1 : fcntl(proc, F_DUPFD_CLOEXEC, 16);

	if (far_line < 0 || far_proc < 0)
		return -errno;
	if (dup2(far_line, AT_LINE) < 0 || dup2(far_proc, CLERK_PROC) < 0)
		return -errno;
	proc = far_line = far_proc = -1;
	for (int fd = 0; fd < AT_LINE; fd++)
		close(fd);
	return syscall(SYS_close_range, CLERK_PROC + 1, ~0u, 0) < 0 ? -errno : 0;
}

static ssize_t receive(int line, void *to, size_t len)
{
	ssize_t n;

	do
		n = recv(line, to, len, 0);
	while (n < 0 && errno == EINTR);
	return n;
}

/* What it makes must belong to an id of the run; a run by root has another 0 than its caller. */
static int become_root(void)
{
	return (getegid() != 0 && setresgid(0, 0, 0) < 0) ||
		       (geteuid() != 0 && setresuid(0, 0, 0) < 0)
		   ? -errno
		   : 0;
}

/* Without asking who serves it: nobody may do so yet. */
static dev_t device_of(int tree)
{
	struct statx st = { 0 };

	if (statx(tree, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &st) < 0)
		return 0;
	return makedev(st.stx_dev_major, st.stx_dev_minor);
}

void clerk_serve(int line, int tree)
{
	const dev_t root = device_of(tree);
	struct clerk_call call;

	/* In this order: a change of ids takes the signal back. */
	if (become_root() < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || keep_only(line) < 0)
		return;
	while (receive(AT_LINE, &call, sizeof(call)) == (ssize_t)sizeof(call)) {
		const int answer = answer_call(&call, root);

		if (send(AT_LINE, &answer, sizeof(answer), MSG_NOSIGNAL) < 0)
			return;
	}
}

/* --- the caller --------------------------------------------------------------------------- */

void clerk_end(struct clerk *c)
{
	cleanup_close(&c->line);
	if (c->pid <= 0)
		return;
	kill(c->pid, SIGKILL);
	while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
		;
	c->pid = 0;
}

/* Of an owner the answer is then what it always is without a clerk: done, and nothing was. */
static int lose(struct clerk *c, const char *why)
{
	if (c->what != CLERK_OWNER)
		return -EPERM;
	if (!c->lost)
		log_warn("not all owners of files are recorded: %s", why);
	c->lost = true;
	return 0;
}

static int lose_clerk(struct clerk *c)
{
	clerk_end(c);
	return lose(c, "the process that does it is gone");
}

int clerk_ask(struct clerk *c, uint64_t id, const struct clerk_call *call)
{
	c->id = id;
	c->what = call->what;
	if (c->line < 0)
		return call->what == CLERK_OWNER ? 0 : -EPERM;
	if (send(c->line, call, sizeof(*call), MSG_NOSIGNAL) < 0)
		return lose_clerk(c);
	c->waits = true;
	return 1;
}

int clerk_hear(struct clerk *c)
{
	int answer = 0;

	c->waits = false;
	if (receive(c->line, &answer, sizeof(answer)) != (ssize_t)sizeof(answer))
		return lose_clerk(c);
	if (answer == CLERK_BLIND)
		return lose(c, "a program of the run hides its memory");
	return answer < 0 ? answer : 0;
}
