/*
 * apply-fault.h - calls of apply that fail, end the process, or have somebody do something first.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/sys.h"
#include "cowfs/store/store.h"

#define KILLED 77

/* --- in the place of the originals (--wrap) --------------------------------------------- */

static struct {
	_Atomic unsigned long n; /* several threads stage many files */
	unsigned long at;
	unsigned long back;   /* the decision fails, and so many calls later another one; 0: not */
	int code;             /* fail with this errno, or */
	bool die;             /* end the process, or */
	void (*hook)(void *); /* let somebody do something, and go on */
	void *ctx;
	bool armed;
	bool no_exchange;  /* a file system without it */
	bool name_by_name; /* a kernel that opens no path beneath a directory */
} fault;

static bool meets(void)
{
	if (!fault.armed || ++fault.n != fault.at)
		return false;
	if (fault.die)
		_exit(KILLED);
	if (fault.hook) {
		fault.armed = false;
		fault.hook(fault.ctx);
		fault.armed = true;
		return false;
	}
	errno = fault.code;
	return true;
}

#define WRAP(type, name, params, args, failed) \
	type __real_##name params;             \
	type __wrap_##name params;             \
	type __wrap_##name params              \
	{                                      \
		if (meets())                   \
			return failed;         \
		return __real_##name args;     \
	}

WRAP(int, renameat, (int a, const char *b, int c, const char *d), (a, b, c, d), -1)
WRAP(int, linkat, (int a, const char *b, int c, const char *d, int e), (a, b, c, d, e), -1)
WRAP(int, unlinkat, (int a, const char *b, int c), (a, b, c), -1)
WRAP(int, mkdirat, (int a, const char *b, mode_t c), (a, b, c), -1)
WRAP(int, symlinkat, (const char *a, int b, const char *c), (a, b, c), -1)
WRAP(int, mknodat, (int a, const char *b, mode_t c, dev_t d), (a, b, c, d), -1)
WRAP(int, fchmod, (int a, mode_t b), (a, b), -1)
WRAP(int, fchown, (int a, uid_t b, gid_t c), (a, b, c), -1)
WRAP(int, futimens, (int a, const struct timespec *b), (a, b), -1)
WRAP(int, ftruncate64, (int a, off_t b), (a, b), -1)
WRAP(int, fstatat64, (int a, const char *b, struct stat *c, int d), (a, b, c, d), -1)
WRAP(int, sys_set_xattr, (int a, const char *b, const void *c, size_t d), (a, b, c, d), -errno)
WRAP(int, fdio_pwrite, (int a, const void *b, size_t c, off_t d), (a, b, c, d), -errno)
WRAP(int, fdio_write, (int a, const void *b, size_t c), (a, b, c), -errno)

/* No sync reaches the real disk: what is tried is the death of a process, not of the machine. */
#define WRAP_SYNC(name, failed)              \
	int __wrap_##name(int fd);           \
	int __wrap_##name(int fd)            \
	{                                    \
		(void)fd;                    \
		return meets() ? failed : 0; \
	}

WRAP_SYNC(fsync, -1)
WRAP_SYNC(sys_sync_data, -errno)
WRAP_SYNC(sys_sync_all, -errno)

int __real_sys_exchange(int a, const char *b, int c, const char *d);
int __wrap_sys_exchange(int a, const char *b, int c, const char *d);
int __real_sys_rename_new(int a, const char *b, int c, const char *d);
int __wrap_sys_rename_new(int a, const char *b, int c, const char *d);

int __wrap_sys_exchange(int a, const char *b, int c, const char *d)
{
	if (meets())
		return -errno;
	return fault.no_exchange ? -ENOTSUP : __real_sys_exchange(a, b, c, d);
}

int __wrap_sys_rename_new(int a, const char *b, int c, const char *d)
{
	if (meets())
		return -errno;
	return fault.no_exchange ? -ENOTSUP : __real_sys_rename_new(a, b, c, d);
}

int __real_sys_open_below(int dirfd, const char *path, int flags);
int __wrap_sys_open_below(int dirfd, const char *path, int flags);

int __wrap_sys_open_below(int dirfd, const char *path, int flags)
{
	return fault.name_by_name ? -ENOTSUP : __real_sys_open_below(dirfd, path, flags);
}

/* When it was decided that there is no way back. */
static unsigned long decided_at;

struct journal;
int __real_journal_set_state(struct store *s, struct journal *j, int state, struct err *err);
int __wrap_journal_set_state(struct store *s, struct journal *j, int state, struct err *err);

int __wrap_journal_set_state(struct store *s, struct journal *j, int state, struct err *err)
{
	decided_at = fault.n;
	if (fault.back > 0) {
		fault.at = decided_at + fault.back;
		return err_set(err, -EIO, "deciding failed");
	}
	return __real_journal_set_state(s, j, state, err);
}
