#include "cowfs/store/upkeep/check.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "cowfs/store/upkeep/gc.h"
#include "cowfs/store/xattrs.h"
#include "tests/lib/damage.h"
#include "tests/lib/stock.h"

/* A store with stock_fill() in it, open, and the report about it. */
struct scene {
	const char *path;
	struct store *store;
	struct check_report report;
};

static struct scene scene_open(const char *name)
{
	struct scene sc = { .path = test_path(name) };

	sc.store = stock_open(sc.path, STORE_CREATE);
	stock_fill(sc.store);
	return sc;
}

static void scene_done(struct scene *sc)
{
	check_report_done(&sc->report);
	store_close(sc->store);
}

static void look(struct scene *sc)
{
	check_report_done(&sc->report);
	sc->report = stock_check(sc->store);
}

/* The one finding about an object. */
static const struct check_finding *finding_of(const struct scene *sc, enum object_kind kind,
					      const struct object_id *id)
{
	const struct check_finding *found = NULL;
	char hex[OBJECT_HEX_SIZE], what[96];

	snprintf(what, sizeof(what), "%s %s", object_kind_name(kind), object_id_hex(id, hex));
	for (size_t i = 0; i < sc->report.n_findings; i++)
		if (strcmp(sc->report.findings[i].what, what) == 0) {
			CHECK(!found);
			found = &sc->report.findings[i];
		}
	CHECK(found);
	return found;
}

/* Paths, each on a line: "snapshot one:a". */
static void check_paths(const struct check_finding *f, const char *want)
{
	CLEANUP(buf_done) struct buf have = BUF_INIT;

	for (size_t i = 0; i < f->n_kept; i++)
		CHECK_EQ(buf_printf(&have, "%s\n", f->paths[i]), 0);
	CHECK_STR(buf_str(&have), want);
	CHECK_EQ(f->n_paths, f->n_kept);
}

/* Path `p` in every ref of stock_fill() that has a root. */
#define EVERYWHERE(p) "snapshot one:" p "\nsnapshot two:" p "\ntag v1:" p "\nclone work:" p "\n"

#define IN_ONE(p) "snapshot one:" p "\ntag v1:" p "\n"

static void damage_and_check(struct scene *sc, enum object_kind kind, const struct object_id *id,
			     const char *paths)
{
	damage_object(sc->path, kind, id);
	look(sc);
	CHECK_EQ(sc->report.n_findings, 1);
	check_paths(finding_of(sc, kind, id), paths);
}

static void remove_and_check(struct scene *sc, enum object_kind kind, const struct object_id *id,
			     const char *paths)
{
	const struct check_finding *f;

	damage_remove(sc->path, kind, id);
	look(sc);
	CHECK_EQ(sc->report.n_findings, 1);
	f = finding_of(sc, kind, id);
	CHECK_HAS(f->why, "missing");
	check_paths(f, paths);
}

/* --- clean ------------------------------------------------------------------------------------ */

TEST(a_clean_store_has_no_findings)
{
	CLEANUP(scene_done) struct scene sc = scene_open("clean");
	struct store *reader;

	look(&sc);
	CHECK_EQ(sc.report.n_findings, 0);
	CHECK_EQ(sc.report.objects, stock_rows(sc.store));
	CHECK_EQ(sc.report.refs, 5);
	CHECK(sc.report.bytes > 3 * CHUNK_SIZE_MAX);
	reader = stock_open(sc.path, STORE_READ);
	check_report_done(&sc.report);
	sc.report = stock_check(reader);
	CHECK_EQ(sc.report.n_findings, 0);
	store_close(reader);
}

TEST(an_empty_store_has_no_findings)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("empty"), STORE_CREATE);
	struct check_report report = stock_check(s);

	CHECK_EQ(report.n_findings, 0);
	CHECK_EQ(report.objects + report.bytes + report.refs, 0);
	check_report_done(&report);
}

TEST(garbage_and_open_batches_are_no_damage)
{
	CLEANUP(scene_done) struct scene sc = scene_open("garbage");
	CLEANUP(batch_end_p) struct batch *b = NULL;

	stock_snapshot(sc.store, "gone", "text");
	stock_drop(sc.store, "gone");
	b = stock_begin(sc.store);
	stock_put_root(b, "pending");
	look(&sc);
	CHECK_EQ(sc.report.n_findings, 0);
}

/* --- whose is it ------------------------------------------------------------------------------ */

TEST(a_damaged_file_is_named_by_every_path_that_leads_to_it)
{
	CLEANUP(scene_done) struct scene sc = scene_open("file");
	const struct object_id id = stock_entry(sc.store, "one", "src/lib/deep.c").id;

	damage_and_check(&sc, OBJECT_CHUNK, &id, EVERYWHERE("src/lib/deep.c"));
	CHECK_HAS(sc.report.findings[0].why, "checksum");
}

TEST(a_snapshot_without_the_damaged_object_is_not_blamed)
{
	CLEANUP(scene_done) struct scene sc = scene_open("one-only");
	const struct object_id id = stock_entry(sc.store, "one", "readme").id;

	damage_and_check(&sc, OBJECT_CHUNK, &id, IN_ONE("readme"));
}

TEST(a_missing_object_is_named_by_every_path_that_leads_to_it)
{
	{
		CLEANUP(scene_done) struct scene sc = scene_open("missing-chunk");
		const struct object_id id = stock_entry(sc.store, "one", "src/main.c").id;

		remove_and_check(&sc, OBJECT_CHUNK, &id, EVERYWHERE("src/main.c"));
	}
	{
		CLEANUP(scene_done) struct scene sc = scene_open("missing-xattrs");
		const struct object_id id = stock_entry(sc.store, "one", "readme").xattrs;

		remove_and_check(&sc, OBJECT_XATTRS, &id, EVERYWHERE("readme"));
	}
	{
		CLEANUP(scene_done) struct scene sc = scene_open("missing-recipe");
		const struct object_id id = stock_entry(sc.store, "one", "big").id;

		remove_and_check(&sc, OBJECT_RECIPE, &id, EVERYWHERE("big"));
	}
	{
		CLEANUP(scene_done) struct scene sc = scene_open("missing-tree");
		const struct object_id id = stock_entry(sc.store, "one", "src").id;

		remove_and_check(&sc, OBJECT_TREE, &id, EVERYWHERE("src"));
	}
	{
		CLEANUP(scene_done) struct scene sc = scene_open("missing-root");
		const struct object_id id = stock_root(sc.store, "one");

		remove_and_check(&sc, OBJECT_TREE, &id, IN_ONE(""));
	}
}

TEST(damage_in_a_large_file_is_named_once_per_path_however_often_the_block_occurs)
{
	CLEANUP(scene_done) struct scene sc = scene_open("block");
	AUTO_FREE uint8_t *block = stock_block(1);
	const struct object_id id =
	    object_id_of(store_key(sc.store), OBJECT_CHUNK, block, CHUNK_SIZE_MAX);

	damage_and_check(&sc, OBJECT_CHUNK, &id, EVERYWHERE("big"));
}

TEST(every_damaged_piece_of_a_large_file_is_a_finding_with_its_paths)
{
	CLEANUP(scene_done) struct scene sc = scene_open("pieces");
	AUTO_FREE uint8_t *one = stock_block(1), *two = stock_block(2);
	const struct object_id a =
	    object_id_of(store_key(sc.store), OBJECT_CHUNK, one, CHUNK_SIZE_MAX);
	const struct object_id b = object_id_of(store_key(sc.store), OBJECT_CHUNK, two, 5);
	const struct object_id recipe = stock_entry(sc.store, "one", "big").id;

	damage_object(sc.path, OBJECT_CHUNK, &a);
	damage_remove(sc.path, OBJECT_CHUNK, &b);
	look(&sc);
	CHECK_EQ(sc.report.n_findings, 2);
	check_paths(finding_of(&sc, OBJECT_CHUNK, &a), EVERYWHERE("big"));
	check_paths(finding_of(&sc, OBJECT_CHUNK, &b), EVERYWHERE("big"));

	damage_object(sc.path, OBJECT_RECIPE, &recipe);
	look(&sc);
	check_paths(finding_of(&sc, OBJECT_RECIPE, &recipe), EVERYWHERE("big"));
	check_paths(finding_of(&sc, OBJECT_CHUNK, &a), "");
}

TEST(damaged_attributes_are_named_by_the_path_of_their_file)
{
	CLEANUP(scene_done) struct scene sc = scene_open("xattrs");
	const struct object_id id = stock_entry(sc.store, "one", "readme").xattrs;

	damage_and_check(&sc, OBJECT_XATTRS, &id, EVERYWHERE("readme"));
}

TEST(a_damaged_directory_is_named_and_the_rest_is_still_walked)
{
	CLEANUP(scene_done) struct scene sc = scene_open("directory");
	const struct object_id src = stock_entry(sc.store, "one", "src").id;
	const struct object_id big = stock_entry(sc.store, "one", "big").id;

	damage_object(sc.path, OBJECT_TREE, &src);
	damage_object(sc.path, OBJECT_RECIPE, &big);
	look(&sc);
	CHECK_EQ(sc.report.n_findings, 2);
	check_paths(finding_of(&sc, OBJECT_TREE, &src), EVERYWHERE("src"));
	check_paths(finding_of(&sc, OBJECT_RECIPE, &big), EVERYWHERE("big"));
}

TEST(a_damaged_top_or_root_is_named_by_its_refs)
{
	CLEANUP(scene_done) struct scene sc = scene_open("top");
	const struct object_id top = stock_entry(sc.store, "one", "").id;
	const struct object_id root = stock_root(sc.store, "one");

	damage_and_check(&sc, OBJECT_TREE, &top, IN_ONE(""));
	damage_object(sc.path, OBJECT_TREE, &root);
	look(&sc);
	CHECK_EQ(sc.report.n_findings, 2);
	check_paths(finding_of(&sc, OBJECT_TREE, &root), IN_ONE(""));
}

#define BOTH(ref)  ref ":hard\n" ref ":src/hard2\n"
#define HARD_LINKS BOTH("snapshot one") BOTH("snapshot two") BOTH("tag v1") BOTH("clone work")

TEST(a_damaged_file_with_several_names_is_named_by_all_of_them)
{
	CLEANUP(scene_done) struct scene sc = scene_open("hard");
	const struct tree_entry hard = stock_entry(sc.store, "one", "hard");
	AUTO_FREE uint8_t *three = stock_block(3), *four = stock_block(4);
	const struct object_id a =
	    object_id_of(store_key(sc.store), OBJECT_CHUNK, three, CHUNK_SIZE_MAX);
	const struct object_id b =
	    object_id_of(store_key(sc.store), OBJECT_CHUNK, four, CHUNK_SIZE_MAX);

	damage_and_check(&sc, OBJECT_CHUNK, &a, HARD_LINKS);
	damage_object(sc.path, OBJECT_CHUNK, &b);
	damage_object(sc.path, OBJECT_XATTRS, &hard.xattrs);
	look(&sc);
	CHECK_EQ(sc.report.n_findings, 3);
	check_paths(finding_of(&sc, OBJECT_CHUNK, &a), HARD_LINKS);
	check_paths(finding_of(&sc, OBJECT_CHUNK, &b), HARD_LINKS);
	check_paths(finding_of(&sc, OBJECT_XATTRS, &hard.xattrs), HARD_LINKS);
}

static struct object_id links_of(struct store *s, const char *snapshot)
{
	const struct object_id id = stock_root(s, snapshot);
	struct root root;
	struct err err = { 0 };

	CHECK_OK(root_get(s, &id, &root, &err), &err);
	return root.links;
}

TEST(a_damaged_tree_of_links_is_named_by_the_names_that_need_it)
{
	CLEANUP(scene_done) struct scene sc = scene_open("links");
	const struct object_id id = links_of(sc.store, "one");

	damage_and_check(&sc, OBJECT_TREE, &id, HARD_LINKS);
}

TEST(a_name_whose_file_is_not_among_the_links_is_a_finding)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("linkless"), STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	CLEANUP(tree_builder_free_p) struct tree_builder *t = NULL;
	const struct tree_entry lost = {
		.name = "lost", .name_len = 4, .form = TREE_LINK, .mode = S_IFREG, .ino = 5
	};
	struct root root = { .top = { .name = ROOT_TOP,
				      .name_len = strlen(ROOT_TOP),
				      .form = TREE_DIR,
				      .mode = S_IFDIR | 0755 } };
	struct check_report report;
	struct object_id id;
	struct err err = { 0 };

	CHECK_OK(tree_builder_new(b, &t, &err), &err);
	CHECK_OK(tree_builder_add(t, &lost, &err), &err);
	CHECK_OK(tree_builder_finish(t, &root.top.id, &root.top.below, &err), &err);
	CHECK_OK(root_put(b, &root, &id, &err), &err);
	stock_name(b, REF_SNAPSHOT, "s", &id, REF_NEW);
	stock_commit(b);
	report = stock_check(s);
	CHECK_EQ(report.n_findings, 1);
	CHECK_HAS(report.findings[0].why, "inode 5");
	check_paths(&report.findings[0], "snapshot s:lost\n");
	check_report_done(&report);
}

TEST(paths_are_shown_with_their_odd_bytes_escaped_and_every_slash_in_place)
{
	CLEANUP(scene_done) struct scene sc = scene_open("odd");
	const struct object_id id = stock_entry(sc.store, "one", "docs:/" STOCK_ODD_NAME).id;

	damage_and_check(&sc, OBJECT_CHUNK, &id, EVERYWHERE("docs:/\\x01\\xff"));
}

TEST(a_ref_with_odd_bytes_is_shown_escaped)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("odd-ref"), STORE_CREATE);
	struct check_report report;
	const struct object_id root = stock_snapshot(s, "a\n:b\377", "text");

	damage_object(store_path(s), OBJECT_TREE, &root);
	report = stock_check(s);
	CHECK_EQ(report.n_findings, 1);
	check_paths(&report.findings[0], "snapshot a\\x0a:b\\xff:\n");
	check_report_done(&report);
}

/* A directory of n files that share one chunk. */
static struct object_id put_crowd(struct batch *b, unsigned n)
{
	CLEANUP(tree_builder_free_p) struct tree_builder *t = NULL;
	struct root root = { .top = { .name = ROOT_TOP,
				      .name_len = strlen(ROOT_TOP),
				      .form = TREE_DIR,
				      .mode = S_IFDIR | 0755 } };
	struct content c;
	struct object_id id;
	struct err err = { 0 };
	char name[16];

	CHECK_OK(content_put(b, "shared", 6, &c, &err), &err);
	CHECK_OK(tree_builder_new(b, &t, &err), &err);
	for (unsigned i = 0; i < n; i++) {
		struct tree_entry e = { .name = name, .mode = S_IFREG | 0644 };

		snprintf(name, sizeof(name), "f%06u", i);
		e.name_len = strlen(name);
		tree_entry_set_content(&e, &c);
		CHECK_OK(tree_builder_add(t, &e, &err), &err);
	}
	CHECK_OK(tree_builder_finish(t, &root.top.id, &root.top.below, &err), &err);
	CHECK_OK(root_put(b, &root, &id, &err), &err);
	return id;
}

TEST(paths_beyond_the_limit_are_counted_and_not_kept)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("crowd"), STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	const struct object_id root = put_crowd(b, 3000);
	struct object_id id;
	struct check_report report;

	stock_name(b, REF_SNAPSHOT, "s", &root, REF_NEW);
	stock_commit(b);
	id = object_id_of(store_key(s), OBJECT_CHUNK, "shared", 6);
	damage_object(store_path(s), OBJECT_CHUNK, &id);
	report = stock_check(s);
	CHECK_EQ(report.n_findings, 1);
	CHECK_EQ(report.findings[0].n_paths, 3000);
	CHECK_EQ(report.findings[0].n_kept, CHECK_PATHS_MAX);
	CHECK_STR(report.findings[0].paths[0], "snapshot s:f000000");
	CHECK_STR(report.findings[0].paths[CHECK_PATHS_MAX - 1], "snapshot s:f000063");
	check_report_done(&report);
}

/* --- rows ------------------------------------------------------------------------------------- */

TEST(damage_that_no_path_leads_to_is_found_too)
{
	CLEANUP(scene_done) struct scene sc = scene_open("unreachable");
	CLEANUP(batch_end_p) struct batch *b = stock_begin(sc.store);
	const struct object_id chunk = stock_put_text(b, "nobody's");
	const struct object_id xattrs = stock_put(b, OBJECT_XATTRS, "not a set", 9);

	stock_commit(b);
	damage_object(sc.path, OBJECT_CHUNK, &chunk);
	look(&sc);
	CHECK_EQ(sc.report.n_findings, 2);
	check_paths(finding_of(&sc, OBJECT_CHUNK, &chunk), "");
	check_paths(finding_of(&sc, OBJECT_XATTRS, &xattrs), "");
}

TEST(an_object_that_has_not_the_form_of_its_kind_is_a_finding)
{
	for (int k = OBJECT_RECIPE; k <= OBJECT_KINDS; k++) {
		const enum object_kind kind = (enum object_kind)k;
		char name[24];
		struct scene sc;
		struct batch *b;
		struct object_id id;

		snprintf(name, sizeof(name), "form-%d", k);
		sc = scene_open(name);
		b = stock_begin(sc.store);
		id = stock_put(b, kind, "anything", 8);
		stock_commit(b);
		batch_end(b);
		look(&sc);
		CHECK_EQ(sc.report.n_findings, 1);
		check_paths(finding_of(&sc, kind, &id), "");
		scene_done(&sc);
	}
}

TEST(a_ref_to_a_tree_that_is_no_root_is_a_finding)
{
	CLEANUP(scene_done) struct scene sc = scene_open("no-root");
	CLEANUP(batch_end_p) struct batch *b = stock_begin(sc.store);
	const struct object_id src = stock_entry(sc.store, "one", "src").id;

	stock_name(b, REF_TAG, "dir", &src, REF_NEW);
	stock_commit(b);
	look(&sc);
	CHECK_EQ(sc.report.n_findings, 1);
	check_paths(finding_of(&sc, OBJECT_TREE, &src), "tag dir:\n");
}

TEST(a_row_of_an_unknown_kind_is_a_finding)
{
	static const char *const kinds[] = { "0",   "6",          "-1",
					     "259", "4294967299", "kind + 4294967296" };

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		char name[32];
		struct scene sc;
		struct batch *b;

		snprintf(name, sizeof(name), "kind-%zu", i);
		sc = scene_open(name);
		b = stock_begin(sc.store);
		stock_put(b, OBJECT_XATTRS, "\0\0\0\0", 4);
		stock_commit(b);
		batch_end(b);
		damage_sql(sc.path, "meta.db",
			   "UPDATE object SET kind = %s WHERE seq = (SELECT max(seq) FROM object)",
			   kinds[i]);
		look(&sc);
		CHECK_EQ(sc.report.n_findings, 1);
		CHECK_HAS(sc.report.findings[0].why, "unknown kind");
		scene_done(&sc);
	}
}

TEST(a_damaged_ref_is_a_finding_and_the_others_are_walked)
{
	static const char *const damage[] = {
		"UPDATE ref SET sum = sum + 1 WHERE name = CAST('one' AS BLOB)",
		"UPDATE ref SET kind = 77 WHERE name = CAST('one' AS BLOB)",
		"UPDATE ref SET kind = kind + 4294967296 WHERE name = CAST('one' AS BLOB)",
		"UPDATE ref SET name = CAST('onf' AS BLOB) WHERE name = CAST('one' AS BLOB)",
		"UPDATE ref SET root = zeroblob(16) WHERE name = CAST('one' AS BLOB)",
	};

	for (size_t i = 0; i < ARRAY_LEN(damage); i++) {
		char name[32];
		struct scene sc;
		struct object_id id;

		snprintf(name, sizeof(name), "ref-%zu", i);
		sc = scene_open(name);
		id = stock_entry(sc.store, "two", "src/main.c").id;
		damage_sql(sc.path, "meta.db", "%s", damage[i]);
		damage_object(sc.path, OBJECT_CHUNK, &id);
		look(&sc);
		CHECK_EQ(sc.report.refs, 5);
		CHECK_EQ(sc.report.n_findings, 2);
		check_paths(finding_of(&sc, OBJECT_CHUNK, &id),
			    "snapshot two:src/main.c\ntag v1:src/main.c\nclone work:src/main.c\n");
		scene_done(&sc);
	}
}

TEST(a_row_number_far_beyond_the_others_is_a_finding_and_takes_no_memory)
{
	CLEANUP(scene_done) struct scene sc = scene_open("far");

	damage_sql(sc.path, "meta.db",
		   "UPDATE object SET seq = 1000000000000"
		   " WHERE seq = (SELECT max(seq) FROM object)");
	look(&sc);
	CHECK_EQ(sc.report.n_findings, 1);
	CHECK_HAS(sc.report.findings[0].why, "checksum");
}

TEST(a_table_that_is_gone_is_a_finding)
{
	CLEANUP(scene_done) struct scene sc = scene_open("no-table");

	damage_sql(sc.path, "chunks.db", "DROP TABLE chunk");
	look(&sc);
	CHECK(sc.report.n_findings > 0);
}

TEST(settings_that_changed_under_an_open_store_are_a_finding)
{
	CLEANUP(scene_done) struct scene sc = scene_open("setting");

	damage_sql(sc.path, "chunks.db",
		   "UPDATE setting SET value = zeroblob(16)"
		   " WHERE name = CAST('store' AS BLOB)");
	look(&sc);
	CHECK_EQ(sc.report.n_findings, 1);
	CHECK_STR(sc.report.findings[0].what, "chunks.db");
	CHECK_HAS(sc.report.findings[0].why, "setting 'store'");
}

/* --- beside others ---------------------------------------------------------------------------- */

struct watched {
	struct store *store;
	uint64_t calls, last, total;
	int gc; /* what gc_begin() answered */
};

static void on_progress(uint64_t done, uint64_t total, void *ctx)
{
	struct watched *w = ctx;
	struct gc *g = NULL;

	w->calls++;
	w->last = done;
	w->total = total;
	w->gc = gc_begin(w->store, &g, NULL);
	gc_end(g);
	stock_snapshot(w->store, "committed beside a check", "text");
}

TEST(a_check_tells_how_far_it_is_and_keeps_gc_away_but_not_commits)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("progress"), STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	struct watched w = { .store = s };
	struct check_report report;
	struct gc_progress progress;
	struct err err = { 0 };
	char text[32];

	for (unsigned i = 0; i < 2100; i++) {
		snprintf(text, sizeof(text), "text %u", i);
		stock_put_text(b, text);
	}
	stock_commit(b);
	CHECK_OK(check_store(s, on_progress, &w, &report, &err), &err);
	CHECK_EQ(report.n_findings, 0);
	CHECK_EQ(report.objects, 2100);
	CHECK_EQ(w.calls, 2);
	CHECK_EQ(w.last, 2048);
	CHECK_EQ(w.total, 2100);
	CHECK_EQ(w.gc, -EBUSY);
	CHECK(stock_has_snapshot(s, "committed beside a check"));
	check_report_done(&report);
	CHECK_OK(gc_run(s, &progress, &err), &err);
}

TEST(a_check_waits_for_no_gc)
{
	CLEANUP(scene_done) struct scene sc = scene_open("gc");
	struct gc *g = NULL;
	struct err err = { 0 };

	CHECK_OK(gc_begin(sc.store, &g, &err), &err);
	CHECK_EQ(check_store(sc.store, NULL, NULL, &sc.report, &err), -EBUSY);
	CHECK_HAS(err.msg, "a gc of store");
	gc_end(g);
	look(&sc);
	CHECK_EQ(sc.report.n_findings, 0);
}

TEST_MAIN("check")
