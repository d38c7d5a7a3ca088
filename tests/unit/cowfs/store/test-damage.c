/*
 * Every column of every row of a small store, changed by SQL, one at a time.
 * Whatever was changed: the store refuses to open or check reports it, and nothing is
 * handed out but what was put.
 */
#include <stdio.h>

#include "tests/lib/damage.h"
#include "tests/lib/pristine.h"

TEST(the_store_is_clean_before_it_is_damaged)
{
	CLEANUP(pristine_done) struct pristine p = pristine_new("clean");

	CHECK_EQ(p.n_objects, 6);
	CHECK(!pristine_is_damaged(&p));
}

struct column {
	size_t file;
	const char *table;
	const char *key; /* orders the rows */
	const char *name;
	bool blob;
};

static const struct column columns[] = {
	{ 0, "object", "seq", "seq", false },    { 0, "object", "seq", "kind", false },
	{ 0, "object", "seq", "id", true },      { 0, "object", "seq", "sum", false },
	{ 0, "object", "seq", "data", true },    { 0, "ref", "kind", "kind", false },
	{ 0, "ref", "kind", "name", true },      { 0, "ref", "kind", "root", true },
	{ 0, "ref", "kind", "value", true },     { 0, "ref", "kind", "sum", false },
	{ 0, "setting", "name", "name", true },  { 0, "setting", "name", "value", true },
	{ 0, "setting", "name", "sum", false },  { 1, "chunk", "seq", "seq", false },
	{ 1, "chunk", "seq", "id", true },       { 1, "chunk", "seq", "sum", false },
	{ 1, "chunk", "seq", "data", true },     { 1, "setting", "name", "name", true },
	{ 1, "setting", "name", "value", true }, { 1, "setting", "name", "sum", false },
};

/* Row `row` of the table, named by the value its key has in the file as it was. */
static void row_is(const struct column *c, const struct pristine *p, int64_t row, char out[128])
{
	CLEANUP(buf_done) struct buf key = BUF_INIT;
	char sql[128], hex[2 * 16 + 1];

	if (strcmp(c->key, "name") != 0) {
		snprintf(out, 128, "%s = %lld", c->key,
			 (long long)damage_ask(p->path, pristine_file[c->file],
					       "SELECT %s FROM %s ORDER BY %s LIMIT 1 OFFSET %lld",
					       c->key, c->table, c->key, (long long)row));
		return;
	}
	snprintf(sql, sizeof(sql), "SELECT name FROM %s ORDER BY name LIMIT 1 OFFSET %lld",
		 c->table, (long long)row);
	damage_ask_blob(p->path, pristine_file[c->file], sql, &key);
	CHECK(key.len <= 16);
	for (size_t i = 0; i < key.len; i++)
		snprintf(hex + 2 * i, 3, "%02x", key.data[i]);
	snprintf(out, 128, "name = x'%s'", hex);
}

static void require_noticed(const struct pristine *p, const struct column *c, int64_t row,
			    const char *what, size_t at)
{
	char text[160];

	snprintf(text, sizeof(text), "%s.%s.%s row %lld: %s %zu was noticed",
		 pristine_file[c->file], c->table, c->name, (long long)row, what, at);
	test_check(pristine_is_damaged(p), text, __FILE__, __LINE__);
	pristine_restore(p, c->file);
}

static void set_blob(const struct pristine *p, const struct column *c, const char *where,
		     const struct buf *bytes)
{
	char sql[256];

	snprintf(sql, sizeof(sql), "UPDATE %s SET %s = ?1 WHERE %s", c->table, c->name, where);
	damage_sql_blob(p->path, pristine_file[c->file], sql, bytes->data, bytes->len);
}

static void damage_blob(const struct pristine *p, const struct column *c, int64_t row,
			const char *where)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	char sql[256];

	snprintf(sql, sizeof(sql), "SELECT %s FROM %s WHERE %s", c->name, c->table, where);
	damage_ask_blob(p->path, pristine_file[c->file], sql, &bytes);
	/* A secret of 768 bytes is one value under one checksum: every 16th byte will do. */
	for (size_t at = 0; at<bytes.len; at += bytes.len> 512 ? 16 : 1) {
		const uint8_t bit = (uint8_t)(1u << at % 8);

		bytes.data[at] ^= bit;
		set_blob(p, c, where, &bytes);
		require_noticed(p, c, row, "a bit of byte", at);
		bytes.data[at] ^= bit;
	}
	CHECK_EQ(buf_append_u8(&bytes, 0), 0);
	set_blob(p, c, where, &bytes);
	require_noticed(p, c, row, "a byte more than", bytes.len - 1);
	if (bytes.len > 1) {
		bytes.len -= 2;
		set_blob(p, c, where, &bytes);
		require_noticed(p, c, row, "a byte less than", bytes.len + 1);
	}
}

static void damage_int(const struct pristine *p, const struct column *c, int64_t row,
		       const char *where)
{
	static const int bits[] = { 0, 1, 2, 7, 8, 15, 31, 32, 40, 47, 62, 63 };
	const int64_t v = damage_ask(p->path, pristine_file[c->file], "SELECT %s FROM %s WHERE %s",
				     c->name, c->table, where);

	for (size_t i = 0; i < ARRAY_LEN(bits); i++) {
		const int64_t other = (int64_t)((uint64_t)v ^ (uint64_t)1 << bits[i]);

		/* Another row has this key. */
		if (strcmp(c->name, c->key) == 0 &&
		    damage_ask(p->path, pristine_file[c->file],
			       "SELECT count(*) FROM %s WHERE %s = %lld", c->table, c->key,
			       (long long)other) > 0)
			continue;
		damage_sql(p->path, pristine_file[c->file], "UPDATE %s SET %s = %lld WHERE %s",
			   c->table, c->name, (long long)other, where);
		require_noticed(p, c, row, "bit", (size_t)bits[i]);
	}
}

static void damage_tables(const struct pristine *p, const char *table)
{
	for (size_t i = 0; i < ARRAY_LEN(columns); i++) {
		const struct column *c = &columns[i];
		int64_t rows;

		if (strcmp(c->table, table) != 0)
			continue;
		rows = damage_ask(p->path, pristine_file[c->file], "SELECT count(*) FROM %s",
				  c->table);
		CHECK(rows > 0);
		for (int64_t row = 0; row < rows; row++) {
			char where[128];

			row_is(c, p, row, where);
			if (c->blob)
				damage_blob(p, c, row, where);
			else
				damage_int(p, c, row, where);
		}
	}
	CHECK(!pristine_is_damaged(p));
}

TEST(a_changed_column_of_any_object_row_is_noticed)
{
	CLEANUP(pristine_done) struct pristine p = pristine_new("sql-object");

	damage_tables(&p, "object");
}

TEST(a_changed_column_of_any_chunk_row_is_noticed)
{
	CLEANUP(pristine_done) struct pristine p = pristine_new("sql-chunk");

	damage_tables(&p, "chunk");
}

TEST(a_changed_column_of_any_ref_is_noticed)
{
	CLEANUP(pristine_done) struct pristine p = pristine_new("sql-ref");

	damage_tables(&p, "ref");
}

TEST(a_changed_column_of_any_setting_is_noticed)
{
	CLEANUP(pristine_done) struct pristine p = pristine_new("sql-setting");

	damage_tables(&p, "setting");
}

TEST(a_row_that_a_ref_needs_cannot_be_removed_unnoticed)
{
	CLEANUP(pristine_done) struct pristine p = pristine_new("sql-remove");

	for (size_t i = 0; i < p.n_objects; i++) {
		damage_remove(p.path, p.object[i].kind, &p.object[i].id);
		CHECK(pristine_is_damaged(&p));
		pristine_restore(&p, p.object[i].kind == OBJECT_CHUNK);
	}
	CHECK(!pristine_is_damaged(&p));
}

TEST_MAIN("damage")
