/*
 * One directory: meta.db, chunks.db, and `lock`, on which the writer holds flock(2) for as long as
 * it has the store open. Readers, in this process or another, use read-only connections of their
 * own. Only the two writing connections checkpoint, because SQLite before 3.51.3 can lose a page
 * when two do.
 */
#include "cowfs/store/store.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/log.h"
#include "base/path.h"
#include "base/sys.h"
#include "cowfs/store/carry-i.h"
#include "cowfs/store/store-i.h"

const char *store_path(const struct store *s)
{
	return s->path;
}

const struct object_key *store_key(const struct store *s)
{
	return &s->key;
}

static char *file_path(const struct store *s, enum schema_file f)
{
	return path_join(s->path, schema_file_name(f));
}

/* --- opening ---------------------------------------------------------------------------- */

static int take_lock(struct store *s, struct err *err)
{
	AUTO_FREE char *path = path_join(s->path, "lock");
	AUTO_CLOSE int fd = -1;
	char pid[32];
	ssize_t n;
	int len;

	if (!path)
		return err_nomem(err);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_sys(err, "opening '%s'", path);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK)
			return err_sys(err, "locking '%s'", path);
		n = fdio_pread(fd, pid, sizeof(pid) - 1, 0);
		pid[n > 0 ? n : 0] = '\0';
		pid[strcspn(pid, "\n")] = '\0';
		return err_set(err, -EBUSY, "store '%s' is in use by process %s", s->path,
			       *pid ? pid : "(unknown)");
	}
	len = snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());
	if (ftruncate(fd, 0) < 0 || fdio_pwrite(fd, pid, (size_t)len, 0) < 0)
		log_debug("cannot note the holder in '%s', continuing", path);
	s->lock_fd = TAKE_FD(fd);
	return 0;
}

static int exists(const char *path, bool *ret, struct err *err)
{
	struct stat st;

	*ret = stat(path, &st) == 0;
	if (!*ret && errno != ENOENT && errno != ENOTDIR)
		return err_sys(err, "opening '%s'", path);
	return 0;
}

/* A chunks.db without its meta.db is what a creation that was cut short leaves: then it is empty. */
static int clear_half_made(const char *chunks, struct err *err)
{
	CLEANUP(db_close_p) struct db *db = NULL;
	bool there = false;
	int64_t n = 0;
	int r = exists(chunks, &there, err);

	if (r < 0 || !there)
		return r;
	r = schema_probe(chunks, SCHEMA_CHUNKS, NULL, err);
	if (r < 0)
		return r;
	r = db_open(chunks, DB_READ, &db, err);
	if (r < 0)
		return r;
	r = db_int(db, "SELECT count(*) FROM (SELECT 1 FROM chunk LIMIT 1)", &n, err);
	if (r < 0)
		return r;
	if (n > 0)
		return err_set(err, -EBADMSG, "'%s' has content but its meta.db is missing",
			       chunks);
	return 0;
}

/* meta.db comes last: it is what makes the directory a store. */
static int create_files(struct store *s, struct err *err)
{
	AUTO_FREE char *meta = file_path(s, SCHEMA_META), *chunks = file_path(s, SCHEMA_CHUNKS);
	struct schema_identity identity;
	bool there = false;
	int r;

	if (!meta || !chunks)
		return err_nomem(err);
	r = exists(meta, &there, err);
	if (r < 0 || there)
		return r;
	r = clear_half_made(chunks, err);
	if (r < 0)
		return r;
	r = sys_random(&identity, sizeof(identity));
	if (r < 0)
		return err_wrap(err, r, "making a secret for store '%s'", s->path);
	r = schema_create(chunks, SCHEMA_CHUNKS, &identity, err);
	if (r < 0)
		return r;
	return schema_create(meta, SCHEMA_META, &identity, err);
}

static int open_writer(struct store *s, enum table t, struct err *err)
{
	static const char *const max_seq[TABLES] = {
		[TABLE_META] = "SELECT coalesce(max(seq), 0) FROM object",
		[TABLE_CHUNKS] = "SELECT coalesce(max(seq), 0) FROM chunk",
	};
	const enum schema_file f = (enum schema_file)t;
	AUTO_FREE char *path = file_path(s, f);
	int64_t max = 0;
	int r;

	if (!path)
		return err_nomem(err);
	r = db_open(path, DB_WRITE, &s->writer[t], err);
	if (r < 0)
		return r;
	r = schema_upgrade(s->writer[t], f, err);
	if (r < 0)
		return r;
	/*
	 * What a crash left in the log may come from a run whose last sync failed, and would
	 * then be in memory only: written into the database it is synced anew.
	 */
	r = db_checkpoint(s->writer[t], false, err);
	if (r < 0)
		return r;
	r = db_int(s->writer[t], max_seq[t], &max, err);
	if (r < 0)
		return r;
	if (max < 0 || max >= INT64_MAX / 2)
		return err_set(err, -EBADMSG, "'%s' is damaged: row number %lld", path,
			       (long long)max);
	s->next_seq[t] = max + 1;
	return 0;
}

static int read_identity(struct store *s, struct err *err)
{
	CLEANUP(reader_give_p) struct reader *rd = NULL;
	struct schema_identity identity[TABLES];
	int r = reader_take(s, &rd, err);

	if (r < 0)
		return r;
	for (int t = 0; t < TABLES; t++) {
		r = schema_identity(rd->db[t], &identity[t], err);
		if (r < 0)
			return r;
	}
	if (memcmp(&identity[0], &identity[1], sizeof(identity[0])) != 0)
		return err_set(err, -EBADMSG, "'%s' and '%s' belong to different stores",
			       db_path(rd->db[TABLE_META]), db_path(rd->db[TABLE_CHUNKS]));
	s->key = identity[0].key;
	return 0;
}

struct opened {
	struct db *db[SCHEMA_FILES]; /* NULL: not that one */
};

static void opened_done(struct opened *o)
{
	for (int f = 0; f < SCHEMA_FILES; f++)
		db_close(o->db[f]);
}

/* A command that only reads goes on with the connections that it looked through. */
static int probe_files(struct store *s, struct err *err)
{
	CLEANUP(opened_done) struct opened opened = { 0 };
	int r;

	for (int f = 0; f < SCHEMA_FILES; f++) {
		AUTO_FREE char *path = file_path(s, (enum schema_file)f);

		if (!path)
			return err_nomem(err);
		r = schema_probe(path, (enum schema_file)f,
				 s->mode == STORE_READ ? &opened.db[f] : NULL, err);
		if (r == -ENOENT && f == SCHEMA_META)
			return err_set(err, -ENOENT, "there is no store in '%s'", s->path);
		if (r == -ENOENT)
			return err_set(err, -EBADMSG, "store '%s' is damaged: '%s' is missing",
				       s->path, path);
		if (r < 0)
			return r;
	}
	return opened.db[SCHEMA_META] && opened.db[SCHEMA_CHUNKS] ? reader_add(s, opened.db, err)
								  : 0;
}

int store_check_owner(const char *path, struct err *err)
{
	struct stat st;

	if (geteuid() != 0)
		return 0;
	if (stat(path, &st) < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : err_sys(err, "'%s'", path);
	if (st.st_uid != 0)
		return err_set(err, -EACCES, "store '%s' belongs to user %u: root does not use it",
			       path, st.st_uid);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return err_set(
		    err, -EACCES,
		    "store '%s' can be written by others (mode %o): root does not use it", path,
		    st.st_mode & 07777);
	return 0;
}

/* Without this, taking the lock would leave a file in a directory that is no store. */
static int must_exist(struct store *s, struct err *err)
{
	AUTO_FREE char *meta = file_path(s, SCHEMA_META);
	bool there = false;
	int r;

	if (!meta)
		return err_nomem(err);
	r = exists(meta, &there, err);
	if (r < 0)
		return r;
	return there ? 0 : err_set(err, -ENOENT, "there is no store in '%s'", s->path);
}

static int open_writers(struct store *s, struct err *err)
{
	int r;

	/* Opening makes files, and moves what a crash left in the logs. */
	store_drop_reserve(s);
	r = codec_new(&s->write_codec, err);
	for (int t = 0; t < TABLES && r >= 0; t++)
		r = open_writer(s, (enum table)t, err);
	return r < 0 ? r : carry_recover(s, err);
}

/* Nothing is open yet; store_close() takes it as it is. */
static struct store *store_new(const char *path, enum store_mode mode)
{
	struct store *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->mode = mode;
	s->lock_fd = -1;
	s->pending = MAP_INIT(object_ref_hash, object_ref_equal);
	s->pins = MAP_INIT(object_ref_hash, object_ref_equal);
	pthread_mutex_init(&s->pool_lock, NULL);
	pthread_mutex_init(&s->write_lock, NULL);
	pthread_mutex_init(&s->lock, NULL);
	pthread_mutex_init(&s->sync_lock, NULL);
	pthread_cond_init(&s->commits_passed, NULL);
	pthread_cond_init(&s->sync_ended, NULL);
	pthread_cond_init(&s->aside_gone, NULL);
	s->path = strdup(path);
	return s;
}

int store_open(const char *path, enum store_mode mode, struct store **ret, struct err *err)
{
	CLEANUP(store_close_p) struct store *s = store_new(path, mode);
	int r;

	if (!s || !s->path)
		return err_nomem(err);
	r = store_check_owner(path, err);
	if (r < 0)
		return r;
	r = mode == STORE_CREATE ? path_make_dirs(path, 0700, err) : must_exist(s, err);
	if (r < 0)
		return r;
	if (mode != STORE_READ) {
		r = take_lock(s, err);
		if (r < 0)
			return r;
	}
	if (mode == STORE_CREATE) {
		r = create_files(s, err);
		if (r < 0)
			return r;
	}
	r = probe_files(s, err);
	if (r < 0)
		return r;
	if (mode != STORE_READ) {
		r = open_writers(s, err);
		if (r < 0)
			return err_wrap(err, r, "store '%s'", path);
	}
	r = read_identity(s, err);
	/* The databases are there: what SQLite could not make is the index of a log beside them. */
	if (r == -ENOENT)
		r = err_set(err, -EROFS, "it cannot be read where nothing can be written");
	if (r < 0)
		return err_wrap(err, r, "store '%s'", path);
	*ret = TAKE_PTR(s);
	return 0;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	assert(!s->batches && !s->marks && s->pending.n == 0);
	store_trim(s);
	carry_end(s);
	/* Chunks before names, here too: closing moves a log into its database. */
	db_close(s->writer[TABLE_CHUNKS]);
	db_close(s->writer[TABLE_META]);
	codec_free(s->write_codec);
	map_done(&s->pending);
	pins_done(s);
	free(s->carried);
	pthread_mutex_destroy(&s->sync_lock);
	pthread_cond_destroy(&s->commits_passed);
	pthread_cond_destroy(&s->sync_ended);
	pthread_cond_destroy(&s->aside_gone);
	pthread_mutex_destroy(&s->pool_lock);
	pthread_mutex_destroy(&s->write_lock);
	pthread_mutex_destroy(&s->lock);
	cleanup_close(&s->lock_fd);
	free(s->path);
	free(s);
}

/* --- reading ---------------------------------------------------------------------------- */

int store_get(struct store *s, enum object_kind kind, const struct object_id *id, struct buf *out,
	      struct err *err)
{
	CLEANUP(reader_give_p) struct reader *rd = NULL;
	char hex[OBJECT_HEX_SIZE];
	struct object_id actual;
	struct row row;
	int r;

	buf_reset(out);
	r = reader_take(s, &rd, err);
	if (r < 0)
		return r;
	r = object_fetch(rd->db[table_of(kind)], rd->codec, kind, id, out, &row, err);
	if (r == 0 && kind == OBJECT_CHUNK)
		r = carry_fetch(rd, id, out, err);
	if (r < 0) {
		buf_reset(out);
		return r;
	}
	if (r == 0)
		return err_set(err, -ENOENT, "%s %s is not in the store", object_kind_name(kind),
			       object_id_hex(id, hex));
	actual = object_id_of(&s->key, kind, out->data, out->len);
	if (!object_id_equal(&actual, id)) {
		buf_reset(out);
		return object_damaged(err, kind, id, "its bytes do not match its id");
	}
	return 0;
}

int store_require(struct store *s, enum object_kind kind, const struct object_id *id,
		  struct buf *out, struct err *err)
{
	int r = store_get(s, kind, id, out, err);

	return r == -ENOENT ? object_damaged(err, kind, id, "it is missing") : r;
}

int store_has(struct store *s, enum object_kind kind, const struct object_id *id, struct err *err)
{
	CLEANUP(reader_give_p) struct reader *rd = NULL;
	struct row row;
	int r = reader_take(s, &rd, err);

	if (r < 0)
		return r;
	return reader_find(rd, kind, id, &row, err);
}

/* --- sizes and logs --------------------------------------------------------------------- */

void store_set_limit(struct store *s, uint64_t bytes)
{
	s->limit = bytes;
}

uint64_t store_limit(const struct store *s)
{
	return s->limit;
}

int store_sizes(struct store *s, struct store_sizes *ret, struct err *err)
{
	static const char *const sql[TABLES][2] = {
		[TABLE_META] = { "SELECT count(*) FROM object",
				 "SELECT coalesce(sum(length(data)), 0) FROM object" },
		[TABLE_CHUNKS] = { "SELECT count(*) FROM chunk",
				   "SELECT coalesce(sum(length(data)), 0) FROM chunk" },
	};
	CLEANUP(reader_give_p) struct reader *rd = NULL;
	int64_t n[TABLES] = { 0 }, bytes[TABLES] = { 0 };
	struct store_sizes sizes = { 0 };
	int r = reader_take(s, &rd, err);

	if (r < 0)
		return r;
	for (int t = 0; t < TABLES; t++) {
		const char *path = db_path(rd->db[t]);

		r = db_int(rd->db[t], sql[t][0], &n[t], err);
		if (r < 0)
			return r;
		r = db_int(rd->db[t], sql[t][1], &bytes[t], err);
		if (r < 0)
			return r;
		r = store_size_free(rd->db[t], &sizes.free_bytes, err);
		if (r < 0)
			return r;
		sizes.file_bytes += store_size_on_disk(path, "") + store_size_on_disk(path, "-wal");
	}
	sizes.objects = (uint64_t)n[TABLE_META];
	sizes.object_bytes = (uint64_t)bytes[TABLE_META];
	sizes.chunks = (uint64_t)n[TABLE_CHUNKS];
	sizes.chunk_bytes = (uint64_t)bytes[TABLE_CHUNKS];
	*ret = sizes;
	return 0;
}

/* Of those logs that have more than `most` bytes. */
static int checkpoint(struct store *s, uint64_t most, bool reset, struct err *err)
{
	static const enum table order[TABLES] = { TABLE_CHUNKS, TABLE_META };

	for (int i = 0; i < TABLES; i++) {
		struct db *db = s->writer[order[i]];
		int r;

		if (!reset && db_log_bytes(db) <= most)
			continue;
		r = db_checkpoint(db, reset, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static void relieve(struct store *s, uint64_t most)
{
	struct err err = { 0 };

	if (store_writable(s, &err) < 0 || checkpoint(s, most, false, &err) < 0)
		log_debug("%s, continuing", err.msg);
}

void store_relieve_logs(struct store *s)
{
	uint64_t most = STORE_LOG_MAX;

	if (store_log_bytes(s) > STORE_LOG_SHORT && store_room(s) < STORE_ROOM_PLENTY)
		most = STORE_LOG_SHORT;
	relieve(s, most);
}

void store_tidy(struct store *s)
{
	if (store_log_bytes(s) <= STORE_LOG_QUIET)
		return;
	LOCKED(&s->write_lock);
	relieve(s, STORE_LOG_QUIET);
}

uint64_t store_log_bytes(struct store *s)
{
	uint64_t sum = 0;

	for (int t = 0; t < TABLES && s->mode != STORE_READ; t++)
		sum += db_log_bytes(s->writer[t]);
	return sum;
}

int store_checkpoint(struct store *s, struct err *err)
{
	int r;

	if (s->mode == STORE_READ)
		return err_set(err, -EROFS, "store '%s' is open for reading only", s->path);
	LOCKED(&s->write_lock);
	/* A checkpoint syncs only what readers let it move. */
	r = store_sync(s, TABLE_CHUNKS, err);
	if (r < 0)
		return r;
	r = store_sync(s, TABLE_META, err);
	return r < 0 ? r : checkpoint(s, 0, true, err);
}

uint64_t store_disk_bytes(const struct store *s)
{
	uint64_t bytes = 0;

	for (int t = 0; t < TABLES; t++) {
		AUTO_FREE char *path = file_path(s, t);

		if (path)
			bytes += store_size_on_disk(path, "") + store_size_on_disk(path, "-wal");
	}
	return bytes;
}
