/*
 * What a batch must refuse: names that are taken, trees that are not there, and two
 * contents under one id.
 */
#include "cowfs/store/batch.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/path.h"
#include "cowfs/store/schema.h"
#include "tests/lib/damage.h"
#include "tests/lib/stock.h"

static void check_commit_fails(struct batch *b, int code, const char *why)
{
	struct err err = { 0 };

	CHECK_EQ(batch_commit(b, BATCH_SAFE, &err), code);
	CHECK_EQ(err.code, code);
	CHECK_HAS(err.msg, why);
}

/* --- refs that cannot be ---------------------------------------------------------------------- */

TEST(a_name_that_is_taken_keeps_the_whole_batch_out)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("taken"), STORE_CREATE);
	const struct object_id old = stock_snapshot(s, "a", "old");
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	const struct object_id root = stock_put_root(b, "new");
	const uint64_t objects = stock_sizes(s).objects;
	struct object_id now;

	stock_name(b, REF_SNAPSHOT, "0", &root, REF_NEW);
	stock_name(b, REF_SNAPSHOT, "a", &root, REF_NEW);
	stock_name(b, REF_SNAPSHOT, "z", &root, REF_NEW);
	check_commit_fails(b, -EEXIST, "snapshot 'a' exists already");
	CHECK(!stock_has_snapshot(s, "0") && !stock_has_snapshot(s, "z"));
	CHECK_EQ(stock_sizes(s).objects, objects);
	now = stock_root(s, "a");
	CHECK(object_id_equal(&now, &old));
	stock_check_clean(s);
}

TEST(a_name_cannot_be_new_twice_in_one_batch)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("twice"), STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);

	stock_name(b, REF_TAG, "a", NULL, REF_NEW);
	stock_name(b, REF_SNAPSHOT, "a", NULL, REF_NEW);
	stock_name(b, REF_TAG, "a", NULL, REF_NEW);
	check_commit_fails(b, -EEXIST, "tag 'a' exists already");
	CHECK(!stock_has_snapshot(s, "a"));
}

TEST(a_name_for_a_tree_that_is_not_there_is_refused)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("rootless"), STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s), *c = NULL;
	const struct object_id none = { { 1 } }, chunk = stock_put_text(b, "chunk");

	stock_name(b, REF_SNAPSHOT, "a", &none, REF_NEW);
	check_commit_fails(b, -ENOENT, "snapshot 'a' would name a tree that is not in the store");
	c = stock_begin(s);
	stock_name(c, REF_SNAPSHOT, "a", &chunk, REF_REPLACE);
	check_commit_fails(c, -ENOENT, "snapshot 'a' would name a tree");
	CHECK(!stock_has_snapshot(s, "a"));
}

TEST(a_commit_that_failed_can_be_tried_again)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("again"), STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *b = NULL;
	struct object_id root, late;

	stock_snapshot(s, "a", "old");
	b = stock_begin(s);
	root = stock_put_root(b, "new");
	stock_name(b, REF_SNAPSHOT, "a", &root, REF_NEW);
	check_commit_fails(b, -EEXIST, "exists already");
	check_commit_fails(b, -EEXIST, "exists already");
	stock_gc(s);
	stock_drop(s, "a");
	stock_gc(s);
	late = stock_put_text(b, "put after the failure");
	stock_commit(b);
	CHECK(stock_root_is_whole(s, &root, "new"));
	CHECK_EQ(store_has(s, OBJECT_CHUNK, &late, NULL), 1);
	root = stock_root(s, "a");
	CHECK(stock_root_is_whole(s, &root, "new"));
	stock_check_clean(s);
}

/* --- two contents, one id --------------------------------------------------------------------- */

/* With no secret, exchanging the first two words of 32 bytes gives the same id. */
static const char twin[2][33] = { "firstfirsecondse................",
				  "secondsefirstfir................" };

static struct store *store_without_secret(const char *path)
{
	struct schema_identity identity = { .store = { 1 } };
	AUTO_FREE char *meta = path_join(path, "meta.db"), *chunks = path_join(path, "chunks.db");
	struct object_id a, b;
	struct store *s;
	struct err err = { 0 };

	CHECK(meta && chunks);
	CHECK_EQ(mkdir(path, 0700), 0);
	CHECK_OK(schema_create(chunks, SCHEMA_CHUNKS, &identity, &err), &err);
	CHECK_OK(schema_create(meta, SCHEMA_META, &identity, &err), &err);
	s = stock_open(path, STORE_WRITE);
	a = object_id_of(store_key(s), OBJECT_CHUNK, twin[0], 32);
	b = object_id_of(store_key(s), OBJECT_CHUNK, twin[1], 32);
	CHECK(object_id_equal(&a, &b));
	return s;
}

static void check_put_fails(struct batch *b, enum object_kind kind, const char *data, int code)
{
	struct object_id id;
	struct err err = { 0 };

	CHECK_EQ(batch_put(b, kind, data, 32, &id, &err), code);
	CHECK_EQ(err.code, code);
	CHECK_HAS(err.msg, object_kind_name(kind));
}

static void check_first_twin(struct store *s, enum object_kind kind)
{
	const struct object_id id = object_id_of(store_key(s), kind, twin[0], 32);
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	struct err err = { 0 };

	CHECK_OK(store_get(s, kind, &id, &out, &err), &err);
	CHECK_MEM(out.data, out.len, twin[0], 32);
}

TEST(a_second_content_of_one_id_is_refused_and_the_first_is_kept)
{
	CLEANUP(store_close_p) struct store *s = store_without_secret(test_path("twins"));

	for (int k = 1; k <= OBJECT_KINDS; k++) {
		const enum object_kind kind = (enum object_kind)k;
		CLEANUP(batch_end_p) struct batch *b = stock_begin(s), *c = NULL;

		stock_put(b, kind, twin[0], 32);
		check_put_fails(b, kind, twin[1], -EEXIST);
		c = stock_begin(s);
		check_put_fails(c, kind, twin[1], -EEXIST);
		stock_commit(b);
		check_first_twin(s, kind);
		check_put_fails(c, kind, twin[1], -EEXIST);
		CHECK_EQ(batch_put(c, kind, twin[0], 32, &(struct object_id){ { 0 } }, NULL), 0);
		stock_commit(c);
		check_first_twin(s, kind);
	}
}

/* Store `data` under the id of other bytes, in a row that is otherwise right. */
static void plant(struct store *s, const struct object_id *id, const char *data)
{
	CLEANUP(codec_free_p) struct codec *codec = NULL;
	CLEANUP(buf_done) struct buf packed = BUF_INIT;
	char hex[OBJECT_HEX_SIZE], sql[256];
	struct err err = { 0 };

	CHECK_OK(codec_new(&codec, &err), &err);
	CHECK_OK(object_pack(codec, data, strlen(data), &packed, &err), &err);
	snprintf(sql, sizeof(sql),
		 "INSERT INTO chunk(seq, id, sum, data) VALUES(1000, x'%s', %lld, ?1)",
		 object_id_hex(id, hex),
		 (long long)object_row_sum(1000, OBJECT_CHUNK, id, packed.data, packed.len));
	damage_sql_blob(store_path(s), "chunks.db", sql, packed.data, packed.len);
}

static void check_row_holds(struct store *s, const struct object_id *id, const char *data)
{
	CLEANUP(buf_done) struct buf packed = BUF_INIT;
	char hex[OBJECT_HEX_SIZE], sql[128];

	snprintf(sql, sizeof(sql), "SELECT data FROM chunk WHERE id = x'%s'",
		 object_id_hex(id, hex));
	damage_ask_blob(store_path(s), "chunks.db", sql, &packed);
	CHECK_MEM(packed.data + 4, packed.len - 4, data, strlen(data));
}

TEST(a_content_that_appears_under_our_id_before_the_commit_is_not_overwritten)
{
	CLEANUP(store_close_p) struct store *s = store_without_secret(test_path("twins-late"));
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	const struct object_id id = stock_put(b, OBJECT_CHUNK, twin[0], 32);

	stock_name(b, REF_TAG, "t", NULL, REF_NEW);
	plant(s, &id, twin[1]);
	check_commit_fails(b, -EEXIST, "two contents cannot share an id");
	check_row_holds(s, &id, twin[1]);
	CHECK_EQ(damage_ask(store_path(s), "meta.db", "SELECT count(*) FROM ref"), 0);
	damage_remove(store_path(s), OBJECT_CHUNK, &id);
	stock_commit(b);
	check_first_twin(s, OBJECT_CHUNK);
	CHECK_EQ(
	    damage_ask(store_path(s), "meta.db", "SELECT count(*) FROM ref WHERE hex(name) = '74'"),
	    1);
}

TEST(a_planted_row_is_neither_believed_nor_overwritten_nor_handed_out)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("planted"), STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s), *late = stock_begin(s);
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	const struct object_id id = object_id_of(store_key(s), OBJECT_CHUNK, twin[0], 32);
	struct err err = { 0 };

	stock_put(late, OBJECT_CHUNK, twin[0], 32);
	plant(s, &id, "other bytes");
	check_commit_fails(late, -EBADMSG, "do not match its id");
	batch_end(late);
	late = NULL;
	check_put_fails(b, OBJECT_CHUNK, twin[0], -EBADMSG);
	check_row_holds(s, &id, "other bytes");
	CHECK_EQ(store_get(s, OBJECT_CHUNK, &id, &out, &err), -EBADMSG);
	CHECK_EQ(out.len, 0);
}

TEST_MAIN("batch-clash")
