/* What check says of directories whose nodes are each in order and do not fit together. */
#include "tests/unit/cowfs/store/upkeep/check-fixture.h"

static void add_up(struct tree_child *to, uint64_t entries, const struct tree_summary *below)
{
	to->entries += entries;
	to->below.files += below->files;
	to->below.bytes += below->bytes;
	to->below.links = to->below.links || below->links;
}

static void put_node(struct batch *b, struct tree_node_writer *w, struct object_id *ret)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;

	CHECK_EQ(tree_node_finish(w, &bytes), 0);
	*ret = stock_put(b, OBJECT_TREE, bytes.data, bytes.len);
	tree_node_writer_done(w);
}

/* A leaf of two files, and the record that names it rightly. */
static struct tree_child put_leaf(struct batch *b, const char *one, const char *two)
{
	const struct tree_entry in[] = { file(b, one, one), file(b, two, two) };
	struct tree_child c = { .name = one, .name_len = strlen(one) };
	struct tree_node_writer w = { 0 };

	for (size_t i = 0; i < 2; i++) {
		const struct tree_summary below = { .files = 1, .bytes = in[i].size };

		CHECK_EQ(tree_node_add_entry(&w, &in[i]), 0);
		add_up(&c, 1, &below);
	}
	put_node(b, &w, &c.id);
	return c;
}

static struct tree_child put_branch(struct batch *b, unsigned level, const struct tree_child *one,
				    const struct tree_child *two)
{
	struct tree_child c = { .name = one->name, .name_len = one->name_len };
	struct tree_node_writer w = { .level = level };

	CHECK_EQ(tree_node_add_child(&w, one), 0);
	CHECK_EQ(tree_node_add_child(&w, two), 0);
	add_up(&c, one->entries, &one->below);
	add_up(&c, two->entries, &two->below);
	put_node(b, &w, &c.id);
	return c;
}

static void look_at_node(struct scene *sc, const struct tree_child *node, const char *why)
{
	struct tree_entry top = dir_entry(ROOT_TOP);

	top.id = node->id;
	top.below = node->below;
	put_snapshot(sc->b, "s", &top, NULL);
	commit_and_look(sc);
	if (why)
		check_only(sc, why, "snapshot s:\n");
	else
		CHECK_EQ(sc->report.n_findings, 0);
}

TEST(a_branch_that_says_something_else_than_its_node_is_a_finding)
{
	static const char *const why[] = {
		NULL,
		"does not begin with the name",
		"it has 2 names, not 3",
		"it has 2 files, not 3",
		"its files have 2 bytes, not 3",
		"it has no hard links",
	};

	for (size_t i = 0; i < ARRAY_LEN(why); i++) {
		char name[16];
		struct scene sc;
		struct tree_child one, two;

		snprintf(name, sizeof(name), "branch-%zu", i);
		sc = scene_open(name);
		one = put_leaf(sc.b, "a", "b");
		two = put_leaf(sc.b, "d", "e");
		if (i == 1)
			two.name = "c";
		two.entries += i == 2;
		two.below.files += i == 3;
		two.below.bytes += i == 4;
		two.below.links = i == 5;
		one = put_branch(sc.b, 1, &one, &two);
		look_at_node(&sc, &one, why[i]);
		scene_done(&sc);
	}
}

TEST(a_node_of_another_level_than_its_branch_wants_is_a_finding)
{
	CLEANUP(scene_done) struct scene sc = scene_open("tree-level");
	const struct tree_child a = put_leaf(sc.b, "a", "b"), c = put_leaf(sc.b, "c", "d");
	const struct tree_child e = put_leaf(sc.b, "e", "f");
	const struct tree_child low = put_branch(sc.b, 1, &a, &c);
	const struct tree_child top = put_branch(sc.b, 2, &low, &e);

	look_at_node(&sc, &top, "its level is wrong here");
}

TEST(names_that_do_not_rise_from_node_to_node_are_a_finding)
{
	{
		CLEANUP(scene_done) struct scene sc = scene_open("order");
		const struct tree_child a = put_leaf(sc.b, "a", "z"), c = put_leaf(sc.b, "c", "d");
		const struct tree_child top = put_branch(sc.b, 1, &a, &c);

		look_at_node(&sc, &top, "do not follow those of the node before");
	}
	for (int wrong = 0; wrong < 2; wrong++) {
		struct scene sc = scene_open(wrong ? "order-deep" : "order-right");
		const struct tree_child a = put_leaf(sc.b, "a", "b");
		const struct tree_child c = put_leaf(sc.b, "c", wrong ? "e" : "d");
		const struct tree_child e = put_leaf(sc.b, "e", "f"), g = put_leaf(sc.b, "g", "h");
		const struct tree_child one = put_branch(sc.b, 1, &a, &c);
		const struct tree_child two = put_branch(sc.b, 1, &e, &g);
		const struct tree_child top = put_branch(sc.b, 2, &one, &two);

		look_at_node(&sc, &top, wrong ? "do not follow those of the node before" : NULL);
		scene_done(&sc);
	}
}

TEST(a_directory_that_is_summed_up_wrongly_is_a_finding_at_every_depth)
{
	static const char *const why[] = {
		"it has 1 files, not 2",
		"its files have 4 bytes, not 5",
		"it has no hard links",
	};

	for (size_t i = 0; i < 2 * ARRAY_LEN(why); i++) {
		const size_t what = i / 2;
		const bool first = i % 2;
		struct tree_entry e, dir, top;
		struct scene sc;
		char name[16];

		snprintf(name, sizeof(name), "sum-%zu", i);
		sc = scene_open(name);
		e = file(sc.b, "f", "text");
		dir = directory(sc.b, "dir", &e, 1);
		top = directory(sc.b, "d", &dir, 1);
		if (!first) {
			dir.below.files += what == 0;
			dir.below.bytes += what == 1;
			dir.below.links = what == 2;
			top = directory(sc.b, "d", &dir, 1);
		} else {
			top.below.files += what == 0;
			top.below.bytes += what == 1;
			top.below.links = what == 2;
		}
		put_snapshot(sc.b, "s", &top, NULL);
		/* What is clean by itself must not hide what others say of it. */
		if (!first) {
			dir = directory(sc.b, "dir", &e, 1);
			top = directory(sc.b, "d", &dir, 1);
			put_snapshot(sc.b, "a", &top, NULL);
		}
		commit_and_look(&sc);
		check_only(&sc, why[what], first ? "snapshot s:\n" : "snapshot s:dir\n");
		scene_done(&sc);
	}
}

TEST(a_directory_with_another_number_of_links_than_directories_in_it_is_a_finding)
{
	CLEANUP(scene_done) struct scene sc = scene_open("dir-links");
	const struct tree_entry empty = directory(sc.b, "empty", NULL, 0);
	struct tree_entry in[] = { directory(sc.b, "d", &empty, 1), file(sc.b, "f", "text") };
	struct tree_entry top;

	in[0].nlink = 3;
	top = directory(sc.b, "top", in, 2);
	put_snapshot(sc.b, "not-said", &top, NULL);
	top.nlink = 3;
	put_snapshot(sc.b, "right", &top, NULL);
	in[0].nlink = 2;
	top = directory(sc.b, "top", in, 2);
	put_snapshot(sc.b, "wrong", &top, NULL);
	commit_and_look(&sc);
	check_only(&sc, "it has 1 directories, unlike the 2 links", "snapshot wrong:d\n");
}

/* Branches are cut into so many nodes that none of them shows the number by itself. */
TEST(the_links_of_a_large_directory_are_compared_too)
{
	CLEANUP(scene_done) struct scene sc = scene_open("large-links");
	CLEANUP(tree_builder_free_p) struct tree_builder *t = NULL;
	struct tree_entry large = dir_entry("large"), in = directory(sc.b, "in", NULL, 0);
	const struct tree_entry f = file(sc.b, "f", "text");
	const uint32_t n = 20000;
	struct err err = { 0 };

	in.nlink = 2;
	CHECK_OK(tree_builder_new(sc.b, &t, &err), &err);
	for (uint32_t i = 0; i < n; i++) {
		struct tree_entry e = i % 4 ? in : f;
		char name[16];

		e.name = name;
		e.name_len = (size_t)snprintf(name, sizeof(name), "%08u", i);
		CHECK_OK(tree_builder_add(t, &e, &err), &err);
	}
	CHECK_OK(tree_builder_finish(t, &large.id, &large.below, &err), &err);
	large.nlink = n / 4 * 3 + 2;
	put_snapshot(sc.b, "a-right", &large, NULL);
	large.nlink++;
	put_snapshot(sc.b, "b-wrong", &large, NULL);
	commit_and_look(&sc);
	check_only(&sc, "it has 15000 directories, unlike the 15003 links", "snapshot b-wrong:\n");

	/* The first that names a directory comes to it before its nodes were counted. */
	CLEANUP(batch_end_p) struct batch *b = stock_begin(sc.store);
	put_snapshot(b, "a-first", &large, NULL);
	stock_commit(b);
	look(&sc);
	check_only(&sc, "it has 15000 directories, unlike the 15003 links",
		   "snapshot a-first:\nsnapshot b-wrong:\n");
}

TEST_MAIN("check-tree")
