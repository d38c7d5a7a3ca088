#include "snapshot/apply/apply.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/sys.h"
#include "snapshot/apply/journal.h"
#include "tests/lib/damage.h"
#include "tests/unit/snapshot/apply/apply-fixture.h"

#define SEEDS 200

static void apply(struct grove *g, const struct object_id *wanted)
{
	const struct object_id now = grove_capture(g);
	CLEANUP(plan_done) struct plan p = grove_plan(g, &now, wanted);
	CLEANUP(apply_report_done) struct apply_report report = { 0 };
	struct err err = { 0 };

	CHECK_OK(apply_plan(g->s, g->path, &p, NULL, &report, &err), &err);
	CHECK_EQ(report.n, 0);
	CHECK(grove_is_tidy(g));
}

TEST(one_of_every_kind_becomes_what_it_was_and_back_again)
{
	CLEANUP(grove_done) struct grove g = grove_new("kinds");
	struct object_id one, two;

	grove_plant(&g, false);
	one = grove_capture(&g);
	keep(&g, "one", &one);
	grove_plant(&g, true);
	two = grove_capture(&g);
	keep(&g, "two", &two);

	apply(&g, &one);
	CHECK(grove_is(&g, &one));
	apply(&g, &two);
	CHECK(grove_is(&g, &two));
	apply(&g, &one);
	CHECK(grove_is(&g, &one));
}

/* Somebody who writes to two files in the middle of the act. */
struct meddler {
	struct grove *grove;
	const char *landed, *next; /* the second is a conflict, the first is ours by then */
};

static void meddle(uint64_t done, uint64_t total, void *ctx)
{
	const struct meddler *m = ctx;

	if (done != total)
		return;
	grove_text(m->grove, m->landed, "written into what we made");
	grove_text(m->grove, m->next, "edited");
}

TEST(that_something_could_not_be_brought_back_is_told)
{
	for (int ours = 0; ours < 2; ours++) {
		CLEANUP(grove_done) struct grove g = grove_new(ours ? "astray" : "intact");
		CLEANUP(apply_report_done) struct apply_report report = { 0 };
		CLEANUP(plan_done) struct plan p = { 0 };
		struct meddler m = { &g, ours ? "a" : "z", "z" };
		struct apply_options options = { .progress = meddle, .progress_ctx = &m };
		struct object_id one, two;
		struct err err = { 0 };

		grove_text(&g, "a", "old");
		grove_text(&g, "z", "old");
		one = grove_capture(&g);
		keep(&g, "one", &one);
		grove_text(&g, "a", "what no one has but us");
		grove_text(&g, "z", "newer");
		two = grove_capture(&g);
		keep(&g, "two", &two);
		p = grove_plan(&g, &two, &one);
		CHECK_EQ(apply_plan(g.s, g.path, &p, &options, &report, &err), -ESTALE);
		CHECK(!report.unfinished);
		CHECK_EQ(report.astray, ours != 0);
	}
}

/* Names cannot change places any more (--wrap). */
static bool stuck;

int __real_sys_exchange(int a_fd, const char *a, int b_fd, const char *b);
int __wrap_sys_exchange(int a_fd, const char *a, int b_fd, const char *b);

int __wrap_sys_exchange(int a_fd, const char *a, int b_fd, const char *b)
{
	return stuck ? -EIO : __real_sys_exchange(a_fd, a, b_fd, b);
}

/* Before the last file: it is a conflict, and those before it cannot be taken back. */
static void jam(uint64_t done, uint64_t total, void *ctx)
{
	if (done != total)
		return;
	grove_text(ctx, "z", "edited");
	stuck = true;
}

static void holds(struct grove *g, const char *path, const char *text)
{
	AUTO_FREE char *have = grove_read(g, path);

	CHECK_STR(have, text);
}

TEST(what_cannot_be_taken_back_is_told_and_loses_nothing_until_it_can)
{
	CLEANUP(grove_done) struct grove g = grove_new("stuck");
	CLEANUP(apply_report_done) struct apply_report report = { 0 }, again = { 0 };
	CLEANUP(plan_done) struct plan p = { 0 };
	const struct apply_options options = { .progress = jam, .progress_ctx = &g };
	struct object_id one, two;
	struct err err = { 0 };
	char slot[JOURNAL_STAGE_SIZE + 8];

	grove_text(&g, "a", "new");
	grove_text(&g, "z", "new");
	one = grove_capture(&g);
	keep(&g, "one", &one);
	grove_text(&g, "a", "was there");
	grove_text(&g, "z", "was there, too");
	two = grove_capture(&g);
	keep(&g, "two", &two);
	p = grove_plan(&g, &two, &one);
	CHECK_EQ(apply_plan(g.s, g.path, &p, &options, &report, &err), -EIO);
	CHECK(report.unfinished && !report.astray);
	CHECK_HAS(err.msg, "'z' changed meanwhile; taking it back failed, and the next command");
	CHECK_HAS(err.msg, "taking 'a' back");
	in_stage(&g, "n0", slot, sizeof(slot));
	holds(&g, "a", "new");
	holds(&g, slot, "was there");

	CHECK_EQ(apply_recover(g.s, g.path, NULL, &again, &err), -EIO);
	CHECK_HAS(err.msg, "was left half changed, and journal");
	holds(&g, "a", "new");
	holds(&g, slot, "was there");

	stuck = false;
	CHECK_EQ(apply_recover(g.s, g.path, NULL, &again, &err), 1);
	CHECK_EQ(again.n, 0);
	holds(&g, "a", "was there");
	holds(&g, "z", "edited");
	CHECK(grove_is_tidy(&g));
}

static void leave_journal(struct grove *g, const char *path)
{
	CLEANUP(journal_done) struct journal j = { .state = JOURNAL_STAGING };
	struct object_id one, two;
	struct err err = { 0 };

	grove_text(g, "file", "one");
	one = grove_capture(g);
	keep(g, "one", &one);
	grove_text(g, "file", "another");
	two = grove_capture(g);
	j.plan = grove_plan(g, &one, &two);
	j.project = strdup(path);
	CHECK(j.project);
	CHECK_OK(journal_name(&j, &err), &err);
	CHECK_OK(journal_put(g->s, &j, &err), &err);
}

static int count_journal(struct journal *j, void *ctx, struct err *err)
{
	(void)j;
	(void)err;
	(*(int *)ctx)++;
	return 0;
}

TEST(a_directory_that_is_gone_keeps_no_other_from_being_recovered)
{
	CLEANUP(grove_done) struct grove g = grove_new("recover");
	CLEANUP(apply_report_done) struct apply_report report = { 0 };
	struct err err = { 0 };
	int left = 0;

	for (int i = 0; i < 4; i++) {
		leave_journal(&g, "/nonexistent/project");
		leave_journal(&g, g.path);
	}
	CHECK_EQ(apply_recover(g.s, NULL, NULL, &report, &err), -ENOENT);
	CHECK_HAS(err.msg, "'/nonexistent/project' was left half changed");
	CHECK_OK(journal_each(g.s, g.path, count_journal, &left, &err), &err);
	CHECK_EQ(left, 0);
	CHECK_OK(journal_each(g.s, NULL, count_journal, &left, &err), &err);
	CHECK_EQ(left, 4);
}

TEST(what_is_left_of_a_journal_that_was_being_written_is_swept_away)
{
	CLEANUP(grove_done) struct grove g = grove_new("swept");
	CLEANUP(apply_report_done) struct apply_report report = { 0 };
	struct err err = { 0 };
	char path[512];

	leave_journal(&g, g.path);
	snprintf(path, sizeof(path), "%s/" JOURNAL_DIR "/" FDIO_TEMP_PREFIX "0123456789abcdef",
		 g.store_path);
	CHECK_EQ(close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)), 0);
	CHECK_EQ(apply_recover(g.s, g.path, NULL, &report, &err), 1);
	CHECK_EQ(access(path, F_OK), 0); /* of another project's act, perhaps, just now */
	CHECK_EQ(apply_recover(g.s, NULL, NULL, &report, &err), 0);
	CHECK_EQ(access(path, F_OK), -1);
}

/* Says no so many times, and counts. */
struct listener {
	int refuses, heard;
	struct object_id from, to;
};

static int on_landed(const char *path, const struct plan *plan, void *ctx, struct err *err)
{
	struct listener *l = ctx;

	(void)path;
	l->heard++;
	l->from = plan->from;
	l->to = plan->to;
	return l->refuses-- > 0 ? err_set(err, -EIO, "not now") : 0;
}

TEST(that_it_is_done_is_told_until_somebody_has_heard_it)
{
	CLEANUP(grove_done) struct grove g = grove_new("landed");
	CLEANUP(apply_report_done) struct apply_report report = { 0 };
	CLEANUP(plan_done) struct plan plan = { 0 };
	struct listener l = { .refuses = 1 };
	const struct apply_options options = { .landed = on_landed, .landed_ctx = &l };
	struct object_id one, two;
	struct err err = { 0 };
	int left = 0;

	grove_text(&g, "file", "one");
	one = grove_capture(&g);
	keep(&g, "one", &one);
	grove_text(&g, "file", "another");
	two = grove_capture(&g);
	keep(&g, "two", &two);
	plan = grove_plan(&g, &two, &one);
	CHECK_OK(apply_plan(g.s, g.path, &plan, &options, &report, &err), &err);
	CHECK_EQ(l.heard, 1);
	CHECK(object_id_equal(&l.from, &two) && object_id_equal(&l.to, &one));
	CHECK_OK(journal_each(g.s, NULL, count_journal, &left, &err), &err);
	CHECK_EQ(left, 1);
	apply_report_done(&report);
	CHECK_EQ(apply_recover(g.s, NULL, &options, &report, &err), 1);
	CHECK_EQ(l.heard, 2);
	left = 0;
	CHECK_OK(journal_each(g.s, NULL, count_journal, &left, &err), &err);
	CHECK_EQ(left, 0);
}

static void sum_file(const char *path, uint8_t digest[SHA256_SIZE])
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct sha256 sum;
	char room[4096];
	ssize_t n;

	CHECK(fd >= 0);
	sha256_begin(&sum);
	while ((n = read(fd, room, sizeof(room))) > 0)
		sha256_add(&sum, room, (size_t)n);
	sha256_end(&sum, digest);
}

TEST(what_is_staged_is_summed_up_as_it_lies_there_afterwards)
{
	CLEANUP(grove_done) struct grove g = grove_new("sums");
	CLEANUP(plan_done) struct plan plan = plan_many(&g);
	CLEANUP(apply_report_done) struct apply_report report = { 0 };
	const struct apply_options options = { .sums = true };
	const struct object_id wanted = plan.to;
	uint8_t digest[SHA256_SIZE];
	struct err err = { 0 };
	char path[512];

	CHECK_EQ(plan.n_files, MANY);
	CHECK_OK(apply_plan(g.s, g.path, &plan, &options, &report, &err), &err);
	CHECK(grove_is(&g, &wanted));
	for (size_t i = 0; i < plan.n_files; i++) {
		snprintf(path, sizeof(path), "%s/%s", g.path, plan.files[i].path);
		sum_file(path, digest);
		CHECK(plan.files[i].summed);
		CHECK(memcmp(plan.files[i].sha256, digest, SHA256_SIZE) == 0);
	}
}

TEST(a_content_that_is_damaged_is_told_and_nothing_of_the_others_is_left)
{
	CLEANUP(grove_done) struct grove g = grove_new("damaged");
	CLEANUP(plan_done) struct plan plan = plan_many(&g);
	CLEANUP(apply_report_done) struct apply_report report = { 0 };
	const struct object_id before = plan.from;
	const struct content c = tree_entry_content(&plan.files[MANY / 2].after);
	struct err err = { 0 };

	damage_object(g.store_path, OBJECT_CHUNK, &c.id);
	CHECK_EQ(apply_plan(g.s, g.path, &plan, NULL, &report, &err), -EBADMSG);
	CHECK_HAS(err.msg, "'f100'");
	CHECK(grove_is_tidy(&g));
	CHECK(grove_is(&g, &before));
}

TEST(random_trees_become_each_other)
{
	CLEANUP(grove_done) struct grove g = grove_new("random");
	const uint64_t seed = test_seed();

	for (uint64_t i = 0; i < SEEDS; i++) {
		struct test_rng rng = { .s = seed + i };
		struct object_id one;

		grove_clear(&g);
		for (int n = 0; n < 40; n++)
			grove_change(&g, &rng);
		one = grove_capture(&g);
		for (unsigned n = 0; n < 1 + (unsigned)(i % 40); n++)
			grove_change(&g, &rng);
		apply(&g, &one);
		if (!grove_is(&g, &one)) {
			printf("# seed %llu\n", (unsigned long long)(seed + i));
			grove_explain(&g, &one);
			CHECK(false);
		}
	}
}

TEST_MAIN("apply")
