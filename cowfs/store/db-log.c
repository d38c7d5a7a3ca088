/*
 * db-log.c - the write-ahead log of a connection: syncing it, moving it into the database.
 */
#include <assert.h>
#include <errno.h>

#include "cowfs/store/db-i.h"

#define DB_EMPTY_MS 500 /* how long db_empty_log() waits for readers */

/* How SQLite lays out its log: a header, then frames of a header and a page each. */
#define LOG_HEADER   32
#define FRAME_HEADER 24

/* The log is made longer by so much, when less than a quarter of that is left. */
#define LOG_AHEAD ((int64_t)1 << 20)

int db_sync_log(struct db *db, struct err *err)
{
	sqlite3_file *log = db->log;
	int r = 0;

	/* No log was written yet. */
	if (!log && db->log_pages == 0)
		return 0;
	db->log_synced = true;
	LOCKED(&db->syncs);
	errno = 0;
	if (db->lost || !log || log->pMethods->xSync(log, SQLITE_SYNC_NORMAL) != SQLITE_OK) {
		if (errno == 0)
			errno = EIO;
		db->lost = true;
		r = err_sys(err, "syncing the log of '%s'", db->path);
	}
	return r;
}

uint64_t db_log_bytes(const struct db *db)
{
	return db->log_pages * db->page_size;
}

static int move_log(struct db *db, int mode, int wait_ms, struct err *err)
{
	int log = 0, done = 0, rc, r = 0;

	assert(!db->lost);
	sqlite3_busy_timeout(db->h, wait_ms);
	pthread_mutex_lock(&db->syncs);
	rc = sqlite3_wal_checkpoint_v2(db->h, NULL, mode, &log, &done);
	if (rc != SQLITE_OK && (rc & 0xff) != SQLITE_BUSY)
		r = db_err(err, db, rc, "moving the log into");
	pthread_mutex_unlock(&db->syncs);
	sqlite3_busy_timeout(db->h, DB_BUSY_MS);
	if (r < 0)
		return r;
	if (log >= 0)
		db->log_pages = (uint64_t)(log - done);
	db->log_length = 0;
	return 0;
}

int db_checkpoint(struct db *db, bool reset, struct err *err)
{
	/* Readers may go on: to wait for them here would make every commit wait. */
	return reset ? move_log(db, SQLITE_CHECKPOINT_TRUNCATE, 0, err)
		     : move_log(db, SQLITE_CHECKPOINT_PASSIVE, DB_BUSY_MS, err);
}

int db_empty_log(struct db *db, struct err *err)
{
	return move_log(db, SQLITE_CHECKPOINT_TRUNCATE, DB_EMPTY_MS, err);
}

/* --- making files longer --------------------------------------------------------------- */

static int write_zeros(sqlite3_file *f, int64_t from, int64_t to)
{
	static const char zeros[65536];
	int rc = SQLITE_OK;

	for (int64_t at = from, n; rc == SQLITE_OK && at < to; at += n) {
		n = to - at < (int64_t)sizeof(zeros) ? to - at : (int64_t)sizeof(zeros);
		rc = f->pMethods->xWrite(f, zeros, (int)n, at);
	}
	return rc;
}

static int64_t log_end(const struct db *db)
{
	return LOG_HEADER + (int64_t)(db->log_pages * (db->page_size + FRAME_HEADER));
}

bool db_log_is_short(struct db *db)
{
	sqlite3_file *log = db->log;
	sqlite3_int64 length = 0;

	if (!log || !db->log_synced || log_end(db) + LOG_AHEAD / 4 <= db->log_length)
		return false;
	if (log->pMethods->xFileSize(log, &length) != SQLITE_OK)
		return false;
	db->log_length = length;
	return log_end(db) + LOG_AHEAD / 4 > length;
}

void db_lengthen_log(struct db *db)
{
	sqlite3_file *log = db->log;
	const int64_t from = db->log_length;

	db->log_synced = false;
	if (write_zeros(log, from, from + LOG_AHEAD) == SQLITE_OK)
		db->log_length = from + LOG_AHEAD;
	else
		log->pMethods->xTruncate(log, from);
}

/* Its length is whole pages at any moment, also if the process dies here. */
static int lengthen(sqlite3_file *f, int64_t have, int64_t want)
{
	int rc = f->pMethods->xTruncate(f, want);

	if (rc == SQLITE_OK)
		rc = write_zeros(f, have, want);
	/* What it took is given back; should that fail, the file is longer than it need be. */
	if (rc != SQLITE_OK)
		f->pMethods->xTruncate(f, have);
	return rc;
}

int db_reserve(struct db *db, struct err *err)
{
	sqlite3_file *f = NULL;
	int64_t pages = 0, page_size = 0;
	sqlite3_int64 have = 0;
	int r, rc;

	r = db_int(db, "PRAGMA page_count", &pages, err);
	if (r < 0)
		return r;
	r = db_int(db, "PRAGMA page_size", &page_size, err);
	if (r < 0)
		return r;
	rc = sqlite3_file_control(db->h, "main", SQLITE_FCNTL_FILE_POINTER, &f);
	if (rc == SQLITE_OK)
		rc = f->pMethods->xFileSize(f, &have);
	if (rc == SQLITE_OK && have < pages * page_size)
		rc = lengthen(f, have, pages * page_size);
	/* None of these calls leaves a sentence at the connection. */
	return rc == SQLITE_OK ? 0
			       : err_set(err, db_errno_of(rc), "making room in '%s': %s", db->path,
					 sqlite3_errstr(rc));
}
