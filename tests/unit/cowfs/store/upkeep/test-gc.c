#include "cowfs/store/upkeep/gc.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "tests/lib/damage.h"
#include "tests/unit/cowfs/store/upkeep/gc-fixture.h"

static void drop(struct store *s, enum ref_kind kind, const char *name)
{
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	struct err err = { 0 };

	CHECK_OK(ref_delete(b, kind, name, strlen(name), &err), &err);
	stock_commit(b);
}

/* --- what goes and what stays ----------------------------------------------------------------- */

TEST(exactly_the_unreachable_goes)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("exactly"), STORE_CREATE);
	struct gc_progress p;
	uint64_t rows, bytes;

	stock_fill(s);
	rows = stock_rows(s);
	p = stock_gc(s);
	CHECK_EQ(p.swept, 0);
	CHECK_EQ(p.swept_bytes, 0);
	CHECK_EQ(p.marked, rows);
	CHECK_EQ(stock_rows(s), rows);

	bytes = stock_sizes(s).chunk_bytes + stock_sizes(s).object_bytes;
	leave_garbage(s, "text");
	CHECK_EQ(stock_rows(s), rows + 3);
	p = stock_gc(s);
	CHECK_EQ(p.swept, 3);
	CHECK_EQ(p.marked, rows);
	CHECK_EQ(stock_rows(s), rows);
	CHECK_EQ(stock_sizes(s).chunk_bytes + stock_sizes(s).object_bytes, bytes);
	CHECK(p.swept_bytes > 0);
	stock_check_clean(s);
}

/* So many that some of them meet in a slot of what a gc remembers having seen. */
TEST(of_very_many_objects_none_is_taken_for_another)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("many"), STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	struct gc_progress p;
	char text[32];

	for (int i = 0; i < 1500; i++) {
		struct object_id root;

		snprintf(text, sizeof(text), "many %d", i);
		root = stock_put_root(b, text);
		stock_name(b, REF_SNAPSHOT, text, &root, REF_NEW);
	}
	stock_commit(b);
	p = stock_gc(s);
	CHECK_EQ(p.swept, 0);
	CHECK_EQ(p.marked, stock_rows(s));
	stock_check_clean(s);
}

TEST(what_a_ref_shares_with_another_stays_when_it_goes)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("shares"), STORE_CREATE);
	uint64_t rows;

	stock_fill(s);
	rows = stock_rows(s);
	stock_drop(s, "two");
	CHECK_EQ(stock_gc(s).swept, 0);
	drop(s, REF_CLONE, "work");
	/* Of its own it had the root, the top directory and one file. */
	CHECK_EQ(stock_gc(s).swept, 3);
	CHECK_EQ(stock_rows(s), rows - 3);
	stock_check_clean(s);
	stock_drop(s, "one");
	CHECK_EQ(stock_gc(s).swept, 0);
	drop(s, REF_TAG, "v1");
	CHECK_EQ(stock_gc(s).swept, rows - 3);
	CHECK_EQ(stock_rows(s), 0);
	stock_check_clean(s);
}

static bool is_work(const struct ref *ref, void *ctx)
{
	(void)ctx;
	return ref->kind == REF_CLONE && ref->name_len == 4 && memcmp(ref->name, "work", 4) == 0;
}

TEST(a_trial_counts_what_would_go_and_removes_nothing)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("trial"), STORE_CREATE);
	struct gc *g = NULL;
	struct gc_progress trial, act;
	struct err err = { 0 };
	uint64_t rows;

	stock_fill(s);
	stock_drop(s, "two");
	leave_garbage(s, "text");
	rows = stock_rows(s);
	CHECK_OK(gc_begin_trial(s, is_work, NULL, &g, &err), &err);
	/* An unreachable object can be stored again, also behind the sweep. */
	while (step(g, 1, &trial))
		leave_garbage(s, "text");
	gc_end(g);
	CHECK_EQ(stock_rows(s), rows);
	stock_check_clean(s);
	drop(s, REF_CLONE, "work");
	act = stock_gc(s);
	CHECK_EQ(act.swept, 6);
	CHECK_EQ(stock_rows(s), rows - 6);
}

TEST(a_trial_and_a_gc_tell_the_same)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("same"), STORE_CREATE);
	struct gc *g = NULL;
	struct gc_progress trial, act;
	struct err err = { 0 };

	stock_fill(s);
	stock_drop(s, "two");
	leave_garbage(s, "text");
	CHECK_OK(gc_begin_trial(s, is_work, NULL, &g, &err), &err);
	while (step(g, 2, &trial))
		;
	gc_end(g);
	drop(s, REF_CLONE, "work");
	act = stock_gc(s);
	CHECK_EQ(trial.swept, act.swept);
	CHECK_EQ(trial.swept_bytes, act.swept_bytes);
	CHECK_EQ(trial.marked, act.marked);
}

TEST(without_refs_the_store_becomes_empty)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("none"), STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *b = NULL;

	CHECK_EQ(stock_gc(s).swept, 0);
	b = stock_begin(s);
	for (int k = 1; k <= OBJECT_KINDS; k++)
		stock_put(b, (enum object_kind)k, "whatever it may hold", 20);
	stock_commit(b);
	batch_end(b);
	b = NULL;
	CHECK_EQ(stock_gc(s).swept, OBJECT_KINDS);
	CHECK_EQ(stock_rows(s), 0);
	stock_fill(s);
	stock_check_clean(s);
}

TEST(a_store_goes_on_after_a_gc_and_after_reopening)
{
	const char *path = test_path("goes-on");
	struct store *s = stock_open(path, STORE_CREATE);
	struct object_id a, b;

	leave_garbage(s, "first");
	stock_gc(s);
	a = stock_snapshot(s, "a", "text a");
	leave_garbage(s, "last");
	stock_gc(s);
	store_close(s);
	s = stock_open(path, STORE_WRITE);
	b = stock_snapshot(s, "b", "text b");
	stock_gc(s);
	CHECK(stock_root_is_whole(s, &a, "text a") && stock_root_is_whole(s, &b, "text b"));
	CHECK_EQ(stock_rows(s), 6);
	stock_check_clean(s);
	store_close(s);
}

/* --- steps ------------------------------------------------------------------------------------ */

TEST(steps_of_any_budget_come_to_the_same_end)
{
	static const unsigned budgets[] = { 1, 2, 3, 7, 1000 };

	for (size_t i = 0; i < ARRAY_LEN(budgets); i++) {
		char name[32];
		struct gc_progress p, last = { 0 };
		struct store *s;
		struct gc *g;
		uint64_t rows;
		bool more = true;

		snprintf(name, sizeof(name), "budget-%u", budgets[i]);
		s = stock_open(test_path(name), STORE_CREATE);
		leave_garbage(s, "before");
		stock_fill(s);
		leave_garbage(s, "after");
		rows = stock_rows(s);
		g = begin_gc(s);
		while (more) {
			more = step(g, budgets[i], &p);
			CHECK(p.phase >= last.phase && p.marked >= last.marked);
			CHECK(p.swept >= last.swept && p.swept <= last.swept + budgets[i]);
			CHECK_EQ(stock_rows(s), rows - p.swept);
			last = p;
		}
		CHECK(!step(g, budgets[i], &p));
		gc_end(g);
		CHECK_EQ(p.swept, 6);
		CHECK_EQ(p.marked, rows - 6);
		stock_check_clean(s);
		store_close(s);
	}
}

TEST(a_gc_may_end_anywhere_and_the_next_starts_afresh)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("anywhere"), STORE_CREATE);
	uint64_t rows;
	bool more = true;

	stock_fill(s);
	rows = stock_rows(s);
	for (unsigned n = 0; more; n++) {
		struct gc_progress p;
		struct gc *g;

		leave_garbage(s, "text");
		g = begin_gc(s);
		for (unsigned i = 0; i < n && more; i++)
			more = step(g, 1, &p);
		gc_end(g);
		stock_check_clean(s);
	}
	stock_gc(s);
	CHECK_EQ(stock_rows(s), rows);
	gc_end(NULL);
}

/* --- damage ----------------------------------------------------------------------------------- */

/* Nothing may go, and the sentence must say why. */
static void check_gc_refuses(struct store *s, const char *why)
{
	const uint64_t rows = stock_rows(s);
	struct gc_progress p;
	struct err err = { 0 };

	CHECK_EQ(gc_run(s, &p, &err), -EBADMSG);
	CHECK_EQ(err.code, -EBADMSG);
	CHECK_HAS(err.msg, why);
	CHECK_HAS(err.msg, "gc stopped before removing anything");
	CHECK_EQ(stock_rows(s), rows);
}

static struct store *filled_with_garbage(const char *name)
{
	struct store *s = stock_open(test_path(name), STORE_CREATE);

	stock_fill(s);
	leave_garbage(s, "text");
	return s;
}

TEST(a_tree_or_recipe_that_cannot_be_read_stops_the_gc_before_it_removes_anything)
{
	static const struct {
		const char *path;
		enum object_kind kind;
	} cases[] = {
		{ "src/lib", OBJECT_TREE },
		{ "", OBJECT_TREE },
		{ "big", OBJECT_RECIPE },
		{ "hard", OBJECT_RECIPE },
	};

	for (size_t i = 0; i < 2 * ARRAY_LEN(cases); i++) {
		const enum object_kind kind = cases[i / 2].kind;
		char name[32], hex[OBJECT_HEX_SIZE];
		struct store *s;
		struct object_id id;

		snprintf(name, sizeof(name), "unread-%zu", i);
		s = filled_with_garbage(name);
		id = stock_entry(s, "one", cases[i / 2].path).id;
		if (i % 2)
			damage_remove(store_path(s), kind, &id);
		else
			damage_object(store_path(s), kind, &id);
		check_gc_refuses(s, object_id_hex(&id, hex));
		store_close(s);
	}
}

TEST(a_damaged_ref_stops_the_gc_before_it_removes_anything)
{
	static const char *const damage[] = {
		"UPDATE ref SET sum = sum + 1 WHERE name = CAST('work' AS BLOB)",
		"UPDATE ref SET root = zeroblob(16) WHERE name = CAST('work' AS BLOB)",
		"UPDATE ref SET kind = 2 WHERE name = CAST('work' AS BLOB)",
		"UPDATE ref SET kind = 68 WHERE name = CAST('work' AS BLOB)",
		"UPDATE ref SET kind = 0 WHERE name = CAST('work' AS BLOB)",
		"UPDATE ref SET kind = -4 WHERE name = CAST('work' AS BLOB)",
		"UPDATE ref SET kind = kind + 4294967296 WHERE name = CAST('work' AS BLOB)",
	};

	for (size_t i = 0; i < ARRAY_LEN(damage); i++) {
		char name[32];
		struct store *s;

		snprintf(name, sizeof(name), "ref-%zu", i);
		s = filled_with_garbage(name);
		damage_sql(store_path(s), "meta.db", "%s", damage[i]);
		check_gc_refuses(s, i < 3 ? "work" : "unknown kind");
		store_close(s);
	}
}

/* An older program must neither sweep what a kind that it does not know keeps, nor call it damaged. */
TEST(a_ref_of_a_kind_of_a_later_version_stops_gc_and_check_and_keeps_what_it_names)
{
	CLEANUP(store_close_p) struct store *s = filled_with_garbage("later-kind");
	CLEANUP(check_report_done) struct check_report report = { 0 };
	const struct tree_entry src = stock_entry(s, "one", "src");
	struct batch *b = stock_begin(s);
	struct gc_progress progress;
	struct err err = { 0 };

	stock_name(b, (enum ref_kind)(REF_KINDS + 1), "of tomorrow", &src.id, REF_NEW);
	stock_commit(b);
	batch_end(b);
	CHECK_EQ(gc_run(s, &progress, &err), -EPROTO);
	CHECK_HAS(err.msg, "written by a later version");
	CHECK_EQ(check_store(s, NULL, NULL, &report, &err), -EPROTO);
	CHECK_HAS(err.msg, "written by a later version");
	CHECK_EQ(stock_entry(s, "one", "src").size, src.size); /* what it knows can still be read */
}

TEST(a_damaged_leaf_hides_nothing_and_stays_for_check_to_find)
{
	CLEANUP(store_close_p) struct store *s = filled_with_garbage("leaf");
	const struct tree_entry readme = stock_entry(s, "one", "readme");
	const struct object_id gone = stock_entry(s, "one", "src/main.c").id;
	struct check_report report;

	damage_object(store_path(s), OBJECT_CHUNK, &readme.id);
	damage_object(store_path(s), OBJECT_XATTRS, &readme.xattrs);
	damage_remove(store_path(s), OBJECT_CHUNK, &gone);
	CHECK_EQ(stock_gc(s).swept, 3);
	report = stock_check(s);
	CHECK_EQ(report.n_findings, 3);
	check_report_done(&report);
}

TEST(a_row_number_that_cannot_be_stops_the_gc_before_it_removes_anything)
{
	CLEANUP(store_close_p) struct store *s = filled_with_garbage("negative");
	const struct object_id id = stock_entry(s, "one", "src").id;
	char hex[OBJECT_HEX_SIZE];

	damage_sql(store_path(s), "meta.db",
		   "UPDATE object SET seq = -seq * 100000 WHERE id = x'%s'",
		   object_id_hex(&id, hex));
	check_gc_refuses(s, hex);
}

TEST(a_row_number_far_beyond_the_others_does_not_cost_memory)
{
	const char *path = test_path("far");
	struct store *s = stock_open(path, STORE_CREATE);
	struct gc_progress p;
	struct err err = { 0 };

	leave_garbage(s, "text");
	store_close(s);
	damage_sql(path, "meta.db",
		   "UPDATE object SET seq = 1000000000000"
		   " WHERE seq = (SELECT max(seq) FROM object)");
	s = stock_open(path, STORE_WRITE);
	CHECK_EQ(gc_run(s, &p, &err), -EBADMSG);
	CHECK_HAS(err.msg, "row number");
	store_close(s);
}

/* --- the files -------------------------------------------------------------------------------- */

static void put_noise(struct store *s, unsigned chunks)
{
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	AUTO_FREE uint8_t *block = malloc(CHUNK_SIZE_MAX);

	CHECK(block);
	for (unsigned i = 0; i < chunks; i++) {
		stock_noise(block, i);
		stock_put(b, OBJECT_CHUNK, block, CHUNK_SIZE_MAX);
	}
	stock_commit(b);
}

static uint64_t size_of(struct store *s, const char *file)
{
	char path[4096];
	struct stat st;
	struct err err = { 0 };

	CHECK_OK(store_checkpoint(s, &err), &err);
	snprintf(path, sizeof(path), "%s/%s", store_path(s), file);
	CHECK_EQ(stat(path, &st), 0);
	return (uint64_t)st.st_size;
}

TEST(the_files_shrink_when_garbage_goes)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("shrink"), STORE_CREATE);
	const uint64_t before = size_of(s, "chunks.db");

	put_noise(s, 64);
	stock_fill(s);
	CHECK(size_of(s, "chunks.db") > 64 * CHUNK_SIZE_MAX);
	CHECK_EQ(stock_gc(s).swept, 64);
	CHECK_EQ(stock_sizes(s).free_bytes, 0);
	CHECK(size_of(s, "chunks.db") <= before + ((uint64_t)128 << 10));
	stock_check_clean(s);
}

TEST(a_file_that_cannot_shrink_does_not_keep_the_gc_from_ending)
{
	const char *path = test_path("stiff");
	struct store *s = stock_open(path, STORE_CREATE);
	struct gc_progress p;
	struct gc *g;
	unsigned steps = 0;

	put_noise(s, 4);
	store_close(s);
	damage_sql(path, "chunks.db", "PRAGMA journal_mode=DELETE");
	damage_sql(path, "chunks.db", "PRAGMA auto_vacuum=NONE; VACUUM; PRAGMA journal_mode=WAL");
	s = stock_open(path, STORE_WRITE);
	g = begin_gc(s);
	while (step(g, 8, &p) && steps++ < 1000)
		;
	CHECK_EQ(p.phase, GC_DONE);
	CHECK_EQ(p.swept, 4);
	gc_end(g);
	store_close(s);
}

TEST_MAIN("gc")
