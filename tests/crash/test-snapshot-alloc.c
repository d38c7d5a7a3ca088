/*
 * Memory runs out at the n-th request, once or for good, while a directory is captured, two
 * trees are compared or merged, and a plan is made and written down.  Each says -ENOMEM with a
 * sentence, or does without; nothing is leaked, and tried again it succeeds.
 *
 * Every n up to a hundred is tried, and then one in seven: what asks more often asks in loops.
 * With SNAP_TESTS_LONG=1 all are.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "snapshot/apply/journal.h"
#include "snapshot/capture/capture.h"
#include "snapshot/diff/changes.h"
#include "snapshot/merge/merge.h"
#include "snapshot/patch/patch.h"
#include "snapshot/text/guard.h"
#include "snapshot/text/ignore.h"
#include "tests/crash/heap.h"
#include "tests/lib/grove.h"

#define LINES "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n"

static struct grove g;
static struct object_id before, after, third; /* captures of it */
static struct signatures *known;              /* of `before`; the directory is as in `third` */

/* --- the directory ------------------------------------------------------------------------ */

static void noise(const char *path, unsigned seed)
{
	struct test_rng rng = { .s = seed };
	char bytes[3000];

	for (size_t i = 0; i < sizeof(bytes) - 1; i++)
		bytes[i] = (char)(1 + test_rand(&rng) % 255);
	bytes[sizeof(bytes) - 1] = '\0';
	grove_text(&g, path, bytes);
}

/* More names than a directory, a plan, and every other list starts with room for. */
static void many(const char *dir, unsigned n, unsigned from)
{
	char path[64];

	CHECK_EQ(mkdirat(g.fd, dir, 0755), 0);
	for (unsigned i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/name-that-is-not-short-%u", dir, from + i);
		grove_text(&g, path, path);
	}
}

static void set_xattr(const char *name, const char *value)
{
	char path[4096];

	CHECK((size_t)snprintf(path, sizeof(path), "%s/attributes", g.path) < sizeof(path));
	IGNORE_RESULT(setxattr(path, name, value, strlen(value), 0),
		      "not every file system has them");
}

static void plant(unsigned state)
{
	static const char *const texts[] = { LINES, "zero\n" LINES, LINES "nine\n" };

	grove_plant(&g, state == 1);
	grove_text(&g, ".snapignore", "*.o\n!keep.o\nlogs/\n/build\n[a-c]?x\n");
	grove_text(&g, "main.o", "o");
	grove_text(&g, "keep.o", "o");
	grove_text(&g, "text", texts[state]);
	grove_text(&g, state == 1 ? "moved" : "moves", texts[state]);
	grove_text(&g, state == 2 ? "dir/also-moved" : "also-moves", LINES LINES "end\n");
	grove_text(&g, "attributes", "a");
	set_xattr("user.one", texts[state]);
	set_xattr("user.two", "2");
	noise("binary", state);
	many("many", 70, state * 40);
	CHECK_EQ(mkdirat(g.fd, "d", 0755), 0);
	CHECK_EQ(mkdirat(g.fd, "d/e", 0755), 0);
	grove_text(&g, "d/e/.snapignore", "f\n");
	grove_text(&g, "d/e/f", "left out");
	grove_text(&g, "d/e/g", state == 1 ? "1" : "0");
}

static struct object_id capture_as(const char *name, struct signatures **ret_known)
{
	static const struct capture_options none = { .threads = 1 };
	CLEANUP(batch_end_p) struct batch *b = stock_begin(g.s);
	CLEANUP(captured_done) struct captured c = { 0 };
	struct err err = { 0 };

	CHECK_OK(capture_directory(b, g.path, &none, &c, &err), &err);
	stock_name(b, REF_SNAPSHOT, name, &c.root, REF_REPLACE);
	stock_commit(b);
	if (ret_known)
		*ret_known = TAKE_PTR(c.signatures);
	return c.root;
}

static void furnish(void)
{
	g = grove_new("grove");
	plant(1);
	after = capture_as("after", NULL);
	plant(0);
	before = capture_as("before", &known);
	CHECK(known != NULL);
	plant(2);
	third = capture_as("third", NULL);
}

/* --- what is tried ------------------------------------------------------------------------ */

static int capture_with(const struct capture_options *options, const struct object_id *want,
			struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	CLEANUP(captured_done) struct captured c = { 0 };
	int r = batch_begin(g.s, &b, err);

	if (r >= 0)
		r = capture_directory(b, g.path, options, &c, err);
	if (r >= 0)
		CHECK(object_id_equal(&c.root, want));
	return r;
}

static int capture_anew(struct err *err)
{
	const char *out[] = { g.store_path, "/no/such/place" };
	const struct capture_options o = { .threads = 1, .exclude = out, .n_exclude = 2 };

	return capture_with(&o, &third, err);
}

static int capture_again(struct err *err)
{
	return capture_with(&(struct capture_options){ .threads = 1, .known = known }, &third, err);
}

static int decode_signatures(struct err *err)
{
	CLEANUP(signatures_free_p) struct signatures *s = NULL;
	CLEANUP(buf_done) struct buf copy = BUF_INIT;
	int r = buf_append(&copy, known->bytes.data, known->bytes.len);

	if (r < 0)
		return err_nomem(err);
	return signatures_decode(&copy, store_key(g.s), &s, err);
}

static int nothing(const char *path, char status, void *ctx, struct err *err)
{
	(void)path;
	(void)status;
	(void)ctx;
	(void)err;
	return 0;
}

static int count_changes(struct err *err)
{
	struct changes c;
	int r = changes_count(g.s, &before, &after, &c, err);

	return r < 0 ? r : changes_each(g.s, &before, &after, nothing, NULL, err);
}

static int collect(enum patch_part part, const char *text, size_t len, void *ctx, struct err *err)
{
	(void)part;
	return buf_append(ctx, text, len) < 0 ? err_nomem(err) : 0;
}

static int write_patch(struct err *err)
{
	static const struct delta_options options = { .renames = true };
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	CLEANUP(delta_done) struct delta d = { 0 };
	struct patch_counts counts;
	int r = delta_find(g.s, &before, &after, &options, &d, err);

	for (size_t i = 0; i < d.n_files && r >= 0; i++)
		r = patch_file(g.s, &d.files[i], 3, collect, &out, &counts, err);
	return r;
}

static int plan_and_back(struct err *err)
{
	static const char *const leave[] = { "turns", "d" };
	const struct plan_options options = {
		.as_of = 1, .leave = leave, .n_leave = 2, .leave_ignored = true
	};
	CLEANUP(plan_done) struct plan p = { 0 };
	CLEANUP(plan_done) struct plan q = { 0 };
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	int r = plan_make(g.s, &before, &after, &options, &p, err);

	if (r >= 0)
		r = plan_encode(&p, &bytes, err);
	if (r >= 0)
		r = plan_decode(bytes.data, bytes.len, &q, err);
	if (r >= 0)
		CHECK_EQ(plan_count(&p), plan_count(&q));
	return r;
}

static int merge(struct err *err)
{
	static const struct merge_options options = { .on_conflict = MERGE_MARKERS };
	CLEANUP(batch_end_p) struct batch *b = NULL;
	CLEANUP(merge_done) struct merge m = { 0 };
	int r = batch_begin(g.s, &b, err);

	return r < 0 ? r : merge_trees(b, &before, &after, &third, &options, &m, err);
}

static int note_overlap(const char *path, enum merge_overlap overlap, void *ctx, struct err *err)
{
	(void)path;
	(void)overlap;
	(void)ctx;
	(void)err;
	return 0;
}

static int overlap(struct err *err)
{
	return merge_overlap(g.s, &before, &after, &third, note_overlap, NULL, err);
}

static int parse_rules(struct err *err)
{
	static const char text[] = "*.o\n!keep.o\n# comment\nlogs/\n/build\n[a-c]?x\n**/deep\n";
	static const struct guard_rule more[] = { { "mine", "*.key\nsecrets/\n", "of my own" } };
	CLEANUP(ignore_free_p) struct ignore *ig = NULL;
	CLEANUP(guard_free_p) struct guard *guard = NULL;
	int r = ignore_parse(text, strlen(text), &ig, err);

	return r < 0 ? r : guard_new(more, 1, &guard, err);
}

static int see_journal(struct journal *j, void *ctx, struct err *err)
{
	(void)err;
	CHECK_STR(j->project, g.path);
	*(int *)ctx += 1;
	return 0;
}

static int journal(struct err *err)
{
	CLEANUP(journal_done) struct journal j = { .state = JOURNAL_STAGING, .ino = 7 };
	int r, n = 0;

	r = plan_make(g.s, &before, &after, &(struct plan_options){ .as_of = 1 }, &j.plan, err);
	if (r < 0)
		return r;
	j.project = strdup(g.path);
	if (!j.project)
		return err_nomem(err);
	r = journal_name(&j, err);
	if (r >= 0)
		r = journal_put(g.s, &j, err);
	if (r >= 0)
		r = journal_set_state(g.s, &j, JOURNAL_ACTING, err);
	if (r >= 0)
		r = journal_each(g.s, NULL, see_journal, &n, err);
	if (r >= 0)
		CHECK_EQ(n, 1);
	return r < 0 ? r : journal_remove(g.s, &j, err);
}

/* --- one after the other ------------------------------------------------------------------ */

static int remove_journal(struct journal *j, void *ctx, struct err *err)
{
	(void)ctx;
	return journal_remove(g.s, j, err);
}

static bool attempt(int (*run)(struct err *err), uint64_t n, bool onwards, int64_t live)
{
	struct err err = { 0 };
	uint64_t refused;
	int r;

	heap_fail_at(n, HEAP_OURS, onwards);
	r = run(&err);
	refused = heap_calm();
	if (r < 0) {
		CHECK_EQ(r, -ENOMEM);
		CHECK_EQ(err.code, r);
		CHECK(err.msg[0] != '\0');
	}
	CHECK_OK(journal_each(g.s, NULL, remove_journal, NULL, &err), &err);
	/* Less is fine: a context of zstd that failed is let go, and another one made when needed. */
	if (heap_ours() > live)
		printf("# request %" PRIu64 "%s\n", n, onwards ? " and all later ones" : "");
	CHECK(heap_ours() <= live);
	return refused > 0;
}

static uint64_t after_that(uint64_t n)
{
	return n + (n < 100 || getenv("SNAP_TESTS_LONG") ? 1 : 7);
}

static void starve(int (*run)(struct err *err), uint64_t least)
{
	struct err err = { 0 };
	int64_t live;
	uint64_t n = 1;

	if (!g.s)
		furnish();
	/* Libraries are loaded, and connections opened, at the first use. */
	CHECK_OK(run(&err), &err);
	live = heap_ours();
	for (int onwards = 0; onwards < 2; onwards++)
		for (n = 1; attempt(run, n, onwards, live); n = after_that(n))
			;
	printf("# some %" PRIu64 " requests\n", n - 1);
	CHECK(n > least);
	CHECK_OK(run(&err), &err);
}

TEST(a_capture_without_memory_says_so)
{
	starve(capture_anew, 100);
}

TEST(a_capture_of_what_is_known_without_memory_says_so)
{
	starve(capture_again, 100);
}

TEST(signatures_that_find_no_memory_are_not_taken_for_damaged)
{
	starve(decode_signatures, 1);
}

TEST(changes_without_memory_are_not_counted)
{
	starve(count_changes, 10);
}

TEST(a_patch_without_memory_says_so)
{
	starve(write_patch, 100);
}

TEST(a_plan_without_memory_says_so)
{
	starve(plan_and_back, 100);
}

TEST(a_merge_without_memory_leaks_nothing)
{
	starve(merge, 100);
}

TEST(an_overlap_without_memory_says_so)
{
	starve(overlap, 50);
}

TEST(rules_without_memory_are_no_rules)
{
	starve(parse_rules, 5);
}

TEST(a_journal_without_memory_says_so)
{
	starve(journal, 50);
}

int main(void)
{
	int r;

	heap_install();
	r = test_run_all("snapshot-alloc");
	signatures_free(known);
	grove_done(&g);
	return r;
}
