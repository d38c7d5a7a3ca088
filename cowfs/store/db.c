#include "cowfs/store/db.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "cowfs/store/db-i.h"

#define DB_ROW_MAX (6 << 20) /* the largest object, packed, and what stands beside it */

int db_errno_of(int rc)
{
	switch (rc & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EBUSY;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_READONLY:
		return -EROFS;
	case SQLITE_INTERRUPT:
		return -EINTR;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
	case SQLITE_FORMAT:
	case SQLITE_TOOBIG:
		return -EBADMSG;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return -EACCES;
	case SQLITE_CONSTRAINT:
		return -EEXIST;
	default:
		return -EIO;
	}
}

/*
 * What the system said, if it can have been about this failure.  SQLite keeps the number of
 * an earlier one, and an -ENOENT from there would read as "not in the store".
 */
static int system_code(struct db *db, int rc)
{
	const int sys = db->h ? sqlite3_system_errno(db->h) : 0;

	switch (sys) {
	case ENOSPC:
	case EDQUOT:
	case EROFS:
	case EACCES:
	case EMFILE:
	case ENFILE:
		return -sys;
	case ENOENT:
		return (rc & 0xff) == SQLITE_CANTOPEN ? -ENOENT : -EIO;
	default:
		return -EIO;
	}
}

int db_err(struct err *err, struct db *db, int rc, const char *doing)
{
	int code = db_errno_of(rc);

	if (rc == SQLITE_IOERR_FSYNC || rc == SQLITE_IOERR_DIR_FSYNC)
		db->lost = true;
	if (rc == SQLITE_IOERR_NOMEM)
		code = -ENOMEM;
	else if ((rc & 0xff) == SQLITE_CANTOPEN || (rc & 0xff) == SQLITE_IOERR)
		code = system_code(db, rc);
	/* A message of SQLite's may quote SQL, but it never spans lines. */
	return err_set(err, code, "%s '%s': %s", doing, db->path,
		       db->h ? sqlite3_errmsg(db->h) : sqlite3_errstr(rc));
}

/* SQLite opens its log once and keeps it until the connection is closed. */
static void find_log(struct db *db)
{
	sqlite3_file *log = NULL;
	int rc = sqlite3_file_control(db->h, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);

	if (rc == SQLITE_OK && log && log->pMethods)
		db->log = log;
}

static int on_commit(void *ctx, sqlite3 *h, const char *name, int pages)
{
	struct db *db = ctx;

	if (!db->page_size) {
		int64_t v = 0;

		IGNORE_RESULT(db_int(db, "PRAGMA page_size", &v, NULL),
			      "0 only delays a checkpoint");
		db->page_size = (uint64_t)v;
	}
	db->log_pages = (uint64_t)pages;
	if (!db->log)
		find_log(db);
	return SQLITE_OK;
}

static int configure(struct db *db, enum db_mode mode, struct err *err)
{
	int r, rc, on;

	rc = sqlite3_busy_timeout(db->h, DB_BUSY_MS);
	/* Else a damaged length would be believed before any code of ours sees the row. */
	sqlite3_limit(db->h, SQLITE_LIMIT_LENGTH, DB_ROW_MAX);
	if (rc == SQLITE_OK)
		rc = sqlite3_extended_result_codes(db->h, 1);
	/* Untrusted bytes: no schema of a damaged file may call functions or lie about itself. */
	if (rc == SQLITE_OK)
		rc = sqlite3_db_config(db->h, SQLITE_DBCONFIG_DEFENSIVE, 1, &on);
	if (rc == SQLITE_OK)
		rc = sqlite3_db_config(db->h, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, &on);
	/* Only the owner's one writing connection moves the log; a reader's close must not. */
	if (rc == SQLITE_OK && mode == DB_READ)
		rc = sqlite3_db_config(db->h, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, &on);
	if (rc != SQLITE_OK)
		return db_err(err, db, rc, "configuring");
	r = db_exec(
	    db,
	    "PRAGMA wal_autocheckpoint=0; PRAGMA temp_store=MEMORY;"
	    "PRAGMA cell_size_check=1; PRAGMA mmap_size=0; PRAGMA cache_size=-8192;"
	    /* Some builds write zeros over what is removed, and removing takes room then. */
	    "PRAGMA secure_delete=OFF;",
	    err);
	if (r < 0)
		return r;
	rc = sqlite3_prepare_v3(db->h, "ROLLBACK", -1, SQLITE_PREPARE_PERSISTENT, &db->rollback,
				NULL);
	if (rc != SQLITE_OK)
		return db_err(err, db, rc, "configuring");
	sqlite3_wal_hook(db->h, on_commit, db);
	return 0;
}

/* The URI that opens a file as one that nobody changes. */
static int immutable_uri(const char *path, struct buf *out)
{
	int r = buf_append_str(out, *path == '/' ? "file://" : "file:");

	for (; *path && r >= 0; path++)
		r = strchr("%?#", *path) ? buf_printf(out, "%%%02x", (unsigned char)*path)
					 : buf_append(out, path, 1);
	return r < 0 ? r : buf_append_str(out, "?immutable=1");
}

int db_open(const char *path, enum db_mode mode, struct db **ret, struct err *err)
{
	static const int flags[] = {
		[DB_PEEK] = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI,
		[DB_READ] = SQLITE_OPEN_READONLY,
		[DB_WRITE] = SQLITE_OPEN_READWRITE,
		[DB_CREATE] = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
	};
	CLEANUP(db_close_p) struct db *db = calloc(1, sizeof(*db));
	CLEANUP(buf_done) struct buf uri = BUF_INIT;
	int rc, r;

	if (!db)
		return err_nomem(err);
	pthread_mutex_init(&db->syncs, NULL);
	db->path = strdup(path);
	if (!db->path)
		return err_nomem(err);
	if (mode == DB_PEEK && (immutable_uri(path, &uri) < 0 || !buf_str(&uri)))
		return err_nomem(err);
	rc = sqlite3_open_v2(mode == DB_PEEK ? buf_str(&uri) : path, &db->h,
			     flags[mode] | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE,
			     mode == DB_WRITE ? db_log_vfs() : NULL);
	if (rc != SQLITE_OK)
		return db_err(err, db, rc, "opening");
	r = configure(db, mode, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(db);
	return 0;
}

void db_close(struct db *db)
{
	int rc;

	if (!db)
		return;
	for (unsigned i = 0; i < db->n_queries; i++) {
		assert(!db->query[i].busy);
		sqlite3_finalize(db->query[i].stmt);
	}
	sqlite3_finalize(db->rollback);
	rc = sqlite3_close(db->h);
	assert(rc == SQLITE_OK); /* all statements are ours and finalized */
	pthread_mutex_destroy(&db->syncs);
	free(db->path);
	free(db);
}

const char *db_path(const struct db *db)
{
	return db->path;
}

int db_exec(struct db *db, const char *sql, struct err *err)
{
	int rc = sqlite3_exec(db->h, sql, NULL, NULL, NULL);

	return rc == SQLITE_OK ? 0 : db_err(err, db, rc, "writing");
}

static void stmt_end(sqlite3_stmt **st)
{
	sqlite3_finalize(*st);
}

int db_int(struct db *db, const char *sql, int64_t *ret, struct err *err)
{
	CLEANUP(stmt_end) sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(db->h, sql, -1, &st, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_step(st);
	if (rc != SQLITE_ROW) {
		IGNORE_RESULT(db_err(err, db, rc, "reading"), "only its sentence is wanted");
		return db_errno_of(rc);
	}
	*ret = sqlite3_column_int64(st, 0);
	return 0;
}

int db_begin_read(struct db *db, struct err *err)
{
	int64_t v;
	int r = db_exec(db, "BEGIN", err);

	if (r < 0)
		return r;
	/* SQLite takes its snapshot at the first read, so read something now. */
	r = db_int(db, "PRAGMA schema_version", &v, err);
	if (r < 0)
		db_rollback(db);
	return r;
}

bool db_is_lost(const struct db *db)
{
	return db->lost;
}

/* Each transaction has two of them: `sql` is a literal, and read by SQLite once. */
static int run_prepared(struct db *db, const char *sql, struct err *err)
{
	CLEANUP(query_end_p) struct db_query *q = NULL;
	int r = db_query(db, sql, &q, err), rc;

	if (r < 0)
		return r;
	/* Of a COMMIT SQLite says that it only reads. */
	rc = sqlite3_step(q->stmt);
	return rc == SQLITE_DONE ? 0 : db_err(err, db, rc, "writing");
}

int db_begin_write(struct db *db, struct err *err)
{
	assert(!db->lost);
	return run_prepared(db, "BEGIN IMMEDIATE", err);
}

int db_commit(struct db *db, struct err *err)
{
	const bool syncs = db->sync_full;
	int r;

	if (syncs)
		pthread_mutex_lock(&db->syncs);
	r = run_prepared(db, "COMMIT", err);
	if (syncs)
		pthread_mutex_unlock(&db->syncs);
	if (r < 0)
		db_rollback(db);
	return r;
}

void db_rollback(struct db *db)
{
	/* Some failures roll back by themselves, and then there is nothing left to do. */
	if (!sqlite3_get_autocommit(db->h)) {
		sqlite3_step(db->rollback);
		sqlite3_reset(db->rollback);
	}
}

int db_set_sync(struct db *db, bool full, struct err *err)
{
	int r;

	if (db->sync_known && db->sync_full == full)
		return 0;
	r = db_exec(db, full ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL", err);
	db->sync_known = r >= 0;
	db->sync_full = full;
	return r;
}

static int prepare(struct db *db, const char *sql, struct db_query **ret, struct err *err)
{
	struct db_query *q;
	int rc;

	assert(db->n_queries < DB_QUERIES_MAX);
	q = &db->query[db->n_queries];
	*q = (struct db_query){ .db = db, .sql = sql };
	rc = sqlite3_prepare_v3(db->h, sql, -1, SQLITE_PREPARE_PERSISTENT, &q->stmt, NULL);
	if (rc != SQLITE_OK)
		return db_err(err, db, rc, "reading");
	db->n_queries++;
	*ret = q;
	return 0;
}

int db_query(struct db *db, const char *sql, struct db_query **ret, struct err *err)
{
	struct db_query *q = NULL;
	int r;

	for (unsigned i = 0; i < db->n_queries && !q; i++)
		if (db->query[i].sql == sql)
			q = &db->query[i];
	if (!q) {
		r = prepare(db, sql, &q, err);
		if (r < 0)
			return r;
	}
	assert(!q->busy);
	q->busy = true;
	q->bind_rc = SQLITE_OK;
	*ret = q;
	return 0;
}

void query_end(struct db_query *q)
{
	if (!q)
		return;
	sqlite3_reset(q->stmt);
	sqlite3_clear_bindings(q->stmt);
	q->busy = false;
}

void query_bind_int(struct db_query *q, int at, int64_t v)
{
	int rc = sqlite3_bind_int64(q->stmt, at + 1, v);

	if (q->bind_rc == SQLITE_OK)
		q->bind_rc = rc;
}

void query_bind_blob(struct db_query *q, int at, const void *data, size_t len)
{
	/* A NULL pointer would bind NULL; an empty blob is a value. */
	int rc = sqlite3_bind_blob64(q->stmt, at + 1, len ? data : "", len, SQLITE_STATIC);

	if (q->bind_rc == SQLITE_OK)
		q->bind_rc = rc;
}

int query_step(struct db_query *q, struct err *err)
{
	int rc = q->bind_rc == SQLITE_OK ? sqlite3_step(q->stmt) : q->bind_rc;

	if (rc == SQLITE_ROW)
		return 1;
	if (rc == SQLITE_DONE)
		return 0;
	return db_err(err, q->db, rc, sqlite3_stmt_readonly(q->stmt) ? "reading" : "writing");
}

int query_run(struct db_query *q, struct err *err)
{
	int r = query_step(q, err);

	assert(r <= 0);
	sqlite3_reset(q->stmt);
	q->bind_rc = SQLITE_OK;
	return r;
}

int64_t query_int(struct db_query *q, int col)
{
	return sqlite3_column_int64(q->stmt, col);
}

int query_blob(struct db_query *q, int col, const void **ret, size_t *ret_len, struct err *err)
{
	const void *data;
	size_t len;

	if (sqlite3_column_type(q->stmt, col) != SQLITE_BLOB)
		return err_set(err, -EBADMSG, "reading '%s': column %d is no blob", q->db->path,
			       col);
	data = sqlite3_column_blob(q->stmt, col);
	len = (size_t)sqlite3_column_bytes(q->stmt, col);
	/* A long blob is read from further pages here, and that can fail. */
	if (!data && sqlite3_errcode(q->db->h) != SQLITE_ROW)
		return db_err(err, q->db, sqlite3_errcode(q->db->h), "reading");
	*ret = data ? data : "";
	*ret_len = data ? len : 0;
	return 0;
}

int64_t db_changes(struct db *db)
{
	return sqlite3_changes64(db->h);
}

int db_verify(struct db *db, db_complaint_fn fn, void *ctx, struct err *err)
{
	CLEANUP(stmt_end) sqlite3_stmt *st = NULL;
	const char *text;
	int rc, r;

	rc = sqlite3_prepare_v2(db->h, "PRAGMA integrity_check", -1, &st, NULL);
	if (rc != SQLITE_OK)
		return db_err(err, db, rc, "verifying");
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		text = (const char *)sqlite3_column_text(st, 0);
		r = text && strcmp(text, "ok") != 0 ? fn(text, ctx, err) : 0;
		if (r < 0)
			return r;
	}
	return rc == SQLITE_DONE ? 0 : db_err(err, db, rc, "verifying");
}
