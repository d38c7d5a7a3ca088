/* What a change of a large directory costs, what summaries count, and which entries are refused. */
#include "tests/unit/cowfs/store/shape-fixture.h"

#define MANY 100000

/* MANY files with even numbers for names, but not number `without`, and with number `extra`. */
static struct shape numbered_files(struct world *w, unsigned without, unsigned extra)
{
	char name[16];
	struct tree_entry e = sample_file("-", 4096);

	for (unsigned i = 0; i < 2 * MANY; i++) {
		if (i != extra && (i % 2 != 0 || i == without))
			continue;
		e.name = name;
		e.name_len = (size_t)snprintf(name, sizeof(name), "file-%06u", i);
		e.ino = i;
		world_add(w, &e, 1);
	}
	return finish_shape(w);
}

TEST(one_entry_more_or_less_in_a_large_directory_costs_few_objects)
{
	static const struct {
		unsigned without, extra;
	} edits[] = {
		{ 0, UINT32_MAX },
		{ UINT32_MAX, 1 },
		{ MANY, UINT32_MAX },
		{ UINT32_MAX, MANY / 2 + 1 },
		{ 2 * MANY - 2, UINT32_MAX },
		{ UINT32_MAX, 2 * MANY - 1 },
	};
	CLEANUP(world_done) struct world w = world_new("large");
	CLEANUP(shape_done) struct shape before = numbered_files(&w, UINT32_MAX, UINT32_MAX);
	size_t all = 0;

	CHECK(before.n_ids > MANY / LEAF_MAX && before.n_ids < MANY / LEAF_MIN);
	for (size_t i = 0; i < ARRAY_LEN(edits); i++) {
		CLEANUP(shape_done) struct shape after =
		    numbered_files(&w, edits[i].without, edits[i].extra);
		const size_t fresh = new_nodes(&before, &after);

		/* One leaf, one branch, the top; now and then an end moves and some more follow. */
		CHECK(fresh >= 2 && fresh <= 20);
		all += fresh;
	}
	CHECK(all <= 60);
}

/* Symlinks of this size with even numbers for names, and one with number `extra`. */
static struct shape numbered_symlinks(struct world *w, size_t n, size_t size, unsigned extra)
{
	char name[16], target[TREE_TARGET_LEN_MAX + 1];
	struct tree_entry e;

	memset(target, 't', sizeof(target));
	target[size - RECORD - 8] = '\0';
	for (unsigned i = 0; i < 2 * n; i++) {
		if (i % 2 != 0 && i != extra)
			continue;
		snprintf(name, sizeof(name), "%08u", i);
		e = sample_symlink(name, target);
		world_add(w, &e, 1);
	}
	return finish_shape(w);
}

TEST(one_entry_more_among_long_ones_costs_few_objects_too)
{
	static const size_t sizes[] = { 300, 800, 1500, 3000, 4136 };
	const size_t n = 5000;
	CLEANUP(world_done) struct world w = world_new("large-long");

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		CLEANUP(shape_done) struct shape before =
		    numbered_symlinks(&w, n, sizes[i], UINT32_MAX);
		CLEANUP(shape_done) struct shape first = numbered_symlinks(&w, n, sizes[i], 1);
		CLEANUP(shape_done) struct shape amid = numbered_symlinks(&w, n, sizes[i], n + 1);

		/* On average well below the limit. */
		CHECK(before.n_leaves > n * sizes[i] / (LEAF_BYTES_MAX / 5 * 4));
		CHECK(new_nodes(&before, &first) <= 20);
		CHECK(new_nodes(&before, &amid) <= 20);
	}
}

TEST(a_summary_counts_all_that_lies_below)
{
	CLEANUP(world_done) struct world w = world_new("summary");
	struct tree_entry list[] = { sample_directory("d"), sample_file("f", 100),
				     sample_entry("p", TREE_NONE, S_IFIFO), sample_link("q"),
				     sample_symlink("s", "four") };
	struct tree_summary below;

	list[0].below = (struct tree_summary){ .files = 1000, .bytes = 5000 };
	world_add(&w, list, 3);
	world_finish(&w, &below);
	CHECK_EQ(below.files, 1002);
	CHECK_EQ(below.bytes, 5100);
	CHECK(!below.links);

	world_add(&w, list, 5);
	world_finish(&w, &below);
	CHECK_EQ(below.files, 1004);
	CHECK_EQ(below.bytes, 5104);
	CHECK(below.links);

	list[0].below.links = true;
	world_add(&w, list, 1);
	world_finish(&w, &below);
	CHECK(below.links);

	world_finish(&w, &below);
	CHECK(below.files == 0 && below.bytes == 0 && !below.links);
}

TEST(a_summary_too_large_to_count_stays_at_the_largest_number)
{
	CLEANUP(world_done) struct world w = world_new("saturated");
	struct tree_entry list[] = { sample_directory("d"), sample_file("f", 100) };
	struct tree_summary below;

	list[0].below = (struct tree_summary){ .files = UINT64_MAX, .bytes = UINT64_MAX - 99 };
	world_add(&w, list, 2);
	world_finish(&w, &below);
	CHECK(below.files == UINT64_MAX);
	CHECK(below.bytes == UINT64_MAX);
}

TEST(names_that_cannot_be_added_are_refused_with_a_sentence)
{
	static const struct {
		const char *name;
		size_t len;
		const char *sentence;
	} cases[] = {
		{ "", 0, "cannot stand in a directory: ''" },
		{ ".", 1, "cannot stand in a directory: '.'" },
		{ "..", 2, "cannot stand in a directory: '..'" },
		{ "x/y", 3, "cannot stand in a directory: 'x/y'" },
		{ "x\0y", 3, "cannot stand in a directory: 'x\\x00y'" },
		{ "m", 1, "does not follow the one before: 'm'" },
		{ "l\x1b", 2, "does not follow the one before: 'l\\x1b'" },
	};
	CLEANUP(world_done) struct world w = world_new("names");
	struct tree_entry e = sample_file("m", 1);
	char longest[300];

	world_add(&w, &e, 1);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err = { 0 };

		e.name = cases[i].name;
		e.name_len = cases[i].len;
		CHECK_EQ(tree_builder_add(w.t, &e, &err), -EINVAL);
		CHECK_HAS(err.msg, cases[i].sentence);
	}
	memset(longest, 'x', sizeof(longest));
	e.name = longest;
	e.name_len = TREE_NAME_LEN_MAX + 1;
	CHECK_EQ(tree_builder_add(w.t, &e, NULL), -EINVAL);
	e.name_len = TREE_NAME_LEN_MAX;
	world_add(&w, &e, 1);
}

TEST(an_entry_that_is_not_canonical_stops_the_program)
{
	CLEANUP(world_done) struct world w = world_new("assert");
	struct tree_entry e = sample_file("f", 1);
	int status;
	pid_t pid;

	e.data = 0;
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		AUTO_CLOSE int quiet = open("/dev/null", O_WRONLY | O_CLOEXEC);

		dup2(quiet, STDERR_FILENO);
		_exit(tree_builder_add(w.t, &e, NULL) < 0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

TEST_MAIN("tree-cost")
