/* What an act has replaced leaves the project at once, and the disk when nobody waits. */
#include "snapshot/apply/apply.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys.h"
#include "snapshot/apply/journal.h"
#include "tests/unit/snapshot/apply/apply-fixture.h"

struct seen {
	char name[64]; /* of the last one that is no directory's own */
	size_t n;
};

static int see(const char *name, unsigned char type, void *ctx)
{
	struct seen *s = ctx;

	(void)type;
	snprintf(s->name, sizeof(s->name), "%s", name);
	s->n++;
	return 0;
}

/* Names in the store's trash, or in a stage there. */
static struct seen look_into_trash(const struct grove *g, const char *stage)
{
	AUTO_CLOSE int store = open(g->store_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1;
	struct seen s = { 0 };
	char path[256];

	snprintf(path, sizeof(path), "trash/%s", stage);
	fd = openat(store, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(fd >= 0);
	CHECK_EQ(sys_each_name(fd, see, &s), 0);
	return s;
}

TEST(what_was_replaced_leaves_at_once_and_is_removed_when_nobody_waits)
{
	CLEANUP(grove_done) struct grove g = grove_new("trash");
	CLEANUP(plan_done) struct plan plan = plan_many(&g);
	CLEANUP(apply_report_done) struct apply_report report = { 0 };
	const struct object_id wanted = plan.to;
	struct err err = { 0 };
	struct seen stages;
	char path[512];

	CHECK_OK(apply_plan(g.s, g.path, &plan, NULL, &report, &err), &err);
	CHECK(report.unswept && report.n == 0);
	CHECK(grove_is_tidy(&g) && grove_is(&g, &wanted));
	stages = look_into_trash(&g, "");
	CHECK_EQ(stages.n, 1);
	CHECK_EQ(look_into_trash(&g, stages.name).n, MANY);

	/* What nobody knows there stays, and nothing else. */
	snprintf(path, sizeof(path), "%s/trash/%s/not-ours", g.store_path, stages.name);
	CHECK_EQ(close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)), 0);
	apply_sweep(g.s, NULL, NULL);
	CHECK_EQ(look_into_trash(&g, stages.name).n, 1);
	CHECK_EQ(unlink(path), 0);
	apply_sweep(g.s, NULL, NULL);
	CHECK_EQ(look_into_trash(&g, "").n, 0);
}

static bool is_over(void *ctx)
{
	unsigned *more = ctx;

	return (*more)-- == 0;
}

TEST(a_sweep_that_ends_half_way_leaves_the_rest_to_the_next_and_takes_nothing_else)
{
	CLEANUP(grove_done) struct grove g = grove_new("half");
	CLEANUP(plan_done) struct plan plan = plan_many(&g);
	CLEANUP(apply_report_done) struct apply_report report = { 0 };
	const struct object_id wanted = plan.to;
	unsigned more = MANY / 2;
	struct err err = { 0 };
	struct seen stages;
	char theirs[512], stubborn[512];

	CHECK_OK(apply_plan(g.s, g.path, &plan, NULL, &report, &err), &err);
	stages = look_into_trash(&g, "");
	apply_sweep(g.s, is_over, &more);
	CHECK_EQ(look_into_trash(&g, stages.name).n, MANY - MANY / 2);

	/* One that cannot be removed is in nobody's way; nor is what is no stage. */
	snprintf(stubborn, sizeof(stubborn), "%s/trash/%s/n0", g.store_path, stages.name);
	IGNORE_RESULT(unlink(stubborn), "it may be gone");
	CHECK_EQ(mkdir(stubborn, 0700), 0);
	snprintf(theirs, sizeof(theirs), "%s/trash/theirs", g.store_path);
	CHECK_EQ(mkdir(theirs, 0700), 0);
	snprintf(theirs, sizeof(theirs), "%s/trash/theirs/n7", g.store_path);
	CHECK_EQ(close(open(theirs, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)), 0);
	apply_sweep(g.s, NULL, NULL);
	CHECK_EQ(look_into_trash(&g, stages.name).n, 1);
	CHECK_EQ(rmdir(stubborn), 0);
	apply_sweep(g.s, NULL, NULL);
	CHECK_STR(look_into_trash(&g, "").name, "theirs");
	CHECK_EQ(look_into_trash(&g, "").n, 1);
	CHECK_EQ(access(theirs, F_OK), 0);
	CHECK(grove_is(&g, &wanted));
}

TEST(a_file_that_keeps_another_name_loses_the_replaced_one_at_once)
{
	CLEANUP(grove_done) struct grove g = grove_new("names");
	CLEANUP(plan_done) struct plan plan = plan_many(&g);
	CLEANUP(apply_report_done) struct apply_report report = { 0 };
	struct err err = { 0 };
	struct stat before, after;
	char path[512];

	/* What it was captured as says one name; that there is one outside is nobody's business. */
	snprintf(path, sizeof(path), "%s-outside", g.path);
	CHECK_EQ(linkat(g.fd, "f011", AT_FDCWD, path, 0), 0);
	plan_done(&plan);
	plan = plan_again(&g);
	CHECK_OK(apply_plan(g.s, g.path, &plan, NULL, &report, &err), &err);
	CHECK(report.unswept);
	CHECK_EQ(stat(path, &before), 0);
	CHECK_EQ(before.st_nlink, 1);
	apply_sweep(g.s, NULL, NULL);
	CHECK_EQ(stat(path, &after), 0);
	CHECK(after.st_ctim.tv_sec == before.st_ctim.tv_sec &&
	      after.st_ctim.tv_nsec == before.st_ctim.tv_nsec);
	CHECK_EQ(unlink(path), 0);
}

/* Somebody who had a file open that was displaced, and writes to it when all is done. */
static int write_late(const char *path, const struct plan *plan, void *ctx, struct err *err)
{
	struct grove *g = ctx;
	char slot[JOURNAL_STAGE_SIZE + 8];

	(void)path;
	(void)plan;
	(void)err;
	in_stage(g, "n7", slot, sizeof(slot));
	grove_text(g, slot, "the last word");
	return 0;
}

TEST(what_is_written_to_a_displaced_file_in_the_last_moment_stays_and_is_told)
{
	CLEANUP(grove_done) struct grove g = grove_new("late");
	CLEANUP(plan_done) struct plan plan = plan_many(&g);
	CLEANUP(apply_report_done) struct apply_report report = { 0 };
	const struct apply_options options = { .landed = write_late, .landed_ctx = &g };
	struct err err = { 0 };
	char slot[512];

	CHECK_OK(apply_plan(g.s, g.path, &plan, &options, &report, &err), &err);
	CHECK(!report.unswept);
	CHECK_EQ(report.n, 1);
	CHECK_HAS(report.notes[0].why, "somebody changed meanwhile");
	snprintf(slot, sizeof(slot), "%s/n7", report.notes[0].path);
	CHECK_EQ(faccessat(g.fd, slot, F_OK, 0), 0);
}

/* Somebody puts a file of theirs into the stage. */
static int put_foreign(const char *path, const struct plan *plan, void *ctx, struct err *err)
{
	struct grove *g = ctx;
	char file[JOURNAL_STAGE_SIZE + 8];

	(void)path;
	(void)plan;
	(void)err;
	in_stage(g, "n200", file, sizeof(file)); /* no step has that number */
	grove_text(g, file, "theirs");
	return 0;
}

TEST(a_stage_with_something_foreign_in_it_stays_and_is_told)
{
	CLEANUP(grove_done) struct grove g = grove_new("foreign");
	CLEANUP(plan_done) struct plan plan = plan_many(&g);
	CLEANUP(apply_report_done) struct apply_report report = { 0 };
	const struct apply_options options = { .landed = put_foreign, .landed_ctx = &g };
	struct err err = { 0 };
	struct seen left = { 0 };

	CHECK_OK(apply_plan(g.s, g.path, &plan, &options, &report, &err), &err);
	CHECK(!report.unswept);
	CHECK_EQ(report.n, 1);
	{
		AUTO_CLOSE int fd =
		    openat(g.fd, report.notes[0].path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		CHECK_EQ(sys_each_name(fd, see, &left), 0);
	}
	CHECK_EQ(left.n, 1);
	CHECK_STR(left.name, "n200");
}

/* Another directory has the stage's name when it is to go. */
static int swap_stage(const char *path, const struct plan *plan, void *ctx, struct err *err)
{
	struct grove *g = ctx;
	char stage[JOURNAL_STAGE_SIZE] = "", file[sizeof(stage) + 8];

	(void)path;
	(void)plan;
	(void)err;
	CHECK_EQ(sys_each_name(g->fd, find_stage, stage), 0);
	CHECK_EQ(renameat(g->fd, stage, g->fd, "elsewhere"), 0);
	CHECK_EQ(mkdirat(g->fd, stage, 0700), 0);
	snprintf(file, sizeof(file), "%s/n7", stage);
	grove_text(g, file, "not yours");
	return 0;
}

TEST(another_directory_that_bears_the_stages_name_is_not_thrown_away)
{
	CLEANUP(grove_done) struct grove g = grove_new("swapped");
	CLEANUP(plan_done) struct plan plan = plan_many(&g);
	CLEANUP(apply_report_done) struct apply_report report = { 0 };
	const struct apply_options options = { .landed = swap_stage, .landed_ctx = &g };
	struct err err = { 0 };
	char file[512];

	CHECK_OK(apply_plan(g.s, g.path, &plan, &options, &report, &err), &err);
	CHECK(!report.unswept);
	CHECK_EQ(report.n, 1);
	snprintf(file, sizeof(file), "%s/n7", report.notes[0].path);
	CHECK_EQ(faccessat(g.fd, file, F_OK, 0), 0);
	CHECK_EQ(look_into_trash(&g, "").n, 0);
}

/* What was taken into the trash finds no way back (--wrap). */
static bool no_return;

int __real_sys_rename_new(int from_fd, const char *from, int to_fd, const char *to);
int __wrap_sys_rename_new(int from_fd, const char *from, int to_fd, const char *to);

int __wrap_sys_rename_new(int from_fd, const char *from, int to_fd, const char *to)
{
	if (no_return && from_fd != to_fd && strncmp(from, "taken-", 6) == 0)
		return -EEXIST;
	return __real_sys_rename_new(from_fd, from, to_fd, to);
}

TEST(one_that_cannot_be_put_back_is_told_and_no_sweep_takes_it)
{
	CLEANUP(grove_done) struct grove g = grove_new("no-return");
	CLEANUP(plan_done) struct plan plan = plan_many(&g);
	CLEANUP(apply_report_done) struct apply_report report = { 0 };
	const struct apply_options options = { .landed = swap_stage, .landed_ctx = &g };
	struct err err = { 0 };
	struct seen taken;

	no_return = true;
	CHECK_OK(apply_plan(g.s, g.path, &plan, &options, &report, &err), &err);
	no_return = false;
	CHECK(!report.unswept);
	CHECK_EQ(report.n, 1);
	CHECK_HAS(report.notes[0].why, "is in the store's 'trash' now");
	taken = look_into_trash(&g, "");
	CHECK_EQ(taken.n, 1);
	apply_sweep(g.s, NULL, NULL);
	CHECK_STR(look_into_trash(&g, taken.name).name, "n7");
}

TEST_MAIN("apply-trash")
