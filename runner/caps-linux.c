/*
 * caps-linux.c - no capability in any set, and no way to get one.
 *
 * Inside, user 0 would be given all of its namespace's capabilities at exec; the bounding set
 * and the secure bits see to it that it is not.
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
