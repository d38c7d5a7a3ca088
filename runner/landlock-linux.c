/*
 * landlock-linux.c - a second list of accessible files, in case the first wall has a hole.
 *
 * The mounts already say all this. Landlock says it again in terms of files rather than of mounts:
 * a path that leads out of the root by any trick - a descriptor, a magic link, a script whose
 * interpreter is /proc/self/exe and would be our own binary - meets no rule and is refused. It uses
 * the system calls, because few systems have a library for it.
 */
#include <errno.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "runner/mount-api.h"
#include "runner/sandbox-i.h"

/* What headers older than the kernel lack; values of include/uapi/linux/landlock.h. */
#define FS_REFER       (1ULL << 13) /* ABI 2 */
#define FS_TRUNCATE    (1ULL << 14) /* ABI 3 */
#define FS_IOCTL_DEV   (1ULL << 15) /* ABI 5 */
#define SCOPE_ABSTRACT (1ULL << 0)  /* ABI 6 */
#define SCOPE_SIGNAL   (1ULL << 1)  /* ABI 6 */
#define FS_ABI_1       ((1ULL << 13) - 1)
#define READ_ABI_1 \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define FILE_ONLY                                                     \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | \
	 LANDLOCK_ACCESS_FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV)

struct ruleset_attr {
	uint64_t fs;
	uint64_t net;
	uint64_t scoped;
};

/* How much of it an older kernel takes. */
static size_t attr_size(int abi)
{
	return abi >= 6 ? 24 : abi >= 4 ? 16 : 8;
}

static struct ruleset_attr handled(int abi)
{
	struct ruleset_attr attr = { .fs = FS_ABI_1 };

	if (abi >= 2)
		attr.fs |= FS_REFER;
	if (abi >= 3)
		attr.fs |= FS_TRUNCATE;
	if (abi >= 5)
		attr.fs |= FS_IOCTL_DEV;
	if (abi >= 6)
		attr.scoped = SCOPE_ABSTRACT | SCOPE_SIGNAL;
	return attr;
}

static int allow(int rules, const char *guest, uint64_t access, struct err *err)
{
	AUTO_CLOSE int fd = open(guest, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct landlock_path_beneath_attr rule = { .allowed_access = access, .parent_fd = fd };
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, "opening '%s' of the run for its Landlock rule", guest);
	if (!S_ISDIR(st.st_mode))
		rule.allowed_access &= FILE_ONLY;
	if (syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
		return err_sys(err, "adding the Landlock rule of '%s'", guest);
	return 0;
}

static int allow_all(const struct sandbox_spec *spec, int rules, uint64_t all, struct err *err)
{
	uint64_t use = (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR |
			LANDLOCK_ACCESS_FS_WRITE_FILE | FS_TRUNCATE | FS_IOCTL_DEV) &
		       all;
	int r;

	/* All of that root is the run's; what is mounted in it read-only is so by its mount. */
	if (spec->root)
		return allow(rules, "/", all, err);
	r = allow(rules, "/", READ_ABI_1, err);
	if (r == 0)
		r = allow(rules, "/dev", use, err);
	if (r == 0)
		r = allow(rules, "/proc", use, err);
	if (r == 0)
		r = allow(rules, "/dev/shm", all, err);
	for (size_t i = 0; r == 0 && i < spec->n_mounts; i++) {
		const struct sandbox_mount *m = &spec->mounts[i];

		if (m->kind == SANDBOX_FRESH || (m->kind == SANDBOX_BIND && m->writable))
			r = allow(rules, m->guest, all, err);
	}
	return r;
}

int landlock_enter(struct run *run, struct err *err)
{
	int abi =
	    (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	struct ruleset_attr attr = handled(abi);
	AUTO_CLOSE int rules = -1;
	int r;

	if (abi < 0 && (run->spec->may_miss & WALL_BIT(WALL_LANDLOCK)))
		return 0;
	/* The kernel itself never says that; the filter of systemd-nspawn 252 does. */
	if (abi < 0 && errno == EPERM)
		return err_set(err, -ENOTSUP,
			       "a filter of system calls refuses Landlock, perhaps a container's: "
			       "let it allow landlock_create_ruleset, landlock_add_rule and "
			       "landlock_restrict_self, or add --allow-missing landlock");
	if (abi < 0)
		return err_set(err, -ENOTSUP,
			       "this kernel has no Landlock, or it is not among the modules that "
			       "'lsm=' of its command line names");

	rules = (int)syscall(SYS_landlock_create_ruleset, &attr, attr_size(abi), 0);
	if (rules < 0)
		return err_sys(err, "making the Landlock rules of the run");
	r = allow_all(run->spec, rules, attr.fs, err);
	if (r < 0)
		return r;
	if (syscall(SYS_landlock_restrict_self, rules, 0) < 0)
		return err_sys(err, "entering the Landlock rules of the run");
	run->walls |= WALL_BIT(WALL_LANDLOCK);
	run->landlock = abi;
	return 0;
}
