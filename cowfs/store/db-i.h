/*
 * db-i.h - private to db, db-log and db-vfs: the state of a connection, and SQLite's codes as ours.
 */
#pragma once

#include <stdatomic.h>

#include <sqlite3.h>

#include "base/lock.h"
#include "cowfs/store/db.h"

#define DB_BUSY_MS     5000 /* a reader recovering the log may hold it for a moment */
#define DB_QUERIES_MAX 24

struct db_query {
	struct db *db;
	const char *sql; /* borrowed: a literal */
	sqlite3_stmt *stmt;
	int bind_rc; /* first failed bind since the last end */
	bool busy;
};

struct db {
	sqlite3 *h;
	char *path;
	_Atomic uint64_t log_pages;
	_Atomic uint64_t page_size;  /* learned at the first commit */
	bool sync_known, sync_full;  /* what db_set_sync() last said */
	sqlite3_stmt *rollback;      /* ready, because it must not fail for want of memory */
	_Atomic bool lost;           /* a sync failed: nobody knows what the disk holds */
	_Atomic(sqlite3_file *) log; /* once it is known */
	_Atomic bool log_synced;     /* since it was last made longer */
	int64_t log_length;          /* of its file, at least */
	pthread_mutex_t syncs;       /* one at a time: the kernel tells one of two of a failure */
	unsigned n_queries;
	struct db_query query[DB_QUERIES_MAX];
};

/* The one place where SQLite's codes become ours. */
int db_errno_of(int rc);
int db_err(struct err *err, struct db *db, int rc, const char *doing);

/* The name under which SQLite finds what is in db-vfs.c; NULL: as it would by itself. */
const char *db_log_vfs(void);
