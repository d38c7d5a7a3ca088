/*
 * Three random texts, merged here and by `git merge-file`: byte by byte the same, markers
 * included, in every style and with every wish, and as many conflicts.  SNAP_TEST_SEED repeats
 * a run; SNAP_TEST_TRIPLES says how many (1,000).
 */
#include "snapshot/merge/merge-i.h"
#include "tests/unit/snapshot/patch/patch-fixture.h"

static size_t below(struct test_rng *rng, size_t n)
{
	return (size_t)(test_rand(rng) % n);
}

/* Few different lines, so that texts can be aligned in many ways. */
static void add_line(struct test_rng *rng, struct buf *b)
{
	static const char *const lines[] = {
		"{\n",       "}\n",    "\n", "\treturn 0;\n", "crlf\r\n", "<<<<<<< ours\n",
		"=======\n", "\xff\n",
	};

	if (below(rng, 3) == 0)
		CHECK_EQ(buf_append_str(b, lines[below(rng, ARRAY_LEN(lines))]), 0);
	else
		CHECK_EQ(buf_printf(b, "line %zu\n", below(rng, 60)), 0);
}

/* One line in `often` goes, one comes. */
static void edit(struct test_rng *rng, const struct buf *from, size_t often, struct buf *to)
{
	buf_reset(to);
	for (size_t at = 0, n; at < from->len; at += n) {
		const unsigned char *end = memchr(from->data + at, '\n', from->len - at);

		n = end ? (size_t)(end - from->data) + 1 - at : from->len - at;
		if (below(rng, often) != 0)
			CHECK_EQ(buf_append(to, from->data + at, n), 0);
		if (below(rng, often) == 0)
			add_line(rng, to);
	}
	if (to->len > 0 && below(rng, 8) == 0)
		to->len--; /* the last line has no end */
}

struct texts {
	struct buf of[VERSIONS];
	struct buf merged, git;
};

static void texts_done(struct texts *t)
{
	for (int v = 0; v < VERSIONS; v++)
		buf_done(&t->of[v]);
	buf_done(&t->merged);
	buf_done(&t->git);
}

static void make_texts(struct test_rng *rng, struct texts *t)
{
	const size_t lines = below(rng, 6) == 0 ? 0 : 1 + below(rng, 60);
	const size_t often = 3 + below(rng, 30);

	for (size_t i = 0; i < lines; i++)
		add_line(rng, &t->of[BASE]);
	edit(rng, &t->of[BASE], often, &t->of[OURS]);
	edit(rng, &t->of[BASE], often, &t->of[THEIRS]);
	if (lines == 0)
		for (int v = OURS; v < VERSIONS; v++)
			for (size_t i = below(rng, 12); i > 0; i--)
				add_line(rng, &t->of[v]);
}

/* What git makes of it; the number of conflicts. */
static int merge_by_git(struct texts *t, const struct merge_options *o)
{
	static const char *const names[VERSIONS] = { "b", "o", "t" };
	static const char *const styles[] = { NULL, "--diff3", "--zdiff3" };
	static const char *const wishes[] = { NULL, "--ours", "--theirs", NULL };
	const char *args[16] = {
		"merge-file", "-p", "-L", "project", "-L", "then", "-L", "a clone"
	};
	struct err err = { 0 };
	size_t n = 8;
	int conflicts;

	for (int v = 0; v < VERSIONS; v++)
		patch_save(test_path(names[v]), &t->of[v]);
	if (styles[o->style])
		args[n++] = styles[o->style];
	if (wishes[o->on_conflict])
		args[n++] = wishes[o->on_conflict];
	args[n++] = "o";
	args[n++] = "b";
	args[n++] = "t";
	conflicts = patch_git(test_dir(), test_path("log"), args);
	CHECK(conflicts >= 0 && conflicts < 127);
	buf_reset(&t->git);
	CHECK_OK(fdio_read_file(AT_FDCWD, test_path("log"), SIZE_MAX, &t->git, &err), &err);
	return conflicts;
}

/* Made once more, with these options. */
static void check_alike(struct texts *t, const struct merge_options *o, unsigned *ret_hunks)
{
	const int conflicts = merge_by_git(t, o);
	struct err err = { 0 };

	CHECK_OK(merge_text(t->of, o, o->on_conflict, &t->merged, ret_hunks, &err), &err);
	CHECK_MEM(t->merged.data, t->merged.len, t->git.data, t->git.len);
	if (o->on_conflict == MERGE_MARKERS)
		CHECK_EQ(*ret_hunks, conflicts);
}

static const struct merge_options labels = {
	.on_conflict = MERGE_MARKERS,
	.label_ours = "project",
	.label_base = "then",
	.label_theirs = "a clone",
};

TEST(conflicts_without_a_word_between_them_are_one)
{
	CLEANUP(texts_done) struct texts t = { 0 };
	unsigned hunks;

	for (int v = 0; v < VERSIONS; v++)
		CHECK_EQ(buf_printf(&t.of[v], "%d\n{\n}\n\n{\n}\n\n%d\n", v, v), 0);
	check_alike(&t, &labels, &hunks);
	CHECK_EQ(hunks, 1);
}

static unsigned long clean, marked, favoured;

static void play(uint64_t seed, size_t n)
{
	static const enum merge_on_conflict wishes[] = { MERGE_MARKERS, MERGE_MARKERS, MERGE_OURS,
							 MERGE_THEIRS };
	CLEANUP(texts_done) struct texts t = { 0 };
	struct test_rng rng = { seed + n };
	struct merge_options o = labels;
	unsigned hunks;

	o.on_conflict = wishes[n % ARRAY_LEN(wishes)];
	o.style = (enum merge_style)(n % 3);
	make_texts(&rng, &t);
	check_alike(&t, &o, &hunks);
	clean += hunks == 0;
	marked += hunks > 0 && o.on_conflict == MERGE_MARKERS;
	favoured += hunks > 0 && o.on_conflict != MERGE_MARKERS;
}

TEST(git_merge_file_makes_the_same_of_random_texts)
{
	const char *wanted = getenv("SNAP_TEST_TRIPLES");
	const size_t triples = wanted ? strtoul(wanted, NULL, 10) : 1000;
	const uint64_t seed = test_seed();

	for (size_t i = 0; i < triples; i++) {
		/* Tells which triple failed, to whoever repeats it. */
		if (wanted)
			printf("# triple %zu\n", i);
		play(seed, i);
	}
	printf("# %lu clean, %lu with markers, %lu favoured\n", clean, marked, favoured);
	CHECK(triples < 1000 || (clean > 100 && marked > 100 && favoured > 100));
}

TEST_MAIN("merge-texts")
