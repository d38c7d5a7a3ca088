#include "tests/lib/test.h"

#include <errno.h>

#include "cowfs/store/root.h"
#include "cowfs/store/tree-node.h"
#include "tests/unit/cowfs/store/tree-fixture.h"

static struct root sample_root(const struct object_id *top, const struct object_id *links)
{
	struct root root = { .top = sample_directory(ROOT_TOP) };

	root.top.id = *top;
	if (links) {
		root.links = *links;
		root.in_links = (struct tree_summary){ .files = 2, .bytes = 300 };
	}
	return root;
}

static struct object_id put_root(struct world *w, const struct root *root)
{
	struct err err = { 0 };
	struct object_id id;

	CHECK_OK(root_put(w->b, root, &id, &err), &err);
	world_commit(w);
	return id;
}

static void comes_back(struct world *w, const struct root *root)
{
	const struct object_id id = put_root(w, root);
	struct err err = { 0 };
	struct root got;

	CHECK_OK(root_get(w->s, &id, &got, &err), &err);
	CHECK(tree_entry_equal(&got.top, &root->top));
	CHECK(object_id_equal(&got.links, &root->links));
	CHECK_EQ(got.in_links.files, root->in_links.files);
	CHECK_EQ(got.in_links.bytes, root->in_links.bytes);
	CHECK_EQ(got.in_links.links, root->in_links.links);
}

TEST(a_root_without_links_comes_back_as_it_was)
{
	CLEANUP(world_done) struct world w = world_new("plain");
	const struct root root = sample_root(&sample_id, NULL);

	comes_back(&w, &root);
}

TEST(a_root_with_links_comes_back_as_it_was)
{
	CLEANUP(world_done) struct world w = world_new("linked");
	const struct root root = sample_root(&sample_id, &sample_other_id);

	comes_back(&w, &root);
}

TEST(roots_that_differ_in_anything_have_different_ids)
{
	CLEANUP(world_done) struct world w = world_new("differ");
	struct root root = sample_root(&sample_id, &sample_other_id);
	const struct object_id first = put_root(&w, &root);
	struct object_id id = put_root(&w, &root);

	CHECK(object_id_equal(&first, &id));
	root.in_links.bytes++;
	id = put_root(&w, &root);
	CHECK(!object_id_equal(&first, &id));
	root = sample_root(&sample_id, &sample_other_id);
	root.top.mtime_ns--;
	id = put_root(&w, &root);
	CHECK(!object_id_equal(&first, &id));
	root = sample_root(&sample_id, NULL);
	id = put_root(&w, &root);
	CHECK(!object_id_equal(&first, &id));
}

TEST(links_stand_in_the_order_of_their_inode_numbers)
{
	char a[ROOT_LINK_NAME_SIZE], b[ROOT_LINK_NAME_SIZE];

	CHECK_STR(root_link_name(0, a), "0000000000000000");
	CHECK_STR(root_link_name(0x1234abcd, a), "000000001234abcd");
	CHECK_STR(root_link_name(UINT64_MAX, b), "ffffffffffffffff");
	CHECK(strcmp(root_link_name(9, a), root_link_name(10, b)) < 0);
	CHECK(strcmp(root_link_name(0xff, a), root_link_name(0x100, b)) < 0);
}

/* A links tree in which each entry stands under the name of this inode number. */
static struct object_id put_link(struct world *w, uint64_t ino, struct tree_entry e)
{
	char name[ROOT_LINK_NAME_SIZE];

	e.name = root_link_name(ino, name);
	e.name_len = strlen(name);
	return world_build(w, &e, 1);
}

static struct tree_entry file_with_names(uint64_t ino)
{
	struct tree_entry e = sample_file("-", 150);

	e.ino = ino;
	e.nlink = 2;
	return e;
}

TEST(the_file_behind_a_link_is_found_by_its_inode)
{
	CLEANUP(world_done) struct world w = world_new("find");
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	const struct object_id links = put_link(&w, 77, file_with_names(77));
	const struct root root = sample_root(&sample_id, &links);
	struct err err = { 0 };
	struct tree_entry e;

	CHECK_OK(root_link(w.s, &root, 77, &e, &hold, &err), &err);
	CHECK_EQ(e.ino, 77);
	CHECK_EQ(e.nlink, 2);
	CHECK_EQ(e.size, 150);
}

/* Nothing is handed out for this inode, and the sentence says why. */
static void no_link(struct store *s, const struct object_id *links, uint64_t ino,
		    const char *sentence)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	const struct root root = sample_root(&sample_id, links);
	struct tree_entry e = { .ino = 1 };
	struct err err = { 0 };

	CHECK_EQ(root_link(s, &root, ino, &e, &hold, &err), -EBADMSG);
	CHECK_HAS(err.msg, sentence);
	CHECK_EQ(e.ino, 1);
}

TEST(a_link_whose_file_is_missing_is_damage)
{
	CLEANUP(world_done) struct world w = world_new("lacking");
	const struct object_id links = put_link(&w, 77, file_with_names(77));
	struct tree_entry link = sample_link("-"), dir = sample_directory("-");
	struct object_id odd;

	no_link(w.s, &links, 78, "the file with inode 78 is not among the links");
	no_link(w.s, NULL, 77, "the file with inode 77 is not among the links");
	no_link(w.s, &sample_id, 77, "is missing");

	odd = put_link(&w, 77, file_with_names(76));
	no_link(w.s, &odd, 77, "what stands among the links for inode 77 is not that file");
	link.ino = 77;
	odd = put_link(&w, 77, link);
	no_link(w.s, &odd, 77, "what stands among the links for inode 77 is not that file");
	dir.ino = 77;
	odd = put_link(&w, 77, dir);
	no_link(w.s, &odd, 77, "what stands among the links for inode 77 is not that file");
}

static void is_no_root(struct world *w, const struct object_id *id, const char *sentence)
{
	struct root root = { .top.ino = 1 };
	struct err err = { 0 };

	CHECK_EQ(root_get(w->s, id, &root, &err), -EBADMSG);
	CHECK_HAS(err.msg, sentence);
	CHECK_EQ(root.top.ino, 1);
}

static void no_root(struct world *w, const struct tree_entry *list, size_t n, const char *sentence)
{
	const struct object_id id = world_build(w, list, n);

	is_no_root(w, &id, sentence);
}

static struct object_id put_branch(struct world *w)
{
	CLEANUP(tree_node_writer_done) struct tree_node_writer node = { .level = 1 };
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	struct tree_child c = { .name = ROOT_LINKS, .name_len = 5, .id = sample_id, .entries = 1 };
	struct object_id id;

	CHECK_EQ(tree_node_add_child(&node, &c), 0);
	c.name = ROOT_TOP;
	c.name_len = 3;
	CHECK_EQ(tree_node_add_child(&node, &c), 0);
	CHECK_EQ(tree_node_finish(&node, &bytes), 0);
	id = stock_put(w->b, OBJECT_TREE, bytes.data, bytes.len);
	world_commit(w);
	return id;
}

TEST(a_tree_that_is_no_root_is_refused)
{
	CLEANUP(world_done) struct world w = world_new("other");
	struct tree_entry links = { .name = ROOT_LINKS, .name_len = 5, .form = TREE_DIR };
	const struct object_id branch = put_branch(&w);
	struct tree_entry list[3];

	links.mode = S_IFDIR;
	links.id = sample_other_id;
	list[0] = links;
	list[1] = sample_directory(ROOT_TOP);
	list[2] = sample_directory("z");

	no_root(&w, list, 0, "a directory, not a root");
	no_root(&w, list, 3, "a directory, not a root");
	no_root(&w, list, 1, "a root without its first directory");
	no_root(&w, list + 1, 2, "a root without its first directory");
	no_root(&w, list + 2, 1, "a root without its first directory");
	list[2] = sample_file(ROOT_TOP, 1);
	no_root(&w, list + 2, 1, "a root without its first directory");

	list[0].name = "extra";
	no_root(&w, list, 2, "a root with more than its links beside it");
	list[0] = links;
	list[0].mode |= 0700;
	no_root(&w, list, 2, "a root with more than its links beside it");
	list[0] = sample_file(ROOT_LINKS, 1);
	no_root(&w, list, 2, "a root with more than its links beside it");

	is_no_root(&w, &branch, "a directory, not a root");
	is_no_root(&w, &sample_id, "is missing");
}

TEST_MAIN("root")
