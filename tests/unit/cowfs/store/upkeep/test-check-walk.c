/* What check says of objects that are each in order and do not fit together. */
#include "tests/unit/cowfs/store/upkeep/check-fixture.h"

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
