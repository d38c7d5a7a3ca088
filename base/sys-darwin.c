#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* getentropy() refuses more than this in one call. */
#define ENTROPY_MAX 256

int sys_random(void *data, size_t len)
{
	unsigned char *p = data;
	size_t n;

	while (len > 0) {
		n = len < ENTROPY_MAX ? len : ENTROPY_MAX;
		if (getentropy(p, n) < 0)
			return -errno;
		p += n;
		len -= n;
	}
	return 0;
}

/*
 * fsync() here leaves the bytes in the drive's cache; only F_FULLFSYNC empties it.
 * Network and some foreign file systems do not know it, and there fsync() is all
 * there is.
 */
int sys_sync_data(int fd)
{
	while (fcntl(fd, F_FULLFSYNC) < 0) {
		if (errno == EINTR)
			continue;
		if (errno != ENOTSUP && errno != ENOTTY && errno != EINVAL)
			return -errno;
		while (fsync(fd) < 0)
			if (errno != EINTR)
				return -errno;
		return 0;
	}
	return 0;
}

const char *sys_errno_text(int errnum, char *text, size_t size)
{
	int rc = strerror_r(errnum, text, size);

	if (rc != 0 && rc != ERANGE)
		snprintf(text, size, "error %d", errnum);
	return text;
}
