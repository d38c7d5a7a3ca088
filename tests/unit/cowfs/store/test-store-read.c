/*
 * Reading a store: beside its writer, from many threads, and what is damaged.
 */
#include "cowfs/store/store-i.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include "tests/lib/damage.h"
#include "tests/lib/stock.h"

/* A closed store with stock_fill() in it. */
static const char *filled_store(const char *name)
{
	const char *path = test_path(name);
	CLEANUP(store_close_p) struct store *s = stock_open(path, STORE_CREATE);

	stock_fill(s);
	return path;
}

/* --- readers ---------------------------------------------------------------------------------- */

TEST(a_reader_beside_the_writer_sees_each_commit)
{
	const char *path = test_path("beside-writer");
	CLEANUP(store_close_p) struct store *w = stock_open(path, STORE_CREATE);
	CLEANUP(store_close_p) struct store *r = stock_open(path, STORE_READ);
	CLEANUP(store_close_p) struct store *r2 = stock_open(path, STORE_READ);
	struct object_id root;

	CHECK(!stock_has_snapshot(r, "a"));
	root = stock_snapshot(w, "a", "text");
	CHECK(stock_has_snapshot(r, "a") && stock_has_snapshot(r2, "a"));
	CHECK(stock_root_is_whole(r, &root, "text") && stock_root_is_whole(r2, &root, "text"));
	stock_drop(w, "a");
	CHECK(!stock_has_snapshot(r, "a"));
}

TEST(readers_outlive_the_writer)
{
	const char *path = test_path("outlive");
	struct store *w = stock_open(path, STORE_CREATE);
	CLEANUP(store_close_p) struct store *r = NULL;

	stock_fill(w);
	r = stock_open(path, STORE_READ);
	CHECK(stock_has_snapshot(r, "one"));
	store_close(w);
	CHECK(stock_has_snapshot(r, "one"));
	w = stock_open(path, STORE_WRITE);
	stock_snapshot(w, "new", "text");
	CHECK(stock_has_snapshot(r, "new"));
	store_close(w);
}

TEST(a_store_open_for_reading_takes_no_changes)
{
	CLEANUP(store_close_p) struct store *s = stock_open(filled_store("read-only"), STORE_READ);
	struct batch *b = NULL;
	struct gc *g = NULL;
	struct err err = { 0 };

	CHECK_EQ(batch_begin(s, &b, &err), -EROFS);
	CHECK_HAS(err.msg, "for reading only");
	CHECK_EQ(gc_begin(s, &g, &err), -EROFS);
	CHECK_EQ(store_checkpoint(s, &err), -EROFS);
}

struct getter {
	struct store *store;
	struct object_id id;
	int failed;
};

static void *get_often(void *arg)
{
	struct getter *g = arg;
	CLEANUP(buf_done) struct buf out = BUF_INIT;

	for (int i = 0; i < 100; i++)
		if (store_get(g->store, OBJECT_CHUNK, &g->id, &out, NULL) < 0 ||
		    out.len != CHUNK_SIZE_MAX)
			g->failed++;
	return NULL;
}

TEST(many_threads_read_one_store)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("threads"), STORE_CREATE);
	AUTO_FREE uint8_t *block = stock_block(1);
	struct getter g[4];
	pthread_t t[4];

	stock_fill(s);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		g[i] = (struct getter){ .store = s,
					.id = object_id_of(store_key(s), OBJECT_CHUNK, block,
							   CHUNK_SIZE_MAX) };
		CHECK_EQ(pthread_create(&t[i], NULL, get_often, &g[i]), 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CHECK_EQ(pthread_join(t[i], NULL), 0);
		CHECK_EQ(g[i].failed, 0);
	}
}

static unsigned idle_readers(const struct store *s)
{
	unsigned n = 0;

	for (const struct reader *rd = s->idle; rd; rd = rd->next)
		n++;
	return n;
}

TEST(the_memory_of_readers_is_given_back_and_those_who_come_later_find_all)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("trim"), STORE_CREATE);
	struct object_id root = stock_snapshot(s, "a", "text");
	struct reader *taken[4] = { 0 };
	sqlite3_int64 before;

	for (size_t i = 0; i < ARRAY_LEN(taken); i++)
		CHECK_EQ(reader_take(s, &taken[i], NULL), 0);
	store_trim(s); /* nothing that is in use */
	for (size_t i = 0; i < ARRAY_LEN(taken); i++)
		reader_give(taken[i]);
	CHECK_EQ(idle_readers(s), ARRAY_LEN(taken));
	before = sqlite3_memory_used();
	store_trim(s);
	CHECK_EQ(idle_readers(s), 0);
	CHECK(sqlite3_memory_used() < before / 2);
	CHECK(stock_root_is_whole(s, &root, "text"));
	root = stock_snapshot(s, "b", "more");
	CHECK(stock_root_is_whole(s, &root, "more"));
}

/* --- getting ---------------------------------------------------------------------------------- */

static void check_get_fails(struct store *s, enum object_kind kind, const struct object_id *id,
			    int code)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	char hex[OBJECT_HEX_SIZE];
	struct err err = { 0 };

	CHECK_EQ(buf_append_str(&out, "old"), 0);
	CHECK_EQ(store_get(s, kind, id, &out, &err), code);
	CHECK_EQ(err.code, code);
	CHECK_HAS(err.msg, object_id_hex(id, hex));
	CHECK_HAS(err.msg, object_kind_name(kind));
	CHECK_EQ(out.len, 0);
}

TEST(what_was_put_is_handed_out_and_what_was_not_is_absent)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("get"), STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	const struct object_id none = { { 1 } }, zero = { { 0 } };
	struct err err = { 0 };

	for (int k = 1; k <= OBJECT_KINDS; k++) {
		const enum object_kind kind = (enum object_kind)k;
		const struct object_id id = stock_put(b, kind, "bytes", 5);

		check_get_fails(s, kind, &id, -ENOENT);
		CHECK_EQ(store_has(s, kind, &id, &err), 0);
	}
	stock_commit(b);
	for (int k = 1; k <= OBJECT_KINDS; k++) {
		const enum object_kind kind = (enum object_kind)k;
		const struct object_id id = object_id_of(store_key(s), kind, "bytes", 5);

		CHECK_OK(store_get(s, kind, &id, &out, &err), &err);
		CHECK_MEM(out.data, out.len, "bytes", 5);
		CHECK_EQ(store_has(s, kind, &id, &err), 1);
		check_get_fails(s, (enum object_kind)(k % OBJECT_KINDS + 1), &id, -ENOENT);
		check_get_fails(s, kind, &none, -ENOENT);
		check_get_fails(s, kind, &zero, -ENOENT);
	}
}

TEST(an_object_of_no_bytes_is_an_object)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("nothing"), STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	struct object_id id;
	struct err err = { 0 };

	CHECK_EQ(batch_put(b, OBJECT_CHUNK, NULL, 0, &id, &err), 1);
	CHECK_EQ(batch_put(b, OBJECT_CHUNK, NULL, 0, &id, &err), 0);
	stock_commit(b);
	CHECK_EQ(buf_append_str(&out, "old"), 0);
	CHECK_OK(store_get(s, OBJECT_CHUNK, &id, &out, &err), &err);
	CHECK_EQ(out.len, 0);
}

TEST(a_damaged_object_is_reported_and_not_handed_out)
{
	const char *path = filled_store("damage");
	CLEANUP(store_close_p) struct store *s = stock_open(path, STORE_WRITE);
	const struct tree_entry readme = stock_entry(s, "one", "readme");
	const struct tree_entry big = stock_entry(s, "one", "big");
	const struct tree_entry src = stock_entry(s, "one", "src");
	struct err err = { 0 };

	damage_object(path, OBJECT_CHUNK, &readme.id);
	check_get_fails(s, OBJECT_CHUNK, &readme.id, -EBADMSG);
	damage_object(path, OBJECT_XATTRS, &readme.xattrs);
	check_get_fails(s, OBJECT_XATTRS, &readme.xattrs, -EBADMSG);
	damage_object(path, OBJECT_RECIPE, &big.id);
	check_get_fails(s, OBJECT_RECIPE, &big.id, -EBADMSG);
	damage_object(path, OBJECT_TREE, &src.id);
	check_get_fails(s, OBJECT_TREE, &src.id, -EBADMSG);
	CHECK_EQ(store_has(s, OBJECT_TREE, &src.id, &err), 1);
}

TEST(the_bytes_of_one_object_are_not_handed_out_for_another)
{
	const char *path = filled_store("exchanged");
	CLEANUP(store_close_p) struct store *s = stock_open(path, STORE_READ);
	const struct tree_entry a = stock_entry(s, "one", "src/main.c");
	const struct tree_entry b = stock_entry(s, "one", "src/lib/deep.c");
	char hex_a[OBJECT_HEX_SIZE], hex_b[OBJECT_HEX_SIZE];

	damage_sql(path, "chunks.db",
		   "UPDATE chunk SET data = (SELECT data FROM chunk WHERE id = x'%s')"
		   " WHERE id = x'%s'",
		   object_id_hex(&a.id, hex_a), object_id_hex(&b.id, hex_b));
	check_get_fails(s, OBJECT_CHUNK, &b.id, -EBADMSG);
}

TEST(a_row_number_that_cannot_be_is_damage)
{
	const char *path = filled_store("negative");
	CLEANUP(store_close_p) struct store *s = NULL;
	char hex[OBJECT_HEX_SIZE];
	struct object_id id;

	s = stock_open(path, STORE_WRITE);
	id = stock_entry(s, "one", "src/main.c").id;
	damage_sql(path, "chunks.db", "UPDATE chunk SET seq = -1000000 WHERE id = x'%s'",
		   object_id_hex(&id, hex));
	check_get_fails(s, OBJECT_CHUNK, &id, -EBADMSG);
}

/* --- sizes and logs --------------------------------------------------------------------------- */

TEST(a_row_longer_than_any_object_is_refused_before_it_is_read)
{
	const char *path = test_path("long-row");
	CLEANUP(store_close_p) struct store *s = stock_open(path, STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	const struct object_id id = stock_put_text(b, "text");
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	struct err err = { 0 };

	stock_commit(b);
	damage_sql(path, "chunks.db", "UPDATE chunk SET data = zeroblob(64 << 20)");
	CHECK_EQ(store_get(s, OBJECT_CHUNK, &id, &out, &err), -EBADMSG);
	CHECK_HAS(err.msg, "too big");
	CHECK_EQ(out.len, 0);
}

TEST(sizes_count_what_is_there)
{
	const char *path = test_path("sizes");
	CLEANUP(store_close_p) struct store *s = stock_open(path, STORE_CREATE);
	struct store_sizes before = stock_sizes(s), after;

	CHECK_EQ(before.chunks + before.objects + before.chunk_bytes + before.object_bytes, 0);
	CHECK(before.file_bytes > 0);
	stock_fill(s);
	after = stock_sizes(s);
	CHECK_EQ(after.chunks, damage_ask(path, "chunks.db", "SELECT count(*) FROM chunk"));
	CHECK_EQ(after.objects, damage_ask(path, "meta.db", "SELECT count(*) FROM object"));
	CHECK_EQ(after.chunk_bytes,
		 damage_ask(path, "chunks.db", "SELECT sum(length(data)) FROM chunk"));
	CHECK_EQ(after.object_bytes,
		 damage_ask(path, "meta.db", "SELECT sum(length(data)) FROM object"));
	CHECK(after.file_bytes > before.file_bytes);
}

TEST(a_checkpoint_empties_the_logs)
{
	const char *path = test_path("checkpoint");
	CLEANUP(store_close_p) struct store *s = stock_open(path, STORE_CREATE);
	CLEANUP(store_close_p) struct store *r = stock_open(path, STORE_READ);
	struct err err = { 0 };
	struct stat st;

	stock_fill(s);
	CHECK(stock_has_snapshot(r, "one"));
	CHECK_EQ(stat(test_path("checkpoint/chunks.db-wal"), &st), 0);
	CHECK(st.st_size > 0);
	CHECK_OK(store_checkpoint(s, &err), &err);
	CHECK_EQ(stat(test_path("checkpoint/chunks.db-wal"), &st), 0);
	CHECK_EQ(st.st_size, 0);
	CHECK_EQ(stat(test_path("checkpoint/meta.db-wal"), &st), 0);
	CHECK_EQ(st.st_size, 0);
	CHECK(stock_has_snapshot(r, "one"));
	stock_snapshot(s, "after", "text");
	CHECK(stock_has_snapshot(r, "after"));
}

TEST_MAIN("store-read")
