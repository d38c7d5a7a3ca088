/*
 * Transactions, and room for them.
 *
 * On a full disk removing must still be possible, because it makes room. A removal takes some room
 * in a log; a log gives its room back when it has been moved into its database, which may have to
 * grow. So where room is short,
 *
 *   - every commit makes its database long enough for what it adds (db_reserve()), so a log can be
 *     moved whatever happens later;
 *   - new data is refused while there is still room for removals;
 *   - a file without meaning holds a little more, for a disk that another program has filled.
 *
 * A limit of the store's own (store_set_limit()) is room too, but no cause for a reserve: a removal
 * may exceed it for a moment.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/statvfs.h>

#include "base/clock.h"
#include "base/fdio.h"
#include "base/log.h"
#include "base/path.h"
#include "base/size.h"
#include "cowfs/store/carry-i.h"
#include "cowfs/store/store-i.h"

#define RESERVE_NAME  "reserve"
#define RESERVE_BYTES ((uint64_t)1 << 20)

#define ROOM_SEEN_MS 5

/* --- room ------------------------------------------------------------------------------- */

/*
 * One commit asks five times.  What was seen a moment ago counts if it was plenty twice over: nothing
 * is decided above that, and should the disk fill up meanwhile, writing reports it and is tried again.
 */
static uint64_t disk_room(struct store *s)
{
	const int64_t now = (int64_t)clock_ms();
	struct statvfs fs;

	if (now - s->room_seen_at < ROOM_SEEN_MS && s->room_seen >= 2 * STORE_ROOM_PLENTY)
		return s->room_seen;
	if (statvfs(s->path, &fs) < 0 || fs.f_blocks == 0)
		return UINT64_MAX;
	s->room_seen = (uint64_t)fs.f_bavail * fs.f_frsize;
	s->room_seen_at = now;
	return s->room_seen;
}

uint64_t store_room(struct store *s)
{
	const uint64_t disk = disk_room(s), budget = store_limit_left(s);

	return disk < budget ? disk : budget;
}

static void hold_reserve(struct store *s, uint64_t room)
{
	AUTO_FREE char *path = NULL;
	AUTO_CLOSE int fd = -1;
	static const char zeros[65536];

	if (s->reserved || room >= STORE_ROOM_PLENTY || room < RESERVE_BYTES / 2 * 3)
		return;
	path = path_join(s->path, RESERVE_NAME);
	if (path)
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return;
	s->reserved = true;
	for (off_t at = 0; at < (off_t)RESERVE_BYTES; at += (off_t)sizeof(zeros))
		if (fdio_pwrite(fd, zeros, sizeof(zeros), at) < 0)
			break;
}

void store_drop_reserve(struct store *s)
{
	AUTO_FREE char *path = path_join(s->path, RESERVE_NAME);

	if (path && (unlink(path) == 0 || errno == ENOENT))
		s->reserved = false;
}

/*
 * New data needs room twice, in the log and in the database.  Some room stays reserved: for names
 * when there is none for chunks, for removals when there is none for anything else.
 */
static int look_for_room(struct store *s, enum table t, uint64_t bytes, struct err *err)
{
	static const uint64_t left[TABLES] = {
		[TABLE_META] = (uint64_t)512 << 10,
		[TABLE_CHUNKS] = (uint64_t)2 << 20,
	};

	const uint64_t needed = 2 * bytes + left[t];
	char limit[SIZE_TEXT_MAX];

	if (bytes == 0)
		return 0;
	if (disk_room(s) < needed)
		return err_set(err, -ENOSPC, "writing '%s': the disk is full",
			       db_path(s->writer[t]));
	if (store_limit_left(s) < needed)
		return err_set(
		    err, -EDQUOT,
		    "the store has reached its limit of %s ('store.limit' in config.yaml)",
		    size_format(s->limit, limit));
	return 0;
}

/* --- transactions ----------------------------------------------------------------------- */

int store_writable(struct store *s, struct err *err)
{
	for (int t = 0; t < TABLES; t++)
		if (db_is_lost(s->writer[t]))
			return err_set(
			    err, -EIO,
			    "'%s' could not be synced to the disk; nothing is written until"
			    " the store has been closed and opened again",
			    db_path(s->writer[t]));
	return 0;
}

/* The first `number` commits are on the disk. */
static void note_synced(struct store *s, enum table t, uint64_t number)
{
	uint64_t had = s->synced[t];

	while (had < number && !atomic_compare_exchange_weak(&s->synced[t], &had, number))
		;
}

/* Only the log of names is synced again and again; where room is short nothing is held in advance. */
static void lengthen_log(struct store *s, uint64_t room)
{
	struct db *meta = s->writer[TABLE_META];

	if (room >= STORE_ROOM_PLENTY && db_log_is_short(meta) &&
	    store_limit_left(s) >= STORE_ROOM_PLENTY)
		db_lengthen_log(meta);
}

static int commit(struct store *s, enum table t, bool durable, struct err *err)
{
	const uint64_t room = disk_room(s);
	struct db *db = s->writer[t];
	uint64_t number;
	int r = 0;

	if (room < STORE_ROOM_PLENTY)
		r = db_reserve(db, err);
	if (r < 0) {
		db_rollback(db);
		return r;
	}
	r = db_commit(db, err);
	if (t == TABLE_META)
		s->meta_ghost = r < 0;
	if (r < 0)
		return r;
	number = ++s->commits[t];
	if (durable)
		note_synced(s, t, number);
	hold_reserve(s, room);
	if (t == TABLE_META)
		lengthen_log(s, room);
	return r;
}

static int try_write(struct store *s, const struct store_change *c, struct err *err)
{
	struct db *db = s->writer[c->table];
	int r = look_for_room(s, c->table, c->bytes, err);

	if (r < 0)
		return r;
	r = store_writable(s, err);
	if (r < 0)
		return r;
	r = db_set_sync(db, c->durable, err);
	if (r < 0)
		return r;
	r = db_begin_write(db, err);
	if (r < 0)
		return r;
	r = c->write(s, c->ctx, err);
	if (r < 0) {
		db_rollback(db);
		return r;
	}
	return commit(s, c->table, c->durable, err);
}

/* Give the room of the logs back.  False if nothing more can be written. */
static bool make_room(struct store *s)
{
	static const enum table order[TABLES] = { TABLE_CHUNKS, TABLE_META };
	struct err err = { 0 };

	if (store_writable(s, &err) < 0)
		return false;
	for (int i = 0; i < TABLES; i++)
		if (db_empty_log(s->writer[order[i]], &err) < 0)
			log_debug("%s, continuing", err.msg);
	return store_writable(s, &err) >= 0;
}

int store_write(struct store *s, const struct store_change *c, struct err *err)
{
	int r = try_write(s, c, err);

	if (!store_is_full(r) || !make_room(s))
		return r;
	/* For names only, and for removing: chunks would leave nothing of it. */
	if (c->table == TABLE_META || c->bytes == 0)
		store_drop_reserve(s);
	r = try_write(s, c, err);
	hold_reserve(s, disk_room(s));
	return r;
}

static int sync_log(struct store *s, enum table t, struct err *err)
{
	const uint64_t number = s->commits[t];
	int r = db_sync_log(s->writer[t], err);

	if (r < 0)
		return r;
	note_synced(s, t, number);
	return r;
}

int store_sync(struct store *s, enum table t, struct err *err)
{
	int r = store_writable(s, err);

	if (r >= 0 && s->synced[t] < s->commits[t])
		r = sync_log(s, t, err);
	if (r >= 0 && t == TABLE_CHUNKS)
		carry_synced(s);
	return r;
}

/* One waits for the disk, for all that is committed by then.  sync_lock held, but meanwhile. */
static int sync_for_all(struct store *s, enum table t, struct err *err)
{
	int r;

	s->syncing[t] = true;
	pthread_mutex_unlock(&s->sync_lock);
	r = store_writable(s, err);
	if (r >= 0)
		r = sync_log(s, t, err);
	pthread_mutex_lock(&s->sync_lock);
	s->syncing[t] = false;
	pthread_cond_broadcast(&s->sync_ended);
	return r;
}

int store_sync_aside(struct store *s, enum table t, struct err *err)
{
	const uint64_t number = s->commits[t];
	int r = 0;

	LOCKED(&s->sync_lock);
	while (r >= 0 && s->synced[t] < number) {
		if (s->syncing[t])
			pthread_cond_wait(&s->sync_ended, &s->sync_lock);
		else
			r = sync_for_all(s, t, err);
	}
	return r;
}

int store_harden(struct store *s, struct err *err)
{
	return store_sync_aside(s, TABLE_META, err);
}

/* The version as it is: any commit does, and this one always has a page to write. */
static int write_version(struct store *s, void *ctx, struct err *err)
{
	char sql[64];

	snprintf(sql, sizeof(sql), "PRAGMA user_version=%d", SCHEMA_VERSION);
	return db_exec(s->writer[TABLE_META], sql, err);
}

int store_settle_names(struct store *s, struct err *err)
{
	const struct store_change ghost = { .table = TABLE_META, .write = write_version };
	int r = s->meta_ghost ? store_write(s, &ghost, err) : 0;

	return r < 0 ? r : store_sync(s, TABLE_META, err);
}
