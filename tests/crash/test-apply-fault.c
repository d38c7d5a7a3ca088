/*
 * Every call by which apply changes or promises something, one after the other, fails, or is the
 * last one of its process, or finds that somebody edits the project just then.  Afterwards the
 * project must be exactly what it was or exactly what was wanted, and no edit may be lost.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/sys.h"
#include "tests/crash/apply-fault.h"
#include "tests/lib/grove.h"

/* --- one try ---------------------------------------------------------------------------- */

struct yard {
	struct grove g;
	struct object_id wanted, before;
	const char *outside; /* where a directory that is swapped for a symlink leads */
};

static void keep(struct grove *g, const char *name, const struct object_id *root)
{
	CLEANUP(batch_end_p) struct batch *b = stock_begin(g->s);
	struct err err = { 0 };

	stock_name(b, REF_SNAPSHOT, name, root, REF_REPLACE);
	CHECK_OK(batch_commit(b, BATCH_SAFE, &err), &err);
}

static struct yard yard_with(const char *name, int more)
{
	struct yard y = { .g = grove_new(name) };
	char path[32];

	grove_plant(&y.g, false);
	for (int i = 0; i < more; i++) {
		snprintf(path, sizeof(path), "%s%02d", i % 3 ? "old/more" : "more", i);
		grove_text(&y.g, path, path);
	}
	y.wanted = grove_capture(&y.g);
	keep(&y.g, "wanted", &y.wanted);
	return y;
}

static struct yard yard_new(const char *name)
{
	return yard_with(name, 0);
}

/* More than are staged and synced one by one. */
static struct yard yard_of_many(const char *name)
{
	return yard_with(name, 72);
}

static void yard_done(struct yard *y)
{
	fault.armed = false;
	fault.no_exchange = fault.name_by_name = false;
	fault.back = 0;
	grove_done(&y->g);
}

static void plant(struct yard *y)
{
	grove_plant(&y->g, true);
	y->before = grove_capture(&y->g); /* which keeps the last four */
}

static void arm(unsigned long at)
{
	fault.n = 0;
	fault.at = at;
	fault.armed = true;
}

static int try_apply(struct yard *y, struct store *s, struct apply_report *report, struct err *err)
{
	const struct plan_options options = { .as_of = y->g.as_of };
	CLEANUP(plan_done) struct plan p = { 0 };
	unsigned long at = fault.at;
	int r;

	CHECK_OK(plan_make(s, &y->before, &y->wanted, &options, &p, err), err);
	arm(at);
	r = apply_plan(s, y->g.path, &p, NULL, report, err);
	fault.armed = false;
	return r;
}

enum end { BEFORE, WANTED, EITHER };

/* Once it is recovered from, the project must be at that end, and nothing else be left of it. */
static void check_recovered(struct yard *y, unsigned long at, enum end end)
{
	CLEANUP(apply_report_done) struct apply_report report = { 0 };
	struct err err = { 0 };
	bool ok;

	CHECK(apply_recover(y->g.s, y->g.path, NULL, &report, &err) >= 0);
	for (size_t i = 0; i < report.n; i++)
		printf("# '%s' %s\n", report.notes[i].path, report.notes[i].why);
	CHECK_EQ(report.n, 0);
	CHECK(grove_is_tidy(&y->g));
	ok = (end != WANTED && grove_is(&y->g, &y->before)) ||
	     (end != BEFORE && grove_is(&y->g, &y->wanted));
	if (!ok) {
		printf("# at call %lu\n", at);
		grove_explain(&y->g, end == WANTED ? &y->wanted : &y->before);
		CHECK(false);
	}
}

static bool fail_at(struct yard *y, unsigned long at, int code)
{
	CLEANUP(apply_report_done) struct apply_report report = { 0 };
	struct err err = { 0 };
	bool reached;
	int r;

	plant(y);
	fault.code = code;
	fault.at = at;
	r = try_apply(y, y->g.s, &report, &err);
	reached = fault.n >= at;
	if (r < 0)
		CHECK(err.code == r && err.msg[0] != '\0');
	check_recovered(y, at, r < 0 ? BEFORE : WANTED);
	return reached;
}

TEST(whichever_call_fails_the_project_is_as_it_was_or_as_wanted)
{
	CLEANUP(yard_done) struct yard y = yard_new("fail");
	unsigned long at = 1;

	while (fail_at(&y, at, at % 2 ? EIO : ENOSPC))
		at += test_stride();
	printf("# %lu calls\n", at);
	CHECK(at > 100);
}

/* All is done and cannot be decided, so it is gone back; and one call of that fails. */
static bool fail_back(struct yard *y, unsigned long nth)
{
	CLEANUP(apply_report_done) struct apply_report report = { 0 };
	struct err err = { 0 };

	plant(y);
	fault.code = EIO;
	fault.at = 0;
	fault.back = nth;
	CHECK_EQ(try_apply(y, y->g.s, &report, &err), -EIO);
	CHECK_HAS(err.msg, "deciding failed");
	CHECK(!report.astray);
	CHECK_EQ(report.n, 0);
	check_recovered(y, nth, BEFORE);
	return fault.n >= fault.at;
}

TEST(whichever_call_of_going_back_fails_the_next_try_gets_there)
{
	for (int apart = 0; apart < 2; apart++) {
		CLEANUP(yard_done) struct yard y = yard_new(apart ? "back-apart" : "back");
		unsigned long nth = 1;

		fault.no_exchange = apart != 0;
		while (fail_back(&y, nth))
			nth += test_stride();
		printf("# %lu calls\n", nth);
		CHECK(nth > 50);
	}
}

static bool kill_at(struct yard *y, unsigned long at)
{
	int status;
	pid_t pid;

	plant(y);
	store_close(y->g.s);
	y->g.s = NULL;
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		struct store *s = stock_open(y->g.store_path, STORE_READ);
		struct apply_report report = { 0 };
		struct err err = { 0 };

		fault.die = true;
		fault.at = at;
		_exit(try_apply(y, s, &report, &err) < 0 ? 1 : 0);
	}
	CHECK(pid > 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	y->g.s = stock_open(y->g.store_path, STORE_WRITE);
	check_recovered(y, at, EITHER);
	return WEXITSTATUS(status) == KILLED;
}

TEST(wherever_it_is_killed_recovery_finishes_it_or_takes_it_back)
{
	CLEANUP(yard_done) struct yard y = yard_new("kill");
	unsigned long at = 1;

	while (kill_at(&y, at))
		at += test_stride();
	CHECK(at > 100);
}

TEST(without_exchange_of_names_a_kill_leaves_nothing_half_done)
{
	CLEANUP(yard_done) struct yard y = yard_new("apart");
	unsigned long at = 1;

	fault.no_exchange = true;
	while (kill_at(&y, at))
		at += test_stride();
	CHECK(at > 100);
}

TEST(so_it_is_with_many_files)
{
	CLEANUP(yard_done) struct yard y = yard_of_many("many");
	unsigned long fails = 1, dies = 1;

	while (fail_at(&y, fails, fails % 2 ? EIO : ENOSPC))
		fails += 5 * test_stride();
	fault.code = 0;
	while (kill_at(&y, dies))
		dies += 5 * test_stride();
	printf("# %lu and %lu calls\n", fails, dies);
	CHECK(fails > 300 && dies > 300);
}

/* Killed, and the one that recovers is killed too. */
TEST(recovery_that_is_killed_is_recovered_from)
{
	CLEANUP(yard_done) struct yard y = yard_new("twice");
	struct test_rng rng = { .s = test_seed() };

	for (int i = 0; i < (getenv("SNAP_TESTS_LONG") ? 60 : 20); i++) {
		int status;
		pid_t pid;

		plant(&y);
		store_close(y.g.s);
		y.g.s = NULL;
		for (int life = 0; life < 3; life++) {
			const unsigned long at = 60 + test_rand(&rng) % 120;

			fflush(stdout);
			pid = fork();
			if (pid == 0) {
				struct store *s = stock_open(y.g.store_path, STORE_READ);
				struct apply_report report = { 0 };
				struct err err = { 0 };

				fault.die = true;
				fault.at = life == 0 ? at : at % 40;
				if (life == 0)
					_exit(try_apply(&y, s, &report, &err) < 0);
				arm(fault.at);
				_exit(apply_recover(s, NULL, NULL, &report, &err) < 0);
			}
			CHECK_EQ(waitpid(pid, &status, 0), pid);
		}
		y.g.s = stock_open(y.g.store_path, STORE_WRITE);
		check_recovered(&y, (unsigned long)i, EITHER);
	}
}

/* --- somebody else ---------------------------------------------------------------------- */

/* An edit as an editor does it: a new file over the old one; or as a shell does it: in place. */
struct edit {
	struct yard *y;
	const char *path;
	bool in_place;
	bool dir; /* it is to be an empty directory, in "old" */
	bool done;
};

static void edit(void *ctx)
{
	struct edit *e = ctx;
	struct grove *g = &e->y->g;
	struct stat st;

	e->done = fstatat(g->fd, e->path, &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (!e->done)
		return;
	grove_text(g, e->in_place ? e->path : ".edit", "my edit");
	if (!e->in_place)
		CHECK_EQ(__real_renameat(g->fd, ".edit", g->fd, e->path), 0);
}

/* At its path, or kept in a stage that was left and told. */
static bool edit_is_there(struct yard *y, const char *path)
{
	AUTO_FREE char *text = grove_read(&y->g, path);

	return text && strcmp(text, "my edit") == 0;
}

/* Makes a file or a directory where one of ours is to land. */
static void make(void *ctx)
{
	struct edit *e = ctx;
	AUTO_CLOSE int fd = -1;

	if (e->dir) {
		e->done = __real_mkdirat(e->y->g.fd, "old", 0700) == 0 &&
			  __real_mkdirat(e->y->g.fd, e->path, 0700) == 0;
		return;
	}
	fd = openat(e->y->g.fd, e->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	e->done = fd >= 0;
	if (e->done)
		CHECK_EQ(write(fd, "my edit", 7), 7);
}

static bool is_kept(const struct edit *e)
{
	return e->dir ? grove_has(&e->y->g, e->path) : edit_is_there(e->y, e->path);
}

static bool edit_at(struct edit *e, unsigned long at, void (*hook)(void *))
{
	CLEANUP(apply_report_done) struct apply_report report = { 0 };
	struct yard *y = e->y;
	struct err err = { 0 };
	bool reached;
	int r;

	plant(y);
	e->done = false;
	fault.hook = hook;
	fault.ctx = e;
	fault.at = at;
	r = try_apply(y, y->g.s, &report, &err);
	reached = fault.n >= at;
	fault.hook = NULL;
	CHECK(r == 0 || r == -ESTALE);
	if (r < 0)
		CHECK(report.n > 0);
	/* Edited before it landed: a conflict, and the edit stands.  Afterwards: it stands on ours. */
	if (e->done && !is_kept(e)) {
		printf("# '%s' edited at call %lu, result %d (%s)\n", e->path, at, r, err.msg);
		CHECK(false);
	}
	return reached;
}

static void edit_everywhere(const char *name, const char *path, bool in_place)
{
	CLEANUP(yard_done) struct yard y = yard_new(name);
	struct edit e = { .y = &y, .path = path, .in_place = in_place };
	unsigned long at = 1;

	while (edit_at(&e, at, edit))
		at += test_stride();
	CHECK(at > 100);
}

TEST(a_file_edited_at_any_moment_keeps_its_edit)
{
	edit_everywhere("edit-new", "dir/sub/deep", false);
	edit_everywhere("edit-here", "dir/sub/deep", true);
}

TEST(a_file_to_be_removed_that_is_edited_at_any_moment_keeps_its_edit)
{
	edit_everywhere("edit-gone", "new/file", true);
	edit_everywhere("edit-gone-new", "new/file", false);
}

TEST(a_file_whose_mode_is_to_change_keeps_an_edit)
{
	edit_everywhere("edit-mode", "mode", true);
}

TEST(a_file_made_at_any_moment_where_one_of_many_is_to_land_stays)
{
	CLEANUP(yard_done) struct yard y = yard_of_many("made");
	struct edit e = { .y = &y, .path = "more30" };
	unsigned long at = 1;

	while (edit_at(&e, at, make))
		at += 5 * test_stride();
	CHECK(at > 300);
}

TEST(empty_directories_made_at_any_moment_where_ours_are_to_be_stay)
{
	CLEANUP(yard_done) struct yard y = yard_new("made-dir");
	struct edit e = { .y = &y, .path = "old/empty", .dir = true };
	unsigned long at = 1;

	while (edit_at(&e, at, make))
		at += test_stride();
	CHECK(at > 100);
}

/* A program that has the file open writes to it, wherever it is by then. */
static void append(void *ctx)
{
	CHECK_EQ(write(*(int *)ctx, "more", 4), 4);
}

static bool append_at(struct yard *y, unsigned long at, const char *path)
{
	CLEANUP(apply_report_done) struct apply_report report = { 0 };
	AUTO_FREE char *text = NULL;
	AUTO_CLOSE int fd = -1;
	struct err err = { 0 };
	bool reached;
	int r;

	plant(y);
	fd = openat(y->g.fd, path, O_WRONLY | O_APPEND | O_CLOEXEC);
	CHECK(fd >= 0);
	fault.hook = append;
	fault.ctx = &fd;
	fault.at = at;
	decided_at = 0;
	r = try_apply(y, y->g.s, &report, &err);
	reached = fault.n >= at;
	fault.hook = NULL;
	text = grove_read(&y->g, path);
	/* The last look takes a call or two for each file; after it, nobody can know. */
	if (reached && (decided_at == 0 || at + 40 < decided_at)) {
		CHECK_EQ(r, -ESTALE);
		CHECK_HAS(text, "more");
	}
	return reached;
}

TEST(what_is_written_to_a_displaced_file_that_is_open_is_not_lost)
{
	CLEANUP(yard_done) struct yard y = yard_new("append");
	unsigned long at = 1;

	while (append_at(&y, at, "dir/sub/deep"))
		at += test_stride();
	printf("# %lu calls\n", at);
	CHECK(at > 100);
}

/* A directory is swapped for a symlink to one outside, in which all names are free. */
static void swap(void *ctx)
{
	struct yard *y = ctx;

	if (__real_renameat(y->g.fd, "dir", y->g.fd, "../moved") == 0)
		CHECK_EQ(__real_symlinkat(y->outside, y->g.fd, "dir"), 0);
}

static bool swap_at(struct yard *y, unsigned long at, const struct object_id *outside,
		    struct grove *out)
{
	CLEANUP(apply_report_done) struct apply_report report = { 0 };
	struct err err = { 0 };
	char path[512];
	bool reached;

	plant(y);
	fault.hook = swap;
	fault.ctx = y;
	fault.at = at;
	IGNORE_RESULT(try_apply(y, y->g.s, &report, &err), "what it says is not asked here");
	reached = fault.n >= at;
	fault.hook = NULL;
	CHECK(grove_is(out, outside));
	snprintf(path, sizeof(path), "rm -rf '%s/../moved' '%s/'.snapcow-stage-* '%s'/journal/*",
		 y->g.path, y->g.path, y->g.store_path);
	CHECK_EQ(system(path), 0);
	return reached;
}

static void swap_everywhere(const char *name, const char *outside_name, bool name_by_name)
{
	CLEANUP(yard_done) struct yard y = yard_new(name);
	CLEANUP(grove_done) struct grove out = grove_new(outside_name);
	struct object_id outside;
	unsigned long at = 1;

	CHECK_EQ(mkdirat(out.fd, "sub", 0755), 0);
	grove_text(&out, "sub/other", "not yours");
	outside = grove_capture(&out);
	keep(&out, "outside", &outside);
	y.outside = out.path;
	fault.name_by_name = name_by_name;
	while (swap_at(&y, at, &outside, &out))
		at += test_stride();
	CHECK(at > 100);
}

TEST(a_symlink_put_in_place_of_a_directory_leads_nowhere)
{
	swap_everywhere("swap", "outside", false);
}

TEST(nor_does_it_where_directories_are_opened_name_by_name)
{
	swap_everywhere("swap-names", "outside-names", true);
}

TEST_MAIN("apply-fault")
