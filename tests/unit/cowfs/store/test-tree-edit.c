/*
 * A directory as a row of names of which each is there, in one of many versions, or not:
 * what an edit makes of it must be what the builder makes of all that is there.
 */
#include <errno.h>
#include <stdio.h>

#include "cowfs/store/tree-edit.h"
#include "cowfs/store/tree-node.h"
#include "tests/lib/damage.h"
#include "tests/unit/cowfs/store/edit-fixture.h"
#include "tests/unit/cowfs/store/tree-fixture.h"

#define NAME_SIZE 24

enum row_kind {
	ORDINARY, /* entries of every sort */
	LONG,     /* symlinks with targets of any length */
	NEVER,    /* long ones in leaves that end at their limit of bytes only */
	ALWAYS,   /* long ones in leaves of six, and those in branches of 64 */
	STEADY,   /* the same, but only as long as no name goes before the end */
};

#define ALWAYS_LEAF   6
#define ALWAYS_BRANCH (64 * ALWAYS_LEAF)

struct row {
	enum row_kind kind;
	size_t n;
	char (*name)[NAME_SIZE]; /* owned, as are the others; rising */
	uint32_t *version;       /* 0: not there */
	struct object_id tree;   /* of what is there */
	struct tree_summary below;
	struct world *w;
	struct cache *c;
};

/* Does name `i` begin the last leaf of a branch, or a branch of leaves, which may be the last? */
static bool ends_branch(size_t i)
{
	return i % ALWAYS_BRANCH == 0 || i % ALWAYS_BRANCH == ALWAYS_BRANCH - ALWAYS_LEAF;
}

static bool name_fits(const struct row *row, size_t i)
{
	const char *name = row->name[i];
	const uint64_t hash = object_name_hash(store_key(row->w->s), name, strlen(name));
	const uint64_t long_bits = hash >> 16 & 0x7fff;

	if (row->kind == NEVER)
		return long_bits > 4200;
	if (row->kind != ALWAYS && row->kind != STEADY)
		return true;
	if (row->kind == STEADY && !ends_branch(i))
		return long_bits < 3000;
	return long_bits < 3000 && (hash & 0x7f00) == 0;
}

static struct row row_new(struct world *w, enum row_kind kind, size_t n)
{
	struct row row = {
		.kind = kind,
		.n = n,
		.name = calloc(n, NAME_SIZE),
		.version = calloc(n, sizeof(*row.version)),
		.w = w,
		.c = new_cache(w->s),
	};

	CHECK(row.name && row.version);
	for (size_t i = 0; i < n; i++) {
		unsigned salt = 0;

		do
			snprintf(row.name[i], NAME_SIZE, "%06zx-%x", i, salt++);
		while (!name_fits(&row, i));
	}
	return row;
}

static void row_done(struct row *row)
{
	free(row->name);
	free(row->version);
	cache_free(row->c);
}

static struct tree_entry ordinary_entry(const char *name, uint32_t v)
{
	switch (v % 8) {
	case 0:
		return sample_directory(name);
	case 1:
		return sample_link(name);
	case 2:
		return sample_symlink(name, "../where");
	case 3:
		return sample_hole(name, v);
	default:
		return sample_file(name, v);
	}
}

static struct tree_entry entry_at(const struct row *row, size_t i, uint32_t v)
{
	static char target[TREE_TARGET_LEN_MAX + 1];
	struct tree_entry e;

	if (row->kind == ORDINARY)
		return ordinary_entry(row->name[i], v);
	if (target[0] == '\0')
		memset(target, 't', sizeof(target) - 1);
	e = sample_symlink(row->name[i], target);
	if (row->kind == LONG || row->kind == NEVER)
		e.target_len = 1 + v % TREE_TARGET_LEN_MAX;
	e.size = e.target_len;
	e.ino = v;
	return e;
}

/* Changes being collected; a name that was added before is passed over. */
struct edit_list {
	struct tree_change *change; /* owned, as is the other */
	struct tree_entry *entry;
	size_t n;
	size_t next; /* no name before this one can be added */
};

static struct edit_list list_new(const struct row *row)
{
	struct edit_list l = {
		.change = calloc(row->n, sizeof(*l.change)),
		.entry = calloc(row->n, sizeof(*l.entry)),
	};

	CHECK(l.change && l.entry);
	return l;
}

static void list_done(struct edit_list *l)
{
	free(l->change);
	free(l->entry);
}

/* Let name `i` be there in version `v`, or not if that is 0. */
static void change(struct row *row, struct edit_list *l, size_t i, uint32_t v)
{
	if (i < l->next || i >= row->n)
		return;
	l->next = i + 1;
	row->version[i] = v;
	l->entry[l->n] = entry_at(row, i, v);
	l->change[l->n] = (struct tree_change){
		.name = row->name[i],
		.name_len = strlen(row->name[i]),
		.entry = v > 0 ? &l->entry[l->n] : NULL,
	};
	l->n++;
}

static void edit_row(struct row *row, const struct edit_list *l)
{
	struct err err = { 0 };

	CHECK_OK(tree_edit(row->w->b, row->c, &row->tree, l->change, l->n, &row->tree, &row->below,
			   &err),
		 &err);
	world_commit(row->w);
}

/* What the edit gave is what all entries give, and everything of it is in the store. */
static void check_row(struct row *row)
{
	struct tree_summary below;
	struct object_id tree;

	counted.fresh = 0;
	for (size_t i = 0; i < row->n; i++)
		if (row->version[i] > 0) {
			const struct tree_entry e = entry_at(row, i, row->version[i]);

			world_add(row->w, &e, 1);
		}
	tree = world_finish(row->w, &below);
	CHECK(object_id_equal(&row->tree, &tree));
	CHECK_EQ(row->below.files, below.files);
	CHECK_EQ(row->below.bytes, below.bytes);
	CHECK_EQ(row->below.links, below.links);
	CHECK_EQ(counted.fresh, 0);
}

/* Let the first `n` names be there and no others. */
static void fill_row(struct row *row, size_t n)
{
	CLEANUP(list_done) struct edit_list l = list_new(row);

	for (size_t i = 0; i < row->n; i++)
		if ((row->version[i] > 0) != (i < n))
			change(row, &l, i, i < n);
	edit_row(row, &l);
}

static uint32_t random_version(struct test_rng *rng)
{
	return test_rand(rng) % 3 == 0 ? 0 : 1 + (uint32_t)(test_rand(rng) % 100000);
}

static void random_edit(struct row *row, struct edit_list *l, struct test_rng *rng)
{
	const size_t from = test_rand(rng) % row->n;
	const size_t count = test_rand(rng) % (test_rand(rng) % 2 ? 10 : row->n / 2);
	const uint32_t v = random_version(rng);

	switch (test_rand(rng) % 8) {
	case 0: /* nothing */
		break;
	case 1: /* all of them */
		for (size_t i = 0; i < row->n; i++)
			change(row, l, i, test_rand(rng) % 4 ? v : random_version(rng));
		break;
	case 2: /* a run, the same */
	case 3:
		for (size_t i = 0; i < count; i++)
			change(row, l, from + i, v);
		break;
	case 4: /* here and there */
		for (size_t i = 0; i < row->n; i += 1 + test_rand(rng) % (row->n / 4))
			change(row, l, i, random_version(rng));
		break;
	case 5: /* the last */
		change(row, l, row->n - 1 - test_rand(rng) % 10, random_version(rng));
		break;
	case 6: /* the first */
		change(row, l, test_rand(rng) % 10, random_version(rng));
		break;
	default: /* one */
		change(row, l, from, random_version(rng));
	}
}

static void random_edits(enum row_kind kind, size_t n, unsigned steps, const char *name)
{
	CLEANUP(world_done) struct world w = world_new(name);
	CLEANUP(row_done) struct row row = row_new(&w, kind, n);
	struct test_rng rng = { .s = test_seed() };

	fill_row(&row, n);
	check_row(&row);
	for (unsigned i = 0; i < steps; i++) {
		CLEANUP(list_done) struct edit_list l = list_new(&row);

		random_edit(&row, &l, &rng);
		edit_row(&row, &l);
		check_row(&row);
	}
}

TEST(any_edit_of_ordinary_entries_gives_what_building_anew_gives)
{
	random_edits(ORDINARY, 500, 60, "random-small");
	random_edits(ORDINARY, 20000, 40, "random");
}

TEST(any_edit_of_long_entries_gives_what_building_anew_gives)
{
	random_edits(LONG, 2000, 60, "random-long");
}

TEST(any_edit_of_leaves_that_end_at_their_limit_gives_what_building_anew_gives)
{
	random_edits(NEVER, 1000, 60, "random-never");
}

TEST(any_edit_of_leaves_and_branches_of_the_least_size_gives_what_building_anew_gives)
{
	random_edits(ALWAYS, 3 * ALWAYS_BRANCH, 60, "random-always");
}

TEST(a_directory_that_grows_or_shrinks_at_its_end_ends_in_no_branch_of_one_child)
{
	static const size_t sizes[] = {
		ALWAYS_BRANCH,
		ALWAYS_BRANCH + 1,
		ALWAYS_BRANCH + ALWAYS_LEAF,
		ALWAYS_BRANCH + ALWAYS_LEAF + 1,
		ALWAYS_BRANCH + 2 * ALWAYS_LEAF,
		2 * ALWAYS_BRANCH - 1,
		2 * ALWAYS_BRANCH + 1,
		2 * ALWAYS_BRANCH + ALWAYS_LEAF + 1,
		ALWAYS_LEAF,
		ALWAYS_LEAF + 1,
		1,
		0,
	};
	CLEANUP(world_done) struct world w = world_new("ends");
	CLEANUP(row_done) struct row row = row_new(&w, ALWAYS, 2 * ALWAYS_BRANCH + 20);

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
		for (size_t j = 0; j < ARRAY_LEN(sizes); j++) {
			fill_row(&row, sizes[i]);
			fill_row(&row, sizes[j]);
			check_row(&row);
		}
}

TEST(an_entry_that_finds_room_in_the_leaf_before_it_goes_there)
{
	CLEANUP(world_done) struct world w = world_new("room");
	CLEANUP(row_done) struct row row = row_new(&w, NEVER, 100);
	CLEANUP(list_done) struct edit_list all = list_new(&row);

	for (size_t i = 0; i < row.n; i++)
		change(&row, &all, i, TREE_TARGET_LEN_MAX - 1);
	edit_row(&row, &all);
	for (size_t i = 40; i < 50; i++)
		for (unsigned step = 0; step < 2; step++) {
			CLEANUP(list_done) struct edit_list l = list_new(&row);

			change(&row, &l, i, step == 0 ? 1 : TREE_TARGET_LEN_MAX - 1);
			edit_row(&row, &l);
			check_row(&row);
		}
}

TEST(leaves_that_come_or_go_move_the_ends_of_the_branches_behind_them)
{
	CLEANUP(world_done) struct world w = world_new("leaves");
	CLEANUP(row_done) struct row row = row_new(&w, ALWAYS, 3 * ALWAYS_BRANCH);

	fill_row(&row, row.n);
	for (size_t leaves = 1; leaves < 3; leaves++)
		for (size_t at = 0; at < 2 * ALWAYS_BRANCH; at += 31 * ALWAYS_LEAF)
			for (unsigned step = 0; step < 2; step++) {
				CLEANUP(list_done) struct edit_list l = list_new(&row);

				for (size_t i = 0; i < leaves * ALWAYS_LEAF; i++)
					change(&row, &l, at + i, step);
				edit_row(&row, &l);
				check_row(&row);
			}
}

TEST(what_follows_a_branch_of_branches_alone_joins_what_is_in_it)
{
	const size_t first = 64 * ALWAYS_BRANCH; /* names below the first branch of level 2 */
	static const size_t more[] = {
		ALWAYS_BRANCH + 2 * ALWAYS_LEAF, /* two branches of level 1 */
		ALWAYS_BRANCH,                   /* one, which joins that of level 2 */
		ALWAYS_LEAF - 1,                 /* a leaf, which joins the last one of level 1 */
		ALWAYS_LEAF + 1,                 /* two leaves, again one branch of level 1 */
	};
	CLEANUP(world_done) struct world w = world_new("high");
	CLEANUP(row_done) struct row row = row_new(&w, STEADY, first + more[0]);

	for (size_t i = 1; i < ARRAY_LEN(more); i++) {
		fill_row(&row, first + more[0]);
		count_anew(row.c);
		fill_row(&row, first + more[i]);
		CHECK(counted.puts <= 8);
		check_row(&row);
	}
}

TEST(an_empty_directory_may_be_edited_and_may_be_what_is_left)
{
	CLEANUP(world_done) struct world w = world_new("empty");
	CLEANUP(row_done) struct row row = row_new(&w, ORDINARY, 10);
	struct object_id empty;

	fill_row(&row, 0);
	check_row(&row);
	empty = row.tree;
	CHECK(!object_id_is_zero(&empty));
	fill_row(&row, 0);
	CHECK(object_id_equal(&row.tree, &empty));
	CHECK_OK(tree_edit(w.b, row.c, &empty, NULL, 0, &row.tree, &row.below, NULL), NULL);
	CHECK(object_id_equal(&row.tree, &empty));
	fill_row(&row, 10);
	check_row(&row);
	fill_row(&row, 0);
	CHECK(object_id_equal(&row.tree, &empty));
	CHECK_EQ(row.below.files, 0);
}

TEST(a_name_that_is_not_there_may_go)
{
	CLEANUP(world_done) struct world w = world_new("absent");
	CLEANUP(row_done) struct row row = row_new(&w, ORDINARY, 2000);
	struct object_id before;

	fill_row(&row, 1000);
	before = row.tree;
	for (size_t i = 1000; i < 2000; i += 111) {
		CLEANUP(list_done) struct edit_list l = list_new(&row);

		change(&row, &l, i, 0);
		edit_row(&row, &l);
		CHECK(object_id_equal(&row.tree, &before));
	}
}

TEST(a_name_before_the_first_or_behind_the_last_is_found_its_place)
{
	static const struct tree_change ends[] = { { "!", 1, NULL }, { "~", 1, NULL } };
	CLEANUP(world_done) struct world w = world_new("around");
	CLEANUP(row_done) struct row row = row_new(&w, ORDINARY, 3000);
	struct tree_entry e[] = { sample_file("!", 5), sample_file("~", 6) };
	struct tree_change list[] = { ends[0], ends[1] };
	struct object_id tree, before;
	struct tree_summary below;
	struct err err = { 0 };

	fill_row(&row, 3000);
	before = row.tree;
	list[0].entry = &e[0];
	list[1].entry = &e[1];
	CHECK_OK(tree_edit(w.b, row.c, &before, list, 2, &tree, &below, &err), &err);
	CHECK_EQ(below.files, row.below.files + 2);
	world_commit(&w);
	world_add(&w, &e[0], 1);
	for (size_t i = 0; i < row.n; i++) {
		const struct tree_entry old = entry_at(&row, i, row.version[i]);

		world_add(&w, &old, 1);
	}
	world_add(&w, &e[1], 1);
	row.tree = world_finish(&w, NULL);
	CHECK(object_id_equal(&tree, &row.tree));
	CHECK_OK(tree_edit(w.b, row.c, &tree, ends, 2, &tree, &below, &err), &err);
	CHECK(object_id_equal(&tree, &before));
}

#define MANY 100000

TEST(one_change_in_a_large_directory_reads_and_puts_a_handful_of_nodes)
{
	CLEANUP(world_done) struct world w = world_new("large");
	CLEANUP(row_done) struct row row = row_new(&w, ORDINARY, MANY + 1);
	unsigned all_loads = 0, all_puts = 0;
	struct {
		size_t i;
		uint32_t v;
	} edits[] = {
		{ 0, 0 }, { 0, 5 },        { MANY / 2, 4 }, { MANY / 3, 0 },
		{ 7, 9 }, { MANY - 1, 6 }, { MANY, 5 },     { MANY, 0 },
	};

	fill_row(&row, MANY);
	check_row(&row);
	for (size_t i = 0; i < ARRAY_LEN(edits); i++) {
		CLEANUP(list_done) struct edit_list l = list_new(&row);
		const uint64_t before = cache_stats(row.c).loaded;
		unsigned loads;

		count_anew(row.c);
		change(&row, &l, edits[i].i, edits[i].v);
		edit_row(&row, &l);
		loads = loads_since(row.c, before);
		/* A leaf and the way to it; now and then an end moves and some more follow. */
		CHECK(loads >= 2 && loads <= 20);
		CHECK(counted.puts >= 2 && counted.puts <= 20);
		all_loads += loads;
		all_puts += counted.puts;
	}
	CHECK(all_loads <= 60);
	CHECK(all_puts <= 60);
	check_row(&row);
}

TEST(what_an_edit_put_the_next_one_need_not_read)
{
	CLEANUP(world_done) struct world w = world_new("again");
	CLEANUP(row_done) struct row row = row_new(&w, ORDINARY, 2000);
	uint64_t loaded = 0;

	fill_row(&row, 2000);
	count_anew(row.c);
	for (unsigned i = 0; i < 3; i++) {
		CLEANUP(list_done) struct edit_list l = list_new(&row);

		change(&row, &l, 1000, 100 + i);
		edit_row(&row, &l);
		if (i == 0)
			loaded = cache_stats(row.c).loaded;
	}
	CHECK(loaded > 0);
	CHECK_EQ(cache_stats(row.c).loaded, loaded);
	check_row(&row);
}

/* Edit one name and expect a failure that says this. */
static void edit_fails(struct row *row, size_t i, int code, const char *why)
{
	CLEANUP(list_done) struct edit_list l = list_new(row);
	const uint32_t version = row->version[i];
	struct tree_summary below = { .files = 77 };
	struct object_id tree = sample_id;
	struct err err = { 0 };

	change(row, &l, i, 4711);
	row->version[i] = version;
	cache_drop(row->c);
	CHECK_EQ(tree_edit(row->w->b, row->c, &row->tree, l.change, l.n, &tree, &below, &err),
		 code);
	CHECK_EQ(err.code, code);
	CHECK_HAS(err.msg, why);
	CHECK(object_id_equal(&tree, &sample_id));
	CHECK_EQ(below.files, 77);
}

/* Child `i` of the top of a tree. */
static struct object_id child_of(struct store *s, const struct object_id *tree, uint32_t i)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	struct err err = { 0 };
	struct tree_node top;
	struct tree_child c;

	CHECK_OK(store_get(s, OBJECT_TREE, tree, &bytes, &err), &err);
	CHECK_OK(tree_node_open(bytes.data, bytes.len, &top, &err), &err);
	CHECK_OK(tree_node_child(&top, i, &c, &err), &err);
	return c.id;
}

TEST(damage_on_the_way_is_reported_and_damage_elsewhere_does_not_matter)
{
	CLEANUP(world_done) struct world w = world_new("damage");
	CLEANUP(row_done) struct row row = row_new(&w, ALWAYS, 10 * ALWAYS_LEAF);
	struct object_id leaf;

	fill_row(&row, row.n);
	leaf = child_of(w.s, &row.tree, 5);
	damage_object(store_path(w.s), OBJECT_TREE, &leaf);
	cache_drop(row.c);
	edit_fails(&row, 5 * ALWAYS_LEAF + 1, -EBADMSG, "tree");
	for (size_t i = 0; i < 4; i++) {
		static const size_t at[] = { 0, 3, 7, 9 };
		CLEANUP(list_done) struct edit_list l = list_new(&row);

		change(&row, &l, at[i] * ALWAYS_LEAF + 1, 4711);
		edit_row(&row, &l);
	}
	damage_remove(store_path(w.s), OBJECT_TREE, &row.tree);
	edit_fails(&row, 1, -EBADMSG, "tree");
}

/* Put a branch over leaves of these names that are said to begin with others. */
static struct object_id put_branch(struct world *w, unsigned level, const char *const names[][2],
				   const char *const said[], size_t n)
{
	CLEANUP(tree_node_writer_done) struct tree_node_writer branch = { .level = level };
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;

	for (size_t i = 0; i < n; i++) {
		struct tree_child c = { .name = said[i], .name_len = strlen(said[i]) };

		for (size_t j = 0; j < 2; j++) {
			const struct tree_entry e = sample_file(names[i][j], 1);

			world_add(w, &e, 1);
		}
		c.id = world_finish(w, &c.below);
		c.entries = 2;
		CHECK_EQ(tree_node_add_child(&branch, &c), 0);
	}
	CHECK_EQ(tree_node_finish(&branch, &bytes), 0);
	return stock_put(w->b, OBJECT_TREE, bytes.data, bytes.len);
}

TEST(nodes_that_do_not_fit_together_are_damage)
{
	static const char *const names[][2] = { { "a", "c" }, { "e", "g" }, { "i", "k" } };
	static const char *const overlap[][2] = { { "a", "e" }, { "e", "g" }, { "i", "k" } };
	static const char *const said[] = { "a", "e", "i" }, *const wrong[] = { "a", "d", "i" };
	static const char *const falling[] = { "a", "i", "e" };
	CLEANUP(world_done) struct world w = world_new("misfit");
	CLEANUP(cache_free_p) struct cache *c = new_cache(w.s);
	const struct {
		struct object_id base;
		const char *why;
	} cases[] = {
		{ put_branch(&w, 2, names, said, 3), "level 0 right below level 2" },
		{ put_branch(&w, 1, names, wrong, 3), "does not begin as its branch says" },
		{ put_branch(&w, 1, overlap, said, 3), "has names of the node behind it" },
		{ put_branch(&w, 1, names, falling, 3), "does not follow the one before" },
	};
	const struct object_id fine = put_branch(&w, 1, names, said, 3);
	/* So that no leaf can be taken over: each begins in the one that is being filled. */
	const struct tree_entry e = sample_file("0", 1);
	const struct tree_change list[] = { { "0", 1, &e } };
	struct tree_summary below;
	struct object_id id;

	world_commit(&w);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err = { 0 };

		CHECK_EQ(tree_edit(w.b, c, &cases[i].base, list, 1, &id, &below, &err), -EBADMSG);
		CHECK_HAS(err.msg, cases[i].why);
	}
	CHECK_OK(tree_edit(w.b, c, &fine, list, 1, &id, &below, NULL), NULL);
	CHECK_EQ(below.files, 7);
}

TEST(a_name_that_cannot_stand_in_a_directory_is_refused)
{
	CLEANUP(world_done) struct world w = world_new("refused");
	CLEANUP(cache_free_p) struct cache *c = new_cache(w.s);
	const struct tree_entry e = sample_file("a/b", 1);
	const struct tree_change list[] = { { "a/b", 3, &e } };
	struct object_id none = { { 0 } }, id;
	struct tree_summary below;
	struct err err = { 0 };

	CHECK_EQ(tree_edit(w.b, c, &none, list, 1, &id, &below, &err), -EINVAL);
	CHECK_HAS(err.msg, "'a/b'");
}

TEST(memory_that_runs_out_is_reported_and_leaves_nothing_behind)
{
	CLEANUP(world_done) struct world w = world_new("memory");
	CLEANUP(row_done) struct row row = row_new(&w, ALWAYS, ALWAYS_BRANCH + 2 * ALWAYS_LEAF);
	CLEANUP(list_done) struct edit_list l = list_new(&row);
	struct tree_summary below;
	struct object_id tree;
	unsigned failures = 0;

	fill_row(&row, row.n);
	change(&row, &l, 100, 2);
	for (size_t i = 0; i < ALWAYS_LEAF; i++)
		change(&row, &l, row.n - ALWAYS_LEAF + i, 0);
	for (unsigned n = 1;; n++) {
		struct err err = { 0 };
		int r;

		cache_drop(row.c);
		memory_ran_out = false;
		memory_lasts = n;
		r = tree_edit(w.b, row.c, &row.tree, l.change, l.n, &tree, &below, &err);
		memory_lasts = 0;
		if (r == 0)
			break;
		CHECK(memory_ran_out);
		CHECK_EQ(r, -ENOMEM);
		CHECK_EQ(err.code, -ENOMEM);
		failures++;
	}
	CHECK(failures > 10);
	row.tree = tree;
	row.below = below;
	world_commit(&w);
	check_row(&row);
}

TEST_MAIN("tree-edit")
