/*
 * A repair whose disk fails, or that is killed, at every call: each damaged row is as it was or
 * repaired, nothing else has changed, and the next repair ends what is left.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "cowfs/store/upkeep/repair.h"
#include "tests/crash/disk.h"
#include "tests/lib/damage.h"
#include "tests/lib/stock.h"

#define N_MOST 200 /* no repair asks so much of the disk */

/* stock_fill_small() with a damaged chunk, a damaged tree, and a recipe whose checksum is wrong. */
static void make_damaged(const char *path)
{
	struct store *s = stock_open(path, STORE_CREATE);
	AUTO_FREE uint8_t *block = stock_block(1);
	struct object_id chunk, root;

	stock_fill_small(s);
	chunk = object_id_of(store_key(s), OBJECT_CHUNK, block, CHUNK_SIZE_MAX);
	root = stock_root(s, "s");
	store_close(s);
	damage_object(path, OBJECT_CHUNK, &chunk);
	damage_object(path, OBJECT_TREE, &root);
	damage_sql(path, "meta.db", "UPDATE object SET sum = sum + 1 WHERE kind = %d",
		   OBJECT_RECIPE);
}

static int repair(struct store *s, struct repair_report *ret, struct err *err)
{
	CLEANUP(check_report_done) struct check_report found = stock_check(s);

	return repair_store(s, &found, ret, err);
}

/* Did call number `n` meet the fault? */
static bool meets(const char *path, uint64_t n, enum disk_fault fault)
{
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (pid == 0) {
		struct repair_report done;
		struct err err = { 0 };
		struct store *s;
		uint64_t met;
		int r;

		disk_install();
		s = stock_open(path, STORE_WRITE);
		disk_fail_at(n, fault, false);
		r = repair(s, &done, &err);
		met = disk_calm();
		_exit(r < 0 && !err.msg[0] ? 1 : met > 0 ? 10 : 11);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status)) {
		CHECK_EQ(WTERMSIG(status), SIGKILL);
		return true;
	}
	CHECK(WEXITSTATUS(status) == 10 || WEXITSTATUS(status) == 11);
	return WEXITSTATUS(status) == 10;
}

static size_t count_aside(const char *path)
{
	char dir[4096];
	struct dirent *e;
	size_t n = 0;
	DIR *d;

	snprintf(dir, sizeof(dir), "%s/" REPAIR_DIR, path);
	d = opendir(dir);
	CHECK(d);
	while ((e = readdir(d)))
		n += strncmp(e->d_name, "chunk-", 6) == 0 || strncmp(e->d_name, "tree-", 5) == 0;
	closedir(d);
	return n;
}

static void drop_refs(struct store *s)
{
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	struct err err = { 0 };

	CHECK_OK(ref_delete(b, REF_SNAPSHOT, "s", 1, &err), &err);
	CHECK_OK(ref_delete(b, REF_TAG, "t", 1, &err), &err);
	stock_commit(b);
}

/* Everything that is there afterwards is right, and nothing that was right is gone. */
static void inspect(const char *path, const struct store_sizes *before)
{
	struct store *s = stock_open(path, STORE_WRITE);
	struct store_sizes sizes = stock_sizes(s);
	const uint64_t gone = before->chunks + before->objects - sizes.chunks - sizes.objects;
	struct repair_report done;
	struct err err = { 0 };

	CHECK(gone <= 2);
	CHECK(gone == 0 || count_aside(path) >= gone);
	CHECK_OK(repair(s, &done, &err), &err);
	CHECK_EQ(gone + done.set_aside, 2);
	CHECK(done.mended <= 1 && done.left == 0);
	CHECK_EQ(count_aside(path), 2);

	/* Putting the same bytes again heals it. */
	drop_refs(s);
	stock_fill_small(s);
	stock_check_clean(s);
	store_close(s);
}

static void fails_everywhere(const char *name, enum disk_fault fault)
{
	uint64_t n = 1;
	bool met;

	do {
		char place[64];
		struct store_sizes before;
		const char *path;
		struct store *s;

		snprintf(place, sizeof(place), "%s-%llu", name, (unsigned long long)n);
		path = test_path(place);
		make_damaged(path);
		s = stock_open(path, STORE_READ);
		before = stock_sizes(s);
		store_close(s);
		met = meets(path, n, fault);
		inspect(path, &before);
	} while (met && n++ < N_MOST);
	printf("# %llu places\n", (unsigned long long)n - 1);
	CHECK(n > 5 && n < N_MOST);
}

TEST(a_repair_that_is_killed_at_any_call_has_done_all_or_nothing_of_a_row)
{
	fails_everywhere("kill", DISK_KILL);
	fails_everywhere("kill-half", DISK_KILL_HALF);
}

TEST(a_repair_whose_disk_fails_at_any_call_has_done_all_or_nothing_of_a_row)
{
	fails_everywhere("full", DISK_FULL);
	fails_everywhere("broken", DISK_BROKEN);
}

TEST_MAIN("repair-fault")
