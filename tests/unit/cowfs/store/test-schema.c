#include "cowfs/store/schema.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/path.h"
#include "cowfs/store/store.h"
#include "tests/lib/damage.h"
#include "tests/lib/stock.h"

static const enum store_mode modes[] = { STORE_READ, STORE_WRITE, STORE_CREATE };
static const char *const names[SCHEMA_FILES] = { "meta.db", "chunks.db" };

/* An empty store's two files, closed. */
static const char *new_store(const char *name)
{
	const char *path = test_path(name);

	store_close(stock_open(path, STORE_CREATE));
	return path;
}

static char *file_in(const char *dir, enum schema_file f)
{
	char *path = path_join(dir, schema_file_name(f));

	CHECK(path);
	return path;
}

static int probe(const char *dir, enum schema_file f, struct err *err)
{
	AUTO_FREE char *path = file_in(dir, f);

	*err = (struct err){ 0 };
	return schema_probe(path, f, NULL, err);
}

static void check_probe(const char *dir, enum schema_file f, int code, const char *why)
{
	struct err err;

	CHECK_EQ(probe(dir, f, &err), code);
	CHECK_EQ(err.code, code);
	CHECK_HAS(err.msg, why);
	CHECK_HAS(err.msg, names[f]);
}

static void check_open_refused(const char *dir, int code)
{
	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		struct store *s = NULL;
		struct err err = { 0 };

		CHECK_EQ(store_open(dir, modes[i], &s, &err), code);
		CHECK_EQ(err.code, code);
		CHECK(err.msg[0]);
		CHECK(!s);
	}
}

/* --- probing ---------------------------------------------------------------------------------- */

TEST(a_file_of_this_version_passes)
{
	const char *dir = new_store("passes");
	struct err err;

	for (int f = 0; f < SCHEMA_FILES; f++) {
		CHECK_OK(probe(dir, (enum schema_file)f, &err), &err);
		CHECK_STR(schema_file_name((enum schema_file)f), names[f]);
	}
}

TEST(a_missing_file_is_told_from_a_damaged_one)
{
	const char *dir = test_path("missing");

	CHECK_EQ(mkdir(dir, 0700), 0);
	check_probe(dir, SCHEMA_META, -ENOENT, "No such file");
	check_probe(dir, SCHEMA_CHUNKS, -ENOENT, "No such file");
}

TEST(an_empty_file_is_damage_and_is_left_as_it_is)
{
	for (int f = 0; f < SCHEMA_FILES; f++) {
		const char *dir = new_store(f ? "zero-chunks" : "zero-meta");
		CLEANUP(buf_done) struct buf after = BUF_INIT;

		damage_write(dir, names[f], "", 0);
		check_probe(dir, (enum schema_file)f, -EBADMSG, "empty");
		check_open_refused(dir, -EBADMSG);
		damage_read(dir, names[f], &after);
		CHECK_EQ(after.len, 0);
	}
}

#define PAGE_MAX 16384

static bool all_zero(const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] != 0)
			return false;
	return true;
}

TEST(a_file_cut_at_any_place_is_damage_and_is_left_as_it_is)
{
	for (int f = 0; f < SCHEMA_FILES; f++) {
		const char *dir = new_store(f ? "cut-chunks" : "cut-meta");
		CLEANUP(buf_done) struct buf whole = BUF_INIT;

		damage_read(dir, names[f], &whole);
		CHECK(whole.len >= 4 * 4096);
		for (size_t len = 1; len < whole.len; len = len == 1 ? 512 : len + 512) {
			CLEANUP(buf_done) struct buf after = BUF_INIT;

			damage_write(dir, names[f], whole.data, len);
			if (whole.len - len < PAGE_MAX &&
			    all_zero(whole.data + len, whole.len - len))
				continue; /* SQLite reads what is missing of a page as zeros */
			check_probe(dir, (enum schema_file)f, -EBADMSG, names[f]);
			if (len % 4096 == 0 || len < 4096)
				check_open_refused(dir, -EBADMSG);
			damage_read(dir, names[f], &after);
			CHECK_MEM(after.data, after.len, whole.data, len);
		}
	}
}

TEST(garbage_is_damage_and_is_left_as_it_is)
{
	struct test_rng rng = { .s = 5 };
	uint8_t garbage[5000];

	for (size_t i = 0; i < sizeof(garbage); i++)
		garbage[i] = (uint8_t)test_rand(&rng);
	for (int f = 0; f < SCHEMA_FILES; f++) {
		const char *dir = new_store(f ? "garbage-chunks" : "garbage-meta");
		CLEANUP(buf_done) struct buf after = BUF_INIT;

		damage_write(dir, names[f], garbage, sizeof(garbage));
		check_probe(dir, (enum schema_file)f, -EBADMSG, names[f]);
		check_open_refused(dir, -EBADMSG);
		damage_read(dir, names[f], &after);
		CHECK_MEM(after.data, after.len, garbage, sizeof(garbage));
	}
}

TEST(a_database_of_someone_elses_is_refused_and_left_as_it_is)
{
	for (int f = 0; f < SCHEMA_FILES; f++) {
		const char *dir = new_store(f ? "foreign-chunks" : "foreign-meta");
		CLEANUP(buf_done) struct buf before = BUF_INIT, after = BUF_INIT;

		damage_write(dir, names[f], "", 0);
		damage_sql(dir, names[f], "CREATE TABLE t(x); INSERT INTO t VALUES(1)");
		damage_survey(dir, "lock", &before);
		check_probe(dir, (enum schema_file)f, -EBADMSG, "not a file of snap's");
		check_open_refused(dir, -EBADMSG);
		damage_survey(dir, "lock", &after);
		CHECK_MEM(after.data, after.len, before.data, before.len);
	}
}

TEST(a_file_of_a_later_version_is_refused_with_a_sentence_and_nothing_is_touched)
{
	static const int versions[] = { SCHEMA_VERSION + 1, 1000, INT32_MAX };

	for (int f = 0; f < SCHEMA_FILES; f++)
		for (size_t v = 0; v < ARRAY_LEN(versions); v++) {
			CLEANUP(buf_done) struct buf before = BUF_INIT, after = BUF_INIT;
			char name[32], format[32];
			const char *dir;

			snprintf(name, sizeof(name), "later-%d-%zu", f, v);
			snprintf(format, sizeof(format), "format %d", versions[v]);
			dir = new_store(name);
			damage_sql(dir, names[f], "PRAGMA user_version=%d", versions[v]);
			damage_survey(dir, "lock", &before);
			check_probe(dir, (enum schema_file)f, -EPROTO, format);
			check_probe(dir, (enum schema_file)f, -EPROTO, "a later version");
			check_open_refused(dir, -EPROTO);
			damage_survey(dir, "lock", &after);
			CHECK_MEM(after.data, after.len, before.data, before.len);
		}
}

TEST(a_version_that_is_still_in_the_log_counts)
{
	const char *dir = new_store("in-log"), *kept = test_path("in-log-kept");
	CLEANUP(buf_done) struct buf log = BUF_INIT;

	CHECK_EQ(mkdir(kept, 0700), 0);
	{
		CLEANUP(store_close_p) struct store *reader = stock_open(dir, STORE_READ);

		CHECK(!stock_has_snapshot(reader, "x"));
		damage_sql(dir, "meta.db", "PRAGMA user_version=7");
		damage_read(dir, "meta.db-wal", &log);
	}
	CHECK(log.len > 0);
	for (int f = 0; f < SCHEMA_FILES; f++) {
		CLEANUP(buf_done) struct buf file = BUF_INIT;

		damage_read(dir, names[f], &file);
		damage_write(kept, names[f], file.data, file.len);
	}
	damage_write(kept, "meta.db-wal", log.data, log.len);
	check_probe(kept, SCHEMA_META, -EPROTO, "format 7");
	check_open_refused(kept, -EPROTO);
}

TEST(a_version_that_never_was_is_damage)
{
	static const int versions[] = { 0, -1, INT32_MIN };

	for (size_t v = 0; v < ARRAY_LEN(versions); v++) {
		char name[32];
		const char *dir;

		snprintf(name, sizeof(name), "never-%zu", v);
		dir = new_store(name);
		damage_sql(dir, "meta.db", "PRAGMA user_version=%d", versions[v]);
		check_probe(dir, SCHEMA_META, -EBADMSG, "no format version");
		check_open_refused(dir, -EBADMSG);
	}
}

TEST(tables_other_than_ours_are_refused)
{
	static const struct {
		const char *name, *sql;
	} changes[] = {
		{ "trigger", "CREATE TRIGGER t AFTER INSERT ON ref BEGIN DELETE FROM ref; END" },
		{ "view", "CREATE VIEW v AS SELECT * FROM ref" },
		{ "index", "DROP INDEX object_by_id" },
		{ "table", "CREATE TABLE more(x)" },
	};

	for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
		const char *dir = new_store(changes[i].name);

		damage_sql(dir, "meta.db", "%s", changes[i].sql);
		check_probe(dir, SCHEMA_META, -EBADMSG, "its tables do not match format 1");
		check_open_refused(dir, -EBADMSG);
	}
}

TEST(probing_beside_an_open_store_takes_nothing_from_it)
{
	const char *dir = test_path("beside");
	CLEANUP(store_close_p) struct store *s = stock_open(dir, STORE_CREATE);
	struct err err;

	stock_fill(s);
	for (int i = 0; i < 3; i++) {
		CHECK_OK(probe(dir, SCHEMA_META, &err), &err);
		CHECK_OK(probe(dir, SCHEMA_CHUNKS, &err), &err);
		stock_snapshot(s, "n", "text");
	}
	CHECK(stock_has_snapshot(s, "n"));
}

/* --- creating --------------------------------------------------------------------------------- */

TEST(what_was_created_has_the_identity_it_was_given)
{
	const char *dir = test_path("identity");
	struct schema_identity identity, got;

	memset(&identity, 0x5a, sizeof(identity));
	CHECK_EQ(mkdir(dir, 0700), 0);
	for (int f = 0; f < SCHEMA_FILES; f++) {
		CLEANUP(db_close_p) struct db *db = NULL;
		AUTO_FREE char *path = file_in(dir, (enum schema_file)f);
		struct err err = { 0 };

		CHECK_OK(schema_create(path, (enum schema_file)f, &identity, &err), &err);
		CHECK_OK(probe(dir, (enum schema_file)f, &err), &err);
		CHECK_OK(db_open(path, DB_READ, &db, &err), &err);
		CHECK_OK(schema_identity(db, &got, &err), &err);
		CHECK_MEM(&got, sizeof(got), &identity, sizeof(identity));
	}
}

TEST(an_identity_that_was_changed_is_refused)
{
	static const char *const sql[] = {
		"UPDATE setting SET sum = sum + 1 WHERE name = CAST('secret' AS BLOB)",
		"UPDATE setting SET value = zeroblob(16) WHERE name = CAST('store' AS BLOB)",
		"UPDATE setting SET value = zeroblob(768) WHERE name = CAST('secret' AS BLOB)",
		"UPDATE setting SET value = x'' WHERE name = CAST('secret' AS BLOB)",
		"DELETE FROM setting WHERE name = CAST('secret' AS BLOB)",
		"DELETE FROM setting",
		"DROP TABLE setting",
	};

	for (int f = 0; f < SCHEMA_FILES; f++)
		for (size_t i = 0; i < ARRAY_LEN(sql); i++) {
			char name[32];
			const char *dir;
			struct store *s = NULL;
			struct err err = { 0 };
			int r;

			snprintf(name, sizeof(name), "changed-%d-%zu", f, i);
			dir = new_store(name);
			damage_sql(dir, names[f], "%s", sql[i]);
			for (size_t m = 0; m < ARRAY_LEN(modes); m++) {
				r = store_open(dir, modes[m], &s, &err);
				CHECK(r == -EBADMSG || (i == 6 && r < 0));
				CHECK_HAS(err.msg, names[f]);
			}
		}
}

TEST(creating_fails_whole_where_nothing_can_be_made)
{
	struct schema_identity identity = { 0 };
	AUTO_FREE char *path = file_in(test_path("no/such/place"), SCHEMA_META);
	struct err err = { 0 };

	CHECK_EQ(schema_create(path, SCHEMA_META, &identity, &err), -ENOENT);
	CHECK_HAS(err.msg, "no/such/place");
}

/* --- migrating -------------------------------------------------------------------------------- */

static const struct schema_step steps[] = {
	{ .to = 1 },
	{ .to = 2, .sql = { [SCHEMA_META] = "CREATE TABLE two(x); INSERT INTO two VALUES(2)" } },
	{ .to = 3,
	  .sql = { [SCHEMA_META] = "INSERT INTO two VALUES(3)",
		   [SCHEMA_CHUNKS] = "CREATE TABLE three(x)" } },
};

static struct db *open_file(const char *dir, enum schema_file f)
{
	AUTO_FREE char *path = file_in(dir, f);
	struct db *db = NULL;
	struct err err = { 0 };

	CHECK_OK(db_open(path, DB_WRITE, &db, &err), &err);
	return db;
}

static int64_t ask(struct db *db, const char *sql)
{
	int64_t v = -1;
	struct err err = { 0 };

	CHECK_OK(db_int(db, sql, &v, &err), &err);
	return v;
}

TEST(a_migration_runs_each_step_that_is_lacking_and_runs_it_once)
{
	const char *dir = new_store("migrate");
	CLEANUP(db_close_p) struct db *db = open_file(dir, SCHEMA_META);
	struct err err = { 0 };

	CHECK_OK(schema_migrate(db, SCHEMA_META, steps, 1, 1, &err), &err);
	CHECK_EQ(ask(db, "PRAGMA user_version"), 1);
	for (int i = 0; i < 2; i++) {
		CHECK_OK(schema_migrate(db, SCHEMA_META, steps, 3, 2, &err), &err);
		CHECK_EQ(ask(db, "PRAGMA user_version"), 2);
		CHECK_EQ(ask(db, "SELECT count(*) FROM two"), 1);
	}
	for (int i = 0; i < 2; i++) {
		CHECK_OK(schema_migrate(db, SCHEMA_META, steps, 3, 3, &err), &err);
		CHECK_EQ(ask(db, "PRAGMA user_version"), 3);
		CHECK_EQ(ask(db, "SELECT sum(x) FROM two"), 5);
	}
}

TEST(a_migration_of_a_file_without_changes_still_notes_the_version)
{
	const char *dir = new_store("migrate-both");

	for (int f = 0; f < SCHEMA_FILES; f++) {
		CLEANUP(db_close_p) struct db *db = open_file(dir, (enum schema_file)f);
		struct err err = { 0 };

		CHECK_OK(schema_migrate(db, (enum schema_file)f, steps, 3, 3, &err), &err);
		CHECK_EQ(ask(db, "PRAGMA user_version"), 3);
		CHECK_EQ(ask(db, "SELECT count(*) FROM sqlite_schema WHERE name = 'two'"),
			 f == SCHEMA_META);
	}
}

TEST(a_step_that_fails_leaves_the_version_before_it_and_can_be_run_again)
{
	static const struct schema_step broken[] = {
		{ .to = 2, .sql = { [SCHEMA_META] = "CREATE TABLE two(x)" } },
		{ .to = 3,
		  .sql = { [SCHEMA_META] = "INSERT INTO two VALUES(3); CREATE TABLE half(x);"
					   "INSERT INTO nowhere VALUES(1)" } },
	};
	const char *dir = new_store("fails");
	struct err err = { 0 };

	{
		CLEANUP(db_close_p) struct db *db = open_file(dir, SCHEMA_META);

		CHECK(schema_migrate(db, SCHEMA_META, broken, 2, 3, &err) < 0);
		CHECK_HAS(err.msg, "to format 3");
		CHECK_HAS(err.msg, "nowhere");
		CHECK_EQ(ask(db, "PRAGMA user_version"), 2);
		CHECK_EQ(ask(db, "SELECT count(*) FROM two"), 0);
		CHECK_EQ(ask(db, "SELECT count(*) FROM sqlite_schema WHERE name = 'half'"), 0);
	}
	{
		CLEANUP(db_close_p) struct db *db = open_file(dir, SCHEMA_META);

		CHECK_OK(schema_migrate(db, SCHEMA_META, steps, 3, 3, &err), &err);
		CHECK_EQ(ask(db, "PRAGMA user_version"), 3);
		CHECK_EQ(ask(db, "SELECT count(*) FROM two"), 1);
	}
}

TEST(an_upgrade_to_this_version_changes_nothing)
{
	const char *dir = new_store("upgrade");
	CLEANUP(buf_done) struct buf before = BUF_INIT, after = BUF_INIT;

	damage_survey(dir, "lock", &before);
	for (int f = 0; f < SCHEMA_FILES; f++) {
		CLEANUP(db_close_p) struct db *db = open_file(dir, (enum schema_file)f);
		struct err err = { 0 };

		CHECK_OK(schema_upgrade(db, (enum schema_file)f, &err), &err);
		CHECK_EQ(ask(db, "PRAGMA user_version"), SCHEMA_VERSION);
	}
	damage_survey(dir, "lock", &after);
	CHECK_MEM(after.data, after.len, before.data, before.len);
}

TEST_MAIN("schema")
