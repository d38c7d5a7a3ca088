/*
 * The log of meta.db is longer than what is in it, if it is synced often: a sync after a commit
 * then waits for bytes only, and not for the length of a file.
 */
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/damage.h"
#include "tests/lib/stock.h"

#define COMMITS 8 /* small ones */

static int64_t log_length(const char *path)
{
	AUTO_FREE char *file = NULL;
	struct stat st;

	CHECK(asprintf(&file, "%s/meta.db-wal", path) > 0);
	CHECK_EQ(stat(file, &st), 0);
	return st.st_size;
}

static void commit_some(struct store *s, const char *text, bool harden)
{
	struct err err = { 0 };
	char name[32];

	for (int i = 0; i < COMMITS; i++) {
		snprintf(name, sizeof(name), "%s%d", text, i);
		stock_snapshot(s, name, name);
		if (harden)
			CHECK_OK(store_harden(s, &err), &err);
	}
}

TEST(a_log_that_is_synced_often_does_not_grow_with_each_commit)
{
	const char *path = test_path("ahead");
	CLEANUP(store_close_p) struct store *s = stock_open(path, STORE_CREATE);
	int64_t length;

	commit_some(s, "first", true);
	length = log_length(path);
	CHECK(length > (int64_t)store_log_bytes(s) + (256 << 10));
	commit_some(s, "second", true);
	CHECK_EQ(log_length(path), length);
}

TEST(a_log_that_nobody_syncs_has_no_more_than_was_committed)
{
	const char *path = test_path("lazy");
	CLEANUP(store_close_p) struct store *s = stock_open(path, STORE_CREATE);
	int64_t before;

	commit_some(s, "first", false);
	before = log_length(path);
	commit_some(s, "second", false);
	CHECK(log_length(path) > before);
	CHECK(log_length(path) < 1 << 20);
}

TEST(nothing_is_written_ahead_where_the_store_has_a_limit_that_is_near)
{
	const char *path = test_path("limit");
	CLEANUP(store_close_p) struct store *s = stock_open(path, STORE_CREATE);

	store_set_limit(s, 64 << 20);
	commit_some(s, "first", true);
	CHECK(log_length(path) < 1 << 20);
}

/* The zeros behind the last commit are its end, and the next process goes on from there. */
TEST(what_was_committed_before_the_zeros_is_there_after_a_crash)
{
	const char *path = test_path("crash");
	CLEANUP(store_close_p) struct store *s = NULL;
	char name[32];
	int status;
	pid_t pid;

	store_close(stock_open(path, STORE_CREATE));
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		commit_some(stock_open(path, STORE_WRITE), "s", true);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 0);
	CHECK(log_length(path) >= 1 << 20);

	s = stock_open(path, STORE_WRITE);
	for (int i = 0; i < COMMITS; i++) {
		snprintf(name, sizeof(name), "s%d", i);
		CHECK(stock_has_snapshot(s, name));
	}
	commit_some(s, "more", true);
	stock_check_clean(s);
}

TEST_MAIN("db-log")
