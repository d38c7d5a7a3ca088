/*
 * attempts-files.h - tries to give files more than their content: set-id bits, leases, attributes.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tests/sandbox/attempts.h"

/*
 * Set-id bits, by every call that can set them; what a try made is removed again.  A name that
 * is there already would be opened and not made.
 */
#define SETID_NAME "attempt-setid"

static int after_setid(long r)
{
	struct stat st;
	int fd, error = told(r);

	if (error == 0 && r > 2) { /* a descriptor, perhaps of a file without a name */
		fd = (int)r;
		if (fstat(fd, &st) == 0 && !(st.st_mode & 06000))
			error = 254;
		close(fd);
	}
	unlink(SETID_NAME);
	rmdir(SETID_NAME);
	return error;
}

/* A plain file there, for what changes one. */
static int setid_file(void)
{
	unlink(SETID_NAME);
	return open(SETID_NAME, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
}

static int try_setid_fchmod(mode_t bits)
{
	int fd = setid_file();
	int r = after_setid(syscall(SYS_fchmod, fd, 0755 | bits));

	close(fd);
	return r;
}

static int try_setid_fchmodat(bool second)
{
	close(setid_file());
	if (second)
		return after_setid(syscall(452 /* fchmodat2 */, AT_FDCWD, SETID_NAME, 04755, 0));
	return after_setid(syscall(SYS_fchmodat, AT_FDCWD, SETID_NAME, 04755));
}

static int try_setid_old(void)
{
#ifdef SYS_chmod
	int r;

	close(setid_file());
	r = after_setid(syscall(SYS_chmod, SETID_NAME, 04755));
	if (r == EPERM)
		r = after_setid(syscall(SYS_creat, SETID_NAME, 04755));
	if (r == EPERM)
		r = after_setid(syscall(SYS_open, SETID_NAME, O_CREAT | O_RDWR, 04755));
	if (r == EPERM)
		r = after_setid(syscall(SYS_mknod, SETID_NAME, S_IFREG | 04755, 0));
	return r;
#else
	return try_setid_fchmodat(false); /* an architecture without them */
#endif
}

static int try_setid_openat2(void)
{
	uint64_t how[3] = { O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 04755, 0 };

	return after_setid(syscall(SYS_openat2, AT_FDCWD, SETID_NAME, how, sizeof(how)));
}

static int try_setid_folder(void)
{
	if (mkdir(SETID_NAME, 0700) < 0)
		return errno;
	return after_setid(syscall(SYS_fchmodat, AT_FDCWD, SETID_NAME, 02755));
}

/* Whoever else opens it to write waits. */
static int try_lease(void)
{
	int fd = open("attempt-lease", O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
	int r = fd < 0 ? errno : told(fcntl(fd, F_SETLEASE, F_RDLCK));

	unlink("attempt-lease");
	close(fd);
	return r;
}

#define SETID_OPEN(name, flags) \
	syscall(SYS_openat, AT_FDCWD, name, (flags) | O_RDWR | O_CLOEXEC, 04755)

static int try_xattr(const char *name, const void *value, size_t len)
{
	int fd = open("attempt-xattr", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	int r = told(fsetxattr(fd, name, value, len, 0));

	unlink("attempt-xattr");
	close(fd);
	return r;
}

/* cap_sys_admin=ep, in the form of revision 2 */
static int try_file_caps(void)
{
	static const uint32_t caps[5] = { 0x02000001, 1u << 21 };

	return try_xattr("security.capability", caps, sizeof(caps));
}
