#include "tests/lib/damage.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>

#include <sqlite3.h>

#include "base/fdio.h"
#include "base/path.h"
#include "tests/lib/test.h"

struct behind {
	sqlite3 *h;
	sqlite3_stmt *st;
};

static sqlite3 *open_file(const char *store, const char *file)
{
	AUTO_FREE char *path = path_join(store, file);
	sqlite3 *h = NULL;

	CHECK(path);
	CHECK_EQ(sqlite3_open_v2(path, &h, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
	CHECK_EQ(sqlite3_busy_timeout(h, 5000), SQLITE_OK);
	/* What a test destroys need not survive power loss. */
	CHECK_EQ(sqlite3_exec(h, "PRAGMA synchronous=OFF", NULL, NULL, NULL), SQLITE_OK);
	return h;
}

static struct behind prepare(const char *store, const char *file, const char *sql)
{
	struct behind b = { .h = open_file(store, file) };

	CHECK_EQ(sqlite3_prepare_v2(b.h, sql, -1, &b.st, NULL), SQLITE_OK);
	return b;
}

static void finish(struct behind *b)
{
	sqlite3_finalize(b->st);
	CHECK_EQ(sqlite3_close(b->h), SQLITE_OK);
}

void damage_sql(const char *store, const char *file, const char *fmt, ...)
{
	AUTO_FREE char *sql = NULL;
	sqlite3 *h = open_file(store, file);
	va_list ap;

	va_start(ap, fmt);
	CHECK(vasprintf(&sql, fmt, ap) >= 0);
	va_end(ap);
	CHECK_EQ(sqlite3_exec(h, sql, NULL, NULL, NULL), SQLITE_OK);
	CHECK_EQ(sqlite3_close(h), SQLITE_OK);
}

void damage_sql_blob(const char *store, const char *file, const char *sql, const void *data,
		     size_t len)
{
	struct behind b = prepare(store, file, sql);

	CHECK_EQ(sqlite3_bind_blob64(b.st, 1, len ? data : "", len, SQLITE_STATIC), SQLITE_OK);
	CHECK_EQ(sqlite3_step(b.st), SQLITE_DONE);
	CHECK_EQ(sqlite3_changes(b.h), 1);
	finish(&b);
}

int64_t damage_ask(const char *store, const char *file, const char *fmt, ...)
{
	AUTO_FREE char *sql = NULL;
	struct behind b;
	va_list ap;
	int64_t v;

	va_start(ap, fmt);
	CHECK(vasprintf(&sql, fmt, ap) >= 0);
	va_end(ap);
	b = prepare(store, file, sql);
	CHECK_EQ(sqlite3_step(b.st), SQLITE_ROW);
	v = sqlite3_column_int64(b.st, 0);
	finish(&b);
	return v;
}

void damage_ask_blob(const char *store, const char *file, const char *sql, struct buf *out)
{
	struct behind b = prepare(store, file, sql);
	const void *data;

	CHECK_EQ(sqlite3_step(b.st), SQLITE_ROW);
	data = sqlite3_column_blob(b.st, 0);
	CHECK_EQ(buf_append(out, data, (size_t)sqlite3_column_bytes(b.st, 0)), 0);
	finish(&b);
}

static const char *table_of_kind(enum object_kind kind, const char **file)
{
	*file = kind == OBJECT_CHUNK ? "chunks.db" : "meta.db";
	return kind == OBJECT_CHUNK ? "chunk" : "object";
}

void damage_object(const char *store, enum object_kind kind, const struct object_id *id)
{
	CLEANUP(buf_done) struct buf packed = BUF_INIT;
	char hex[OBJECT_HEX_SIZE], sql[128];
	const char *file, *table = table_of_kind(kind, &file);

	object_id_hex(id, hex);
	snprintf(sql, sizeof(sql), "SELECT data FROM %s WHERE id = x'%s'", table, hex);
	damage_ask_blob(store, file, sql, &packed);
	packed.data[packed.len - 1] ^= 1;
	snprintf(sql, sizeof(sql), "UPDATE %s SET data = ?1 WHERE id = x'%s'", table, hex);
	damage_sql_blob(store, file, sql, packed.data, packed.len);
}

void damage_remove(const char *store, enum object_kind kind, const struct object_id *id)
{
	char hex[OBJECT_HEX_SIZE];
	const char *file, *table = table_of_kind(kind, &file);

	damage_sql(store, file, "DELETE FROM %s WHERE id = x'%s'", table, object_id_hex(id, hex));
}

void damage_read(const char *store, const char *file, struct buf *out)
{
	AUTO_FREE char *path = path_join(store, file);
	struct err err = { 0 };

	CHECK(path);
	CHECK_OK(fdio_read_file(AT_FDCWD, path, (size_t)64 << 20, out, &err), &err);
}

void damage_write(const char *store, const char *file, const void *data, size_t len)
{
	AUTO_FREE char *path = path_join(store, file);
	AUTO_CLOSE int fd = -1;

	CHECK(path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	CHECK(fd >= 0);
	CHECK_EQ(fdio_write(fd, data, len), 0);
}

void damage_poke(const char *store, const char *file, uint64_t off, uint8_t byte)
{
	AUTO_FREE char *path = path_join(store, file);
	AUTO_CLOSE int fd = -1;

	CHECK(path);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	CHECK_EQ(fdio_pwrite(fd, &byte, 1, (off_t)off), 0);
}

void damage_survey(const char *dir, const char *except, struct buf *out)
{
	struct dirent **list = NULL;
	int n = scandir(dir, &list, NULL, alphasort);

	CHECK(n >= 0);
	for (int i = 0; i < n; i++) {
		const char *name = list[i]->d_name;

		if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
		    (!except || strcmp(name, except) != 0)) {
			CHECK_EQ(buf_printf(out, "\n%s\n", name), 0);
			damage_read(dir, name, out);
		}
		free(list[i]);
	}
	free(list);
}
