#include "snapshot/apply/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "snapshot/diff/changes.h"
#include "tests/lib/grove.h"

static const struct plan_step *file_at(const struct plan *p, const char *path)
{
	for (size_t i = 0; i < p->n_files; i++)
		if (strcmp(p->files[i].path, path) == 0)
			return &p->files[i];
	return NULL;
}

static const struct plan_step *dir_at(const struct plan *p, const char *path)
{
	for (size_t i = 0; i < p->n_dirs; i++)
		if (strcmp(p->dirs[i].path, path) == 0)
			return &p->dirs[i];
	return NULL;
}

static struct plan plan_leaving(struct grove *g, const struct object_id *now,
				const struct object_id *wanted, const char *leave, int code)
{
	const char *const list[] = { leave };
	const struct plan_options options = { .leave = list,
					      .n_leave = leave != NULL,
					      .leave_unseen = true };
	struct err err = { 0 };
	struct plan p = { 0 };
	int r = plan_make(g->s, now, wanted, &options, &p, &err);

	if (code == 0)
		CHECK_OK(r, &err);
	CHECK_EQ(r, code);
	return p;
}

static int append(const struct plan_step *s, void *ctx)
{
	static const char letter[] = {
		[PLAN_TOUCH] = 't',  [PLAN_CHANGE] = 'c',  [PLAN_REMOVE] = 'D',
		[PLAN_CREATE] = 'A', [PLAN_REPLACE] = 'M',
	};

	return buf_printf(ctx, "%c %s\n", letter[s->act], s->path);
}

TEST(nothing_differs_from_itself)
{
	CLEANUP(grove_done) struct grove g = grove_new("itself");
	CLEANUP(plan_done) struct plan p = { 0 };
	struct object_id one;

	grove_plant(&g, false);
	one = grove_capture(&g);
	p = plan_leaving(&g, &one, &one, NULL, 0);
	CHECK(plan_is_empty(&p));
	CHECK_EQ(plan_count(&p), 0);
}

TEST(a_plan_lists_what_a_person_would_call_changed_in_the_order_of_a_walk)
{
	CLEANUP(grove_done) struct grove g = grove_new("list");
	CLEANUP(buf_done) struct buf list = BUF_INIT;
	CLEANUP(plan_done) struct plan p = { 0 };
	struct object_id one, two;

	grove_plant(&g, true);
	two = grove_capture(&g);
	grove_plant(&g, false);
	one = grove_capture(&g);
	p = plan_leaving(&g, &two, &one, NULL, 0);
	CHECK_EQ(plan_each(&p, append, &list), 0);
	CHECK_HAS(buf_str(&list), "M dir/link2\nc dir/sub\nM dir/sub/deep\nM file\nM link1\n");
	CHECK_HAS(buf_str(&list), "c mode\nD new\nD new/fifo\nD new/file\nA old\nA old/empty\n");
	CHECK_HAS(buf_str(&list), "A turned\nD turned\nA turned/inside\nD turns\nA turns\n");
	CHECK(!strstr(buf_str(&list), " time\n"));
	CHECK(!strstr(buf_str(&list), "same"));
	CHECK_EQ(file_at(&p, "time")->what, DIFF_MTIME);
	/* Names change in it, so its times have to be set again. */
	CHECK_EQ(dir_at(&p, "locked")->act, PLAN_TOUCH);
}

/* The number of changed paths, which a status of the two states has too. */
static void check_count(struct grove *g, const struct object_id *now,
			const struct object_id *wanted, uint64_t count)
{
	CLEANUP(plan_done) struct plan p = plan_leaving(g, now, wanted, NULL, 0);
	struct changes c = { 0 };
	struct err err = { 0 };

	CHECK_OK(changes_count(g->s, now, wanted, &c, &err), &err);
	CHECK_EQ(c.added + c.modified + c.deleted, count);
	CHECK_EQ(plan_count(&p), count);
}

TEST(of_directories_that_come_or_go_only_empty_ones_count_as_in_a_status)
{
	CLEANUP(grove_done) struct grove g = grove_new("count");
	struct object_id none, all;

	grove_text(&g, "turns", "a file");
	grove_text(&g, "turned", "another");
	none = grove_capture(&g);
	CHECK_EQ(unlinkat(g.fd, "turns", 0), 0);
	CHECK_EQ(unlinkat(g.fd, "turned", 0), 0);
	for (const char *const *dir = (const char *const[]){ "turns", "turned", "bare", "bare/in",
							     "full", "full/empty", NULL };
	     *dir; dir++)
		CHECK_EQ(mkdirat(g.fd, *dir, 0755), 0);
	grove_text(&g, "turned/file", "1");
	grove_text(&g, "full/file", "2");
	grove_text(&g, "full/other", "3");
	all = grove_capture(&g);
	/* Two for each that turns, one for all that is bare, and two files. */
	check_count(&g, &none, &all, 7);
	check_count(&g, &all, &none, 7);
}

TEST(what_is_left_alone_stays_with_all_that_holds_it)
{
	CLEANUP(grove_done) struct grove g = grove_new("leave");
	CLEANUP(plan_done) struct plan p = { 0 };
	struct object_id now, wanted;

	grove_text(&g, "keep", "k");
	wanted = grove_capture(&g);
	CHECK_EQ(mkdirat(g.fd, ".git", 0755), 0);
	grove_text(&g, ".git/HEAD", "h");
	grove_text(&g, ".gitignore", "i");
	CHECK_EQ(mkdirat(g.fd, "a", 0755), 0);
	grove_text(&g, "a/out", "o");
	now = grove_capture(&g);

	p = plan_leaving(&g, &now, &wanted, ".git", 0);
	CHECK(!dir_at(&p, ".git") && !file_at(&p, ".git/HEAD"));
	CHECK_EQ(file_at(&p, ".gitignore")->act, PLAN_REMOVE);
	CHECK_EQ(dir_at(&p, "a")->act, PLAN_REMOVE);
	plan_done(&p);

	p = plan_leaving(&g, &now, &wanted, "a/out", 0);
	CHECK(!file_at(&p, "a/out"));
	CHECK_EQ(dir_at(&p, "a")->act, PLAN_TOUCH);
	plan_done(&p);

	p = plan_leaving(&g, &now, &wanted, "a/unseen", 0);
	CHECK_EQ(file_at(&p, "a/out")->act, PLAN_REMOVE);
	CHECK_EQ(dir_at(&p, "a")->act, PLAN_TOUCH);
	plan_done(&p);

	grove_clear(&g);
	grove_text(&g, "a", "a file");
	wanted = grove_capture(&g);
	p = plan_leaving(&g, &now, &wanted, "a/out", -ECANCELED);
}

TEST(names_of_one_file_are_known_by_which_belong_together)
{
	CLEANUP(grove_done) struct grove g = grove_new("links");
	CLEANUP(plan_done) struct plan p = { 0 };
	struct object_id pair, again, three, other;

	grove_text(&g, "a", "x");
	CHECK_EQ(linkat(g.fd, "a", g.fd, "b", 0), 0);
	CHECK_EQ(utimensat(g.fd, "a", (struct timespec[]){ { .tv_sec = 9 }, { .tv_sec = 9 } }, 0),
		 0);
	pair = grove_capture(&g);
	CHECK_EQ(linkat(g.fd, "a", g.fd, "c", 0), 0);
	three = grove_capture(&g);
	CHECK_EQ(utimensat(g.fd, "a", (struct timespec[]){ { .tv_sec = 5 }, { .tv_sec = 5 } }, 0),
		 0);
	other = grove_capture(&g);

	/* Another file under the same two names, with all else alike, is no change. */
	grove_text(&g, "new", "x");
	CHECK_EQ(unlinkat(g.fd, "c", 0), 0);
	CHECK_EQ(renameat(g.fd, "new", g.fd, "a"), 0);
	CHECK_EQ(unlinkat(g.fd, "b", 0), 0);
	CHECK_EQ(linkat(g.fd, "a", g.fd, "b", 0), 0);
	CHECK_EQ(utimensat(g.fd, "a", (struct timespec[]){ { .tv_sec = 9 }, { .tv_sec = 9 } }, 0),
		 0);
	again = grove_capture(&g);
	p = plan_leaving(&g, &again, &pair, NULL, 0);
	CHECK_EQ(p.n_files, 0);
	plan_done(&p);

	/* A third name joins the file that is there. */
	p = plan_leaving(&g, &pair, &three, NULL, 0);
	CHECK_EQ(p.n_files, 1);
	CHECK_EQ(file_at(&p, "c")->act, PLAN_CREATE);
	CHECK_STR(file_at(&p, "c")->anchor, "a");
	plan_done(&p);

	/* What is changed in place would change under the name that goes, too. */
	p = plan_leaving(&g, &other, &pair, NULL, 0);
	CHECK_EQ(file_at(&p, "a")->act, PLAN_REPLACE);
	CHECK_EQ(file_at(&p, "b")->act, PLAN_REPLACE);
	CHECK_EQ(file_at(&p, "b")->first, file_at(&p, "a") - p.files);
	CHECK_EQ(file_at(&p, "c")->act, PLAN_REMOVE);
}

/* --- as bytes --------------------------------------------------------------------------- */

static struct plan both_ways(struct grove *g)
{
	struct object_id one, two;

	grove_plant(g, true);
	two = grove_capture(g);
	grove_plant(g, false);
	one = grove_capture(g);
	return plan_leaving(g, &two, &one, NULL, 0);
}

TEST(a_plan_is_the_same_after_it_was_bytes)
{
	CLEANUP(grove_done) struct grove g = grove_new("bytes");
	CLEANUP(plan_done) struct plan p = both_ways(&g), q = { 0 };
	CLEANUP(buf_done) struct buf a = BUF_INIT, b = BUF_INIT;
	struct err err = { 0 };

	p.files[0].old_ino = 77;
	CHECK_OK(plan_encode(&p, &a, &err), &err);
	CHECK_OK(plan_decode(a.data, a.len, &q, &err), &err);
	CHECK_EQ(q.files[0].old_ino, 77);
	CHECK_EQ(q.n_dirs, p.n_dirs);
	CHECK_OK(plan_encode(&q, &b, &err), &err);
	CHECK_MEM(a.data, a.len, b.data, b.len);
}

TEST(bytes_that_are_no_plan_are_refused_and_never_lead_out_of_the_tree)
{
	CLEANUP(grove_done) struct grove g = grove_new("refuse");
	CLEANUP(plan_done) struct plan p = both_ways(&g);
	CLEANUP(buf_done) struct buf a = BUF_INIT;
	struct err err = { 0 };

	CHECK_OK(plan_encode(&p, &a, &err), &err);
	for (size_t len = 0; len < a.len; len++) {
		struct plan q = { 0 };

		CHECK_EQ(plan_decode(a.data, len, &q, &err), -EBADMSG);
	}
	for (size_t i = 0; i < a.len; i++) {
		CLEANUP(plan_done) struct plan q = { 0 };

		a.data[i] ^= 0xff;
		if (plan_decode(a.data, a.len, &q, NULL) == 0)
			for (size_t k = 0; k < q.n_files; k++)
				CHECK(q.files[k].dir < q.n_dirs && q.files[k].first < q.n_files);
		a.data[i] ^= 0xff;
	}
	free(p.files[0].path);
	p.files[0].path = strdup("../out");
	buf_reset(&a);
	CHECK_OK(plan_encode(&p, &a, &err), &err);
	CHECK_EQ(plan_decode(a.data, a.len, &(struct plan){ 0 }, &err), -EBADMSG);
}

TEST_MAIN("plan")
