#include "cowfs/store/unshared.h"

#include <errno.h>
#include <sys/stat.h>

#include "tests/lib/damage.h"
#include "tests/unit/cowfs/store/upkeep/gc-fixture.h"

static struct unshared count(struct store *s, const char *of, const char *from)
{
	const struct object_id root = stock_root(s, of), other = stock_root(s, from);
	struct unshared u = { 0 };
	struct err err = { 0 };

	CHECK_OK(unshared_count(s, &root, &other, &u, &err), &err);
	return u;
}

TEST(a_root_shares_all_with_itself)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("self"), STORE_CREATE);

	stock_fill(s);
	CHECK_EQ(count(s, "one", "one").objects, 0);
	CHECK_EQ(count(s, "one", "one").bytes, 0);
}

TEST(what_is_unshared_is_what_a_gc_would_free)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("free"), STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *b = NULL;
	struct unshared u;
	struct gc_progress p;
	struct err err = { 0 };

	stock_fill(s);
	u = count(s, "two", "one");
	/* The root, the top directory, and the file that changed. */
	CHECK_EQ(u.objects, 3);
	stock_drop(s, "two");
	b = stock_begin(s);
	CHECK_OK(ref_delete(b, REF_CLONE, "work", 4, &err), &err);
	stock_commit(b);
	p = stock_gc(s);
	CHECK_EQ(p.swept, u.objects);
	CHECK_EQ(p.swept_bytes, u.bytes);
}

TEST(roots_with_nothing_in_common_share_nothing)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("nothing"), STORE_CREATE);
	uint64_t rows;

	stock_fill(s);
	rows = stock_rows(s);
	stock_snapshot(s, "apart", "text of its own");
	CHECK_EQ(count(s, "apart", "one").objects, 3);
	/* Of all that the store had, snapshot two has three of its own. */
	CHECK_EQ(count(s, "one", "apart").objects, rows - 3);
}

/* A root with "file" in `depth` directories. */
static struct object_id put_nested(struct batch *b, const char *text, int depth)
{
	struct tree_builder *t = NULL;
	struct tree_summary below = { .files = 1, .bytes = strlen(text) };
	struct tree_entry e = { .name = "file", .name_len = 4, .mode = S_IFREG | 0644 };
	struct content c;
	struct object_id id;
	struct root root = { 0 };
	struct err err = { 0 };

	CHECK_OK(content_put(b, text, strlen(text), &c, &err), &err);
	tree_entry_set_content(&e, &c);
	CHECK_OK(tree_builder_new(b, &t, &err), &err);
	for (int i = 0; i <= depth; i++) {
		CHECK_OK(tree_builder_add(t, &e, &err), &err);
		CHECK_OK(tree_builder_finish(t, &id, &below, &err), &err);
		e = (struct tree_entry){ .name = "d",
					 .name_len = 1,
					 .form = TREE_DIR,
					 .mode = S_IFDIR | 0755,
					 .nlink = 2,
					 .id = id,
					 .below = below };
	}
	tree_builder_free(t);
	root.top = e;
	root.top.name = ROOT_TOP;
	root.top.name_len = strlen(ROOT_TOP);
	CHECK_OK(root_put(b, &root, &id, &err), &err);
	return id;
}

TEST(what_moved_to_another_depth_is_shared)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("moved"), STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	const struct object_id flat = put_nested(b, "text", 0), deep = put_nested(b, "text", 3);
	struct unshared u = { 0 };
	struct err err = { 0 };

	stock_name(b, REF_SNAPSHOT, "flat", &flat, REF_NEW);
	stock_name(b, REF_SNAPSHOT, "deep", &deep, REF_NEW);
	stock_commit(b);
	CHECK_OK(unshared_count(s, &deep, &flat, &u, &err), &err);
	/* Its root and three directories; the innermost, and the file, are those of the other. */
	CHECK_EQ(u.objects, 4);
	CHECK_OK(unshared_count(s, &flat, &deep, &u, &err), &err);
	CHECK_EQ(u.objects, 1);
}

TEST(a_missing_object_is_damage)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("missing"), STORE_CREATE);
	const struct object_id none = { { 1 } };
	struct object_id root;
	struct unshared u = { .objects = 99 };
	struct err err = { 0 };

	stock_fill(s);
	root = stock_root(s, "one");
	CHECK_EQ(unshared_count(s, &root, &none, &u, &err), -EBADMSG);
	CHECK_EQ(err.code, -EBADMSG);
	CHECK_EQ(u.objects, 99);
}

TEST_MAIN("unshared")
