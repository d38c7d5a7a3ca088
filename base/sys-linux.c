#include "base/sys.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

int sys_random(void *data, size_t len)
{
	unsigned char *p = data;
	ssize_t n;

	while (len > 0) {
		n = getrandom(p, len, 0);
		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int sys_sync_data(int fd)
{
	while (fdatasync(fd) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

const char *sys_errno_text(int errnum, char *text, size_t size)
{
	return strerror_r(errnum, text, size);
}
