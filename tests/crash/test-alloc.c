/*
 * Memory runs out at the n-th request for it, once or for good, until an area gets by
 * without meeting that.  A call then fails with -ENOMEM and a sentence, or does without;
 * nothing is leaked, nothing that was committed is lost.
 *
 * Every n is tried where requests are some hundreds, and of our own code's everywhere.
 * SQLite's thousands, to open six connections, are tried in random samples, another one
 * in each run; all of them with SNAP_TEST_EVERY=1, which takes minutes.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include <sqlite3.h>

#include "cowfs/store/ref.h"
#include "cowfs/store/root.h"
#include "cowfs/store/tree.h"
#include "cowfs/store/upkeep/check.h"
#include "cowfs/store/upkeep/gc.h"
#include "tests/crash/disk.h"
#include "tests/crash/heap.h"
#include "tests/crash/specimen.h"
#include "tests/lib/test.h"

#define N_MOST 20000

/* Committed before memory runs out; must be there after everything. */
#define KEPT  (SPECIMEN_SMALL | 21)
#define TRIED (SPECIMEN_SMALL | 22)

static struct test_rng rng;
static const char *path;
static struct store *store; /* what an area uses; NULL when it is to open one itself */

static void open_again(void)
{
	struct err err = { 0 };

	if (!store)
		CHECK_OK(store_open(path, STORE_WRITE, &store, &err), &err);
}

static void close_it(void)
{
	store_close(TAKE_PTR(store));
}

static bool found(uint64_t number)
{
	struct err err = { 0 };
	int r = specimen_find(store, number, &err);

	CHECK_OK(r, &err);
	return r;
}

/*
 * The store has what was kept, and the other one or not.  Damage stays, so the whole store
 * need not be looked at each time to find it.
 */
static bool thoroughly;

static void must_be_sound(bool tried)
{
	struct err err = { 0 };

	if (thoroughly)
		CHECK_OK(specimen_store_sound(store, &err), &err);
	CHECK(found(KEPT));
	CHECK_EQ(found(TRIED), tried);
}

/* --- what is tried ------------------------------------------------------------------------ */

/*
 * `prepare` and `settle` have memory, `run` has not; `settle` learns what `run` returned
 * and leaves the store as `prepare` of the next attempt wants it.
 */
struct area {
	const char *name;
	void (*prepare)(void);
	int (*run)(struct err *err);
	void (*settle)(int r);
	bool large; /* asks thousands of times */
};

static void remove_store(void)
{
	static const char *const names[] = { "meta.db", "chunks.db" };
	static const char *const suffixes[] = {
		"", "-wal", "-shm", ".new", ".new-wal", ".new-shm"
	};
	char file[4096];

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		for (size_t k = 0; k < ARRAY_LEN(suffixes); k++) {
			snprintf(file, sizeof(file), "%s/%s%s", path, names[i], suffixes[k]);
			CHECK(unlink(file) == 0 || errno == ENOENT);
		}
}

static int run_create(struct err *err)
{
	return store_open(path, STORE_CREATE, &store, err);
}

static void settle_create(int r)
{
	struct err err = { 0 };

	if (r < 0)
		CHECK(!store);
	close_it();
	CHECK_OK(store_open(path, STORE_CREATE, &store, &err), &err);
	if (thoroughly)
		CHECK_OK(specimen_store_sound(store, &err), &err);
	close_it();
}

static int run_open(struct err *err)
{
	return store_open(path, STORE_WRITE, &store, err);
}

static int run_open_read(struct err *err)
{
	return store_open(path, STORE_READ, &store, err);
}

static void settle_open(int r)
{
	if (r < 0)
		CHECK(!store);
	close_it();
	open_again();
	must_be_sound(false);
	close_it();
}

static int run_put(struct err *err)
{
	return specimen_commit(store, TRIED, BATCH_DURABLE, err);
}

static void settle_put(int r)
{
	struct gc_progress progress;
	struct err err = { 0 };

	must_be_sound(r >= 0);
	if (r < 0)
		CHECK_OK(specimen_commit(store, TRIED, BATCH_SAFE, &err), &err);
	CHECK_OK(specimen_remove(store, TRIED, &err), &err);
	CHECK_OK(gc_run(store, &progress, &err), &err);
	must_be_sound(false);
	close_it();
}

/* A batch that failed for want of memory is still open and takes the rest once there is some. */
static struct batch *batch;
static struct object_id batch_root;
static bool batch_put_done;

static void prepare_batch(void)
{
	struct err err = { 0 };

	open_again();
	CHECK_OK(batch_begin(store, &batch, &err), &err);
	batch_put_done = false;
}

static int run_batch(struct err *err)
{
	int r;

	r = specimen_put_tree(batch, TRIED, &batch_root, err);
	if (r >= 0)
		r = specimen_put_ref(batch, TRIED, &batch_root, err);
	batch_put_done = r >= 0;
	return r < 0 ? r : batch_commit(batch, BATCH_SAFE, err);
}

static void settle_batch(int r)
{
	struct err err = { 0 };

	if (r < 0) {
		CHECK(!found(TRIED));
		if (!batch_put_done)
			CHECK_OK(specimen_put(batch, TRIED, &err), &err);
		CHECK_OK(batch_commit(batch, BATCH_SAFE, &err), &err);
	}
	batch_end(TAKE_PTR(batch));
	settle_put(0);
}

static int run_read(struct err *err)
{
	int r = specimen_find(store, KEPT, err);

	return r == 0 ? err_set(err, -ENOENT, "what was committed is not found") : r;
}

static int count_ref(const struct ref *ref, void *n, struct err *err)
{
	(void)ref;
	(void)err;
	++*(unsigned *)n;
	return 0;
}

static int run_lookup(struct err *err)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT, more = BUF_INIT;
	CLEANUP(tree_iter_free_p) struct tree_iter *it = NULL;
	char name[SPECIMEN_NAME_LEN + 1];
	struct store_sizes sizes;
	struct tree_entry e, top;
	struct ref ref;
	unsigned n = 0;
	int r;

	specimen_name(KEPT, name);
	r = ref_each(store, REF_SNAPSHOT, NULL, 0, count_ref, &n, err);
	if (r >= 0)
		r = ref_get(store, REF_SNAPSHOT, name, SPECIMEN_NAME_LEN, &ref, &hold, err);
	if (r >= 0)
		r = tree_lookup(store, &ref.root, ROOT_TOP, strlen(ROOT_TOP), &top, &more, err);
	if (r >= 0)
		r = tree_iter_new(store, &top.id, &it, err);
	if (r >= 0)
		r = tree_iter_next(it, &e, err);
	if (r >= 0)
		r = store_has(store, OBJECT_TREE, &ref.root, err);
	if (r >= 0)
		r = store_sizes(store, &sizes, err);
	if (r >= 0)
		r = store_checkpoint(store, err);
	return r;
}

static void settle_sound(int r)
{
	(void)r;
	must_be_sound(false);
	close_it();
}

static void prepare_gc(void)
{
	struct err err = { 0 };

	open_again();
	CHECK_OK(specimen_commit(store, TRIED, BATCH_SAFE, &err), &err);
	CHECK_OK(specimen_remove(store, TRIED, &err), &err);
}

/* Goes on after a failed step, as an impatient owner might. */
static int run_gc(struct err *err)
{
	CLEANUP(gc_end_p) struct gc *g = NULL;
	struct gc_progress progress;
	struct err later = { 0 };
	int r;

	r = gc_begin(store, &g, err);
	while (r >= 0) {
		r = gc_step(g, 100, &progress, err);
		if (r == 0)
			return 0;
	}
	for (unsigned i = 0; g && i < 20; i++)
		if (gc_step(g, 100, &progress, &later) == 0)
			break;
	return r;
}

static void settle_gc(int r)
{
	struct gc_progress progress;
	struct err err = { 0 };

	must_be_sound(false);
	if (r < 0)
		CHECK_OK(gc_run(store, &progress, &err), &err);
	settle_sound(0);
}

static int run_check(struct err *err)
{
	return specimen_store_sound(store, err);
}

/* Take a chunk away behind the store's back. */
static void damage(void)
{
	char file[4096];
	sqlite3 *db = NULL;

	snprintf(file, sizeof(file), "%s/chunks.db", path);
	CHECK_EQ(sqlite3_open(file, &db), SQLITE_OK);
	CHECK_EQ(sqlite3_exec(db, "DELETE FROM chunk WHERE seq = (SELECT min(seq) FROM chunk)",
			      NULL, NULL, NULL),
		 SQLITE_OK);
	CHECK_EQ(sqlite3_close(db), SQLITE_OK);
}

/* The link's first block: two names lead to it. */
static int run_findings(struct err *err)
{
	CLEANUP(check_report_done) struct check_report report = { 0 };
	int r;

	r = check_store(store, NULL, NULL, &report, err);
	if (r >= 0 && (report.n_findings != 1 || report.findings[0].n_paths != 2))
		return err_set(err, -EILSEQ, "the damage is not found as it is");
	return r;
}

static void settle_nothing(int r)
{
	(void)r;
	close_it();
}

static const struct area damaged_check = { "a check of a damaged store", open_again, run_findings,
					   settle_nothing, true };

static const struct area areas[] = {
	{ "opening", close_it, run_open, settle_open, true },
	{ "opening to read", close_it, run_open_read, settle_open, true },
	{ "a commit", open_again, run_put, settle_put, false },
	{ "a batch that goes on", prepare_batch, run_batch, settle_batch, false },
	{ "reading", open_again, run_read, settle_sound, false },
	{ "looking up", open_again, run_lookup, settle_sound, false },
	{ "a gc", prepare_gc, run_gc, settle_gc, true },
	{ "a check", open_again, run_check, settle_sound, true },
	{ "creation", remove_store, run_create, settle_create, true }, /* last: it leaves none */
};

/* One attempt.  Did it run out of memory? */
static bool area_at(const struct area *a, uint64_t n, enum heap_whose whose, bool onwards)
{
	const int64_t before = heap_live();
	struct err err = { 0 };
	bool met;
	int r;

	a->prepare();
	heap_fail_at(n, whose, onwards);
	r = a->run(&err);
	met = heap_calm() > 0;
	thoroughly = n % 16 == 0 || !met;
	if (r < 0) {
		if (r != -ENOMEM)
			printf("# request %" PRIu64 " of %s: %s\n", n, a->name, err.msg);
		CHECK_EQ(r, -ENOMEM);
		CHECK_EQ(err.code, r);
		CHECK(err.msg[0] != '\0');
		CHECK(met);
	}
	a->settle(r);
	if (heap_live() != before)
		printf("# request %" PRIu64 " of %s leaks\n", n, a->name);
	CHECK_EQ(heap_live(), before);
	return met;
}

/* From one n to the next, `gap` at most and at random. */
static uint64_t step(unsigned gap)
{
	const char *every = getenv("SNAP_TEST_EVERY");

	if (every && strcmp(every, "1") == 0)
		return 1;
	return 1 + test_rand(&rng) % gap;
}

static void try_area(const struct area *a, enum heap_whose whose, bool onwards, unsigned gap)
{
	uint64_t n = 1, tries = 0;

	area_at(a, N_MOST, whose, onwards);
	for (; area_at(a, n, whose, onwards); n += step(gap), tries++)
		CHECK(n < N_MOST);
	printf("# %s: %" PRIu64 " tries, up to request %" PRIu64 "\n", a->name, tries, n - 1);
	CHECK(tries > 5);
}

static void make_store(const char *name)
{
	struct err err = { 0 };

	path = test_path(name);
	CHECK_OK(store_open(path, STORE_CREATE, &store, &err), &err);
	CHECK_OK(specimen_commit(store, KEPT, BATCH_SAFE, &err), &err);
	close_it();
}

TEST(a_store_does_without_any_one_request_or_says_so)
{
	make_store("once");
	for (size_t i = 0; i < ARRAY_LEN(areas); i++)
		try_area(&areas[i], areas[i].large ? HEAP_OURS : HEAP_ALL, false, 1);
}

TEST(a_store_survives_what_sqlite_makes_of_a_request_that_failed)
{
	make_store("sqlite");
	for (size_t i = 0; i < ARRAY_LEN(areas); i++)
		if (areas[i].large)
			try_area(&areas[i], HEAP_SQLITE, false, 63);
}

TEST(a_store_without_memory_says_so_and_recovers)
{
	make_store("for-good");
	for (size_t i = 0; i < ARRAY_LEN(areas); i++)
		try_area(&areas[i], HEAP_ALL, true, areas[i].large ? 63 : 15);
}

TEST(a_check_without_memory_says_so_rather_than_overlook_damage)
{
	make_store("damaged");
	damage();
	try_area(&damaged_check, HEAP_OURS, false, 1);
	try_area(&damaged_check, HEAP_SQLITE, false, 63);
	try_area(&damaged_check, HEAP_ALL, true, 63);
}

int main(void)
{
	rng.s = test_seed();
	heap_install();
	disk_install();
	return test_run_all("alloc");
}
