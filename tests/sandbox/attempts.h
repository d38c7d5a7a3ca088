/*
 * attempts.h - what tries have in common.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* 0 or the errno of what a call returned. */
static int told(long r)
{
	return r < 0 ? errno : 0;
}

static int try_open(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC);
	char byte;
	int r = told(fd);

	/* Some files open and then refuse. */
	if (fd >= 0 && (flags & O_ACCMODE) == O_RDONLY && !(flags & O_DIRECTORY))
		r = told(read(fd, &byte, 1));
	close(fd);
	return r;
}

static const char *given(const char *name)
{
	const char *v = getenv(name);

	return v ? v : "";
}
