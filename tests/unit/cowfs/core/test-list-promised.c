/* Listings of directories whose files are promised: by name alone, until somebody looks closer. */
#include <stdio.h>
#include <string.h>

#include "cowfs/store/catalog.h"
#include "tests/lib/live.h"

static const struct layer_call call = { .uid = 1000, .gid = 1000, .may_wait = true };

#define FILES   10
#define CURIOUS 256 /* listings with attributes after a look-up (list.c) */
#define NODES   64
#define PER_DIR 100

/* A tree of FILES promised files, an empty one, which is not, and a directory. */
static struct tree_entry put_dir(struct batch *b, struct tree_builder *t, const char *name,
				 uint64_t ino)
{
	struct tree_entry e = { .name = "empty",
				.name_len = 5,
				.form = TREE_NONE,
				.mode = S_IFREG | 0644,
				.ino = ino + 1 };
	struct tree_entry dir = { .name = name,
				  .name_len = strlen(name),
				  .form = TREE_DIR,
				  .mode = S_IFDIR | 0755,
				  .ino = ino,
				  .nlink = 2 };
	struct err err = { 0 };
	char file[8];

	(void)b;
	CHECK_OK(tree_builder_add(t, &e, &err), &err);
	for (unsigned i = 0; i < FILES; i++) {
		e = (struct tree_entry){ .name = file,
					 .name_len = 2,
					 .form = TREE_LAZY,
					 .mode = S_IFREG | 0644,
					 .ino = ino + 2 + i,
					 .size = 5,
					 .data = 5 };
		snprintf(file, sizeof(file), "f%u", i);
		memset(e.id.b, (int)(ino + i), sizeof(e.id.b));
		CHECK_OK(tree_builder_add(t, &e, &err), &err);
	}
	CHECK_OK(tree_builder_finish(t, &dir.id, &dir.below, &err), &err);
	return dir;
}

/* The clone has two such directories, "d" and "e". */
static void put_clone(struct live *v)
{
	CLEANUP(batch_end_p) struct batch *b = stock_begin(v->store);
	CLEANUP(tree_builder_free_p) struct tree_builder *t = NULL;
	struct root root = {
		.top = { .name = ROOT_TOP,
			 .name_len = strlen(ROOT_TOP),
			 .form = TREE_DIR,
			 .mode = S_IFDIR | 0755,
			 .ino = 2,
			 .nlink = 4 },
	};
	struct clone clone = { .name = (char[]){ "work" } };
	struct tree_entry one, two;
	struct err err = { 0 };

	CHECK_OK(tree_builder_new(b, &t, &err), &err);
	one = put_dir(b, t, "d", PER_DIR);
	two = put_dir(b, t, "e", 2 * PER_DIR);
	CHECK_OK(tree_builder_add(t, &one, &err), &err);
	CHECK_OK(tree_builder_add(t, &two, &err), &err);
	CHECK_OK(tree_builder_finish(t, &root.top.id, &root.top.below, &err), &err);
	CHECK_OK(root_put(b, &root, &clone.root, &err), &err);
	CHECK_OK(clone_put(b, &clone, REF_REPLACE, &err), &err);
	stock_commit(b);
}

static void begin(struct live *v, const char *name)
{
	struct err err = { 0 };

	v->options.persist_ms = 3600 * 1000;
	live_open(v, name);
	layer_discard(TAKE_PTR(v->l));
	put_clone(v);
	CHECK_OK(layer_open(v->layers, "work", &v->l, &err), &err);
}

struct listed {
	uint64_t nodes[NODES]; /* with references to give back */
	size_t n_nodes, n, n_regular;
};

static int take(void *ctx, const char *name, const struct layer_found *found, uint64_t next)
{
	struct listed *l = ctx;

	(void)name;
	(void)next;
	l->n++;
	l->n_regular += S_ISREG(found->st.st_mode);
	CHECK(found->st.st_ino != 0);
	if (found->node)
		l->nodes[l->n_nodes++] = found->node;
	return 0;
}

/* How many names come with a node; all of them must come in any case. */
static size_t count_nodes(struct live *v, const char *path)
{
	const uint64_t dir = live_hold(v, path);
	struct listed l = { 0 };
	struct err err = { 0 };
	size_t n;

	CHECK_OK(layer_readdir(v->l, &call, dir, 0, true, take, &l, &err), &err);
	CHECK_EQ(l.n, FILES + 3); /* with the dots */
	CHECK_EQ(l.n_regular, FILES + 1);
	n = l.n_nodes;
	while (l.n_nodes > 0)
		layer_forget(v->l, l.nodes[--l.n_nodes], 1);
	live_drop(v, dir);
	return n;
}

TEST(promised_files_are_listed_by_name_alone_and_others_are_not)
{
	CLEANUP(live_close) struct live v = { 0 };

	begin(&v, "alone");
	CHECK_EQ(count_nodes(&v, "d"), 1);
	CHECK_EQ(count_nodes(&v, "e"), 1);
}

TEST(listings_have_attributes_once_a_listed_file_was_looked_up)
{
	CLEANUP(live_close) struct live v = { 0 };
	uint64_t dir, file;

	begin(&v, "asked");
	dir = live_hold(&v, "d"); /* or nobody knows any more how it was listed */
	CHECK_EQ(count_nodes(&v, "d"), 1);
	file = live_hold(&v, "d/f3");
	live_drop(&v, file);
	for (unsigned i = 1; i < CURIOUS; i++)
		CHECK_EQ(count_nodes(&v, "e"), FILES + 1);
	live_drop(&v, dir);
	CHECK_EQ(count_nodes(&v, "e"), 1);
}

TEST(a_file_that_was_never_listed_is_looked_up_for_its_own_sake)
{
	CLEANUP(live_close) struct live v = { 0 };
	uint64_t file;

	begin(&v, "other");
	file = live_hold(&v, "d/f3");
	live_drop(&v, file);
	CHECK_EQ(count_nodes(&v, "e"), 1);
}

TEST_MAIN("list-promised")
