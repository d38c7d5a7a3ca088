#include "tests/lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "cowfs/store/tree-node.h"
#include "tests/lib/damage.h"
#include "tests/unit/cowfs/store/tree-fixture.h"

/* Where trees are cut, as docs/reference/format.md has it. */
#define LEAF_MIN       128
#define LEAF_MAX       1024
#define BRANCH_MIN     64
#define BRANCH_MAX     512
#define LEAF_BYTES_MIN (24 << 10)
#define LEAF_BYTES_MAX (192 << 10)
#define LONG_ENTRY     256
#define LONG_CUT_BITS  0x7fffu

#define HEADER 16
#define RECORD 128

/* What a whole tree is made of, found by reading every node of it. */
struct shape {
	struct object_id *ids; /* owned, as are the others */
	uint32_t *leaves;      /* entries of each, in order */
	uint32_t *branches;    /* children of each */
	size_t n_ids, n_leaves, n_branches;
	size_t bytes_max; /* of the largest node */
	unsigned level;   /* of the top */
};

static void shape_done(struct shape *sh)
{
	free(sh->ids);
	free(sh->leaves);
	free(sh->branches);
}

static void note(uint32_t **list, size_t *n, uint32_t value)
{
	*list = reallocarray(*list, *n + 1, sizeof(**list));
	CHECK(*list);
	(*list)[(*n)++] = value;
}

static void sum_up(struct tree_summary *sum, const struct tree_summary *more)
{
	sum->files += more->files;
	sum->bytes += more->bytes;
	sum->links = sum->links || more->links;
}

static struct tree_summary summary_of(const struct tree_entry *e)
{
	if (e->form == TREE_DIR)
		return e->below;
	return (struct tree_summary){ 1, e->size, e->form == TREE_LINK };
}

/* Every node is sound, and is what the record above it says. */
static void walk(struct store *s, const struct object_id *id, unsigned level,
		 const struct tree_child *want, struct shape *sh)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	struct tree_child sum = { 0 }, c;
	struct tree_summary below;
	struct tree_node node;
	struct tree_entry e;
	struct err err = { 0 };

	CHECK_OK(store_get(s, OBJECT_TREE, id, &bytes, &err), &err);
	CHECK_OK(tree_node_open(bytes.data, bytes.len, &node, &err), &err);
	CHECK_OK(tree_node_verify(&node, &err), &err);
	if (want)
		CHECK_EQ(node.level, level);
	else
		sh->level = node.level;
	sh->ids = reallocarray(sh->ids, sh->n_ids + 1, sizeof(*id));
	CHECK(sh->ids);
	sh->ids[sh->n_ids++] = *id;
	if (bytes.len > sh->bytes_max)
		sh->bytes_max = bytes.len;
	if (node.level == 0)
		note(&sh->leaves, &sh->n_leaves, node.n);
	else
		note(&sh->branches, &sh->n_branches, node.n);

	for (uint32_t i = 0; i < node.n; i++) {
		if (node.level == 0) {
			CHECK_OK(tree_node_entry(&node, i, &e, &err), &err);
			c = (struct tree_child){ .name = e.name, .name_len = e.name_len };
			c.entries = 1;
			below = summary_of(&e);
		} else {
			CHECK_OK(tree_node_child(&node, i, &c, &err), &err);
			walk(s, &c.id, node.level - 1, &c, sh);
			below = c.below;
		}
		if (want && i == 0)
			CHECK_MEM(c.name, c.name_len, want->name, want->name_len);
		sum.entries += c.entries;
		sum_up(&sum.below, &below);
	}
	if (want) {
		CHECK_EQ(sum.entries, want->entries);
		CHECK_EQ(sum.below.files, want->below.files);
		CHECK_EQ(sum.below.bytes, want->below.bytes);
		CHECK_EQ(sum.below.links, want->below.links);
	}
}

static struct shape shape_of(struct store *s, const struct object_id *id)
{
	struct shape sh = { 0 };

	walk(s, id, 0, NULL, &sh);
	CHECK(sh.bytes_max <= LEAF_BYTES_MAX);
	return sh;
}

static int compare_ids(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct object_id));
}

/* How many nodes of `now` are none of `before`. */
static size_t new_nodes(struct shape *before, const struct shape *now)
{
	size_t n = 0;

	qsort(before->ids, before->n_ids, sizeof(*before->ids), compare_ids);
	for (size_t i = 0; i < now->n_ids; i++)
		n += !bsearch(&now->ids[i], before->ids, before->n_ids, sizeof(*before->ids),
			      compare_ids);
	return n;
}

TEST(an_empty_directory_is_one_node_without_entries)
{
	CLEANUP(world_done) struct world w = world_new("empty");
	const struct object_id tree = world_build(&w, NULL, 0);
	CLEANUP(shape_done) struct shape sh = shape_of(w.s, &tree);

	CHECK_EQ(sh.n_ids, 1);
	CHECK_EQ(sh.leaves[0], 0);
}

enum hit { ANY, HIT, MISS };

/* Are all of these bits zero, or, of a miss, all but one of them, which `i` chooses? */
static bool bits_fit(uint64_t bits, unsigned width, enum hit want, size_t i)
{
	if (want == ANY)
		return true;
	return (bits & ((1u << width) - 1)) == (want == HIT ? 0 : 1u << i % width);
}

/* The i-th name in order, with or barely without the hash at which nodes are cut. */
static void craft_name(const struct object_key *key, size_t i, enum hit leaf, enum hit branch,
		       char name[24])
{
	uint64_t hash;
	unsigned salt = 0;

	do {
		const int len = snprintf(name, 24, "%08zx-%x", i, salt++);

		hash = object_name_hash(key, name, (size_t)len);
	} while (!bits_fit(hash, 8, leaf, i) || !bits_fit(hash >> 8, 7, branch, i / LEAF_MIN));
}

static void add_crafted(struct world *w, size_t i, enum hit leaf, enum hit branch)
{
	struct tree_entry e;
	char name[24];

	craft_name(store_key(w->s), i, leaf, branch, name);
	e = sample_file(name, 1);
	world_add(w, &e, 1);
}

static struct shape finish_shape(struct world *w)
{
	const struct object_id tree = world_finish(w, NULL);

	world_commit(w);
	return shape_of(w->s, &tree);
}

TEST(names_that_are_never_cut_fill_leaves_to_their_limit)
{
	CLEANUP(world_done) struct world w = world_new("never");
	CLEANUP(shape_done) struct shape sh = { 0 };

	for (size_t i = 0; i < 3 * LEAF_MAX + 1; i++)
		add_crafted(&w, i, MISS, ANY);
	sh = finish_shape(&w);
	CHECK_EQ(sh.n_leaves, 4);
	for (size_t i = 0; i < 3; i++)
		CHECK_EQ(sh.leaves[i], LEAF_MAX);
	CHECK_EQ(sh.leaves[3], 1);
	CHECK_EQ(sh.level, 1);
}

TEST(names_that_are_always_cut_fill_leaves_to_their_least)
{
	CLEANUP(world_done) struct world w = world_new("always");
	CLEANUP(shape_done) struct shape sh = { 0 };

	for (size_t i = 0; i < 3 * LEAF_MIN; i++)
		add_crafted(&w, i, HIT, ANY);
	sh = finish_shape(&w);
	CHECK_EQ(sh.n_leaves, 3);
	for (size_t i = 0; i < 3; i++)
		CHECK_EQ(sh.leaves[i], LEAF_MIN);
}

TEST(a_directory_that_ends_where_a_leaf_does_is_that_leaf)
{
	CLEANUP(world_done) struct world w = world_new("exact");
	CLEANUP(shape_done) struct shape sh = { 0 };

	for (size_t i = 0; i < LEAF_MIN; i++)
		add_crafted(&w, i, i == LEAF_MIN - 1 ? HIT : ANY, ANY);
	sh = finish_shape(&w);
	CHECK_EQ(sh.level, 0);
	CHECK_EQ(sh.leaves[0], LEAF_MIN);
}

/* Of the bits of a name's hash that decide behind a long entry: at least `from`, below `to`. */
struct bounds {
	uint32_t from, to;
};

/* The i-th name in order, of a symlink that takes `size` bytes. */
static void add_long(struct world *w, size_t i, size_t name_len, size_t size, struct bounds b)
{
	char name[TREE_NAME_LEN_MAX + 1], target[TREE_TARGET_LEN_MAX + 1];
	const size_t target_len = size - RECORD - name_len;
	struct tree_entry e;
	unsigned salt = 0;
	uint64_t bits;

	CHECK(target_len >= 1 && target_len < sizeof(target));
	memset(target, 't', target_len);
	target[target_len] = '\0';
	do {
		snprintf(name, sizeof(name), "%06zx%0*x", i, (int)name_len - 6, salt++);
		bits = object_name_hash(store_key(w->s), name, name_len) >> 16 & LONG_CUT_BITS;
	} while (bits < b.from || bits >= b.to);
	e = sample_symlink(name, target);
	world_add(w, &e, 1);
}

/* Three leaves of `fit`: the entry numbered `at` in each within its own bounds, the rest in `b`. */
static struct shape long_leaves(struct world *w, size_t name_len, size_t size, size_t fit,
				struct bounds b, size_t at, struct bounds own)
{
	for (size_t i = 0; i < 3 * fit; i++)
		add_long(w, i, name_len, size, i % fit == at ? own : b);
	return finish_shape(w);
}

static void check_leaves(const struct shape *sh, size_t n, uint32_t entries)
{
	CHECK_EQ(sh->n_leaves, n);
	for (size_t i = 0; i < n; i++)
		CHECK_EQ(sh->leaves[i], entries);
}

TEST(long_names_and_targets_fill_leaves_to_192_kib)
{
	const size_t name_len = 245, each = RECORD + name_len + TREE_TARGET_LEN_MAX, fit = 44;
	const uint32_t over = (uint32_t)each - LONG_ENTRY;
	const struct bounds never = { over + 1, LONG_CUT_BITS + 1 };
	CLEANUP(world_done) struct world w = world_new("targets");
	CLEANUP(shape_done) struct shape exact =
	    long_leaves(&w, name_len, each, fit, never, 0, never);
	CLEANUP(shape_done) struct shape more =
	    long_leaves(&w, name_len + 1, each + 1, fit - 1, never, 0, never);

	CHECK_EQ(HEADER + fit * each, LEAF_BYTES_MAX);
	CHECK_EQ(exact.bytes_max, LEAF_BYTES_MAX);
	check_leaves(&exact, 3, fit);
	check_leaves(&more, 3, fit - 1);
}

TEST(a_leaf_of_24_kib_ends_behind_a_long_entry_of_a_fitting_name)
{
	const size_t each = 2456, fit = 10, less_each = 599, less_fit = 41;
	const uint32_t over = (uint32_t)each - LONG_ENTRY;
	const struct bounds always = { 0, over - 1 }, never = { over + 1, LONG_CUT_BITS + 1 };
	const struct bounds just = { over - 1, over }, just_not = { over, over + 1 };
	const struct bounds less_always = { 0, (uint32_t)less_each - LONG_ENTRY };
	CLEANUP(world_done) struct world w = world_new("long");
	CLEANUP(shape_done) struct shape exact =
	    long_leaves(&w, 20, each, fit, always, fit - 1, just);
	CLEANUP(shape_done) struct shape less =
	    long_leaves(&w, 20, less_each, less_fit + 1, less_always, 0, less_always);
	CLEANUP(shape_done) struct shape not =
	    long_leaves(&w, 20, each, fit, never, fit - 1, just_not);

	CHECK_EQ(HEADER + fit * each, LEAF_BYTES_MIN);
	check_leaves(&exact, 3, fit);
	CHECK_EQ(HEADER + less_fit * less_each, LEAF_BYTES_MIN - 1);
	check_leaves(&less, 3, less_fit + 1);
	check_leaves(&not, 1, 3 * fit);
}

TEST(an_entry_of_256_bytes_is_not_long_and_one_of_257_is)
{
	const struct bounds least = { 0, 1 }, rest = { 1, LONG_CUT_BITS + 1 };
	CLEANUP(world_done) struct world w = world_new("not-long");

	CHECK(HEADER + 100 * LONG_ENTRY > LEAF_BYTES_MIN);
	for (size_t more = 0; more < 2; more++) {
		CLEANUP(shape_done) struct shape sh = { 0 };

		for (size_t i = 0; i < LEAF_MIN - 1; i++)
			add_long(&w, i, 20, LONG_ENTRY + more, i == 99 ? least : rest);
		sh = finish_shape(&w);
		CHECK_EQ(sh.n_leaves, 1 + more);
		CHECK_EQ(sh.leaves[0], more ? 100 : LEAF_MIN - 1);
	}
}

/* Leaves of LEAF_MIN entries; the child numbered `cut`, and no other, ends its branch. */
static void add_leaves(struct world *w, size_t leaves, size_t cut)
{
	for (size_t i = 0; i < leaves * LEAF_MIN; i++) {
		const bool first = i % LEAF_MIN == 0, last = i % LEAF_MIN == LEAF_MIN - 1;
		const enum hit branch = i / LEAF_MIN == cut ? HIT : MISS;

		add_crafted(w, i, last ? HIT : ANY, first ? branch : ANY);
	}
}

/* Twice with one builder: how the first ended must not be seen in the second. */
static struct shape crafted_leaves(struct world *w, size_t leaves, size_t cut)
{
	struct object_id first;
	struct shape sh;

	add_leaves(w, leaves, cut);
	first = world_finish(w, NULL);
	add_leaves(w, leaves, cut);
	sh = finish_shape(w);
	CHECK(object_id_equal(&sh.ids[0], &first));
	return sh;
}

TEST(a_branch_is_cut_after_its_least_and_never_leaves_one_child_over)
{
	static const struct {
		size_t leaves, cut;
		unsigned level;
		size_t n_branches;
		uint32_t last;
	} cases[] = {
		{ 1, 0, 0, 0, 0 },
		{ 2, 0, 1, 1, 2 },
		{ BRANCH_MIN + 1, BRANCH_MIN - 2, 1, 1, BRANCH_MIN + 1 },
		{ BRANCH_MIN, BRANCH_MIN - 1, 1, 1, BRANCH_MIN },
		{ BRANCH_MIN + 1, BRANCH_MIN - 1, 1, 1, BRANCH_MIN + 1 },
		{ BRANCH_MIN + 2, BRANCH_MIN - 1, 2, 3, 2 },
		{ BRANCH_MIN + 3, BRANCH_MIN - 1, 2, 3, 3 },
		{ BRANCH_MIN + 3, BRANCH_MIN, 2, 3, 2 },
	};
	CLEANUP(world_done) struct world w = world_new("branches");

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(shape_done) struct shape sh =
		    crafted_leaves(&w, cases[i].leaves, cases[i].cut);

		CHECK_EQ(sh.n_leaves, cases[i].leaves);
		CHECK_EQ(sh.level, cases[i].level);
		CHECK_EQ(sh.n_branches, cases[i].n_branches);
		if (sh.n_branches > 0)
			CHECK_EQ(sh.branches[sh.n_branches - 1], cases[i].last);
	}
}

TEST(names_that_never_cut_a_branch_fill_it_to_its_limit)
{
	CLEANUP(world_done) struct world w = world_new("wide");
	CLEANUP(shape_done) struct shape one = crafted_leaves(&w, BRANCH_MAX + 1, SIZE_MAX);
	CLEANUP(shape_done) struct shape two = crafted_leaves(&w, BRANCH_MAX + 2, SIZE_MAX);

	CHECK_EQ(one.level, 1);
	CHECK_EQ(one.branches[0], BRANCH_MAX + 1);
	CHECK_EQ(two.level, 2);
	CHECK_EQ(two.n_branches, 3);
	CHECK_EQ(two.branches[1], BRANCH_MAX);
	CHECK_EQ(two.branches[2], 2);
}

/* The second call fails as the first did, until the directory is finished. */
static void fails_at(struct world *w, const struct tree_entry *list, size_t n, size_t at)
{
	struct tree_summary below;
	struct err err = { 0 };
	struct object_id id;

	world_add(w, list, at);
	if (at < n) {
		CHECK_EQ(tree_builder_add(w->t, &list[at], &err), -EBADMSG);
		CHECK_EQ(tree_builder_add(w->t, &list[at + 1], &err), -EBADMSG);
		CHECK_HAS(err.msg, "an earlier part of the directory could not be stored");
	}
	CHECK_EQ(tree_builder_finish(w->t, &id, &below, &err), -EBADMSG);
}

TEST(a_directory_that_could_not_be_stored_fails_and_the_next_one_does_not)
{
	static char names[3 * LEAF_MIN][24];
	static struct tree_entry list[3 * LEAF_MIN];
	CLEANUP(world_done) struct world w = world_new("failed");
	CLEANUP(shape_done) struct shape sh = { 0 };
	struct object_id tree, other, again;

	for (size_t i = 0; i < ARRAY_LEN(list); i++) {
		craft_name(store_key(w.s), i, HIT, ANY, names[i]);
		list[i] = sample_file(names[i], 1);
	}
	tree = world_build(&w, list, ARRAY_LEN(list));
	other = world_build(&w, list + 1, 2 * LEAF_MIN);
	sh = shape_of(w.s, &tree);
	CHECK_EQ(sh.n_ids, 4);

	/* The top, which is put at the end, then the second leaf, then the first. */
	for (size_t i = 0; i < 3; i++) {
		static const size_t at[] = { 3 * LEAF_MIN, 2 * LEAF_MIN - 1, LEAF_MIN - 1 };
		static const size_t node[] = { 0, 2, 1 };

		damage_object(store_path(w.s), OBJECT_TREE, &sh.ids[node[i]]);
		fails_at(&w, list, ARRAY_LEN(list), at[i]);
		world_add(&w, list + 1, 2 * LEAF_MIN);
		again = world_finish(&w, NULL);
		CHECK(object_id_equal(&again, &other));
	}
}

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

TEST_MAIN("tree-build")
