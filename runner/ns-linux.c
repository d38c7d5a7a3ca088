/*
 * ns-linux.c - the namespaces of a run, and its ids in them.
 *
 * One clone3() makes all namespaces, so there is no moment at which the init is in some and not in
 * others. Only the cgroup namespace is made later: it shows as its root the group that the process
 * is in when it is made.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fdio.h"
#include "runner/sandbox-i.h"

#define OOM_SCORE "200" /* of 1000: as if it used a fifth of the memory more than it does */

/* What a kernel says where user namespaces are switched off, and what to do then. */
static int explain_clone(struct err *err, bool privileged)
{
	int code = -errno;

	if (code == -ENOSYS)
		return err_set(err, -ENOTSUP,
			       "making the namespaces of the run: this kernel has no clone3");
	if (code == -ENOSPC)
		return err_set(err, code,
			       "making the namespaces of the run: user.max_user_namespaces and "
			       "its kin allow no more");
	if (code == -EPERM && !privileged)
		return err_set(err, code,
			       "making the namespaces of the run: user namespaces are not allowed "
			       "here (kernel.unprivileged_userns_clone, "
			       "kernel.apparmor_restrict_unprivileged_userns)");
	errno = -code;
	return err_sys(err, "making the namespaces of the run");
}

int ns_clone(struct run *run, struct err *err)
{
	struct clone_args args = {
		.flags = CLONE_PIDFD | CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC |
			 CLONE_NEWUTS,
		.pidfd = (uintptr_t)&run->init_fd,
		.exit_signal = SIGCHLD,
	};
	int group = cgroup_clone_fd(run->cgroup);
	long pid;

	if (group >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)group;
	}
	if (run->spec->net != SANDBOX_NET_HOST)
		args.flags |= CLONE_NEWNET;

	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid < 0)
		return explain_clone(err, run->privileged);
	if (pid == 0)
		return 0;

	run->init = (pid_t)pid;
	run->walls |= WALL_BIT(WALL_USER) | WALL_BIT(WALL_MOUNT) | WALL_BIT(WALL_PID) |
		      WALL_BIT(WALL_IPC) | WALL_BIT(WALL_UTS) | WALL_BIT(WALL_CGROUPNS);
	if (run->spec->net != SANDBOX_NET_HOST)
		run->walls |= WALL_BIT(WALL_NET);
	return (int)pid;
}

static int write_proc(pid_t pid, const char *name, const char *text, struct err *err)
{
	AUTO_CLOSE int fd = -1;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, "opening '%s'", path);
	if (write(fd, text, strlen(text)) < 0)
		return err_sys(err, "writing '%s' to '%s'", text, path);
	return 0;
}

uint32_t sandbox_ids_outside(uint32_t *ret_n)
{
	*ret_n = ids_are_all_mapped() ? ID_COUNT : 0;
	return *ret_n > 0 ? ID_BASE : 0;
}

unsigned int ns_outside(unsigned int id)
{
	return ID_BASE + id;
}

/*
 * When the whole machine runs out of memory, a run goes before anything of the host's.  It can
 * take that back, down to the caller's own score: for accidents, not against attacks.
 */
static void give_way(pid_t pid)
{
	IGNORE_RESULT(write_proc(pid, "oom_score_adj", OOM_SCORE, NULL), "no wall hangs on it");
}

/*
 * At a hard limit of 0 a program of the host that core_pattern names would start; inside, nobody may
 * raise it to the 1 that limits_bar_core() sets.  Nor may an ordinary user here.
 */
static void allow_core_limit(pid_t pid)
{
	struct rlimit now;

	if (prlimit(pid, RLIMIT_CORE, NULL, &now) == 0 && now.rlim_max < 1)
		IGNORE_RESULT(prlimit(pid, RLIMIT_CORE, &(struct rlimit){ 0, 1 }, NULL),
			      "then it stays 0, which sandbox.md says");
}

/*
 * Root of the run is nobody outside: its ids begin at ID_BASE there, and it reaches files only through
 * idmapped mounts.  An ordinary user keeps its id, and can map no other.
 */
int ns_map_ids(struct run *run, struct err *err)
{
	char uids[64], gids[64];
	int r;

	give_way(run->init);
	allow_core_limit(run->init);
	if (run->spec->root && run->ids == SANDBOX_IDS_RANGE)
		return ids_map_range(run, err);
	if (run->privileged) {
		snprintf(uids, sizeof(uids), "0 %u %u", ID_BASE, ID_COUNT);
		snprintf(gids, sizeof(gids), "0 %u %u", ID_BASE, ID_COUNT);
	} else {
		if (!run->spec->root &&
		    (run->spec->uid != geteuid() || run->spec->gid != getegid()))
			return err_set(err, -EPERM,
				       "only root can run a command as user %u and group %u",
				       run->spec->uid, run->spec->gid);
		snprintf(uids, sizeof(uids), "%u %u 1", run->spec->uid, geteuid());
		snprintf(gids, sizeof(gids), "%u %u 1", run->spec->gid, getegid());
		r = write_proc(run->init, "setgroups", "deny", err);
		if (r < 0)
			return r;
	}
	r = write_proc(run->init, "gid_map", gids, err);
	return r < 0 ? r : write_proc(run->init, "uid_map", uids, err);
}

static int become(unsigned int uid, unsigned int gid, struct err *err)
{
	if (setresgid(gid, gid, gid) < 0)
		return err_sys(err, "becoming group %u", gid);
	if (setresuid(uid, uid, uid) < 0)
		return err_sys(err, "becoming user %u", uid);
	return 0;
}

/* Its root is built by user 0 of it, where there is one. */
static bool root_becomes_user(const struct run *run)
{
	return run->spec->root && run->ids != SANDBOX_IDS_ONE && run->spec->uid != 0;
}

int ns_become_user(const struct run *run, struct err *err)
{
	return root_becomes_user(run) ? become(run->spec->uid, run->spec->gid, err) : 0;
}

int ns_become(struct run *run, struct err *err)
{
	const struct sandbox_spec *spec = run->spec;
	int r;

	if ((run->privileged || run->ids == SANDBOX_IDS_RANGE) && setgroups(0, NULL) < 0)
		return err_sys(err, "dropping supplementary groups");
	if (getgroups(0, NULL) == 0)
		run->walls |= WALL_BIT(WALL_GROUPS);
	r = become(root_becomes_user(run) ? 0 : spec->uid, root_becomes_user(run) ? 0 : spec->gid,
		   err);
	if (r < 0)
		return r;

	/* After the ids, whose change would undo both. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_sys(err, "closing the memory of the run's init to others");
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return err_sys(err, "tying the run's init to the process that watches it");
	return 0;
}

static int raise_loopback(struct err *err)
{
	struct ifreq lo = { .ifr_name = "lo" };
	AUTO_CLOSE int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return err_sys(err, "opening a socket to raise the loopback interface");
	if (ioctl(fd, SIOCGIFFLAGS, &lo) < 0)
		return err_sys(err, "looking at the loopback interface");
	lo.ifr_flags = (short)(lo.ifr_flags | IFF_UP);
	if (ioctl(fd, SIOCSIFFLAGS, &lo) < 0)
		return err_sys(err, "raising the loopback interface");
	return 0;
}

/* The bound is of the network namespace, which is the run's own. */
static int open_ports(struct err *err)
{
	static const char path[] = "/proc/sys/net/ipv4/ip_unprivileged_port_start";
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "0", 1) != 1)
		return err_sys(err, "opening the ports of the run's loopback in '%s'", path);
	return 0;
}

int ns_hide_cgroups(struct err *err)
{
	if (unshare(CLONE_NEWCGROUP) < 0)
		return err_sys(err, "making the cgroup namespace of the run");
	return 0;
}

int ns_settle(struct run *run, struct err *err)
{
	const struct sandbox_spec *spec = run->spec;
	int r = run->cgroup ? cgroup_join(run->cgroup, err) : 0;

	if (r < 0)
		return r;
	if (sethostname(spec->hostname, strlen(spec->hostname)) < 0)
		return err_sys(err, "setting the host name of the run to '%s'", spec->hostname);
	r = spec->net != SANDBOX_NET_HOST ? raise_loopback(err) : 0;
	return r < 0 || spec->net != SANDBOX_NET_HELPER ? r : open_ports(err);
}
