#include <errno.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/api/run.h"
#include "runner/sandbox.h"

bool engine_is_inside(void)
{
	return syscall(SYS_ioctl, -1, (unsigned long)SANDBOX_ASK_SNAPSHOT, 1) != -1 ||
	       errno != EBADF;
}

/* Past ioctl() of libc, which cuts the answer down to an int.  Outside of a run, -1 is no descriptor. */
int engine_inside_snapshot(char id[static ENGINE_ID_SIZE], struct err *err)
{
	const long said = syscall(SYS_ioctl, -1, (unsigned long)SANDBOX_ASK_SNAPSHOT, 0);

	if (said == -1 && errno == EBADF)
		return 0;
	if (said == -1 && errno == EPERM)
		return err_set(
		    err, -EPERM,
		    "this is a run whose profile allows no snapshots ('snapshots: N' does)");
	if (said == -1 && errno == EDQUOT)
		return err_set(err, -EDQUOT,
			       "this run has taken all snapshots that its profile allows");
	if (said == -1)
		return err_set(err, -EIO, "no snapshot could be taken; 'snap run' says why");
	snprintf(id, ENGINE_ID_SIZE, "%016lx", (unsigned long)said);
	return 1;
}
