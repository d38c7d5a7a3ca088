#include "snapshot/diff/changes.h"

#include <sys/stat.h>

#include "tests/unit/snapshot/capture/capture-fixture.h"

/* A root whose first directory is this one, with these in it. */
static struct object_id put_root(struct batch *b, struct tree_entry top,
				 const struct tree_entry *in, size_t n)
{
	CLEANUP(tree_builder_free_p) struct tree_builder *t = NULL;
	struct root root;
	struct object_id id;
	struct err err = { 0 };

	CHECK_OK(tree_builder_new(b, &t, &err), &err);
	for (size_t i = 0; i < n; i++)
		CHECK_OK(tree_builder_add(t, &in[i], &err), &err);
	CHECK_OK(tree_builder_finish(t, &top.id, &top.below, &err), &err);
	root = (struct root){ .top = top };
	CHECK_OK(root_put(b, &root, &id, &err), &err);
	return id;
}

static struct tree_entry dir_entry(const char *name, uint32_t nlink)
{
	return (struct tree_entry){ .name = name,
				    .name_len = strlen(name),
				    .form = TREE_DIR,
				    .mode = S_IFDIR | 0755,
				    .nlink = nlink };
}

static struct tree_entry empty_file(const char *name)
{
	return (
	    struct tree_entry){ .name = name, .name_len = strlen(name), .mode = S_IFREG | 0644 };
}

static void check_changes(struct store *s, const struct object_id *from, const struct object_id *to,
			  uint64_t added, uint64_t modified, uint64_t deleted)
{
	struct changes c = { 0 };
	struct err err = { 0 };

	CHECK_OK(changes_count(s, from, to, &c, &err), &err);
	CHECK_EQ(c.added, added);
	CHECK_EQ(c.modified, modified);
	CHECK_EQ(c.deleted, deleted);
}

TEST(names_that_came_went_or_changed_are_counted)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("counted"), STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	struct tree_entry in[] = { empty_file("a"), empty_file("b"), empty_file("c") };
	const struct object_id from = put_root(b, dir_entry(ROOT_TOP, 2), in, 2);
	struct object_id to;

	in[1].mode = S_IFREG | 0600;
	to = put_root(b, dir_entry(ROOT_TOP, 2), in + 1, 2);
	stock_commit(b);
	check_changes(s, &from, &to, 1, 1, 1);
	check_changes(s, &to, &from, 1, 1, 1);
	check_changes(s, &to, &to, 0, 0, 0);
}

static bool is_b(const char *path, const void *ctx)
{
	(void)ctx;
	return strcmp(path, "b") == 0;
}

TEST(a_name_that_is_left_out_does_not_count)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("without"), STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	struct tree_entry in[] = { empty_file("a"), empty_file("b"), empty_file("c") };
	const struct object_id from = put_root(b, dir_entry(ROOT_TOP, 2), in, 2);
	struct changes c = { 0 };
	struct err err = { 0 };
	struct object_id to;

	in[1].mode = S_IFREG | 0600;
	to = put_root(b, dir_entry(ROOT_TOP, 2), in + 1, 2);
	stock_commit(b);
	CHECK_OK(changes_count_without(s, &from, &to, is_b, NULL, &c, &err), &err);
	CHECK_EQ(c.added, 1);
	CHECK_EQ(c.modified, 0);
	CHECK_EQ(c.deleted, 1);
}

TEST(the_links_of_a_directory_do_not_count)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("links"), STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	struct tree_entry in = dir_entry("d", 0);
	struct object_id from, to, empty;

	empty = put_root(b, dir_entry(ROOT_TOP, 0), NULL, 0);
	in.id = empty;
	from = put_root(b, dir_entry(ROOT_TOP, 0), &in, 1);
	in.nlink = 2;
	to = put_root(b, dir_entry(ROOT_TOP, 3), &in, 1);
	stock_commit(b);
	check_changes(s, &from, &to, 0, 0, 0);
	check_changes(s, &to, &empty, 0, 0, 1);
}

/* --- by name ---------------------------------------------------------------------------- */

static int list_name(const char *path, char status, void *ctx, struct err *err)
{
	(void)err;
	CHECK_EQ(buf_printf(ctx, "%c /%s\n", status, path), 0);
	return 0;
}

TEST(the_names_are_those_that_are_counted)
{
	CLEANUP(scene_done) struct scene sc = scene_new("by-name");
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	struct err err = { 0 };
	struct object_id from;

	scene_mkdir(&sc, "came");
	CHECK_EQ(unlinkat(sc.fd, "came", AT_REMOVEDIR), 0);
	scene_text(&sc, "gone", "a");
	scene_text(&sc, "kept", "a");
	scene_mkdir(&sc, "dir");
	scene_mkdir(&sc, "dir/in");
	scene_text(&sc, "dir/in/file", "a");
	scene_text(&sc, "file", "a");
	scene_capture(&sc);
	from = sc.id;

	CHECK_EQ(unlinkat(sc.fd, "gone", 0), 0);
	scene_text(&sc, "kept", "b");
	/* With a file: its empty directory does not count. */
	scene_mkdir(&sc, "came");
	scene_mkdir(&sc, "came/empty");
	scene_text(&sc, "came/file", "a");
	/* Without one: it counts once, whatever directories are in it. */
	scene_mkdir(&sc, "hollow");
	scene_mkdir(&sc, "hollow/in");
	/* From a directory to a file, and the other way round. */
	CHECK_EQ(unlinkat(sc.fd, "dir/in/file", 0), 0);
	CHECK_EQ(unlinkat(sc.fd, "dir/in", AT_REMOVEDIR), 0);
	CHECK_EQ(unlinkat(sc.fd, "dir", AT_REMOVEDIR), 0);
	scene_text(&sc, "dir", "a");
	CHECK_EQ(unlinkat(sc.fd, "file", 0), 0);
	scene_mkdir(&sc, "file");
	scene_text(&sc, "file/x", "a");
	scene_capture(&sc);

	CHECK_OK(changes_each(sc.s, &from, &sc.id, list_name, &out, &err), &err);
	CHECK_STR(buf_str(&out), "A /came/file\nA /dir\nD /dir/in/file\nD /file\nA /file/x\n"
				 "D /gone\nA /hollow\nM /kept\n");
	check_changes(sc.s, &from, &sc.id, 4, 1, 3);
	check_changes(sc.s, &sc.id, &from, 3, 1, 4);
}

TEST_MAIN("changes")
