/*
 * refused-linux.c - what the list of system calls refuses, heard by the caller.
 *
 * A call that the list forbids by name waits in the kernel until the caller has answered.  The
 * answer is an error, always: nothing here can let a call through, and nothing in the memory of
 * the run is looked at.  When nobody answers any more, because the caller is dead, the kernel
 * itself says ENOSYS.
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "runner/sandbox-i.h"

/* A kernel that knows more of it may write more of it. */
union question {
	struct seccomp_notif is;
	char room[512];
};

union answer {
	struct seccomp_notif_resp is;
	char room[512];
};

/* As the list would have said it itself. */
static int error_of(int number)
{
	return number == SYS_socket || number == SYS_socketpair ? -EAFNOSUPPORT : -EPERM;
}

int refused_hear(const struct sandbox_spec *spec, int listener)
{
	union question question = { 0 };
	union answer answer = { 0 };
	AUTO_FREE char *name = NULL;
	uint64_t args[6];

	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &question.is) < 0)
		return errno == EINTR || errno == ENOENT ? 0 : -errno; /* who asked is gone */
	answer.is.id = question.is.id;
	answer.is.error = error_of(question.is.data.nr);
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer.is) < 0 && errno != ENOENT)
		return -errno;
	name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, question.is.data.nr);
	for (size_t i = 0; i < ARRAY_LEN(args); i++)
		args[i] = question.is.data.args[i];
	if (name)
		spec->refused(spec->refused_ctx, name, args);
	return 0;
}
