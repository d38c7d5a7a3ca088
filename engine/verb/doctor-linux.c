/*
 * We find out what Linux allows by doing it, in a child whose namespaces end with it: settings,
 * security modules and containers forbid the same things in many ways.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/seccomp.h>

#include "base/buf.h"
#include "base/fdio.h"
#include "base/sys.h"
#include "base/user.h"
#include "cowfs/fuse/mount.h"
#include "engine/verb/doctor-i.h"
#include "runner/cgroup.h"
#include "runner/layout.h"
#include "runner/sandbox.h"
#include "runner/subid.h"

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444 /* of all architectures; Linux 5.13 */
#endif
#define LANDLOCK_ASK_VERSION 1 /* LANDLOCK_CREATE_RULESET_VERSION of linux/landlock.h */

#define SUBID_FIRST    100000 /* where useradd(8) begins to look for ids */
#define SUBID_COUNT    65536
#define SUBID_FILE_MAX ((size_t)16 << 20)

#define IN_A_CONTAINER "in a container: allow it there (--privileged, or --device and --cap-add)"

/* --- trying ----------------------------------------------------------------------------- */

/* Run `try` in a child; its failure comes back as ours. */
static int in_child(int (*try)(struct err *err), struct err *err)
{
	struct err word = { 0 };
	int fds[2], r;
	ssize_t n;
	pid_t pid;

	r = sys_pipe(fds);
	if (r < 0)
		return err_set(err, r, "no pipe");
	pid = fork();
	if (pid == 0) {
		IGNORE_RESULT(try(&word), "it is in the word");
		IGNORE_RESULT(fdio_write(fds[1], &word, sizeof(word)), "then the pipe ends");
		_exit(0);
	}
	close(fds[1]);
	n = pid < 0 ? -1 : fdio_read(fds[0], &word, sizeof(word));
	close(fds[0]);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (n != sizeof(word))
		return err_set(err, -EIO, "the process that was to try it died");
	return word.code < 0 ? err_set(err, word.code, "%s", word.msg) : 0;
}

static int write_to(const char *path, const char *text, struct err *err)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		return err_sys(err, "writing '%s'", path);
	return 0;
}

/* The first number in a file of /proc; `missing` if it has none. */
static int setting(const char *path, int missing)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	int v;

	if (fdio_read_file(AT_FDCWD, path, 64, &text, NULL) < 0 || !buf_str(&text) ||
	    sscanf(buf_str(&text), "%d", &v) != 1)
		return missing;
	return v;
}

/* --- FUSE ------------------------------------------------------------------------------- */

static int try_fuse_mount(struct err *err)
{
	AUTO_CLOSE int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char options[64];

	if (fd < 0)
		return err_sys(err, "opening '/dev/fuse'");
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_sys(err, "a mount namespace");
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
	if (mount("snapcow", "/", "fuse", MS_NOSUID | MS_NODEV, options) < 0)
		return err_sys(err, "mounting");
	return 0;
}

static void look_at_device(struct engine_diagnosis *d)
{
	AUTO_CLOSE int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	struct utsname kernel = { 0 };
	struct err err = { 0 };
	const int code = fd < 0 ? errno : 0;
	char text[128];

	uname(&kernel);
	if (code == ENOENT)
		doctor_finds(d, ENGINE_ILL, "fuse", "as root: modprobe fuse; " IN_A_CONTAINER,
			     "there is no '/dev/fuse'");
	else if (code == EACCES)
		doctor_finds(d, ENGINE_ILL, "fuse", "as root: chmod 0666 /dev/fuse",
			     "'/dev/fuse' is closed to you");
	else if (code != 0)
		doctor_finds(d, ENGINE_ILL, "fuse", IN_A_CONTAINER, "'/dev/fuse': %s",
			     sys_errno_text(code, text, sizeof(text)));
	else if (geteuid() == 0 && in_child(try_fuse_mount, &err) < 0)
		doctor_finds(d, ENGINE_ILL, "fuse", IN_A_CONTAINER, "%s", err.msg);
	else
		doctor_well(d, "fuse", "'/dev/fuse' opens%s, Linux %.40s",
			    geteuid() == 0 ? " and mounts" : "", kernel.release);
}

/* How a run by root, which is not root outside, gets the clone's ids. */
static void look_at_ids(struct engine_diagnosis *d)
{
	struct err err = { 0 };
	int r;

	if (geteuid() != 0)
		return;
	r = mount_probe_ids(&err);
	if (r > 0)
		doctor_well(d, "idmap", "the kernel maps the ids of a clone for root's runs");
	else if (r == 0)
		doctor_well(d, "idmap",
			    "cowfsd shifts the ids of a clone for root's runs, on a mount of "
			    "their own: this kernel maps none of FUSE (Linux 6.12 does)");
	else
		doctor_finds(d, ENGINE_WEAK, "idmap", IN_A_CONTAINER,
			     "it is not known how root's runs see a clone's ids: %.100s", err.msg);
}

static void look_at_helper(struct engine_diagnosis *d)
{
	/* Root mounts by itself. */
	const enum engine_health lacking = geteuid() == 0 ? ENGINE_WEAK : ENGINE_ILL;
	AUTO_FREE char *path = doctor_find_program("fusermount3");
	struct stat st;

	if (!path || stat(path, &st) < 0)
		doctor_finds(d, lacking, "fusermount3", "as root: apt-get install fuse3",
			     "not on PATH; it mounts for users other than root");
	/* Nobody should make a program of somebody else's set-user-id root. */
	else if (st.st_uid != 0)
		doctor_finds(d, lacking, "fusermount3",
			     "as root: apt-get install fuse3; put its directory first in PATH",
			     "'%s' does not belong to root", path);
	else if (!(st.st_mode & S_ISUID))
		doctor_finds(d, lacking, "fusermount3",
			     "as root: apt-get install --reinstall fuse3",
			     "'%s' is not set-user-id root", path);
	else
		doctor_well(d, "fusermount3", "'%s'", path);
}

static bool has_line(const char *text, const char *line)
{
	const size_t len = strlen(line);

	for (; text; text = strchr(text, '\n') ? strchr(text, '\n') + 1 : NULL)
		if (strncmp(text, line, len) == 0 && strchr("\n \t", text[len]))
			return true;
	return false;
}

static void look_at_fuse_conf(struct engine_diagnosis *d)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	bool on = false;

	if (fdio_read_file(AT_FDCWD, "/etc/fuse.conf", 65536, &text, NULL) >= 0 && buf_str(&text))
		on = has_line(buf_str(&text), "user_allow_other");
	doctor_well(d, "allow_other", "%s",
		    on ? "users may let others into their clones"
		       : "clones of a user are for that user alone");
}

/* --- namespaces ------------------------------------------------------------------------- */

/* A namespace alone is not enough: AppArmor may forbid all that one does in it. */
static int try_user_namespace(struct err *err)
{
	const unsigned uid = geteuid();
	char map[32];
	int r;

	if (unshare(CLONE_NEWUSER) < 0)
		return err_sys(err, "unshare");
	snprintf(map, sizeof(map), "0 %u 1", uid);
	r = write_to("/proc/self/uid_map", map, err);
	if (r < 0)
		return r;
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_sys(err, "mounts in it");
	return 0;
}

static const char *fix_user_namespaces(void)
{
	if (setting("/proc/sys/user/max_user_namespaces", 1) == 0)
		return "as root: sysctl -w user.max_user_namespaces=15000";
	if (setting("/proc/sys/kernel/unprivileged_userns_clone", 1) == 0)
		return "as root: sysctl -w kernel.unprivileged_userns_clone=1";
	if (setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 0) != 0)
		return "as root: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0";
	return IN_A_CONTAINER;
}

static void look_at_namespaces(struct engine_diagnosis *d)
{
	struct err err = { 0 };

	if (in_child(try_user_namespace, &err) < 0)
		doctor_finds(d, ENGINE_ILL, "namespaces", fix_user_namespaces(),
			     "no user namespaces, which sandboxes need: %s", err.msg);
	else
		doctor_well(d, "namespaces", "user namespaces can be made and mounted in");
}

/* --- cgroups ---------------------------------------------------------------------------- */

/* Into `text`, or one that is always the same. */
static const char *fix_cgroups(unsigned int holds, char *text, size_t size)
{
	AUTO_FREE char *user = user_name(geteuid());

	if (access("/run/systemd/system", F_OK) < 0)
		return IN_A_CONTAINER ", with cgroups of its own that can be written";
	if (geteuid() != 0 && holds == 0) {
		snprintf(text, size,
			 "log in by ssh or a console, or as root: loginctl enable-linger %s",
			 user ? user : "USER");
		return text;
	}
	if (geteuid() != 0)
		return "as root: '[Service] Delegate=cpu memory pids' in a file in "
		       "/etc/systemd/system/user@.service.d, then log in again";
	return "boot without cgroup_disable=";
}

/* Report which limits can be enforced, and by what, without creating anything. */
static void look_at_cgroups(struct engine_diagnosis *d, bool runs_start)
{
	static const struct {
		unsigned int bit;
		const char *name;
	} wanted[] = { { CGROUP_MEMORY, "memory" },
		       { CGROUP_PIDS, "processes" },
		       { CGROUP_CPU, "cpu" } };
	static const char *const by[] = {
		[CGROUP_NONE] = "",
		[CGROUP_V1] = "with cgroups of version 1",
		[CGROUP_V2] = "with a cgroup of this container",
		[CGROUP_SCOPE] = "with a scope of systemd",
	};
	const struct cgroup_limits limits = { .mem = 64 << 20, .pids = 16, .cpus_milli = 1000 };
	enum cgroup_kind kind;
	struct err why = { 0 };
	const unsigned int holds = cgroup_look(&limits, &kind, &why);
	char missing[64] = "", fix[128];

	for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
		if (!(holds & wanted[i].bit))
			snprintf(missing + strlen(missing), sizeof(missing) - strlen(missing),
				 "%s%s", *missing != '\0' ? ", " : "", wanted[i].name);
	if (!runs_start)
		doctor_finds(d, ENGINE_WEAK, "cgroups", "see 'sandbox'",
			     "no run can start that they could limit");
	else if (*missing == '\0')
		doctor_well(d, "cgroups",
			    "the memory, processes and cpu of a run can be limited, %s", by[kind]);
	else
		doctor_finds(d, ENGINE_WEAK, "cgroups", fix_cgroups(holds, fix, sizeof(fix)),
			     "they cannot limit %s of a run%s%.140s", missing,
			     *why.msg != '\0' ? ": " : "", why.msg);
}

/* --- walls of a sandbox ----------------------------------------------------------------- */

static void look_at_walls(struct engine_diagnosis *d)
{
	const long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_ASK_VERSION);

	if (abi > 0)
		doctor_well(
		    d, "landlock",
		    "it limits which files a run can reach: this kernel has version %ld, and runs "
		    "need 1 or later",
		    abi);
	else if (abi < 0 && errno == EPERM)
		doctor_finds(d, ENGINE_ILL, "landlock",
			     "let the container's filter allow the calls landlock_...",
			     "a filter of system calls refuses it: runs need --allow-missing "
			     "landlock");
	else
		doctor_finds(d, ENGINE_ILL, "landlock",
			     "boot with lsm=landlock,... on Linux 5.13 or later",
			     "this kernel has none: runs need --allow-missing landlock");
	/* EFAULT for the NULL filter means that the kernel supports filters. */
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0) < 0 && errno == EFAULT)
		doctor_well(d, "seccomp", "filters of system calls work");
	else
		doctor_finds(d, ENGINE_ILL, "seccomp", "use a kernel with CONFIG_SECCOMP_FILTER",
			     "this kernel has no filters of system calls");
}

/* --- all of it -------------------------------------------------------------------------- */

static int try_sandbox(struct err *err)
{
	CLEANUP(layout_free_p) struct layout *layout = layout_new();
	const char *const argv[] = { "true", NULL }, *const env[] = { "PATH=/usr/bin:/bin", NULL };
	struct sandbox_result result;
	struct sandbox_spec spec;
	int r = layout ? layout_add_system(layout, err) : err_nomem(err);

	if (r < 0)
		return r;
	sandbox_spec_init(&spec);
	spec.argv = argv;
	spec.env = env;
	spec.mounts = layout->mounts;
	spec.n_mounts = layout->n;
	r = sandbox_run(&spec, &result, err);
	return result.exec_failed ? 0 : r;
}

/* Whatever the other findings say, starting a run is the proof. */
static void look_at_sandbox(struct engine_diagnosis *d, const struct err *why)
{
	if (why->code == 0)
		doctor_well(
		    d, "sandbox",
		    "a test command ran behind every wall; 'cgroups' says which limits there are");
	else
		doctor_finds(d, ENGINE_ILL, "sandbox",
			     strstr(why->msg, "/proc")
				 ? "in Docker: --security-opt systempaths=unconfined"
				 : "see the other findings",
			     "no run can start: %.170s", why->msg);
}

/* From there on, the first of so many ids that nobody has in that file. */
static uint32_t first_free(const char *path, uint32_t from)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;

	if (fdio_read_file(AT_FDCWD, path, SUBID_FILE_MAX, &text, NULL) < 0)
		return from;
	return subid_free(buf_str(&text), from, SUBID_COUNT);
}

/* The same in both files; 0: there are no such ids. */
static uint32_t find_free(void)
{
	uint32_t first = SUBID_FIRST, was = 0;

	while (first > 0 && first != was) {
		was = first_free("/etc/subuid", first);
		first = was > 0 ? first_free("/etc/subgid", was) : 0;
	}
	return first;
}

static void describe_ranges(char *text, size_t size)
{
	AUTO_FREE char *user = user_name(geteuid());
	const uint32_t first = find_free(), last = first + SUBID_COUNT - 1;

	if (first == 0)
		snprintf(text, size,
			 "ask an administrator for a range in /etc/subuid and /etc/subgid");
	else
		snprintf(text, size,
			 "as root: apt-get install uidmap; usermod --add-subuids %u-%u "
			 "--add-subgids %u-%u %s",
			 first, last, first, last, user ? user : "USER");
}

/* What a clone that is the whole root of a run can have in it. */
static void look_at_root(struct engine_diagnosis *d)
{
	struct err why = { 0 };
	char fix[160];

	describe_ranges(fix, sizeof(fix));
	switch (sandbox_root_ids(&why)) {
	case SANDBOX_IDS_ALL:
		doctor_well(d, "root", "runs with --root have 65,536 ids that own nothing here");
		break;
	case SANDBOX_IDS_RANGE:
		doctor_well(d, "root", "runs with --root have the ids of /etc/subuid");
		break;
	case SANDBOX_IDS_ONE:
		doctor_finds(d, ENGINE_WEAK, "root", fix,
			     "runs with --root have user 0 alone, and services stay root: %.100s",
			     why.msg);
		break;
	}
}

void doctor_look_at_system(struct engine_diagnosis *d)
{
	struct err sandbox = { 0 };
	const bool runs_start = in_child(try_sandbox, &sandbox) == 0;

	look_at_device(d);
	look_at_ids(d);
	look_at_helper(d);
	look_at_fuse_conf(d);
	look_at_namespaces(d);
	look_at_cgroups(d, runs_start);
	look_at_walls(d);
	look_at_sandbox(d, &sandbox);
	look_at_root(d);
}
