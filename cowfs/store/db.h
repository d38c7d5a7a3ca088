/*
 * db.h - private to the store: the only face of SQLite.
 *
 * A struct db is one connection, used by one thread at a time. Statements are prepared once per
 * connection and found again by the address of their text, so the text must be a literal. Only this
 * module translates SQLite's result codes to errno and a sentence.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

struct db;
struct db_query;

enum db_mode {
	DB_PEEK, /* the file alone, without its log or locks: leaves nothing beside it */
	DB_READ,
	DB_WRITE,
	DB_CREATE,
};

NODISCARD int db_open(const char *path, enum db_mode mode, struct db **ret, struct err *err);
void db_close(struct db *db); /* NULL is fine */
DEFINE_CLEANUP(struct db *, db_close)

const char *db_path(const struct db *db);

/* Run statements that give no rows. */
NODISCARD int db_exec(struct db *db, const char *sql, struct err *err);

/* One integer, such as a pragma's answer or a count. */
NODISCARD int db_int(struct db *db, const char *sql, int64_t *ret, struct err *err);

NODISCARD int db_begin_read(struct db *db, struct err *err); /* everything after is of one moment */
NODISCARD int db_begin_write(struct db *db, struct err *err); /* takes the write lock now */

/*
 * A sync has failed.  The kernel reports that once and forgets, so what later ones say
 * means nothing: no more may be written through this connection.
 */
bool db_is_lost(const struct db *db);

/*
 * On failure the transaction has been rolled back.  It may still stand in the log, complete,
 * and come back when the log is recovered, unless another commit has overwritten it.
 */
NODISCARD int db_commit(struct db *db, struct err *err);
void db_rollback(struct db *db); /* fine when there is nothing to roll back */

/* Whether each commit waits for the disk. */
NODISCARD int db_set_sync(struct db *db, bool full, struct err *err);

/*
 * Make every commit up to now durable, also those that did not wait for the disk.  From any
 * thread, also while another uses the connection.
 */
NODISCARD int db_sync_log(struct db *db, struct err *err);

/* Bytes of write-ahead log not yet moved into the database, as of the last commit. */
uint64_t db_log_bytes(const struct db *db);

/*
 * A commit that makes the file of the log longer costs its sync a commit of the file system's
 * journal, which takes longer than the bytes.  So a log that is synced often gets zeros behind its
 * end, for the next commits to overwrite; recovering it ends at the first of them.  Is it time for
 * that?  Both right after a commit.
 */
bool db_log_is_short(struct db *db);
void db_lengthen_log(struct db *db); /* where that fails, the log stays as it is */

/*
 * Take room on the disk for all pages of the transaction under way, in the file that the log
 * is moved into: then that can be done on a full disk too.
 */
NODISCARD int db_reserve(struct db *db, struct err *err);

/* Move the log into the database, as far as readers allow; with `reset`, empty it if nobody reads. */
NODISCARD int db_checkpoint(struct db *db, bool reset, struct err *err);

/* The same with `reset`, waiting a moment for present readers. */
NODISCARD int db_empty_log(struct db *db, struct err *err);

/*
 * A statement, ready to bind: parameters and columns count from 0.  Bound memory is
 * borrowed until query_end().  A failed bind is reported by query_step().
 */
NODISCARD int db_query(struct db *db, const char *sql, struct db_query **ret, struct err *err);
void query_end(struct db_query *q); /* NULL is fine */
DEFINE_CLEANUP(struct db_query *, query_end)

void query_bind_int(struct db_query *q, int at, int64_t v);
void query_bind_blob(struct db_query *q, int at, const void *data, size_t len);

/* 1: a row.  0: no more. */
NODISCARD int query_step(struct db_query *q, struct err *err);

/* Run a statement that gives no rows, and make it ready to bind again. */
NODISCARD int query_run(struct db_query *q, struct err *err);

int64_t query_int(struct db_query *q, int col);

/* Borrowed until the next step or end.  -EBADMSG if the column is no blob. */
NODISCARD int query_blob(struct db_query *q, int col, const void **ret, size_t *ret_len,
			 struct err *err);

/* Let SQLite verify its own structure; `fn` gets each complaint, borrowed. */
typedef int (*db_complaint_fn)(const char *complaint, void *ctx, struct err *err);
NODISCARD int db_verify(struct db *db, db_complaint_fn fn, void *ctx, struct err *err);

/* Rows the last query_run() on this connection changed. */
int64_t db_changes(struct db *db);
