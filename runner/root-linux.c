/*
 * root-linux.c - a whole root file system for a run, mounted inside.
 *
 * It is a FUSE mount made in the run's user namespace, so the kernel itself translates ids:
 * requests have the run's ids, and no id of the host is ever stored. A process that stays outside
 * of the run's process namespace makes it: then threads have the numbers in requests that their
 * server knows them by. The caller has the connection served, and sends the mount to the init.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "runner/mount-api.h"
#include "runner/sandbox-i.h"

#define DEVICE "/dev/fuse"

/* Set-id programs of the root work in it; what they may become are ids of the run. */
#define ROOT_ATTRS (MOUNT_ATTR_NODEV | MOUNT_ATTR_NOATIME)

static bool set_flag(int fs, const char *key)
{
	return syscall(SYS_fsconfig, fs, FSCONFIG_SET_FLAG, key, NULL, 0) == 0;
}

static int make_tree(const struct run *run, int connection, struct err *err)
{
	AUTO_CLOSE int fs = mount_fs_open("fuse"), tree = -1;
	const bool others = run->ids != SANDBOX_IDS_ONE; /* 0 among them */
	char number[16], uid[16], gid[16];

	snprintf(number, sizeof(number), "%d", connection);
	snprintf(uid, sizeof(uid), "%u", others ? 0 : run->spec->uid);
	snprintf(gid, sizeof(gid), "%u", others ? 0 : run->spec->gid);
	if (fs < 0 || mount_fs_set(fs, "source", "snapcow") < 0 ||
	    mount_fs_set(fs, "fd", number) < 0 || mount_fs_set(fs, "rootmode", "40000") < 0 ||
	    mount_fs_set(fs, "user_id", uid) < 0 || mount_fs_set(fs, "group_id", gid) < 0 ||
	    !set_flag(fs, "default_permissions") || !set_flag(fs, "allow_other"))
		return err_sys(err, "preparing the root of the run");
	tree = mount_fs_make(fs, ROOT_ATTRS);
	if (tree < 0 && errno == EPERM)
		return err_set(err, -ENOTSUP,
			       "making the root of the run: this kernel mounts no FUSE in a user "
			       "namespace (Linux 4.18 does)");
	if (tree < 0)
		return err_sys(err, "making the root of the run");
	return TAKE_FD(tree);
}

/*
 * In the run's user namespace, which its maker may enter; the mount namespace is one of our own, since
 * it takes one to make a mount.  What is made belongs to the first.
 */
static int enter_namespaces(const struct run *run, struct err *err)
{
	if (setns(run->userns, CLONE_NEWUSER) < 0)
		return err_sys(err, "entering the user namespace of the run");
	if (unshare(CLONE_NEWNS) < 0)
		return err_sys(err, "making a mount namespace for the root of the run");
	return 0;
}

/* The list of system calls must have somebody to hear it; and what the clerk does is for user 0. */
static bool has_clerk(const struct run *run)
{
	return run->spec->refused && (run->spec->uid == 0 || run->ids != SANDBOX_IDS_ONE);
}

/* Says LINE_ROOT with the connection and the mount, or LINE_FAILED. */
NORETURN static void maker_main(const struct run *run, int line)
{
	const struct line_msg made = { .kind = LINE_ROOT };
	struct err err = { 0 };
	int fds[] = { -1, -1 };
	sigset_t all;
	int r;

	/* Signals of the terminal are for the run; the clerk must outlive them. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	r = enter_namespaces(run, &err);
	if (r < 0)
		line_give_up(line, &err, false);
	fds[0] = open(DEVICE, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (fds[0] < 0) {
		err_sys(&err, "opening '" DEVICE "' for the root of the run");
		line_give_up(line, &err, false);
	}
	fds[1] = make_tree(run, fds[0], &err);
	if (fds[1] < 0)
		line_give_up(line, &err, false);
	if (line_send(line, &made, fds, 2) < 0)
		_exit(125);
	if (has_clerk(run))
		clerk_serve(line, fds[1]);
	_exit(0);
}

static int hear_maker(struct run *run, int line, int *ret_connection, struct err *err)
{
	int fds[LINE_FDS_MAX], r;
	struct line_msg msg;
	size_t n_fds;

	r = line_receive(line, &msg, fds, &n_fds);
	if (r > 0 && msg.kind == LINE_FAILED)
		return err_set(err, msg.err.code < 0 ? msg.err.code : -EIO, "%s", msg.err.msg);
	if (r > 0 && (msg.kind != LINE_ROOT || n_fds != 2))
		r = -EBADMSG;
	if (r <= 0)
		return err_wrap(err, r == 0 ? -ECONNRESET : r, "making the root of the run");
	*ret_connection = fds[0];
	run->clone = fds[1];
	return 0;
}

/* The mount, in run->clone, and its connection. */
static int make(struct run *run, int *ret_connection, struct err *err)
{
	int ends[2], r;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_sys(err, "making the root of the run");
	pid = fork();
	if (pid == 0) {
		close(ends[0]);
		maker_main(run, ends[1]);
	}
	close(ends[1]);
	r = pid < 0 ? err_sys(err, "making the root of the run")
		    : hear_maker(run, ends[0], ret_connection, err);
	if (r >= 0 && has_clerk(run)) {
		run->clerk = (struct clerk){ .line = ends[0], .pid = pid };
		return 0;
	}
	close(ends[0]);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return r;
}

int root_open(struct run *run, struct err *err)
{
	const struct sandbox_root *root = run->spec->root;
	const uint32_t one[] = { run->spec->uid, run->spec->gid };
	AUTO_CLOSE int connection = -1;
	int r;

	if (!root)
		return 0;
	r = make(run, &connection, err);
	/* Ours is closed again: when the server dies, the run must not wait for it. */
	if (r < 0)
		return r;
	return root->serve(root->ctx, connection, run->ids == SANDBOX_IDS_ONE ? one : NULL, err);
}
