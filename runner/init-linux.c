/*
 * init-linux.c - process 1 of a run: builds its world, starts it, reaps, forwards, ends it.
 *
 * It is a fork of the caller that never execs: not dumpable, and with memory that belongs to the
 * user namespace outside, so that no process inside can look into it, trace it or see it in /proc.
 * It blocks all signals, and the kernel shields process 1 from SIGKILL and SIGSTOP from inside: its
 * orders come through the line. When it ends, for whatever reason, the kernel kills every other
 * process of the namespace before anybody can wait for it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sys.h"
#include "runner/sandbox-i.h"

/* The caller's word. */
static int wait_for(struct run *run, enum line_kind kind, struct line_msg *msg, int *fds,
		    size_t *n_fds, struct err *err)
{
	int r = line_receive(run->line, msg, fds, n_fds);

	if (r == 0)
		_exit(125); /* the caller gave up, and has said why itself */
	if (r > 0 && msg->kind != kind)
		r = -EBADMSG;
	return r < 0 ? err_wrap(err, r, "waiting for the caller of the run") : 0;
}

static int wait_for_ids(struct run *run, struct err *err)
{
	struct line_msg msg;
	int fds[LINE_FDS_MAX];
	size_t n_fds;

	return wait_for(run, LINE_IDS, &msg, fds, &n_fds, err);
}

/* With what the run sees, and the trees of it that only the caller could make. */
static int wait_for_go(struct run *run, struct err *err)
{
	struct line_msg msg;
	int fds[LINE_FDS_MAX];
	size_t n_fds, next = 0;
	int r = wait_for(run, LINE_GO, &msg, fds, &n_fds, err);

	if (r < 0)
		return r;
	if (run->room)
		room_show(run->room, &run->own);
	if (run->spec->root && n_fds > 0)
		run->clone = fds[next++];
	for (size_t i = 0; i < run->spec->n_mounts && next < n_fds; i++) {
		if (run->spec->mounts[i].kind == SANDBOX_BIND && run->spec->mounts[i].owned)
			run->trees[i] = fds[next++];
	}
	run->walls |= msg.walls;
	run->held = (unsigned int)msg.value;
	return 0;
}

static int seal(struct err *err)
{
	int r = caps_bound(err);

	return r < 0 ? r : caps_drop(err);
}

static int build_world(struct run *run, struct err *err)
{
	int r = wait_for_ids(run, err);

	if (r == 0)
		r = limits_bar_core(err);
	if (r == 0)
		r = ns_become(run, err);
	if (r == 0)
		r = ns_settle(run, err);
	if (r == 0)
		r = mounts_begin(run, err);
	if (r == 0)
		r = wait_for_go(run, err);
	if (r == 0)
		r = ns_hide_cgroups(err);
	if (r == 0)
		r = mounts_enter(run, err);
	/*
	 * Before anybody is forked: what they inherit is nothing, and we need none any more.  Root of a
	 * root of its own has some, and without no_new_privs it takes one to enter the filter and
	 * Landlock: there each process drops the rest when it has done that.
	 */
	if (r == 0 && run->spec->root)
		r = caps_bound_root(err);
	else if (r == 0)
		r = seal(err);
	run->walls |= WALL_BIT(WALL_CAPS);
	return r;
}

/* What the helper does is its own affair, behind the walls of the command. */
NORETURN static void helper_main(struct run *run, const struct sandbox_helper *helper, int ready)
{
	struct sandbox_spec own = *run->spec;
	struct err err = { 0 };
	int r, fd;
	ssize_t said;

	own.limits.nofile = 0; /* what it holds open for the command it bounds by itself */
	run->spec = &own;
	r = landlock_enter(run, &err);
	if (r == 0)
		r = seccomp_enter(run, false, &err);
	if (r == 0)
		r = limits_apply(run, true, &err);
	if (r == 0 && run->spec->root)
		r = seal(&err);
	if (r < 0)
		line_give_up(run->line, &err, false);
	/* Nothing but what it is given: 0 is its descriptor, 1 and 2 say that it is ready, or not. */
	fd = fcntl(helper->fd, F_DUPFD_CLOEXEC, 3);
	ready = fcntl(ready, F_DUPFD_CLOEXEC, 3);
	if (fd < 0 || ready < 0 || dup2(fd, 0) < 0 || dup2(ready, 1) < 0 || dup2(ready, 2) < 0)
		_exit(125);
	if (syscall(SYS_close_range, 3, ~0u, 0) < 0)
		_exit(125);
	if (helper->main(helper->ctx, 0, 1, &err) == 0)
		_exit(0);
	said = err.code < 0 ? write(2, &err, sizeof(err)) : 0;
	_exit(said < 0 ? 126 : 125);
}

/* A byte if it is ready; if not, why, or nothing at all. */
static int hear_helper(int ready, struct err *err)
{
	struct err why = { 0 };
	ssize_t n;

	do {
		n = read(ready, &why, sizeof(why));
	} while (n < 0 && errno == EINTR);
	if (n == 1)
		return 0;
	why.msg[sizeof(why.msg) - 1] = '\0';
	if (n == sizeof(why) && why.code < 0)
		return err_set(err, why.code, "%s", why.msg);
	return err_set(err, -EIO, "the helper of the run ended before it was ready");
}

static int start_helper(struct run *run, const struct sandbox_helper *helper, struct err *err)
{
	int ready[2], r;
	pid_t pid;

	if (pipe2(ready, O_CLOEXEC) < 0)
		return err_sys(err, "making a pipe to the helper of the run");
	pid = fork();
	if (pid == 0) {
		close(ready[0]);
		helper_main(run, helper, ready[1]);
	}
	close(ready[1]);
	if (pid < 0) {
		close(ready[0]);
		return err_sys(err, "starting the helper of the run");
	}
	r = hear_helper(ready[0], err);
	close(ready[0]);
	return r;
}

/* Reap every process that has ended; true once the command is among them. */
static bool reap(pid_t command, int *ret_status)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == command) {
			*ret_status = status;
			return true;
		}
	}
	return false;
}

static void obey(struct run *run, pid_t command)
{
	struct line_msg msg;
	int fds[LINE_FDS_MAX];
	size_t n_fds;

	if (line_receive(run->line, &msg, fds, &n_fds) <= 0)
		_exit(125); /* the watcher is gone, and with us all the others */
	if (msg.kind == LINE_SIGNAL)
		kill(-command, msg.value);
	else if (msg.kind == LINE_END)
		kill(-1, msg.value);
}

/*
 * systemd removes a scope as soon as its last process ends, and with it what the run has used and
 * whether memory ran out.  So the init stays until the caller has read that, or is gone.
 */
static void wait_until_counted(const struct run *run)
{
	struct line_msg msg;
	int fds[LINE_FDS_MAX];
	size_t n_fds;

	if (cgroup_kind(run->cgroup) != CGROUP_SCOPE)
		return;
	while (line_receive(run->line, &msg, fds, &n_fds) > 0 && msg.kind != LINE_COUNTED)
		;
}

NORETURN static void tend(struct run *run, pid_t command, int children)
{
	struct pollfd fds[] = {
		{ .fd = run->line, .events = POLLIN },
		{ .fd = children, .events = POLLIN },
	};
	struct line_msg ended = { .kind = LINE_ENDED };

	for (;;) {
		struct signalfd_siginfo info;

		if (poll(fds, ARRAY_LEN(fds), -1) < 0 && errno != EINTR)
			_exit(125);
		if (fds[1].revents && read(children, &info, sizeof(info)) >= 0 &&
		    reap(command, &ended.value))
			break;
		if (fds[0].revents)
			obey(run, command);
	}
	IGNORE_RESULT(line_send(run->line, &ended, NULL, 0), "nobody is left to read it");
	wait_until_counted(run);
	_exit(0);
}

/* Keep these descriptors, as 0, 1, 2, and no others. */
static int keep_descriptors(int *const fds[3], struct err *err)
{
	int copies[3];

	for (int i = 0; i < 3; i++) {
		copies[i] = fcntl(*fds[i], F_DUPFD_CLOEXEC, 3);
		if (copies[i] < 0)
			return err_sys(err, "keeping what the init of the run needs");
	}
	for (int i = 0; i < 3; i++) {
		if (dup2(copies[i], i) < 0)
			return err_sys(err, "keeping what the init of the run needs");
		*fds[i] = i;
	}
	if (syscall(SYS_close_range, 3, ~0u, 0) < 0)
		return err_sys(err, "closing the descriptors of the run's init");
	return 0;
}

/* The child waits until its init stands: a byte, or the end if that failed. */
NORETURN static void child_when_ready(struct run *run, int begin)
{
	char byte;

	if (read(begin, &byte, 1) != 1)
		_exit(125);
	child_main(run);
}

/* Fork the child, and be no more than what tends it. */
static int start_child(struct run *run, int *children, pid_t *ret, struct err *err)
{
	int begin[2];
	int *const kept[] = { &run->line, children, &begin[1] };
	pid_t pid;
	int r;

	if (pipe2(begin, O_CLOEXEC) < 0)
		return err_sys(err, "making a pipe to the first process of the run");
	pid = fork();
	if (pid == 0) {
		close(begin[1]);
		child_when_ready(run, begin[0]);
	}
	if (pid < 0)
		return err_sys(err, "starting the first process of the run");
	r = keep_descriptors(kept, err);
	if (r == 0 && run->spec->root)
		r = seal(err);
	if (r < 0)
		return r;
	if (write(begin[1], "", 1) != 1)
		return err_sys(err, "starting the first process of the run");
	close(begin[1]);
	*ret = pid;
	return 0;
}

extern char **environ;

/* What the caller's variables hold is not in memory that a run could ever lay hands on. */
static void forget_environment(void)
{
	for (char **word = environ; word && *word; word++)
		sys_wipe(*word, strlen(*word));
}

void init_main(struct run *run)
{
	struct err err = { 0 };
	sigset_t all;
	int r, children;
	pid_t command = -1;

	forget_environment();
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	r = build_world(run, &err);
	for (size_t i = 0; r == 0 && i < run->spec->n_helpers; i++)
		r = start_helper(run, &run->spec->helpers[i], &err);
	sigemptyset(&all);
	sigaddset(&all, SIGCHLD);
	children = r == 0 ? signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK) : -1;
	if (r == 0 && children < 0)
		r = err_sys(&err, "watching the processes of the run");
	if (r == 0)
		r = start_child(run, &children, &command, &err);
	if (r < 0)
		line_give_up(run->line, &err, false);
	tend(run, command, children);
}
