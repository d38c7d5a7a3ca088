#include "engine/api/run.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "engine/find/engine-i.h"
#include "engine/find/run-record.h"
#include "tests/lib/stock.h"

static struct engine *open_engine(const char *name)
{
	const struct engine_options options = { .dir = test_dir(), .store = test_path(name) };
	struct engine *e = NULL;
	struct err err = { 0 };

	store_close(stock_open(options.store, STORE_CREATE));
	CHECK_OK(engine_open(&options, &e, &err), &err);
	return e;
}

/* One that has ended and said something; who has what this gives keeps it locked. */
static struct run_record record(struct engine *e, unsigned number, int64_t started)
{
	static char nothing[] = "";
	struct engine_run run = {
		.clone = nothing,
		.project = nothing,
		.cwd = nothing,
		.net = nothing,
		.started = started,
	};
	struct run_record held = RUN_RECORD_INIT;
	struct err err = { 0 };

	run_record_id(number, run.id);
	CHECK_OK(run_record_begin(engine_store_path(e), &run, &held, &err), &err);
	run_record_log(&held, 0, "said", 4);
	run.state = ENGINE_RUN_ENDED;
	CHECK_OK(run_record_end(&held, &run, &err), &err);
	return held;
}

static bool has(struct engine *e, unsigned number, const char *ending)
{
	char id[ENGINE_RUN_ID_SIZE], path[4096];

	run_record_id(number, id);
	snprintf(path, sizeof(path), "%s/" RUN_RECORD_DIR "/%s%s", engine_store_path(e), id,
		 ending);
	return access(path, F_OK) == 0;
}

static bool is_whole(struct engine *e, unsigned number)
{
	return has(e, number, ".json") && has(e, number, ".log");
}

static uint64_t prune(struct engine *e, bool dry_run)
{
	struct err err = { 0 };
	uint64_t n = 0;

	CHECK_OK(engine_runs_prune(e, dry_run, &n, &err), &err);
	return n;
}

TEST(a_record_that_somebody_holds_stays_however_old_it_is)
{
	CLEANUP(engine_close_p) struct engine *e = open_engine("old.store");
	CLEANUP(run_record_done) struct run_record held = record(e, 1, 1);
	struct run_record loose = record(e, 2, 1);

	run_record_done(&loose);
	CHECK_EQ(prune(e, true), 1);
	CHECK(is_whole(e, 1) && is_whole(e, 2));
	CHECK_EQ(prune(e, false), 1);
	CHECK(is_whole(e, 1));
	CHECK(!has(e, 2, ".json") && !has(e, 2, ".log"));
	run_record_done(&held);
	CHECK_EQ(prune(e, false), 1);
	CHECK(!has(e, 1, ".json") && !has(e, 1, ".log"));
}

TEST(a_record_that_somebody_holds_stays_however_many_came_after_it)
{
	CLEANUP(engine_close_p) struct engine *e = open_engine("many.store");
	const int64_t now = engine_now();
	CLEANUP(run_record_done) struct run_record held = record(e, 1, now - 2);
	struct run_record loose = record(e, 2, now - 1);

	run_record_done(&loose);
	for (unsigned i = 0; i < ENGINE_RUNS_KEPT; i++) {
		loose = record(e, 3 + i, now + i);
		run_record_done(&loose);
	}
	CHECK_EQ(prune(e, false), 1);
	CHECK(is_whole(e, 1));
	CHECK(!has(e, 2, ".json"));
	CHECK(is_whole(e, 3) && is_whole(e, 2 + ENGINE_RUNS_KEPT));
	run_record_done(&held);
	CHECK_EQ(prune(e, false), 1);
	CHECK(!has(e, 1, ".json"));
}

/* As if it had said so much; what it really takes on the disk does not matter here. */
static void enlarge_log(struct engine *e, unsigned number, uint64_t size)
{
	char id[ENGINE_RUN_ID_SIZE];
	AUTO_FREE char *path = NULL;

	run_record_id(number, id);
	path = run_record_path(engine_store_path(e), id, ".log");
	CHECK_EQ(truncate(path, (off_t)size), 0);
}

TEST(what_all_runs_said_is_bounded_and_the_last_stays)
{
	CLEANUP(engine_close_p) struct engine *e = open_engine("said.store");
	const int64_t now = engine_now();

	for (unsigned i = 0; i < 4; i++) {
		struct run_record loose = record(e, 1 + i, now + i);

		run_record_done(&loose);
		enlarge_log(e, 1 + i, ENGINE_RUNS_LOG_MAX / 2);
	}
	CHECK_EQ(prune(e, false), 2);
	CHECK(!has(e, 1, ".log") && !has(e, 2, ".json"));
	CHECK(is_whole(e, 3) && is_whole(e, 4));
	enlarge_log(e, 4, 2 * ENGINE_RUNS_LOG_MAX);
	CHECK_EQ(prune(e, false), 1);
	CHECK(!has(e, 3, ".json") && is_whole(e, 4));
}

/* One that ended, and did without that wall; as if nobody had read it for years. */
static void record_lacking(struct engine *e, unsigned number, const char *wall)
{
	static char nothing[] = "";
	static const struct timespec long_ago[] = { { .tv_sec = 1 }, { .tv_nsec = UTIME_OMIT } };
	struct engine_run run = { .clone = nothing,
				  .project = nothing,
				  .cwd = nothing,
				  .net = nothing,
				  .state = ENGINE_RUN_ENDED,
				  .missing = { .list = { { .wall = wall } }, .n = 1 } };
	CLEANUP(run_record_done) struct run_record held = RUN_RECORD_INIT;
	AUTO_FREE char *path = NULL;
	struct err err = { 0 };

	run_record_id(number, run.id);
	CHECK_OK(run_record_begin(engine_store_path(e), &run, &held, &err), &err);
	path = run_record_path(engine_store_path(e), run.id, ".json");
	CHECK_EQ(utimensat(AT_FDCWD, path, long_ago, 0), 0);
}

/* How many of the records have been read since; 0 also where the file system does not say. */
static unsigned count_read(struct engine *e, unsigned n)
{
	unsigned count = 0;

	for (unsigned i = 1; i <= n; i++) {
		char id[ENGINE_RUN_ID_SIZE];
		AUTO_FREE char *path = NULL;
		struct stat st;

		run_record_id(i, id);
		path = run_record_path(engine_store_path(e), id, ".json");
		CHECK_EQ(stat(path, &st), 0);
		count += st.st_atime != 1;
	}
	return count;
}

TEST(whether_a_wall_was_missing_before_is_known_from_one_record)
{
	CLEANUP(engine_close_p) struct engine *e = open_engine("lacked.store");
	char last[ENGINE_RUN_ID_SIZE];

	CHECK(!engine_runs_lacked(e, "memory", ""));
	record_lacking(e, 1, "landlock");
	run_record_id(1, last);
	CHECK(!engine_runs_lacked(e, "memory", ""));
	CHECK(!engine_runs_lacked(e, "landlock", last));
	CHECK(engine_runs_lacked(e, "landlock", ""));
	for (unsigned i = 1; i <= 9; i++) {
		run_record_id(i, last);
		run_record_remove(engine_store_path(e), last);
		record_lacking(e, i, "memory");
	}
	CHECK(engine_runs_lacked(e, "memory", last));
	CHECK(count_read(e, 9) <= 1);
}

TEST(after_a_run_the_records_are_tidied_if_they_are_many_or_it_said_much)
{
	CLEANUP(engine_close_p) struct engine *e = open_engine("tidy.store");
	const int64_t now = engine_now();
	unsigned n = 0;

	while (n < 2 * ENGINE_RUNS_KEPT) {
		struct run_record loose;

		n++;
		loose = record(e, n, now + n);
		run_record_done(&loose);
	}
	runs_tidy(e, 4);
	CHECK(is_whole(e, 1));
	runs_tidy(e, ENGINE_RUNS_LOG_MAX / 2);
	CHECK(!has(e, ENGINE_RUNS_KEPT, ".json") && is_whole(e, ENGINE_RUNS_KEPT + 1));
	while (n <= 3 * ENGINE_RUNS_KEPT) {
		struct run_record loose;

		n++;
		loose = record(e, n, now + n);
		run_record_done(&loose);
	}
	runs_tidy(e, 4);
	CHECK(!has(e, n - ENGINE_RUNS_KEPT, ".json"));
	CHECK(is_whole(e, n - ENGINE_RUNS_KEPT + 1) && is_whole(e, n));
}

TEST_MAIN("runs")
