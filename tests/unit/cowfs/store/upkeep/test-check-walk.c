/* What check says of objects that are each in order and do not fit together. */
#include <stdio.h>
#include <sys/stat.h>

#include "cowfs/store/recipe.h"
#include "cowfs/store/tree-node.h"
#include "cowfs/store/upkeep/check.h"
#include "tests/lib/damage.h"
#include "tests/lib/stock.h"

#define INO 5

/* A store being filled, then its report. */
struct scene {
	struct store *store;
	struct batch *b;
	struct check_report report;
};

static struct scene scene_open(const char *name)
{
	struct scene sc = { .store = stock_open(test_path(name), STORE_CREATE) };

	sc.b = stock_begin(sc.store);
	return sc;
}

static void scene_done(struct scene *sc)
{
	check_report_done(&sc->report);
	batch_end(sc->b);
	store_close(sc->store);
}

static struct tree_entry dir_entry(const char *name)
{
	return (struct tree_entry){
		.name = name, .name_len = strlen(name), .form = TREE_DIR, .mode = S_IFDIR | 0755
	};
}

static struct tree_entry file(struct batch *b, const char *name, const char *text)
{
	struct tree_entry e = { .name = name, .name_len = strlen(name), .mode = S_IFREG | 0644 };
	struct content c;
	struct err err = { 0 };

	CHECK_OK(content_put(b, text, strlen(text), &c, &err), &err);
	tree_entry_set_content(&e, &c);
	return e;
}

static struct tree_entry link_to(const char *name, uint64_t ino)
{
	return (struct tree_entry){ .name = name,
				    .name_len = strlen(name),
				    .form = TREE_LINK,
				    .mode = S_IFREG,
				    .ino = ino };
}

static struct tree_entry directory(struct batch *b, const char *name, const struct tree_entry *in,
				   size_t n)
{
	CLEANUP(tree_builder_free_p) struct tree_builder *t = NULL;
	struct tree_entry e = dir_entry(name);
	struct err err = { 0 };

	CHECK_OK(tree_builder_new(b, &t, &err), &err);
	for (size_t i = 0; i < n; i++)
		CHECK_OK(tree_builder_add(t, &in[i], &err), &err);
	CHECK_OK(tree_builder_finish(t, &e.id, &e.below, &err), &err);
	return e;
}

/* A snapshot of this first directory and, unless NULL, these links. */
static void put_snapshot(struct batch *b, const char *name, const struct tree_entry *top,
			 const struct tree_entry *links)
{
	struct root root = { .top = *top };
	struct object_id id;
	struct err err = { 0 };

	root.top.name = ROOT_TOP;
	root.top.name_len = strlen(ROOT_TOP);
	if (links) {
		root.links = links->id;
		root.in_links = links->below;
	}
	CHECK_OK(root_put(b, &root, &id, &err), &err);
	stock_name(b, REF_SNAPSHOT, name, &id, REF_NEW);
}

static struct tree_entry put_links(struct batch *b, uint64_t ino)
{
	char name[ROOT_LINK_NAME_SIZE];
	struct tree_entry e = file(b, root_link_name(ino, name), "linked");

	e.ino = ino;
	e.nlink = 2;
	return directory(b, ROOT_LINKS, &e, 1);
}

static void look(struct scene *sc)
{
	check_report_done(&sc->report);
	sc->report = stock_check(sc->store);
}

static void commit_and_look(struct scene *sc)
{
	stock_commit(sc->b);
	look(sc);
}

/* There is one finding, with this in its sentence and these paths, each on a line. */
static void check_only(const struct scene *sc, const char *why, const char *paths)
{
	CLEANUP(buf_done) struct buf have = BUF_INIT;
	const struct check_finding *f = sc->report.findings;

	CHECK_EQ(sc->report.n_findings, 1);
	CHECK_HAS(f->why, why);
	for (size_t i = 0; i < f->n_kept; i++)
		CHECK_EQ(buf_printf(&have, "%s\n", f->paths[i]), 0);
	CHECK_STR(buf_str(&have), paths);
}

/* Put a snapshot "s" that has only this file, and look. */
static void look_at_file(struct scene *sc, const struct tree_entry *e)
{
	const struct tree_entry top = directory(sc->b, "d", e, 1);

	put_snapshot(sc->b, "s", &top, NULL);
	commit_and_look(sc);
}

/* --- how long it takes ------------------------------------------------------------------------ */

/* Directories that each name the one below twice: 2^depth paths lead to the entry. */
static struct tree_entry put_doubling(struct batch *b, const struct tree_entry *bottom, int depth)
{
	struct tree_entry in[2], e = directory(b, "d", bottom, 1);

	for (int i = 0; i < depth; i++) {
		in[0] = in[1] = e;
		in[0].name = "a";
		in[1].name = "b";
		e = directory(b, "d", in, 2);
	}
	return e;
}

TEST(links_at_the_end_of_endless_paths_are_looked_at_in_time)
{
	CLEANUP(scene_done) struct scene sc = scene_open("doubling-link");
	const struct tree_entry link = link_to("link", INO);
	const struct tree_entry top = put_doubling(sc.b, &link, 60);
	const struct tree_entry links = put_links(sc.b, INO);

	put_snapshot(sc.b, "s", &top, &links);
	commit_and_look(&sc);
	CHECK_EQ(sc.report.n_findings, 0);
}

TEST(a_lost_link_at_the_end_of_endless_paths_is_found_in_time)
{
	CLEANUP(scene_done) struct scene sc = scene_open("doubling-lost");
	const struct tree_entry link = link_to("link", INO);
	const struct tree_entry top = put_doubling(sc.b, &link, 60);

	put_snapshot(sc.b, "s", &top, NULL);
	commit_and_look(&sc);
	CHECK_EQ(sc.report.n_findings, 1);
	CHECK_EQ(sc.report.findings[0].n_kept, CHECK_PATHS_MAX);
}

TEST(damage_at_the_end_of_endless_paths_is_found_in_time)
{
	CLEANUP(scene_done) struct scene sc = scene_open("doubling-damage");
	const struct tree_entry e = file(sc.b, "file", "text");
	const struct tree_entry top = put_doubling(sc.b, &e, 70);

	put_snapshot(sc.b, "s", &top, NULL);
	put_snapshot(sc.b, "t", &top, NULL);
	commit_and_look(&sc);
	CHECK_EQ(sc.report.n_findings, 0);
	damage_object(store_path(sc.store), OBJECT_CHUNK, &e.id);
	look(&sc);
	CHECK_EQ(sc.report.n_findings, 1);
	CHECK_EQ(sc.report.findings[0].n_kept, CHECK_PATHS_MAX);
	CHECK(sc.report.findings[0].n_paths >= CHECK_PATHS_MAX);
}

static struct object_id put_recipe(struct batch *b, const struct recipe_node *node)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;

	CHECK_EQ(recipe_encode(node, &bytes), 0);
	return stock_put(b, OBJECT_RECIPE, bytes.data, bytes.len);
}

TEST(damage_in_a_recipe_that_names_one_node_over_and_over_is_found_in_time)
{
	CLEANUP(scene_done) struct scene sc = scene_open("doubling-recipe");
	AUTO_FREE uint8_t *block = stock_block(1);
	const struct object_id chunk = stock_put(sc.b, OBJECT_CHUNK, block, CHUNK_SIZE_MAX);
	struct tree_entry e = {
		.name = "f", .name_len = 1, .form = TREE_RECIPE, .mode = S_IFREG, .id = chunk
	};
	struct recipe_node node = { .n = RECIPE_FANOUT };

	for (node.level = 0; node.level < RECIPE_LEVEL_MAX; node.level++) {
		for (unsigned i = 0; i < RECIPE_FANOUT; i++)
			node.id[i] = e.id;
		e.id = put_recipe(sc.b, &node);
	}
	e.size = e.data = recipe_slot_span(RECIPE_LEVEL_MAX);
	look_at_file(&sc, &e);
	CHECK_EQ(sc.report.n_findings, 0);
	damage_object(store_path(sc.store), OBJECT_CHUNK, &chunk);
	look(&sc);
	check_only(&sc, "checksum", "snapshot s:f\n");
}

/* --- one moment, and whose links -------------------------------------------------------------- */

struct late {
	const char *store;
	struct object_id id[2];
	bool done;
};

static void on_progress(uint64_t done, uint64_t total, void *ctx)
{
	struct late *late = ctx;

	for (size_t i = 0; i < ARRAY_LEN(late->id) && !late->done; i++)
		damage_remove(late->store, OBJECT_TREE, &late->id[i]);
	late->done = true;
}

TEST(a_check_sees_roots_and_links_as_of_its_beginning)
{
	CLEANUP(scene_done) struct scene sc = scene_open("moment");
	const struct tree_entry link = link_to("link", INO);
	const struct tree_entry top = directory(sc.b, "d", &link, 1), links = put_links(sc.b, INO);
	struct late late = { .store = store_path(sc.store) };
	struct err err = { 0 };
	char text[32];

	put_snapshot(sc.b, "s", &top, &links);
	for (unsigned i = 0; i < 1100; i++) {
		snprintf(text, sizeof(text), "text %u", i);
		stock_put_text(sc.b, text);
	}
	stock_commit(sc.b);
	late.id[0] = stock_root(sc.store, "s");
	late.id[1] = links.id;
	CHECK_OK(check_store(sc.store, on_progress, &late, &sc.report, &err), &err);
	CHECK(late.done);
	CHECK_EQ(sc.report.n_findings, 0);
	look(&sc);
	CHECK(sc.report.n_findings > 0);
}

TEST(a_directory_is_looked_at_with_the_links_of_every_root)
{
	CLEANUP(scene_done) struct scene sc = scene_open("roots");
	const struct tree_entry link = link_to("link", INO);
	const struct tree_entry top = directory(sc.b, "d", &link, 1);
	const struct tree_entry links = put_links(sc.b, INO), other = put_links(sc.b, INO + 1);

	put_snapshot(sc.b, "a", &top, &links);
	put_snapshot(sc.b, "b", &top, &other);
	put_snapshot(sc.b, "c", &top, NULL);
	put_snapshot(sc.b, "d", &top, &links);
	commit_and_look(&sc);
	check_only(&sc, "inode 5 is not among the links", "snapshot b:link\nsnapshot c:link\n");
}

/* --- contents --------------------------------------------------------------------------------- */

TEST(a_chunk_of_another_length_than_its_file_is_a_finding)
{
	CLEANUP(scene_done) struct scene sc = scene_open("length");
	struct tree_entry e = file(sc.b, "f", "text");

	e.size = e.data = 5;
	look_at_file(&sc, &e);
	check_only(&sc, "it has 4 bytes where 5 belong", "snapshot s:f\n");
}

/* A file of one block and five bytes, and what is wrong with it. */
static void look_at_recipe(const char *name, unsigned level, unsigned n, const char *tail,
			   bool hole, int64_t more_data, const char *why)
{
	CLEANUP(scene_done) struct scene sc = scene_open(name);
	AUTO_FREE uint8_t *block = stock_block(1);
	struct tree_entry e = { .name = "f", .name_len = 1, .form = TREE_RECIPE, .mode = S_IFREG };
	struct recipe_node node = { .level = level, .n = n };

	if (!hole)
		node.id[0] = stock_put(sc.b, OBJECT_CHUNK, block, CHUNK_SIZE_MAX);
	node.id[1] = stock_put_text(sc.b, tail);
	node.id[2] = node.id[1];
	e.id = put_recipe(sc.b, &node);
	e.size = CHUNK_SIZE_MAX + 5;
	e.data = (uint64_t)((int64_t)(hole ? 5 : e.size) + more_data);
	look_at_file(&sc, &e);
	if (why)
		check_only(&sc, why, "snapshot s:f\n");
	else
		CHECK_EQ(sc.report.n_findings, 0);
}

TEST(a_recipe_that_does_not_fit_its_file_is_a_finding)
{
	look_at_recipe("fits", 0, 2, "12345", false, 0, NULL);
	look_at_recipe("fits-hole", 0, 2, "12345", true, 0, NULL);
	look_at_recipe("short", 0, 2, "1234", false, 0, "it has 4 bytes where 5 belong");
	look_at_recipe("beyond", 0, 3, "12345", false, 0, "beyond the end of its file");
	look_at_recipe("level", 1, 2, "12345", false, 0, "its level is wrong here");
	look_at_recipe("data", 0, 2, "12345", false, -1, "its blocks hold 65541 bytes, not 65540");
	look_at_recipe("data-hole", 0, 2, "12345", true, 1, "its blocks hold 5 bytes, not 6");
}

/* --- trees ------------------------------------------------------------------------------------ */

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

/* --- links ------------------------------------------------------------------------------------ */

/* A snapshot whose name "link" leads to inode 5, with these links. */
static void look_at_links(struct scene *sc, const struct tree_entry *in, size_t n)
{
	const struct tree_entry link = link_to("link", INO);
	const struct tree_entry top = directory(sc->b, "d", &link, 1);
	const struct tree_entry links = directory(sc->b, ROOT_LINKS, in, n);

	put_snapshot(sc->b, "s", &top, &links);
	commit_and_look(sc);
}

TEST(a_file_among_the_links_that_is_none_is_a_finding_with_its_names)
{
	static const char *const why[] = { NULL, "is not that file", "is not that file",
					   "has no names" };
	char name[ROOT_LINK_NAME_SIZE];

	root_link_name(INO, name);
	for (size_t i = 0; i < ARRAY_LEN(why); i++) {
		char path[16];
		struct tree_entry e, in_dir;
		struct scene sc;

		snprintf(path, sizeof(path), "among-%zu", i);
		sc = scene_open(path);
		in_dir = file(sc.b, "f", "text");
		if (i == 1)
			e = directory(sc.b, name, &in_dir, 1);
		else if (i == 2)
			e = link_to(name, INO);
		else
			e = file(sc.b, name, "linked");
		e.ino = INO;
		e.nlink = i == 0;
		look_at_links(&sc, &e, 1);
		if (why[i])
			check_only(&sc, why[i], "snapshot s:link\n");
		else
			CHECK_EQ(sc.report.n_findings, 0);
		scene_done(&sc);
	}
}

TEST(a_file_under_another_name_among_the_links_is_a_finding)
{
	CLEANUP(scene_done) struct scene sc = scene_open("misnamed");
	char name[2][ROOT_LINK_NAME_SIZE];
	struct tree_entry in[] = { file(sc.b, root_link_name(INO, name[0]), "linked"),
				   file(sc.b, root_link_name(INO + 1, name[1]), "linked") };

	in[0].ino = INO;
	in[1].ino = INO + 2;
	in[0].nlink = in[1].nlink = 2;
	look_at_links(&sc, in, 2);
	check_only(&sc, "inode 7 stands among the links under another name", "");
}

TEST(links_that_are_summed_up_wrongly_are_a_finding)
{
	CLEANUP(scene_done) struct scene sc = scene_open("links-sum");
	const struct tree_entry link = link_to("link", INO);
	const struct tree_entry top = directory(sc.b, "d", &link, 1);
	struct tree_entry links = put_links(sc.b, INO);

	put_snapshot(sc.b, "right", &top, &links);
	links.below.files++;
	put_snapshot(sc.b, "wrong", &top, &links);
	commit_and_look(&sc);
	check_only(&sc, "it has 1 files, not 2", "snapshot wrong:\n");
}

TEST_MAIN("check-walk")
