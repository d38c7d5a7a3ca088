#include "cowfs/store/schema.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <xxhash.h>

#include "base/sys.h"
#include "base/text.h"

/* "snpm" and "snpc" in the header field that SQLite keeps for its users. */
#define APPLICATION_META   0x736e706d
#define APPLICATION_CHUNKS 0x736e7063

#define SETTING_TABLE                                                      \
	"CREATE TABLE setting(name BLOB PRIMARY KEY, value BLOB NOT NULL," \
	" sum INTEGER NOT NULL) STRICT, WITHOUT ROWID;"

static const struct {
	const char *name;
	uint32_t application;
	const char *pragmas; /* what must be said before the first table is made */
	const char *tables;  /* in the order of their names, as SQLite keeps them */
} files[SCHEMA_FILES] = {
	[SCHEMA_META] = {
		.name = "meta.db",
		.application = APPLICATION_META,
		.pragmas =
			"PRAGMA page_size=4096; PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL;",
		.tables =
			"CREATE TABLE object(seq INTEGER PRIMARY KEY, kind INTEGER NOT NULL,"
			" id BLOB NOT NULL, sum INTEGER NOT NULL, data BLOB NOT NULL) STRICT;"
			"CREATE UNIQUE INDEX object_by_id ON object(id, kind);"
			"CREATE TABLE ref(kind INTEGER NOT NULL, name BLOB NOT NULL, root BLOB NOT NULL,"
			" value BLOB NOT NULL, sum INTEGER NOT NULL, PRIMARY KEY(kind, name))"
			" STRICT, WITHOUT ROWID;"
			SETTING_TABLE,
	},
	[SCHEMA_CHUNKS] = {
		.name = "chunks.db",
		.application = APPLICATION_CHUNKS,
		.pragmas =
			"PRAGMA page_size=16384; PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL;",
		.tables =
			"CREATE TABLE chunk(seq INTEGER PRIMARY KEY, id BLOB NOT NULL,"
			" sum INTEGER NOT NULL, data BLOB NOT NULL) STRICT;"
			"CREATE UNIQUE INDEX chunk_by_id ON chunk(id);"
			SETTING_TABLE,
	},
};
_Static_assert(SCHEMA_VERSION == 1, "a new version needs its tables and a step");

static const struct schema_step steps[] = {
	{ .to = 1 }, /* the first format; nothing leads to it */
};

const char *schema_file_name(enum schema_file f)
{
	return files[f].name;
}

/* Then all there is to know stands in the file itself, and a look at it need leave no log. */
static int log_is_empty(const char *path, bool *ret, struct err *err)
{
	struct stat st;
	AUTO_FREE char *log = text_format("%s-wal", path);

	if (!log)
		return err_nomem(err);
	*ret = stat(log, &st) < 0 || st.st_size == 0;
	return 0;
}

/*
 * A store may come from elsewhere: a trigger would run by itself, and without an index every
 * look-up would read the whole table.
 */
static int verify_tables(struct db *db, enum schema_file f, struct err *err)
{
	static const char sql[] =
	    "SELECT CAST(group_concat(sql || ';', '') AS BLOB) FROM"
	    " (SELECT sql FROM sqlite_schema WHERE sql NOT NULL ORDER BY name)";
	CLEANUP(query_end_p) struct db_query *q = NULL;
	const void *tables = NULL;
	size_t len = 0;
	int r = db_query(db, sql, &q, err);

	if (r < 0)
		return r;
	r = query_step(q, err);
	if (r > 0)
		r = query_blob(q, 0, &tables, &len, err);
	if (r < 0)
		return r;
	if (!tables || len != strlen(files[f].tables) || memcmp(tables, files[f].tables, len) != 0)
		return err_set(err, -EBADMSG, "'%s' is damaged: its tables do not match format %d",
			       db_path(db), SCHEMA_VERSION);
	return 0;
}

int schema_probe(const char *path, enum schema_file f, struct db **ret, struct err *err)
{
	CLEANUP(db_close_p) struct db *db = NULL;
	int64_t application = 0, version = 0, page_size = 1;
	bool alone = false;
	struct stat st;
	int r;

	/*
	 * Never open the file here: closing the descriptor would drop the POSIX locks of
	 * every connection that this process has on it.
	 */
	if (stat(path, &st) < 0)
		return err_sys(err, "opening '%s'", path);
	if (st.st_size == 0)
		return err_set(err, -EBADMSG, "'%s' is damaged: the file is empty", path);
	r = log_is_empty(path, &alone, err);
	if (r < 0)
		return r;
	r = db_open(path, alone ? DB_PEEK : DB_READ, &db, err);
	if (r < 0)
		return r;
	r = db_int(db, "PRAGMA application_id", &application, err);
	if (r < 0)
		return r;
	r = db_int(db, "PRAGMA user_version", &version, err);
	if (r < 0)
		return r;
	r = db_int(db, "PRAGMA page_size", &page_size, err);
	if (r < 0)
		return r;
	/* With a log it may have grown by part of a page that the log will complete. */
	if (alone && st.st_size % page_size != 0)
		return err_set(err, -EBADMSG, "'%s' is damaged: it is cut off within a page", path);
	if (application != files[f].application)
		return err_set(err, -EBADMSG, "'%s' is damaged, or not a file of snap's", path);
	if (version > SCHEMA_VERSION)
		return err_set(
		    err, -EPROTO,
		    "'%s' has format %lld, written by a later version; this one knows up to %d",
		    path, (long long)version, SCHEMA_VERSION);
	if (version <= 0)
		return err_set(err, -EBADMSG, "'%s' is damaged: it has no format version", path);
	r = version < SCHEMA_VERSION ? 0 : verify_tables(db, f, err);
	if (r < 0)
		return r;
	if (ret)
		*ret = alone ? NULL : TAKE_PTR(db);
	return r;
}

static uint64_t setting_sum(const char *name, const void *value, size_t len)
{
	return XXH3_64bits_withSeed(value, len, XXH3_64bits(name, strlen(name)));
}

static const char put_setting_sql[] = "INSERT INTO setting(name, value, sum) VALUES(?1, ?2, ?3)";
static const char get_setting_sql[] = "SELECT value, sum FROM setting WHERE name = ?1";

static int put_setting(struct db *db, const char *name, const void *value, size_t len,
		       struct err *err)
{
	CLEANUP(query_end_p) struct db_query *q = NULL;
	int r = db_query(db, put_setting_sql, &q, err);

	if (r < 0)
		return r;
	query_bind_blob(q, 0, name, strlen(name));
	query_bind_blob(q, 1, value, len);
	query_bind_int(q, 2, (int64_t)setting_sum(name, value, len));
	return query_run(q, err);
}

static int get_setting(struct db *db, const char *name, void *value, size_t len, struct err *err)
{
	CLEANUP(query_end_p) struct db_query *q = NULL;
	const void *data;
	size_t have;
	int r = db_query(db, get_setting_sql, &q, err);

	if (r < 0)
		return r;
	query_bind_blob(q, 0, name, strlen(name));
	r = query_step(q, err);
	if (r < 0)
		return r;
	if (r == 0)
		return err_set(err, -EBADMSG, "'%s' is damaged: setting '%s' is missing",
			       db_path(db), name);
	r = query_blob(q, 0, &data, &have, err);
	if (r < 0)
		return r;
	if (have != len || (uint64_t)query_int(q, 1) != setting_sum(name, data, have))
		return err_set(err, -EBADMSG,
			       "'%s' is damaged: setting '%s' does not match its checksum",
			       db_path(db), name);
	memcpy(value, data, len);
	return 0;
}

int schema_identity(struct db *db, struct schema_identity *ret, struct err *err)
{
	struct schema_identity id;
	int r = get_setting(db, "store", id.store, sizeof(id.store), err);

	if (r < 0)
		return r;
	r = get_setting(db, "secret", &id.key, sizeof(id.key), err);
	if (r < 0)
		return r;
	*ret = id;
	return 0;
}

static int write_tables(struct db *db, enum schema_file f, const struct schema_identity *identity,
			struct err *err)
{
	char header[96];
	/* The file has its name only when all of it has been synced. */
	int r = db_exec(db, "PRAGMA synchronous=OFF", err);

	r = r < 0 ? r : db_exec(db, files[f].pragmas, err);
	if (r < 0)
		return r;
	r = db_begin_write(db, err);
	if (r < 0)
		return r;
	r = db_exec(db, files[f].tables, err);
	if (r < 0)
		return r;
	snprintf(header, sizeof(header), "PRAGMA application_id=%u; PRAGMA user_version=%d;",
		 files[f].application, SCHEMA_VERSION);
	r = db_exec(db, header, err);
	if (r < 0)
		return r;
	r = put_setting(db, "store", identity->store, sizeof(identity->store), err);
	if (r < 0)
		return r;
	return put_setting(db, "secret", &identity->key, sizeof(identity->key), err);
}

static int fill(const char *path, enum schema_file f, const struct schema_identity *identity,
		struct err *err)
{
	CLEANUP(db_close_p) struct db *db = NULL;
	int r = db_open(path, DB_CREATE, &db, err);

	if (r < 0)
		return r;
	r = write_tables(db, f, identity, err);
	if (r < 0) {
		db_rollback(db);
		return r;
	}
	r = db_commit(db, err);
	return r < 0 ? r : db_checkpoint(db, true, err);
}

int schema_create(const char *path, enum schema_file f, const struct schema_identity *identity,
		  struct err *err)
{
	static const char *const leftovers[] = { "", "-wal", "-shm", "-journal" };
	AUTO_CLOSE int fd = -1;
	char name[sizeof("chunks.db.new-journal")];
	AUTO_CLOSE int dir = -1;
	AUTO_FREE char *parent = NULL;
	int r;
	AUTO_FREE char *fresh = text_format("%s.new", path);

	if (!fresh)
		return err_nomem(err);
	parent = strndup(path, strlen(path) - strlen(files[f].name));
	if (!parent)
		return err_nomem(err);
	dir = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_sys(err, "opening '%s'", parent);
	for (size_t i = 0; i < ARRAY_LEN(leftovers); i++) {
		snprintf(name, sizeof(name), "%s.new%s", files[f].name, leftovers[i]);
		if (unlinkat(dir, name, 0) < 0 && errno != ENOENT)
			return err_sys(err, "removing '%s%s'", fresh, leftovers[i]);
	}

	/* Made by us first, because SQLite gives its log the mode of its database. */
	fd = open(fresh, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(err, "making '%s'", fresh);
	r = fill(fresh, f, identity, err);
	if (r < 0)
		return r;
	r = sys_sync_data(fd);
	if (r < 0)
		return err_wrap(err, r, "syncing '%s'", fresh);
	/* A log that an earlier file of this name left behind would be taken for the new one's. */
	for (size_t i = 1; i < ARRAY_LEN(leftovers); i++) {
		snprintf(name, sizeof(name), "%s%s", files[f].name, leftovers[i]);
		if (unlinkat(dir, name, 0) < 0 && errno != ENOENT)
			return err_sys(err, "removing '%s%s'", path, leftovers[i]);
	}
	if (rename(fresh, path) < 0)
		return err_sys(err, "making '%s'", path);
	if (fsync(dir) < 0)
		return err_sys(err, "syncing '%s'", parent);
	return 0;
}

int schema_migrate(struct db *db, enum schema_file f, const struct schema_step *list, size_t n,
		   int version, struct err *err)
{
	int64_t have = 0;
	char sql[64];
	int r = db_int(db, "PRAGMA user_version", &have, err);

	if (r < 0)
		return r;
	if (have > version)
		return err_set(err, -EPROTO, "'%s' has format %lld, written by a later version",
			       db_path(db), (long long)have);
	for (size_t i = 0; i < n; i++) {
		if (list[i].to <= have || list[i].to > version)
			continue;
		r = db_begin_write(db, err);
		if (r < 0)
			return r;
		snprintf(sql, sizeof(sql), "PRAGMA user_version=%d", list[i].to);
		r = list[i].sql[f] ? db_exec(db, list[i].sql[f], err) : 0;
		r = r < 0 ? r : db_exec(db, sql, err);
		if (r < 0) {
			db_rollback(db);
			return err_wrap(err, r, "bringing '%s' to format %d", db_path(db),
					list[i].to);
		}
		r = db_commit(db, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int schema_upgrade(struct db *db, enum schema_file f, struct err *err)
{
	return schema_migrate(db, f, steps, ARRAY_LEN(steps), SCHEMA_VERSION, err);
}
