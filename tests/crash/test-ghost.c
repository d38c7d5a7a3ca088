/*
 * A commit that failed may stand in the log nevertheless, complete, and come back when the
 * next process recovers it.  It must then find everything it names; and a sync that failed
 * must not be believed the second time.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>

#include "cowfs/store/upkeep/gc.h"
#include "tests/crash/disk.h"
#include "tests/crash/specimen.h"
#include "tests/lib/test.h"

#define N_MOST 500 /* no attempt asks so much of the disk */

#define KEPT  (SPECIMEN_SMALL | 1)
#define TRIED (SPECIMEN_SMALL | 2)
#define OTHER (SPECIMEN_SMALL | 3)

static struct store *open_store(const char *path, enum store_mode mode)
{
	struct err err = { 0 };
	struct store *s = NULL;

	disk_install();
	CHECK_OK(store_open(path, mode, &s, &err), &err);
	return s;
}

static void must_be_sound(struct store *s)
{
	struct err err = { 0 };

	CHECK_OK(specimen_store_sound(s, &err), &err);
}

static void collect(struct store *s)
{
	struct gc_progress progress;
	struct err err = { 0 };

	CHECK_OK(gc_run(s, &progress, &err), &err);
}

/* Put TRIED in the place of KEPT. */
static int replace(struct store *s, struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	int r;

	r = batch_begin(s, &b, err);
	if (r >= 0)
		r = specimen_drop(b, KEPT, err);
	if (r >= 0)
		r = specimen_put(b, TRIED, err);
	return r < 0 ? r : batch_commit(b, BATCH_DURABLE, err);
}

/* Fail to commit, collect what seems to be garbage, die.  Did it meet the fault? */
static bool fail_and_die(const char *path, uint64_t n, enum disk_fault fault)
{
	struct gc_progress progress;
	struct err err = { 0 };
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (pid == 0) {
		struct store *s = open_store(path, STORE_WRITE);
		uint64_t met;
		int r;

		disk_fail_at(n, fault, false);
		r = replace(s, &err);
		met = disk_calm();
		if (r < 0)
			IGNORE_RESULT(gc_run(s, &progress, &err),
				      "it may refuse, and must do no harm");
		_exit(met > 0 ? 10 : 11);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && (WEXITSTATUS(status) == 10 || WEXITSTATUS(status) == 11));
	return WEXITSTATUS(status) == 10;
}

static void one_of_both_is_there(const char *path)
{
	CLEANUP(store_close_p) struct store *s = open_store(path, STORE_WRITE);
	struct err err = { 0 };
	int kept, tried;

	must_be_sound(s);
	kept = specimen_find(s, KEPT, &err);
	CHECK_OK(kept, &err);
	tried = specimen_find(s, TRIED, &err);
	CHECK_OK(tried, &err);
	CHECK_EQ(kept + tried, 1);
	if (tried) {
		CHECK_OK(specimen_commit(s, KEPT, BATCH_DURABLE, &err), &err);
		CHECK_OK(specimen_remove(s, TRIED, &err), &err);
	}
	collect(s);
	must_be_sound(s);
	CHECK_EQ(specimen_find(s, KEPT, &err), 1);
}

TEST(a_commit_that_failed_comes_back_whole_or_not_at_all_whatever_a_gc_did)
{
	static const enum disk_fault faults[] = { DISK_BROKEN, DISK_FULL };

	for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
		const char *path = test_path(i ? "ghost-full" : "ghost-broken");
		struct store *s = open_store(path, STORE_CREATE);
		struct err err = { 0 };
		uint64_t n = 1;

		CHECK_OK(specimen_commit(s, KEPT, BATCH_DURABLE, &err), &err);
		store_close(s);
		while (fail_and_die(path, n, faults[i])) {
			one_of_both_is_there(path);
			CHECK(n++ < N_MOST);
		}
		printf("# %d places\n", (int)n - 1);
		CHECK(n > 5);
	}
}

static void must_be_refused(int r, const struct err *err)
{
	CHECK_EQ(r, -EIO);
	CHECK_HAS(err->msg, "closed and opened again");
}

TEST(after_a_failed_sync_nothing_is_written_until_the_store_is_opened_again)
{
	const char *path = test_path("lost");
	unsigned refused = 0;
	uint64_t met;

	store_close(open_store(path, STORE_CREATE));
	for (uint64_t n = 1; n < N_MOST; n++) {
		CLEANUP(store_close_p) struct store *s = open_store(path, STORE_WRITE);
		struct gc_progress progress;
		struct err err = { 0 };
		int r;

		disk_fail_at(n, DISK_BROKEN, false);
		r = specimen_commit(s, TRIED, BATCH_DURABLE, &err);
		met = disk_calm();
		if (met == 0)
			break;
		if (r < 0 && specimen_commit(s, OTHER, BATCH_SAFE, &err) < 0) {
			refused++;
			must_be_refused(specimen_commit(s, OTHER, BATCH_SAFE, &err), &err);
			must_be_refused(gc_run(s, &progress, &err), &err);
			must_be_refused(store_checkpoint(s, &err), &err);
		}
		store_close(TAKE_PTR(s));

		s = open_store(path, STORE_WRITE);
		must_be_sound(s);
		if (specimen_find(s, OTHER, &err) == 0)
			CHECK_OK(specimen_commit(s, OTHER, BATCH_DURABLE, &err), &err);
		CHECK_OK(specimen_remove(s, OTHER, &err), &err);
		if (specimen_find(s, TRIED, &err) == 1)
			CHECK_OK(specimen_remove(s, TRIED, &err), &err);
		collect(s);
	}
	CHECK(refused >= 2); /* the sync of the chunks, and that of the names */
}

TEST(a_durable_commit_makes_earlier_ones_durable_even_if_it_has_nothing_new)
{
	CLEANUP(store_close_p) struct store *s = open_store(test_path("earlier"), STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *b = NULL;
	struct err err = { 0 };
	int r;

	CHECK_OK(specimen_commit(s, KEPT, BATCH_SAFE, &err), &err);
	CHECK_OK(batch_begin(s, &b, &err), &err);
	disk_fail_at(1, DISK_BROKEN, false);
	r = batch_commit(b, BATCH_DURABLE, &err);
	CHECK_EQ(disk_calm(), 1); /* there was something to sync, and it was asked for */
	CHECK(r < 0);
}

TEST_MAIN("ghost")
