/*
 * caps-linux.c - no capability in any set, and no way to get one.
 *
 * At exec, user 0 inside would get all capabilities of its namespace; the bounding set and the
 * secure bits prevent that.
 *
 * Root of a whole root file system needs some: those by which package managers and services give
 * files and processes to other users of the run. They count in its own namespaces alone, and none
 * of them mounts, makes devices, changes the network or limits, loads or configures anything.
 */
#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runner/sandbox-i.h"

#define LOCKED_BITS                                                                              \
	(SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |                         \
	 SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE | \
	 SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED)

static const int of_root[] = {
	CAP_CHOWN,  CAP_DAC_OVERRIDE,     CAP_FOWNER,     CAP_FSETID,     CAP_KILL,    CAP_SETGID,
	CAP_SETUID, CAP_NET_BIND_SERVICE, CAP_SYS_CHROOT, CAP_SYS_PTRACE, CAP_SETFCAP, CAP_SETPCAP,
};

static bool is_of_root(unsigned long cap)
{
	for (size_t i = 0; i < ARRAY_LEN(of_root); i++)
		if ((unsigned long)of_root[i] == cap)
			return true;
	return false;
}

int caps_bound_root(struct err *err)
{
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return err_sys(err, "clearing the ambient capabilities of the run");
	for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		if (!is_of_root(cap) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return err_sys(err, "bounding the capabilities of the run");
	return errno == EINVAL ? 0 : err_sys(err, "bounding the capabilities of the run");
}

int caps_keep_root(struct err *err)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct own[_LINUX_CAPABILITY_U32S_3] = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(of_root); i++) {
		own[of_root[i] / 32].effective |= 1u << (of_root[i] % 32);
		own[of_root[i] / 32].permitted |= 1u << (of_root[i] % 32);
	}
	if (syscall(SYS_capset, &head, own) < 0)
		return err_sys(err, "bounding the capabilities of the run");
	return 0;
}

int caps_bound(struct err *err)
{
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return err_sys(err, "clearing the ambient capabilities of the run");
	for (unsigned long cap = 0; prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0; cap++)
		;
	/* The first that the kernel does not know ends the loop; anything else is a failure. */
	if (errno != EINVAL)
		return err_sys(err, "emptying the bounding set of the run");
	if (prctl(PR_SET_SECUREBITS, LOCKED_BITS, 0, 0, 0) < 0)
		return err_sys(err, "locking the secure bits of the run");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(err, "forbidding the run new privileges");
	return 0;
}

int caps_drop(struct err *err)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (syscall(SYS_capset, &head, none) < 0)
		return err_sys(err, "dropping the capabilities of the run");
	return 0;
}
