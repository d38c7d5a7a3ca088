#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/log.h"
#include "base/sys.h"
#include "cowfs/fuse/mount-i.h"

/*
 * The connection is replaced by one to nowhere, under the same number: the kernel ends one that
 * nobody has open any more, and a thread that uses the number meanwhile reads its end.  That
 * needs no privilege, no fusectl, and no lock that a hung thread might hold.
 */
void mount_abort(struct mount *m)
{
	const uint64_t one = 1;
	char text[64];
	AUTO_CLOSE int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0 || dup3(null, m->fd, O_CLOEXEC) < 0) {
		log_error("mount '%s' cannot be ended: %s", m->path,
			  sys_errno_text(errno, text, sizeof(text)));
		return;
	}
	atomic_store(&m->ended, true);
	IGNORE_RESULT(write(m->wake, &one, sizeof(one)), "it can only be readable already");
}
