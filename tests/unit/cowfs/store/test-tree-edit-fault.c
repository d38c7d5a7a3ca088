/* What an edit reads and puts, and what it does with damage, wrong names and too little memory. */
#include "tests/unit/cowfs/store/row-fixture.h"

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

TEST_MAIN("tree-edit-fault")
