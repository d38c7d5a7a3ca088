#include "tests/lib/test.h"

#include <errno.h>

#include "cowfs/store/tree-walk.h"
#include "tests/unit/cowfs/store/tree-fixture.h"

/* What was walked, as "depth path" lines. */
struct seen {
	struct buf text;
	const char *past;   /* of the directory that is not entered */
	const char *refuse; /* of the entry at which the walk ends */
};

static void seen_done(struct seen *s)
{
	buf_done(&s->text);
}

static int note(const struct tree_entry *e, const char *path, unsigned depth, void *ctx,
		struct err *err)
{
	struct seen *s = ctx;
	const size_t len = strlen(path);

	CHECK(len >= e->name_len && memcmp(path + len - e->name_len, e->name, e->name_len) == 0);
	CHECK_EQ(buf_printf(&s->text, "%u %s\n", depth, path), 0);
	if (s->refuse && strcmp(path, s->refuse) == 0)
		return err_set(err, -EPERM, "refused");
	return s->past && strcmp(path, s->past) == 0 ? TREE_WALK_PAST : 0;
}

static struct tree_entry dir_of(const char *name, const struct object_id *id)
{
	struct tree_entry e = sample_directory(name);

	e.id = *id;
	return e;
}

/* a  b/c/d  b/e  f */
static struct object_id put_sample(struct world *w)
{
	const struct tree_entry d = sample_file("d", 1);
	const struct object_id c = world_build(w, &d, 1);
	const struct tree_entry in_b[] = { dir_of("c", &c), sample_symlink("e", "a") };
	const struct object_id b = world_build(w, in_b, ARRAY_LEN(in_b));
	const struct tree_entry top[] = { sample_file("a", 0), dir_of("b", &b), sample_link("f") };

	return world_build(w, top, ARRAY_LEN(top));
}

TEST(a_directory_comes_before_what_is_in_it)
{
	CLEANUP(world_done) struct world w = world_new("order");
	CLEANUP(seen_done) struct seen s = { 0 }, below = { 0 };
	const struct object_id top = put_sample(&w);
	struct err err = { 0 };

	CHECK_OK(tree_walk(w.s, &top, "", note, &s, &err), &err);
	CHECK_STR(buf_str(&s.text), "0 a\n0 b\n1 b/c\n2 b/c/d\n1 b/e\n0 f\n");
	CHECK_OK(tree_walk(w.s, &top, "x/y", note, &below, &err), &err);
	CHECK_STR(buf_str(&below.text),
		  "0 x/y/a\n0 x/y/b\n1 x/y/b/c\n2 x/y/b/c/d\n1 x/y/b/e\n0 x/y/f\n");
}

TEST(a_directory_that_is_passed_is_not_entered)
{
	CLEANUP(world_done) struct world w = world_new("past");
	CLEANUP(seen_done) struct seen s = { .past = "b/c" };
	const struct object_id top = put_sample(&w);
	struct err err = { 0 };

	CHECK_EQ(tree_walk(w.s, &top, "", note, &s, &err), 0);
	CHECK_STR(buf_str(&s.text), "0 a\n0 b\n1 b/c\n1 b/e\n0 f\n");
}

TEST(an_error_ends_the_walk_at_once)
{
	CLEANUP(world_done) struct world w = world_new("error");
	CLEANUP(seen_done) struct seen s = { .refuse = "b/c/d" };
	const struct object_id top = put_sample(&w);
	struct err err = { 0 };

	CHECK_EQ(tree_walk(w.s, &top, "", note, &s, &err), -EPERM);
	CHECK_STR(err.msg, "refused");
	CHECK_STR(buf_str(&s.text), "0 a\n0 b\n1 b/c\n2 b/c/d\n");
}

TEST(directories_that_no_path_can_name_are_refused)
{
	CLEANUP(world_done) struct world w = world_new("deep");
	CLEANUP(seen_done) struct seen s = { 0 };
	const struct tree_entry leaf = sample_file("f", 1);
	struct object_id id;
	struct err err = { 0 };

	world_add(&w, &leaf, 1);
	id = world_finish(&w, NULL);
	for (int i = 0; i < 2049; i++) {
		const struct tree_entry e = dir_of("d", &id);

		world_add(&w, &e, 1);
		id = world_finish(&w, NULL);
	}
	world_commit(&w);
	CHECK_EQ(tree_walk(w.s, &id, "", note, &s, &err), -ELOOP);
	CHECK_STR(err.msg, "its directories are nested too deep");
}

TEST_MAIN("tree-walk")
