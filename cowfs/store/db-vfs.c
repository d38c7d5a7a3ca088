/*
 * db-vfs.c - SQLite's log, written with one call per transaction.
 *
 * SQLite writes each page of a transaction to its log with two calls: a header, then the page. A
 * commit of 15 pages makes 30 of them. This file stands between SQLite and the file of the log. It
 * collects consecutive pages, and writes them when the last one of a transaction comes, whose
 * header says so. Before that only this connection may read them, and it writes them before it
 * reads. So a failed write is reported before SQLite makes the transaction visible.
 *
 * A sync may come from another thread, in the middle of a transaction. It is for complete
 * transactions, and those are in the file: it leaves collected pages alone.
 */
#include <pthread.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cowfs/store/db-i.h"

#define LOG_VFS "snap-log"

#define LOG_HEADER   32
#define FRAME_HEADER 24

/* SQLite writes at most so many bytes with one call: it masks their number. */
#define COLLECTED_MAX 0x1ffff

struct log_file {
	sqlite3_file base;
	sqlite3_file *real; /* in the same allocation, behind this */
	struct buf bytes;   /* collected, to be written at `from` */
	sqlite3_int64 from;
	sqlite3_int64 end;    /* of the last page that was written or collected; -1: not known */
	sqlite3_int64 header; /* end of the last header of a page; its page comes next */
	bool commits;         /* that page is the last of a transaction */
};

static sqlite3_vfs *base_vfs;

static struct log_file *log_of(sqlite3_file *f)
{
	return (struct log_file *)f;
}

/* Write what was collected.  Should that fail it is gone, and the transaction with it. */
static int write_collected(struct log_file *l)
{
	const int len = (int)l->bytes.len;
	int rc;

	if (len == 0)
		return SQLITE_OK;
	buf_reset(&l->bytes);
	rc = l->real->pMethods->xWrite(l->real, l->bytes.data, len, l->from);
	if (rc != SQLITE_OK)
		l->end = -1;
	return rc;
}

/* False: there is no memory for it, or enough is collected. */
static bool collect(struct log_file *l, const void *p, int n, sqlite3_int64 off)
{
	if (l->bytes.len + (size_t)n > COLLECTED_MAX)
		return false;
	if (l->bytes.len == 0)
		l->from = off;
	return buf_append(&l->bytes, p, (size_t)n) >= 0;
}

static int write_now(struct log_file *l, const void *p, int n, sqlite3_int64 off)
{
	int rc = write_collected(l);

	return rc == SQLITE_OK ? l->real->pMethods->xWrite(l->real, p, n, off) : rc;
}

static bool is_last_of_transaction(const unsigned char *header)
{
	return (header[4] | header[5] | header[6] | header[7]) != 0;
}

/* SQLite also writes headers anew that have their page behind them: only at the end a page follows. */
static int write_header(struct log_file *l, const void *p, sqlite3_int64 off)
{
	l->header = off + FRAME_HEADER;
	l->commits = is_last_of_transaction(p);
	if (off == l->end && collect(l, p, FRAME_HEADER, off))
		return SQLITE_OK;
	return write_now(l, p, FRAME_HEADER, off);
}

static int write_page(struct log_file *l, const void *p, int n, sqlite3_int64 off)
{
	const sqlite3_int64 len = (sqlite3_int64)l->bytes.len;
	const bool collects = len > 0 && l->from + len == off;

	l->header = -1;
	l->end = off + n;
	if (!collects || !collect(l, p, n, off))
		return write_now(l, p, n, off);
	return l->commits ? write_collected(l) : SQLITE_OK;
}

static int log_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 off)
{
	struct log_file *l = log_of(f);

	if (n == FRAME_HEADER)
		return write_header(l, p, off);
	if (off == l->header)
		return write_page(l, p, n, off);
	if (off == 0 && n == LOG_HEADER)
		l->end = LOG_HEADER;
	return write_now(l, p, n, off);
}

static int log_read(sqlite3_file *f, void *p, int n, sqlite3_int64 off)
{
	struct log_file *l = log_of(f);
	int rc = write_collected(l);

	return rc == SQLITE_OK ? l->real->pMethods->xRead(l->real, p, n, off) : rc;
}

static int log_truncate(sqlite3_file *f, sqlite3_int64 size)
{
	struct log_file *l = log_of(f);
	int rc = write_collected(l);

	l->end = -1;
	return rc == SQLITE_OK ? l->real->pMethods->xTruncate(l->real, size) : rc;
}

static int log_size(sqlite3_file *f, sqlite3_int64 *ret)
{
	struct log_file *l = log_of(f);
	int rc = write_collected(l);

	return rc == SQLITE_OK ? l->real->pMethods->xFileSize(l->real, ret) : rc;
}

static int log_sync(sqlite3_file *f, int flags)
{
	sqlite3_file *real = log_of(f)->real;

	return real->pMethods->xSync(real, flags);
}

static int log_close(sqlite3_file *f)
{
	struct log_file *l = log_of(f);

	buf_done(&l->bytes);
	return l->real->pMethods->xClose(l->real);
}

static int log_lock(sqlite3_file *f, int level)
{
	sqlite3_file *real = log_of(f)->real;

	return real->pMethods->xLock(real, level);
}

static int log_unlock(sqlite3_file *f, int level)
{
	sqlite3_file *real = log_of(f)->real;

	return real->pMethods->xUnlock(real, level);
}

static int log_reserved(sqlite3_file *f, int *ret)
{
	sqlite3_file *real = log_of(f)->real;

	return real->pMethods->xCheckReservedLock(real, ret);
}

static int log_control(sqlite3_file *f, int op, void *arg)
{
	sqlite3_file *real = log_of(f)->real;

	return real->pMethods->xFileControl(real, op, arg);
}

static int log_sector(sqlite3_file *f)
{
	sqlite3_file *real = log_of(f)->real;

	return real->pMethods->xSectorSize(real);
}

static int log_traits(sqlite3_file *f)
{
	sqlite3_file *real = log_of(f)->real;

	return real->pMethods->xDeviceCharacteristics(real);
}

/* A log is neither mapped nor shared. */
static const sqlite3_io_methods methods = {
	.iVersion = 1,
	.xClose = log_close,
	.xRead = log_read,
	.xWrite = log_write,
	.xTruncate = log_truncate,
	.xSync = log_sync,
	.xFileSize = log_size,
	.xLock = log_lock,
	.xUnlock = log_unlock,
	.xCheckReservedLock = log_reserved,
	.xFileControl = log_control,
	.xSectorSize = log_sector,
	.xDeviceCharacteristics = log_traits,
};

static int open_log(const char *name, struct log_file *l, int flags, int *ret_flags)
{
	int rc;

	*l = (struct log_file){ .real = (sqlite3_file *)(l + 1), .end = -1, .header = -1 };
	memset(l->real, 0, (size_t)base_vfs->szOsFile);
	rc = base_vfs->xOpen(base_vfs, name, l->real, flags, ret_flags);
	if (rc == SQLITE_OK)
		l->base.pMethods = &methods;
	return rc;
}

/* All other files are as they would be. */
static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *ret_flags)
{
	return flags & SQLITE_OPEN_WAL ? open_log(name, log_of(f), flags, ret_flags)
				       : base_vfs->xOpen(base_vfs, name, f, flags, ret_flags);
}

static void install(void)
{
	static sqlite3_vfs vfs;
	sqlite3_vfs *found = sqlite3_vfs_find(NULL);

	if (!found)
		return;
	vfs = *found;
	vfs.zName = LOG_VFS;
	vfs.pNext = NULL;
	vfs.szOsFile = (int)sizeof(struct log_file) + found->szOsFile;
	vfs.xOpen = open_file;
	base_vfs = found;
	if (sqlite3_vfs_register(&vfs, 0) != SQLITE_OK)
		base_vfs = NULL;
}

const char *db_log_vfs(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, install);
	return base_vfs ? LOG_VFS : NULL;
}
