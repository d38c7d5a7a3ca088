/*
 * The n-th read of a database fails, once or for good, until an attempt gets by without meeting
 * that.  What cannot be read is never taken for what is not there: a search fails, a check does not
 * call the store sound, a put puts all or nothing, and a gc sweeps nothing that it did not see.
 *
 * Every n up to a hundred is tried, and then one in seven; with SNAP_TESTS_LONG=1 all are.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "cowfs/store/upkeep/check.h"
#include "cowfs/store/upkeep/gc.h"
#include "tests/crash/disk.h"
#include "tests/crash/specimen.h"
#include "tests/lib/test.h"

#define N_MOST 5000 /* no attempt reads so much */

/* The first two stay; the third is there when gc runs, and is no longer meant to be. */
#define FIRST  1
#define SECOND (SPECIMEN_SMALL | 2)
#define GONE   3
#define TRIED  (SPECIMEN_SMALL | 4)

static const char *path;
static struct store *store;

static void open_it(void)
{
	struct err err = { 0 };

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

static void make_store(const char *name)
{
	struct err err = { 0 };

	path = test_path(name);
	disk_install();
	CHECK_OK(store_open(path, STORE_CREATE, &store, &err), &err);
	CHECK_OK(specimen_commit(store, FIRST, BATCH_SAFE, &err), &err);
	CHECK_OK(specimen_commit(store, SECOND, BATCH_SAFE, &err), &err);
	for (uint64_t more = 100; more < 108; more++)
		CHECK_OK(specimen_commit(store, more, BATCH_SAFE, &err), &err);
	close_it();
}

/* --- what is tried ------------------------------------------------------------------------ */

/* `run` meets the fault; `settle` has a store that was opened anew. */
struct area {
	void (*prepare)(void); /* or NULL */
	int (*run)(struct err *err);
	void (*settle)(int r);
	uint64_t least; /* reads that there must have been */
};

static int run_find(struct err *err)
{
	int r = specimen_find(store, FIRST, err);

	CHECK(r != 0);
	return r;
}

static void settle_nothing(int r)
{
	(void)r;
}

static int run_check(struct err *err)
{
	return specimen_store_sound(store, err);
}

static void prepare_gc(void)
{
	struct err err = { 0 };

	CHECK_OK(specimen_commit(store, GONE, BATCH_SAFE, &err), &err);
	CHECK_OK(specimen_remove(store, GONE, &err), &err);
}

static int run_gc(struct err *err)
{
	struct gc_progress progress;

	return gc_run(store, &progress, err);
}

static void settle_gc(int r)
{
	struct err err = { 0 };

	(void)r;
	CHECK(found(FIRST));
	CHECK(found(SECOND));
	CHECK_OK(specimen_store_sound(store, &err), &err);
}

static int run_put(struct err *err)
{
	return specimen_commit(store, TRIED, BATCH_SAFE, err);
}

static void settle_put(int r)
{
	struct gc_progress progress;
	struct err err = { 0 };

	CHECK_EQ(found(TRIED), r >= 0);
	if (r >= 0)
		CHECK_OK(specimen_remove(store, TRIED, &err), &err);
	CHECK_OK(gc_run(store, &progress, &err), &err);
	CHECK(found(FIRST));
	CHECK(found(SECOND));
}

static int run_open(struct err *err)
{
	close_it();
	return store_open(path, STORE_WRITE, &store, err);
}

static const struct area areas[] = {
	{ NULL, run_open, settle_nothing, 2 },   { NULL, run_find, settle_nothing, 5 },
	{ NULL, run_check, settle_nothing, 10 }, { prepare_gc, run_gc, settle_gc, 10 },
	{ NULL, run_put, settle_put, 3 },
};
enum { OPEN, FIND, CHECK_IT, GC, PUT };

/* --- one after the other ------------------------------------------------------------------ */

static bool attempt(const struct area *a, uint64_t n, bool onwards)
{
	struct err err = { 0 };
	uint64_t met;
	int r;

	open_it();
	if (a->prepare)
		a->prepare();
	/* With nothing of it in memory. */
	close_it();
	open_it();
	disk_fail_at(n, DISK_UNREADABLE, onwards);
	r = a->run(&err);
	met = disk_calm();
	if (r < 0) {
		/* A check tells what it could not read as a finding. */
		CHECK(r == -EIO || (r == -EILSEQ && a->run == run_check));
		CHECK_EQ(err.code, r);
		CHECK(err.msg[0] != '\0');
	}
	/* One that fails once may be of what is read again: rows are counted for the progress. */
	if (met > 0 && onwards && a->run == run_check)
		CHECK(r < 0);
	close_it();
	open_it();
	a->settle(r);
	close_it();
	return met > 0;
}

static void read_badly(const char *name, int which)
{
	const struct area *a = &areas[which];
	const bool all = getenv("SNAP_TESTS_LONG");
	uint64_t n = 1;

	make_store(name);
	for (int onwards = 0; onwards < 2; onwards++)
		for (n = 1; n < N_MOST && attempt(a, n, onwards); n += all || n < 100 ? 1 : 7)
			;
	printf("# some %" PRIu64 " reads\n", n - 1);
	CHECK(n > a->least && n < N_MOST);
	/* Whatever went wrong was the disk's. */
	open_it();
	settle_gc(0);
	close_it();
}

TEST(a_store_that_cannot_be_read_is_not_opened)
{
	read_badly("open", OPEN);
}

TEST(what_cannot_be_read_is_not_taken_for_what_is_not_there)
{
	read_badly("find", FIND);
}

TEST(a_store_that_cannot_be_read_is_not_called_sound)
{
	read_badly("check", CHECK_IT);
}

TEST(a_gc_that_cannot_read_sweeps_nothing_that_is_reachable)
{
	read_badly("gc", GC);
}

TEST(a_put_that_cannot_read_is_there_or_not)
{
	read_badly("put", PUT);
}

TEST_MAIN("read-fault")
