/*
 * await-darwin.c - nothing there runs in a sandbox yet, so nobody has anything to wait for.
 */
#include <errno.h>

#include "base/await.h"

int await_open(void)
{
	return -ENOTSUP;
}

int await_file(int at, const char *path)
{
	return -ENOTSUP;
}

int await_names(int at, const char *path)
{
	return -ENOTSUP;
}

int await_next(int at, int stop_fd, int ms, await_fn fn, void *ctx)
{
	return -ENOTSUP;
}
