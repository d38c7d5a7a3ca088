#include "cowfs/store/upkeep/repair.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/fdio.h"
#include "cowfs/store/upkeep/gc.h"
#include "tests/lib/damage.h"
#include "tests/lib/stock.h"

#define REFS "SELECT group_concat(kind || hex(name) || hex(root) || hex(value) || sum) FROM ref"

/* A store with stock_fill() in it, one object of it, and its bytes. */
struct patient {
	const char *path;
	struct store *store;
	enum object_kind kind;
	struct object_id id;
	struct buf bytes;
	struct buf refs; /* as they were */
};

/* What happens while something is being set aside; NULL: nothing does. */
static void (*meanwhile)(struct patient *p);
static struct patient *whose;

int __real_fdio_replace_file(int dirfd, const char *name, const void *data, size_t len, mode_t mode,
			     struct err *err);
int __wrap_fdio_replace_file(int dirfd, const char *name, const void *data, size_t len, mode_t mode,
			     struct err *err);

int __wrap_fdio_replace_file(int dirfd, const char *name, const void *data, size_t len, mode_t mode,
			     struct err *err)
{
	if (meanwhile)
		meanwhile(whose);
	return __real_fdio_replace_file(dirfd, name, data, len, mode, err);
}

static struct patient patient_new(const char *name, enum object_kind kind)
{
	struct patient p = { .path = test_path(name), .kind = kind };
	struct err err = { 0 };

	p.store = stock_open(p.path, STORE_CREATE);
	stock_fill(p.store);
	switch (kind) {
	case OBJECT_CHUNK:
		p.id = stock_entry(p.store, "one", "src/main.c").id;
		break;
	case OBJECT_RECIPE:
		p.id = stock_entry(p.store, "one", "big").id;
		break;
	case OBJECT_TREE:
		p.id = stock_entry(p.store, "one", "src").id;
		break;
	case OBJECT_XATTRS:
		p.id = stock_entry(p.store, "one", "readme").xattrs;
		break;
	}
	CHECK_OK(store_get(p.store, kind, &p.id, &p.bytes, &err), &err);
	damage_ask_blob(p.path, "meta.db", REFS, &p.refs);
	return p;
}

static void patient_done(struct patient *p)
{
	store_close(p->store);
	buf_done(&p->bytes);
	buf_done(&p->refs);
}

static const char *file_of(const struct patient *p)
{
	return p->kind == OBJECT_CHUNK ? "chunks.db" : "meta.db";
}

static const char *table_of_patient(const struct patient *p)
{
	return p->kind == OBJECT_CHUNK ? "chunk" : "object";
}

static void damage(const struct patient *p)
{
	damage_object(p->path, p->kind, &p->id);
}

/* Put its bytes in a batch of their own. */
static int put(const struct patient *p, struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = stock_begin(p->store);
	struct object_id id;
	int r;

	r = batch_put(b, p->kind, p->bytes.data, p->bytes.len, &id, err);
	if (r >= 0) {
		CHECK(object_id_equal(&id, &p->id));
		stock_commit(b);
	}
	return r;
}

static struct repair_report repair(struct patient *p)
{
	CLEANUP(check_report_done) struct check_report found = stock_check(p->store);
	CLEANUP(buf_done) struct buf refs = BUF_INIT;
	struct repair_report done;
	struct err err = { 0 };

	CHECK_OK(repair_store(p->store, &found, &done, &err), &err);
	damage_ask_blob(p->path, "meta.db", REFS, &refs);
	CHECK_MEM(refs.data, refs.len, p->refs.data, p->refs.len);
	return done;
}

/* How many files are set aside, and the bytes of all of them. */
static void read_aside(const struct patient *p, struct buf *out)
{
	char dir[4096];

	snprintf(dir, sizeof(dir), "%s/" REPAIR_DIR, p->path);
	damage_survey(dir, NULL, out);
}

/* --- what it does ----------------------------------------------------------------------------- */

static void heals_by_a_put(enum object_kind kind, const char *name)
{
	CLEANUP(patient_done) struct patient p = patient_new(name, kind);
	CLEANUP(check_report_done) struct check_report before = { 0 }, after = { 0 };
	CLEANUP(buf_done) struct buf aside = BUF_INIT, packed = BUF_INIT;
	char hex[OBJECT_HEX_SIZE], sql[128], head[96];
	struct repair_report done;
	struct err err = { 0 };

	damage(&p);
	snprintf(sql, sizeof(sql), "SELECT data FROM %s WHERE id = x'%s'", table_of_patient(&p),
		 object_id_hex(&p.id, hex));
	damage_ask_blob(p.path, file_of(&p), sql, &packed);
	CHECK_EQ(put(&p, &err), -EBADMSG);
	before = stock_check(p.store);
	CHECK_EQ(before.n_rows, 1);
	CHECK(before.findings[0].object.kind == kind && !before.torn);

	done = repair(&p);
	CHECK_EQ(done.set_aside, 1);
	CHECK_EQ(done.mended + done.left, 0);
	CHECK_EQ(store_has(p.store, kind, &p.id, &err), 0);
	read_aside(&p, &aside);
	snprintf(head, sizeof(head), "\n%s-%s-", object_kind_name(kind), hex);
	CHECK(aside.len > packed.len && memcmp(aside.data, head, strlen(head)) == 0);
	CHECK_MEM(aside.data + aside.len - packed.len, packed.len, packed.data, packed.len);

	/* Missing now, for the same paths. */
	after = stock_check(p.store);
	CHECK_EQ(after.n_findings, 1);
	CHECK_EQ(after.n_rows, 0);
	CHECK_HAS(after.findings[0].why, "missing");
	CHECK_STR(after.findings[0].what, before.findings[0].what);
	CHECK_EQ(after.findings[0].n_paths, before.findings[0].n_paths);

	CHECK_EQ(put(&p, &err), 1);
	stock_check_clean(p.store);
}

TEST(a_damaged_row_is_set_aside_and_its_content_can_be_put_again)
{
	heals_by_a_put(OBJECT_CHUNK, "chunk");
	heals_by_a_put(OBJECT_RECIPE, "recipe");
	heals_by_a_put(OBJECT_TREE, "tree");
	heals_by_a_put(OBJECT_XATTRS, "xattrs");
}

TEST(a_row_whose_content_is_right_gets_its_checksum)
{
	static const enum object_kind kinds[] = { OBJECT_CHUNK, OBJECT_TREE };

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		CLEANUP(patient_done) struct patient p =
		    patient_new(i ? "sum-tree" : "sum-chunk", kinds[i]);
		char hex[OBJECT_HEX_SIZE];
		struct repair_report done;
		struct stat st;
		char dir[4096];

		damage_sql(p.path, file_of(&p), "UPDATE %s SET sum = sum + 1 WHERE id = x'%s'",
			   table_of_patient(&p), object_id_hex(&p.id, hex));
		done = repair(&p);
		CHECK_EQ(done.mended, 1);
		CHECK_EQ(done.set_aside + done.left, 0);
		stock_check_clean(p.store);
		snprintf(dir, sizeof(dir), "%s/" REPAIR_DIR, p.path);
		CHECK(stat(dir, &st) < 0 && errno == ENOENT);
	}
}

TEST(a_row_that_says_no_kind_is_set_aside)
{
	CLEANUP(patient_done) struct patient p = patient_new("no-kind", OBJECT_TREE);
	CLEANUP(buf_done) struct buf aside = BUF_INIT;
	char hex[OBJECT_HEX_SIZE];
	struct err err = { 0 };

	damage_sql(p.path, "meta.db", "UPDATE object SET kind = 9 WHERE id = x'%s'",
		   object_id_hex(&p.id, hex));
	CHECK_EQ(repair(&p).set_aside, 1);
	read_aside(&p, &aside);
	CHECK_HAS(buf_str(&aside), "unknown-00000000000000000000000000000000-");
	CHECK_EQ(put(&p, &err), 1);
	stock_check_clean(p.store);
}

TEST(a_sound_store_and_what_is_missing_are_left_as_they_are)
{
	CLEANUP(patient_done) struct patient p = patient_new("sound", OBJECT_CHUNK);
	const uint64_t rows = stock_rows(p.store);
	struct repair_report done = repair(&p);

	CHECK_EQ(done.mended + done.set_aside + done.left, 0);
	CHECK_EQ(stock_rows(p.store), rows);
	damage_remove(p.path, p.kind, &p.id);
	done = repair(&p);
	CHECK_EQ(done.mended + done.set_aside + done.left, 0);
	CHECK_EQ(stock_rows(p.store), rows - 1);
}

TEST(the_same_damage_twice_is_set_aside_in_two_files_unless_it_is_the_same_row)
{
	CLEANUP(patient_done) struct patient p = patient_new("twice", OBJECT_CHUNK);
	CLEANUP(buf_done) struct buf once = BUF_INIT, twice = BUF_INIT;
	struct err err = { 0 };

	damage(&p);
	CHECK_EQ(repair(&p).set_aside, 1);
	read_aside(&p, &once);
	CHECK_EQ(put(&p, &err), 1);
	damage(&p);
	CHECK_EQ(repair(&p).set_aside, 1);
	read_aside(&p, &twice);
	CHECK_EQ(twice.len, 2 * once.len);
}

/* invariant 6 */
TEST(the_number_of_a_row_that_was_set_aside_is_not_used_again)
{
	CLEANUP(patient_done) struct patient p = patient_new("number", OBJECT_CHUNK);
	const int64_t last = damage_ask(p.path, "chunks.db", "SELECT max(seq) FROM chunk");
	struct err err = { 0 };

	damage_sql(p.path, "chunks.db", "UPDATE chunk SET data = x'00' WHERE seq = %lld",
		   (long long)last);
	CHECK_EQ(repair(&p).set_aside, 1);
	damage(&p);
	CHECK_EQ(repair(&p).set_aside, 1);
	CHECK_EQ(put(&p, &err), 1);
	CHECK_EQ(damage_ask(p.path, "chunks.db", "SELECT max(seq) FROM chunk"), last + 1);
}

/* --- beside a batch --------------------------------------------------------------------------- */

/* invariant 5 */
TEST(a_row_that_an_open_batch_relies_on_stays_until_the_batch_has_ended)
{
	CLEANUP(patient_done) struct patient p = patient_new("relied", OBJECT_CHUNK);
	struct batch *b = stock_begin(p.store);
	struct repair_report done;

	stock_put(b, p.kind, p.bytes.data, p.bytes.len);
	damage(&p);
	done = repair(&p);
	CHECK_EQ(done.left, 1);
	CHECK_EQ(done.set_aside, 0);
	batch_end(b);
	CHECK_EQ(repair(&p).set_aside, 1);
}

static struct batch *beside;

/* The row reads sound again, as from a page that a reader still has in memory. */
static void put_beside(struct patient *p)
{
	struct err err = { 0 };
	struct object_id id;

	damage(p);
	CHECK_EQ(batch_put(beside, p->kind, p->bytes.data, p->bytes.len, &id, &err), 1);
}

TEST(a_batch_that_meets_the_row_while_it_goes_stores_its_bytes_anew)
{
	CLEANUP(patient_done) struct patient p = patient_new("meets", OBJECT_CHUNK);

	damage(&p);
	beside = stock_begin(p.store);
	whose = &p;
	meanwhile = put_beside;
	CHECK_EQ(repair(&p).set_aside, 1);
	meanwhile = NULL;
	stock_commit(beside);
	batch_end(beside);
	stock_check_clean(p.store);
}

/* --- refusals --------------------------------------------------------------------------------- */

static int try_repair(struct store *s, bool torn, struct err *err)
{
	const struct check_report found = { .torn = torn };
	struct repair_report done;

	return repair_store(s, &found, &done, err);
}

TEST(beside_a_gc_in_a_store_that_is_only_read_or_torn_nothing_is_repaired)
{
	CLEANUP(patient_done) struct patient p = patient_new("refused", OBJECT_CHUNK);
	CLEANUP(store_close_p) struct store *reader = stock_open(p.path, STORE_READ);
	struct err err = { 0 };
	struct gc *g = NULL;

	CHECK_OK(gc_begin(p.store, &g, &err), &err);
	CHECK_EQ(try_repair(p.store, false, &err), -EBUSY);
	CHECK_HAS(err.msg, "a gc of store");
	gc_end(g);
	CHECK_EQ(try_repair(reader, false, &err), -EROFS);
	CHECK_HAS(err.msg, "for reading only");
	CHECK_EQ(try_repair(p.store, true, &err), -EBADMSG);
	CHECK_HAS(err.msg, "a database itself is damaged");
	CHECK_OK(try_repair(p.store, false, &err), &err);
	CHECK_OK(gc_begin(p.store, &g, &err), &err);
	gc_end(g);
}

static void repair_beside_a_check(uint64_t done, uint64_t total, void *ctx)
{
	struct err err = { 0 };

	(void)done;
	(void)total;
	CHECK_EQ(try_repair(whose->store, false, &err), -EBUSY);
	CHECK_HAS(err.msg, "a check of store");
	++*(int *)ctx;
}

static void check_beside(struct patient *p)
{
	struct check_report report;
	struct err err = { 0 };

	CHECK_EQ(check_store(p->store, NULL, NULL, &report, &err), -EBUSY);
}

TEST(a_check_and_a_repair_exclude_each_other)
{
	CLEANUP(patient_done) struct patient p = patient_new("exclude", OBJECT_CHUNK);
	CLEANUP(check_report_done) struct check_report report = { 0 };
	struct batch *b = stock_begin(p.store);
	struct err err = { 0 };
	char text[32];
	int calls = 0;

	/* So many rows that it tells how far it is. */
	for (int i = 0; i < 1100; i++) {
		snprintf(text, sizeof(text), "row %d", i);
		stock_put_text(b, text);
	}
	stock_commit(b);
	batch_end(b);
	whose = &p;
	CHECK_OK(check_store(p.store, repair_beside_a_check, &calls, &report, &err), &err);
	CHECK_EQ(calls, 1);
	damage(&p);
	meanwhile = check_beside;
	CHECK_EQ(repair(&p).set_aside, 1);
	meanwhile = NULL;
}

TEST(what_cannot_be_set_aside_is_not_removed)
{
	CLEANUP(patient_done) struct patient p = patient_new("in-the-way", OBJECT_CHUNK);
	CLEANUP(check_report_done) struct check_report found = { 0 };
	struct repair_report done;
	struct err err = { 0 };

	damage(&p);
	damage_write(p.path, REPAIR_DIR, "x", 1);
	found = stock_check(p.store);
	CHECK_EQ(repair_store(p.store, &found, &done, &err), -ENOTDIR);
	CHECK_HAS(err.msg, REPAIR_DIR);
	CHECK_EQ(store_has(p.store, p.kind, &p.id, &err), 1);
}

TEST_MAIN("repair")
