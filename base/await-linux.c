#include "base/await.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <sys/inotify.h>
#include <unistd.h>

int await_open(void)
{
	const int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

static int add(int at, const char *path, uint32_t mask)
{
	const int number = inotify_add_watch(at, path, mask);

	return number < 0 ? -errno : number;
}

int await_file(int at, const char *path)
{
	return add(at, path, IN_MODIFY | IN_CLOSE_WRITE | IN_DELETE_SELF);
}

int await_names(int at, const char *path)
{
	return add(at, path, IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
}

/* When its list is full, the kernel reports an overflow with the number -1. */
static int tell(int at, await_fn fn, void *ctx)
{
	_Alignas(struct inotify_event) char data[4096];
	ssize_t n;

	while ((n = read(at, data, sizeof(data))) > 0) {
		for (const char *next = data; next < data + n;) {
			const struct inotify_event *e = (const void *)next;

			if (fn)
				fn(e->wd, e->mask & (IN_CLOSE_WRITE | IN_Q_OVERFLOW), ctx);
			next += sizeof(*e) + e->len;
		}
	}
	return n < 0 && errno != EAGAIN ? -errno : 1;
}

int await_next(int at, int stop_fd, int ms, await_fn fn, void *ctx)
{
	struct pollfd both[] = { { .fd = at, .events = POLLIN },
				 { .fd = stop_fd, .events = POLLIN } };
	const int n = poll(both, 2, ms);

	if (n < 0)
		return errno == EINTR ? 1 : -errno;
	if (n == 0)
		return 0;
	if (both[1].revents)
		return -EINTR;
	return tell(at, fn, ctx);
}
