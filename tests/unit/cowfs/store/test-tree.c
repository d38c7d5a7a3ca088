#include "tests/lib/test.h"

#include <errno.h>

#include "base/path.h"
#include "cowfs/store/tree-node.h"
#include "tests/lib/damage.h"
#include "tests/unit/cowfs/store/tree-fixture.h"

static void sum_up(struct tree_summary *sum, const struct tree_summary *more)
{
	sum->files += more->files;
	sum->bytes += more->bytes;
	sum->links = sum->links || more->links;
}

static struct tree_summary summary_of(const struct tree_entry *e)
{
	if (e->form == TREE_DIR)
		return e->below;
	return (struct tree_summary){ 1, e->size, e->form == TREE_LINK };
}

/* Sorted entries with random names of any bytes, many of them beginnings of others. */
struct model {
	struct tree_entry *list; /* owned, as is what names point to */
	char (*names)[TREE_NAME_LEN_MAX];
	size_t n;
};

static void model_done(struct model *m)
{
	free(m->list);
	free(m->names);
}

static size_t random_name(struct test_rng *rng, char *name, const char *other, size_t other_len)
{
	size_t len = 0, want = 1 + test_rand(rng) % (test_rand(rng) % 8 ? 6 : TREE_NAME_LEN_MAX);
	unsigned few = test_rand(rng) % 2 ? 3 : 255;

	if (other_len > 0 && test_rand(rng) % 3 == 0) {
		len = 1 + test_rand(rng) % other_len;
		memcpy(name, other, len);
	}
	while (len < want)
		name[len++] = (char)(1 + test_rand(rng) % few);
	return len;
}

static struct tree_entry random_entry(struct test_rng *rng)
{
	struct tree_entry e;

	switch (test_rand(rng) % 8) {
	case 0:
		e = sample_directory("-");
		e.below.files = test_rand(rng) % 1000;
		e.below.links = test_rand(rng) % 2000 == 0;
		break;
	case 1:
		e = sample_symlink("-", "some/where/else");
		break;
	case 2:
		e = sample_file("-", 0);
		break;
	case 3:
		e = test_rand(rng) % 500 ? sample_device("-") : sample_link("-");
		break;
	default:
		e = sample_file("-", 1 + test_rand(rng) % (4 * CHUNK_SIZE_MAX));
		break;
	}
	e.ino = test_rand(rng);
	return e;
}

static int compare_entries(const void *a, const void *b)
{
	const struct tree_entry *x = a, *y = b;

	return tree_name_compare(x->name, x->name_len, y->name, y->name_len);
}

static struct model model_new(struct test_rng *rng, size_t n)
{
	struct model m = {
		.list = calloc(n + 1, sizeof(*m.list)),
		.names = calloc(n + 1, sizeof(*m.names)),
	};
	size_t len, other_len = 0, kept = 0;
	const char *other = NULL;

	CHECK(m.list && m.names);
	while (m.n < n) {
		char *name = m.names[m.n];

		len = random_name(rng, name, other, other_len);
		if (!path_name_valid(name, len))
			continue;
		m.list[m.n] = random_entry(rng);
		m.list[m.n].name = name;
		m.list[m.n].name_len = len;
		m.n++;
		other = name;
		other_len = len;
	}
	qsort(m.list, m.n, sizeof(*m.list), compare_entries);
	for (size_t i = 0; i < m.n; i++)
		if (kept == 0 || compare_entries(&m.list[kept - 1], &m.list[i]) != 0)
			m.list[kept++] = m.list[i];
	m.n = kept;
	return m;
}

/* The first entry whose name is not below this one. */
static size_t model_find(const struct model *m, const char *name, size_t len)
{
	size_t i = 0, n = m->n;

	while (n > 0) {
		const struct tree_entry *e = &m->list[i + n / 2];

		if (tree_name_compare(e->name, e->name_len, name, len) < 0) {
			i += n / 2 + 1;
			n -= n / 2 + 1;
		} else {
			n /= 2;
		}
	}
	return i;
}

static void look_up(struct store *s, const struct object_id *tree, const struct model *m,
		    const char *name, size_t len, struct buf *hold)
{
	const size_t i = model_find(m, name, len);
	struct err err = { 0 };
	struct tree_entry e;
	int r;

	r = tree_lookup(s, tree, name, len, &e, hold, &err);
	if (i < m->n && m->list[i].name_len == len && memcmp(m->list[i].name, name, len) == 0) {
		CHECK_OK(r, &err);
		CHECK(tree_entry_equal(&e, &m->list[i]));
	} else {
		CHECK_EQ(r, -ENOENT);
		CHECK_EQ(err.code, 0);
	}
}

/* Names that differ from one of the model's by a byte or by their length. */
static void look_up_around(struct store *s, const struct object_id *tree, const struct model *m,
			   size_t i, struct buf *hold)
{
	char name[TREE_NAME_LEN_MAX + 1];
	const size_t len = m->list[i].name_len;

	memcpy(name, m->list[i].name, len);
	look_up(s, tree, m, name, len, hold);
	look_up(s, tree, m, name, len - 1, hold);
	name[len] = 1;
	look_up(s, tree, m, name, len + 1, hold);
	name[len - 1]++;
	look_up(s, tree, m, name, len, hold);
	name[len - 1] = (char)(name[len - 1] - 2);
	look_up(s, tree, m, name, len, hold);
}

/* From where the iterator stands it gives these entries of the model, at most `most` of them. */
static void iterate(struct tree_iter *it, const struct model *m, size_t i, size_t most)
{
	struct err err = { 0 };
	struct tree_entry e;

	for (; i < m->n && most > 0; i++, most--) {
		CHECK_EQ(tree_iter_next(it, &e, &err), 1);
		CHECK(tree_entry_equal(&e, &m->list[i]));
	}
	if (i == m->n) {
		CHECK_EQ(tree_iter_next(it, &e, &err), 0);
		CHECK_EQ(tree_iter_next(it, &e, &err), 0);
	}
}

TEST(a_directory_gives_back_what_was_put_in)
{
	static const size_t sizes[] = { 0, 1, 2, 127, 128, 129, 700, 5000 };
	CLEANUP(world_done) struct world w = world_new("model");
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct test_rng rng = { test_seed() };

	for (size_t round = 0; round < ARRAY_LEN(sizes) + 4; round++) {
		size_t n = round < ARRAY_LEN(sizes) ? sizes[round] : test_rand(&rng) % 5000;
		CLEANUP(model_done) struct model m = model_new(&rng, n);
		CLEANUP(tree_iter_free_p) struct tree_iter *it = NULL;
		struct tree_summary below, want = { 0 };
		struct err err = { 0 };
		struct object_id tree;

		world_add(&w, m.list, m.n);
		tree = world_finish(&w, &below);
		world_commit(&w);

		CHECK_OK(tree_iter_new(w.s, &tree, &it, &err), &err);
		iterate(it, &m, 0, SIZE_MAX);
		for (size_t i = 0; i < m.n; i++) {
			const struct tree_summary one = summary_of(&m.list[i]);

			sum_up(&want, &one);
		}
		CHECK_EQ(below.files, want.files);
		CHECK_EQ(below.bytes, want.bytes);
		CHECK_EQ(below.links, want.links);

		for (size_t i = 0; i < m.n; i += 1 + test_rand(&rng) % (1 + m.n / 200))
			look_up_around(w.s, &tree, &m, i, &hold);
		for (size_t i = 0; i < 100; i++) {
			char name[TREE_NAME_LEN_MAX];
			size_t len = random_name(&rng, name, NULL, 0);

			look_up(w.s, &tree, &m, name, len, &hold);
		}
	}
}

TEST(the_same_entries_give_the_same_tree_whatever_came_before)
{
	CLEANUP(world_done) struct world w = world_new("history");
	struct test_rng rng = { test_seed() };
	CLEANUP(model_done) struct model m = model_new(&rng, 3000), other = model_new(&rng, 2000);
	const struct object_id first = world_build(&w, m.list, m.n);
	struct tree_entry bad = sample_file("a/b", 1);
	struct object_id again;

	world_add(&w, other.list, other.n);
	again = world_finish(&w, NULL);
	CHECK(!object_id_equal(&first, &again));
	again = world_finish(&w, NULL);
	CHECK(!object_id_equal(&first, &again));
	world_add(&w, m.list, 10);
	again = world_finish(&w, NULL);
	CHECK(!object_id_equal(&first, &again));

	world_add(&w, m.list, 1000);
	CHECK_EQ(tree_builder_add(w.t, &bad, NULL), -EINVAL);
	CHECK_EQ(tree_builder_add(w.t, &m.list[999], NULL), -EINVAL);
	world_add(&w, m.list + 1000, m.n - 1000);
	again = world_finish(&w, NULL);
	CHECK(object_id_equal(&first, &again));

	tree_builder_free(w.t);
	CHECK_EQ(tree_builder_new(w.b, &w.t, NULL), 0);
	world_add(&w, m.list, m.n);
	again = world_finish(&w, NULL);
	CHECK(object_id_equal(&first, &again));

	m.list[m.n / 2].mtime_ns ^= 1;
	world_add(&w, m.list, m.n);
	again = world_finish(&w, NULL);
	CHECK(!object_id_equal(&first, &again));
}

/* Put a leaf of these names, or a branch of these children, without a builder's care. */
static struct object_id put_leaf(struct world *w, const char *const *names, size_t n)
{
	CLEANUP(tree_node_writer_done) struct tree_node_writer node = { 0 };
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;

	for (size_t i = 0; i < n; i++) {
		const struct tree_entry e = sample_file(names[i], 1);

		CHECK_EQ(tree_node_add_entry(&node, &e), 0);
	}
	CHECK_EQ(tree_node_finish(&node, &bytes), 0);
	return stock_put(w->b, OBJECT_TREE, bytes.data, bytes.len);
}

static struct object_id put_branch(struct world *w, unsigned level, const struct object_id *good,
				   const struct object_id *bad)
{
	CLEANUP(tree_node_writer_done) struct tree_node_writer node = { .level = level };
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	struct tree_child c = { .name = "a", .name_len = 1, .id = *good, .entries = 2 };

	CHECK_EQ(tree_node_add_child(&node, &c), 0);
	c.name = "m";
	c.id = *bad;
	CHECK_EQ(tree_node_add_child(&node, &c), 0);
	CHECK_EQ(tree_node_finish(&node, &bytes), 0);
	return stock_put(w->b, OBJECT_TREE, bytes.data, bytes.len);
}

/* What lies in the first child is found; the second cannot be entered, however often it is tried. */
static void second_is_damaged(struct store *s, const struct object_id *tree, unsigned in_first,
			      const char *sentence)
{
	CLEANUP(tree_iter_free_p) struct tree_iter *it = NULL;
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct err err = { 0 };
	struct tree_entry e;

	CHECK_OK(tree_lookup(s, tree, "b", 1, &e, &hold, &err), &err);
	CHECK_EQ(tree_lookup(s, tree, "m", 1, &e, &hold, &err), -EBADMSG);
	CHECK_HAS(err.msg, sentence);
	CHECK_EQ(tree_lookup(s, tree, "zz", 2, &e, &hold, &err), -EBADMSG);

	CHECK_OK(tree_iter_new(s, tree, &it, &err), &err);
	for (unsigned i = 0; i < in_first; i++)
		CHECK_EQ(tree_iter_next(it, &e, &err), 1);
	err = (struct err){ 0 };
	CHECK_EQ(tree_iter_next(it, &e, &err), -EBADMSG);
	CHECK_HAS(err.msg, sentence);
	CHECK_EQ(tree_iter_next(it, &e, &err), -EBADMSG);
}

TEST(nodes_that_do_not_fit_together_are_damage_and_not_a_missing_name)
{
	static const char *const names[] = { "a", "b", "l", "m", "n", "o" };
	static const struct object_id nowhere = { { 1 } };
	CLEANUP(world_done) struct world w = world_new("damage");
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	const struct object_id ab = put_leaf(&w, names, 2), lm = put_leaf(&w, names + 2, 2);
	const struct object_id mn = put_leaf(&w, names + 3, 2), no = put_leaf(&w, names + 4, 2);
	const struct object_id empty = put_leaf(&w, NULL, 0);
	const struct object_id sound = put_branch(&w, 1, &ab, &mn);
	const struct object_id missing = put_branch(&w, 1, &ab, &nowhere);
	const struct object_id high = put_branch(&w, 1, &ab, &sound);
	const struct object_id low = put_branch(&w, 2, &sound, &mn);
	const struct object_id late = put_branch(&w, 1, &ab, &no);
	const struct object_id early = put_branch(&w, 1, &ab, &lm);
	const struct object_id hollow = put_branch(&w, 1, &ab, &empty);
	struct err err = { 0 };
	struct tree_entry e;

	world_commit(&w);
	CHECK_OK(tree_lookup(w.s, &sound, "n", 1, &e, &hold, &err), &err);
	second_is_damaged(w.s, &missing, 2,
			  "tree 01000000000000000000000000000000 is damaged: it is missing");
	second_is_damaged(w.s, &high, 2, "level 1 right below level 1");
	second_is_damaged(w.s, &low, 4, "level 0 right below level 2");
	second_is_damaged(w.s, &late, 2, "does not begin as its branch says");
	second_is_damaged(w.s, &early, 2, "does not begin as its branch says");
	second_is_damaged(w.s, &hollow, 2, "does not begin as its branch says");
	CHECK_EQ(tree_lookup(w.s, &nowhere, "a", 1, &e, &hold, &err), -EBADMSG);
}

/* The names that one walk of both finds to differ, from where they last were the same. */
static size_t count_different(struct store *s, const struct object_id *a, const struct object_id *b,
			      bool skip)
{
	CLEANUP(tree_iter_free_p) struct tree_iter *x = NULL;
	CLEANUP(tree_iter_free_p) struct tree_iter *y = NULL;
	struct err err = { 0 };
	struct tree_entry e, f;
	int has_e = 0, has_f = 0, order = 0;
	size_t n = 0;

	CHECK_OK(tree_iter_new(s, a, &x, &err), &err);
	CHECK_OK(tree_iter_new(s, b, &y, &err), &err);
	for (;;) {
		if (order == 0 && skip)
			tree_iter_skip_same(x, y);
		has_e = order <= 0 ? tree_iter_next(x, &e, &err) : has_e;
		has_f = order >= 0 ? tree_iter_next(y, &f, &err) : has_f;
		CHECK(has_e >= 0 && has_f >= 0);
		if (!has_e && !has_f)
			return n;
		order = !has_e   ? 1
			: !has_f ? -1
				 : tree_name_compare(e.name, e.name_len, f.name, f.name_len);
		n += order != 0 || !tree_entry_equal(&e, &f);
	}
}

/* The model with some entries changed, and some of it gone. */
static struct object_id put_varied(struct world *w, const struct model *m, struct test_rng *rng,
				   unsigned one_in, size_t *ret_varied)
{
	*ret_varied = 0;
	for (size_t i = 0; i < m->n; i++) {
		struct tree_entry e = m->list[i];
		const bool vary = one_in > 0 && test_rand(rng) % one_in == 0;

		*ret_varied += vary;
		if (vary && test_rand(rng) % 2 == 0)
			continue;
		if (vary)
			e.ino++;
		world_add(w, &e, 1);
	}
	return world_finish(w, NULL);
}

TEST(what_is_skipped_as_the_same_is_the_same_and_nothing_else)
{
	static const size_t sizes[] = { 0, 1, 2, 300, 5000, 5000, 5000 };
	static const unsigned one_in[] = { 0, 1, 3, 50, 0, 500, 5000 };
	CLEANUP(world_done) struct world w = world_new("skip");
	struct test_rng rng = { test_seed() };

	for (size_t round = 0; round < ARRAY_LEN(sizes); round++) {
		CLEANUP(model_done) struct model m = model_new(&rng, sizes[round]);
		struct object_id a, b;
		size_t varied;

		world_add(&w, m.list, m.n);
		a = world_finish(&w, NULL);
		b = put_varied(&w, &m, &rng, one_in[round], &varied);
		world_commit(&w);
		CHECK_EQ(count_different(w.s, &a, &b, false), varied);
		CHECK_EQ(count_different(w.s, &a, &b, true), varied);
		CHECK_EQ(count_different(w.s, &b, &a, true), varied);
	}
}

TEST(nodes_that_both_directories_have_are_not_read)
{
	static const char *const names[] = { "a", "b", "m", "n", "m", "o" };
	CLEANUP(world_done) struct world w = world_new("unread");
	const struct object_id ab = put_leaf(&w, names, 2), mn = put_leaf(&w, names + 2, 2);
	const struct object_id mo = put_leaf(&w, names + 4, 2);
	const struct object_id one = put_branch(&w, 1, &ab, &mn);
	const struct object_id two = put_branch(&w, 1, &ab, &mo);

	world_commit(&w);
	CHECK_EQ(count_different(w.s, &one, &two, false), 2);
	damage_remove(store_path(w.s), OBJECT_TREE, &ab);
	CHECK_EQ(count_different(w.s, &one, &two, true), 2);
}

TEST_MAIN("tree")
