#include "tests/crash/disk.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include <sqlite3.h>

static sqlite3_vfs *unix_vfs;
static atomic_bool armed;
static atomic_ullong calls, fail_at, hits;
static atomic_bool persists;
static enum disk_fault kind;

void disk_fail_at(uint64_t n, enum disk_fault fault, bool onwards)
{
	assert(n > 0);
	armed = false;
	calls = 0;
	hits = 0;
	fail_at = n;
	persists = onwards;
	kind = fault;
	armed = true;
}

uint64_t disk_calm(void)
{
	armed = false;
	return hits;
}

static bool is_its_turn(void)
{
	const unsigned long long n = ++calls;

	if (persists ? n < fail_at : n != fail_at)
		return false;
	hits++;
	return true;
}

/* Does this call meet the fault? */
static bool fails(bool is_write)
{
	if (!armed || kind == DISK_UNREADABLE || !is_its_turn())
		return false;
	if (kind == DISK_KILL || (kind == DISK_KILL_HALF && !is_write))
		raise(SIGKILL);
	errno = kind == DISK_BROKEN ? EIO : ENOSPC;
	return true;
}

/* --- files -------------------------------------------------------------------------------- */

struct disk_file {
	sqlite3_file base;
	sqlite3_file *real; /* in the same allocation, behind this */
};

static sqlite3_file *real_of(sqlite3_file *f)
{
	return ((struct disk_file *)f)->real;
}

static int disk_close(sqlite3_file *f)
{
	return real_of(f)->pMethods->xClose(real_of(f));
}

static int disk_read(sqlite3_file *f, void *p, int n, sqlite3_int64 off)
{
	if (armed && kind == DISK_UNREADABLE && is_its_turn())
		return SQLITE_IOERR_READ;
	return real_of(f)->pMethods->xRead(real_of(f), p, n, off);
}

static int disk_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 off)
{
	sqlite3_file *real = real_of(f);

	if (!fails(true))
		return real->pMethods->xWrite(real, p, n, off);
	if (kind == DISK_SHORT || kind == DISK_KILL_HALF) {
		int rc = real->pMethods->xWrite(real, p, n / 2, off);

		if (kind == DISK_KILL_HALF)
			raise(SIGKILL);
		errno = ENOSPC;
		return rc == SQLITE_OK ? SQLITE_FULL : rc;
	}
	return kind == DISK_BROKEN ? SQLITE_IOERR_WRITE : SQLITE_FULL;
}

static int disk_truncate(sqlite3_file *f, sqlite3_int64 size)
{
	if (fails(false))
		return SQLITE_IOERR_TRUNCATE;
	return real_of(f)->pMethods->xTruncate(real_of(f), size);
}

static int disk_sync(sqlite3_file *f, int flags)
{
	(void)f;
	(void)flags;
	return fails(false) ? SQLITE_IOERR_FSYNC : SQLITE_OK;
}

/* The linker puts these in the place of the store's calls (--wrap). */
int __wrap_fsync(int fd);
int __wrap_fdatasync(int fd);

int __wrap_fsync(int fd)
{
	(void)fd;
	return fails(false) ? -1 : 0;
}

int __wrap_fdatasync(int fd)
{
	(void)fd;
	return fails(false) ? -1 : 0;
}

static int disk_size(sqlite3_file *f, sqlite3_int64 *ret)
{
	return real_of(f)->pMethods->xFileSize(real_of(f), ret);
}

static int disk_lock(sqlite3_file *f, int level)
{
	return real_of(f)->pMethods->xLock(real_of(f), level);
}

static int disk_unlock(sqlite3_file *f, int level)
{
	return real_of(f)->pMethods->xUnlock(real_of(f), level);
}

static int disk_reserved(sqlite3_file *f, int *ret)
{
	return real_of(f)->pMethods->xCheckReservedLock(real_of(f), ret);
}

static int disk_control(sqlite3_file *f, int op, void *arg)
{
	return real_of(f)->pMethods->xFileControl(real_of(f), op, arg);
}

static int disk_sector(sqlite3_file *f)
{
	return real_of(f)->pMethods->xSectorSize(real_of(f));
}

static int disk_traits(sqlite3_file *f)
{
	return real_of(f)->pMethods->xDeviceCharacteristics(real_of(f));
}

static int disk_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **ret)
{
	if (extend && fails(false))
		return SQLITE_IOERR_SHMSIZE;
	return real_of(f)->pMethods->xShmMap(real_of(f), page, size, extend, ret);
}

static int disk_shm_lock(sqlite3_file *f, int off, int n, int flags)
{
	return real_of(f)->pMethods->xShmLock(real_of(f), off, n, flags);
}

static void disk_shm_barrier(sqlite3_file *f)
{
	real_of(f)->pMethods->xShmBarrier(real_of(f));
}

static int disk_shm_unmap(sqlite3_file *f, int delete_it)
{
	return real_of(f)->pMethods->xShmUnmap(real_of(f), delete_it);
}

static const sqlite3_io_methods methods = {
	.iVersion = 2, /* without mapping the database, which the store turns off anyway */
	.xClose = disk_close,
	.xRead = disk_read,
	.xWrite = disk_write,
	.xTruncate = disk_truncate,
	.xSync = disk_sync,
	.xFileSize = disk_size,
	.xLock = disk_lock,
	.xUnlock = disk_unlock,
	.xCheckReservedLock = disk_reserved,
	.xFileControl = disk_control,
	.xSectorSize = disk_sector,
	.xDeviceCharacteristics = disk_traits,
	.xShmMap = disk_shm_map,
	.xShmLock = disk_shm_lock,
	.xShmBarrier = disk_shm_barrier,
	.xShmUnmap = disk_shm_unmap,
};

static int disk_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *ret_flags)
{
	struct disk_file *d = (struct disk_file *)f;
	int rc;

	(void)vfs;
	d->base.pMethods = NULL;
	if ((flags & SQLITE_OPEN_CREATE) && fails(false))
		return SQLITE_CANTOPEN;
	d->real = (sqlite3_file *)(d + 1);
	memset(d->real, 0, (size_t)unix_vfs->szOsFile);
	rc = unix_vfs->xOpen(unix_vfs, name, d->real, flags, ret_flags);
	if (d->real->pMethods)
		d->base.pMethods = &methods;
	return rc;
}

void disk_install(void)
{
	static sqlite3_vfs vfs;
	int rc;

	if (unix_vfs)
		return;
	unix_vfs = sqlite3_vfs_find(NULL);
	assert(unix_vfs);
	/* Everything that is no file goes to the original's own functions. */
	vfs = *unix_vfs;
	vfs.zName = "snap-test-disk";
	vfs.pNext = NULL;
	vfs.szOsFile = (int)sizeof(struct disk_file) + unix_vfs->szOsFile;
	vfs.xOpen = disk_open;
	rc = sqlite3_vfs_register(&vfs, 1);
	assert(rc == SQLITE_OK);
	(void)rc;
}
