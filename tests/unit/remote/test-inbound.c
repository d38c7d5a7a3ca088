/*
 * Packs made by hand, as a stranger could make them, and what a store takes of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "remote/pack/inbound.h"
#include "remote/pack/outbound.h"
#include "remote/pack/portable.h"
#include "tests/lib/stock.h"

struct parcel {
	struct pack_writer *writer;
	int fd;
	struct digest_table has;
	struct pack_set packs;
};

static struct parcel parcel_new(void)
{
	struct parcel p = { .fd = open(test_path("parcel"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC,
				       0600) };
	struct err err = { 0 };

	CHECK(p.fd >= 0);
	CHECK_OK(pack_writer_new(p.fd, &p.writer, &err), &err);
	return p;
}

static void parcel_done(struct parcel *p)
{
	pack_writer_free(p->writer);
	digest_table_done(&p->has);
	pack_set_done(&p->packs);
}

static struct digest put(struct parcel *p, enum object_kind kind, const void *data, size_t len)
{
	const struct digest d = digest_of(data, len);
	struct err err = { 0 };

	if (digest_table_add(&p->has, kind, &d, 0) == 0)
		CHECK_OK(pack_writer_add(p->writer, kind, &d, data, len, &err), &err);
	return d;
}

/* An ordinary file of one byte; its digest is set by the caller, if need be. */
static struct portable_entry file(const char *name)
{
	struct portable_entry e = { .e = { .name = name,
					   .name_len = strlen(name),
					   .form = TREE_CHUNK,
					   .mode = S_IFREG | 0644,
					   .ino = 7,
					   .size = 1 },
				    .content = digest_of("x", 1) };

	return e;
}

static struct portable_entry dir(const char *name, const struct digest *tree)
{
	struct portable_entry e = { .e = { .name = name,
					   .name_len = strlen(name),
					   .form = TREE_DIR,
					   .mode = S_IFDIR | 0755,
					   .ino = 8 },
				    .content = *tree };

	return e;
}

static struct portable_entry link_to(const char *name, uint64_t ino)
{
	struct portable_entry e = { .e = { .name = name,
					   .name_len = strlen(name),
					   .form = TREE_LINK,
					   .mode = S_IFREG,
					   .ino = ino } };

	return e;
}

static struct digest leaf(struct parcel *p, const struct portable_entry *list, size_t n)
{
	CLEANUP(portable_leaf_done) struct portable_leaf l = { 0 };

	for (size_t i = 0; i < n; i++)
		CHECK_EQ(portable_leaf_add(&l, &list[i]), 0);
	CHECK_EQ(portable_leaf_seal(&l), 0);
	return put(p, OBJECT_TREE, l.bytes.data, l.bytes.len);
}

static struct digest leaf_of(struct parcel *p, struct portable_entry e)
{
	return leaf(p, &e, 1);
}

static struct digest root_of(struct parcel *p, const struct digest *top, const struct digest *links)
{
	struct portable_entry list[2];
	size_t n = 0;

	if (links) {
		list[n] = dir(ROOT_LINKS, links);
		list[n].e.mode = S_IFDIR;
		list[n++].e.ino = 0;
	}
	list[n++] = dir(ROOT_TOP, top);
	return leaf(p, list, n);
}

static struct store *open_store(void)
{
	static unsigned n;
	char name[32];

	snprintf(name, sizeof(name), "store-%u", n++);
	return stock_open(test_path(name), STORE_CREATE);
}

struct steps {
	unsigned n, most; /* 0: any number */
};

static int on_step(void *ctx, uint64_t objects, uint64_t bytes, struct err *err)
{
	struct steps *s = ctx;

	(void)objects;
	(void)bytes;
	return ++s->n == s->most ? err_set(err, -ECANCELED, "nobody waits any more") : 0;
}

/* Bring what the root names into a fresh store. */
static int take_in_steps(struct parcel *p, const struct digest *root, struct steps *steps,
			 struct inbound_result *ret, struct err *err)
{
	CLEANUP(store_close_p) struct store *s = open_store();
	CLEANUP(buf_done) struct buf index = BUF_INIT;
	CLEANUP(digests_done) struct digests known = { 0 };
	const struct inbound_options o = {
		.packs = &p->packs, .known = &known, .step = on_step, .ctx = steps
	};
	struct batch *b = stock_begin(s);
	struct digest d;
	uint64_t size;
	int r;

	CHECK_OK(pack_writer_finish(p->writer, &d, &size, &index, err), err);
	CHECK_OK(pack_set_add(&p->packs, index.data, index.len, p->fd, err), err);
	r = inbound_root(b, &o, root, ret, err);
	if (r == 0)
		stock_name(b, REF_SNAPSHOT, "taken", &ret->root, REF_NEW);
	if (r == 0)
		stock_commit(b);
	batch_end(b);
	return r;
}

static int take(struct parcel *p, const struct digest *root, struct inbound_result *ret,
		struct err *err)
{
	struct steps any = { 0 };

	return take_in_steps(p, root, &any, ret, err);
}

static void refused(struct parcel *p, const struct digest *top, const struct digest *links,
		    int code, const char *sentence)
{
	const struct digest root = root_of(p, top, links);
	struct inbound_result got;
	struct err err = { 0 };

	CHECK_EQ(take(p, &root, &got, &err), code);
	CHECK_HAS(err.msg, sentence);
}

TEST(an_ordinary_tree_is_taken)
{
	CLEANUP(parcel_done) struct parcel p = parcel_new();
	const struct digest chunk = put(&p, OBJECT_CHUNK, "x", 1);
	const struct portable_entry list[] = { file("a"), file("b") };
	const struct digest top = leaf(&p, list, 2), root = root_of(&p, &top, NULL);
	struct inbound_result got;
	struct err err = { 0 };

	(void)chunk;
	CHECK_OK(take(&p, &root, &got, &err), &err);
	CHECK_EQ(got.files, 2);
	CHECK_EQ(got.bytes, 2);
}

/* A root with a directory of many, of which the pack has other bytes than it says. */
static struct digest put_wrong_dirs(struct parcel *p)
{
	struct portable_entry list[16];
	char names[16][4];
	struct digest top;
	struct err err = { 0 };

	for (unsigned i = 0; i < 16; i++) {
		snprintf(names[i], sizeof(names[i]), "d%02u", i);
		top = digest_of(names[i], 3);
		CHECK_OK(pack_writer_add(p->writer, OBJECT_TREE, &top, "other", 5, &err), &err);
		list[i] = dir(names[i], &top);
	}
	top = leaf(p, list, 16);
	return root_of(p, &top, NULL);
}

/* Whoever waits may give up meanwhile, too. */
TEST(the_first_wrong_directory_is_the_last_that_is_read)
{
	for (unsigned most = 0; most < 2; most++) {
		CLEANUP(parcel_done) struct parcel p = parcel_new();
		const struct digest root = put_wrong_dirs(&p);
		struct steps steps = { .most = most };
		struct inbound_result got;
		struct err err = { 0 };

		CHECK_EQ(take_in_steps(&p, &root, &steps, &got, &err),
			 most ? -ECANCELED : -EBADMSG);
		CHECK_EQ(steps.n, most ? 1 : 2); /* the root and its directory */
	}
}

TEST(names_that_lead_elsewhere_are_refused)
{
	static const char *const names[] = { "..", ".", "a/b", "/etc", "" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		CLEANUP(parcel_done) struct parcel p = parcel_new();
		struct digest top;

		put(&p, OBJECT_CHUNK, "x", 1);
		top = leaf_of(&p, file(names[i]));
		refused(&p, &top, NULL, -EBADMSG, "cannot stand in a directory");
	}
}

TEST(names_out_of_order_or_twice_are_refused)
{
	static const char *const names[][2] = { { "b", "a" }, { "a", "a" }, { "ab", "a" } };

	for (size_t i = 0; i < 3; i++) {
		CLEANUP(parcel_done) struct parcel p = parcel_new();
		const struct portable_entry list[] = { file(names[i][0]), file(names[i][1]) };
		struct digest top;

		put(&p, OBJECT_CHUNK, "x", 1);
		top = leaf(&p, list, 2);
		refused(&p, &top, NULL, -EBADMSG, "not in order");
	}
}

TEST(leaves_of_a_large_directory_must_be_in_order_too)
{
	CLEANUP(parcel_done) struct parcel p = parcel_new();
	CLEANUP(buf_done) struct buf branch = BUF_INIT;
	struct digest leaves[2], top;

	put(&p, OBJECT_CHUNK, "x", 1);
	leaves[0] = leaf_of(&p, file("b"));
	leaves[1] = leaf_of(&p, file("a"));
	CHECK_EQ(portable_branch(leaves, 2, &branch), 0);
	top = put(&p, OBJECT_TREE, branch.data, branch.len);
	refused(&p, &top, NULL, -EBADMSG, "not in order");
}

TEST(a_file_of_another_size_than_its_chunk_is_refused)
{
	CLEANUP(parcel_done) struct parcel p = parcel_new();
	struct portable_entry e = file("a");
	struct digest top;

	put(&p, OBJECT_CHUNK, "x", 1);
	e.e.size = 2;
	top = leaf_of(&p, e);
	refused(&p, &top, NULL, -EBADMSG, "wrong length");
}

TEST(a_time_or_a_type_that_cannot_be_is_refused)
{
	for (int i = 0; i < 3; i++) {
		CLEANUP(parcel_done) struct parcel p = parcel_new();
		struct portable_entry e = file("a");
		struct digest top;

		put(&p, OBJECT_CHUNK, "x", 1);
		if (i == 0)
			e.e.mtime_ns = 1000000000;
		else
			e.e.mode = i == 1 ? 0644 : S_IFIFO | 0644;
		top = leaf_of(&p, e);
		refused(&p, &top, NULL, -EBADMSG, "a pack");
	}
}

TEST(a_snapshot_that_lacks_something_is_incomplete)
{
	CLEANUP(parcel_done) struct parcel p = parcel_new();
	const struct digest top = leaf_of(&p, file("a"));

	refused(&p, &top, NULL, -EBADMSG, "incomplete: no pack has the chunk sha256:");
}

TEST(directories_without_end_are_refused)
{
	CLEANUP(parcel_done) struct parcel p = parcel_new();
	struct digest top;

	put(&p, OBJECT_CHUNK, "x", 1);
	top = leaf_of(&p, file("a"));
	for (int i = 0; i < 3000; i++)
		top = leaf_of(&p, dir("d", &top));
	refused(&p, &top, NULL, -ELOOP, "nested too deep");
}

/* A thousand names on each of thirty levels: 10^90 files in thirty small objects. */
TEST(a_tree_that_names_itself_over_and_over_is_read_once_and_refused)
{
	static char names[1000][12];
	static struct portable_entry list[1000];
	CLEANUP(parcel_done) struct parcel p = parcel_new();
	struct digest top;

	put(&p, OBJECT_CHUNK, "x", 1);
	for (int i = 0; i < 1000; i++) {
		snprintf(names[i], sizeof(names[i]), "%05d", i);
		list[i] = file(names[i]);
	}
	top = leaf(&p, list, 1000);
	for (int level = 0; level < 30; level++) {
		for (int i = 0; i < 1000; i++)
			list[i] = dir(names[i], &top);
		top = leaf(&p, list, 1000);
	}
	refused(&p, &top, NULL, -EBADMSG, "larger than any can be");
}

/* The same with hard links, which must be counted for each place. */
TEST(hard_links_without_end_are_refused)
{
	static char names[1000][12];
	static struct portable_entry list[1000];
	CLEANUP(parcel_done) struct parcel p = parcel_new();
	struct portable_entry link = file("0000000000000007");
	struct digest top, links;

	put(&p, OBJECT_CHUNK, "x", 1);
	link.e.nlink = 2;
	links = leaf_of(&p, link);
	for (int i = 0; i < 1000; i++) {
		snprintf(names[i], sizeof(names[i]), "%05d", i);
		list[i] = link_to(names[i], 7);
	}
	top = leaf(&p, list, 1000);
	for (int level = 0; level < 5; level++) {
		for (int i = 0; i < 1000; i++)
			list[i] = dir(names[i], &top);
		top = leaf(&p, list, 1000);
	}
	refused(&p, &top, &links, -E2BIG, "more hard links than can be checked");
}

TEST(hard_links_must_be_as_many_as_they_say)
{
	for (uint32_t nlink = 1; nlink <= 4; nlink++) {
		CLEANUP(parcel_done) struct parcel p = parcel_new();
		const struct portable_entry list[] = { link_to("a", 7), link_to("b", 7) };
		struct portable_entry link = file("0000000000000007");
		struct digest top, links, root;
		struct inbound_result got;
		struct err err = { 0 };

		put(&p, OBJECT_CHUNK, "x", 1);
		link.e.nlink = nlink;
		links = leaf_of(&p, link);
		top = leaf(&p, list, 2);
		if (nlink != 2) {
			refused(&p, &top, &links, -EBADMSG, "names, and has 2");
			continue;
		}
		root = root_of(&p, &top, &links);
		CHECK_OK(take(&p, &root, &got, &err), &err);
	}
}

TEST(hard_links_that_lead_nowhere_are_refused)
{
	CLEANUP(parcel_done) struct parcel p = parcel_new();
	const struct digest top = leaf_of(&p, link_to("a", 7));

	refused(&p, &top, NULL, -EBADMSG, "leads nowhere");
}

TEST(a_file_with_a_wrong_number_in_the_links_is_refused)
{
	CLEANUP(parcel_done) struct parcel p = parcel_new();
	struct portable_entry link = file("0000000000000008");
	struct digest top, links;

	put(&p, OBJECT_CHUNK, "x", 1);
	link.e.nlink = 1;
	links = leaf_of(&p, link);
	top = leaf_of(&p, link_to("a", 7));
	refused(&p, &top, &links, -EBADMSG, "wrong number");
}

/* Level upon level of the same node: 2^63 bytes in six objects are read at once, not one by one. */
TEST(a_large_file_of_one_node_repeated_is_read_once)
{
	static struct portable_recipe node;
	static char block[CHUNK_SIZE_MAX];
	CLEANUP(parcel_done) struct parcel p = parcel_new();
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	struct digest below = put(&p, OBJECT_CHUNK, block, sizeof(block)), top, root;
	struct portable_entry e = file("huge");
	struct inbound_result got;
	struct err err = { 0 };
	uint64_t size = sizeof(block);

	for (node.level = 0; node.level < 4; node.level++) {
		node.n = RECIPE_FANOUT;
		for (unsigned i = 0; i < node.n; i++)
			node.slot[i] = below;
		CHECK_EQ(portable_recipe_encode(&node, &bytes), 0);
		below = put(&p, OBJECT_RECIPE, bytes.data, bytes.len);
		size *= RECIPE_FANOUT;
	}
	e.e.form = TREE_RECIPE;
	e.e.size = size;
	e.content = below;
	top = leaf_of(&p, e);
	root = root_of(&p, &top, NULL);
	CHECK_OK(take(&p, &root, &got, &err), &err);
	CHECK_EQ(got.bytes, size);
	CHECK(got.objects < 20);
	CHECK_EQ(inbound_is_here(&p.packs, OBJECT_RECIPE, &below, size, false, &err), 1);
	CHECK_EQ(inbound_is_here(&p.packs, OBJECT_RECIPE, &below, size, true, &err), 1);
}

TEST(a_large_file_with_a_node_of_a_wrong_level_is_refused)
{
	static struct portable_recipe node;
	static char block[CHUNK_SIZE_MAX];
	CLEANUP(parcel_done) struct parcel p = parcel_new();
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	struct portable_entry e = file("huge");
	struct digest top;

	node.level = 1;
	node.n = 1;
	node.slot[0] = put(&p, OBJECT_CHUNK, block, sizeof(block));
	CHECK_EQ(portable_recipe_encode(&node, &bytes), 0);
	e.content = put(&p, OBJECT_RECIPE, bytes.data, bytes.len);
	e.e.form = TREE_RECIPE;
	e.e.size = 2 * sizeof(block);
	top = leaf_of(&p, e);
	refused(&p, &top, NULL, -EBADMSG, "nodes of a wrong level");
}

/* --- from one store to another ------------------------------------------------------------ */

struct moving {
	struct parcel *parcel;
	uint64_t n;
};

static bool has_none(void *ctx, enum object_kind kind, const struct digest *d)
{
	const struct moving *m = ctx;

	return digest_table_find(&m->parcel->has, kind, d) != NULL;
}

static int move_one(void *ctx, enum object_kind kind, const struct digest *d, const void *data,
		    size_t len, struct err *err)
{
	struct moving *m = ctx;
	const struct digest have = put(m->parcel, kind, data, len);

	(void)err;
	CHECK(digest_equal(&have, d));
	m->n++;
	return 0;
}

TEST(two_stores_agree_on_the_digest_and_check_finds_nothing)
{
	CLEANUP(parcel_done) struct parcel p = parcel_new();
	CLEANUP(store_close_p) struct store *from = open_store(), *to = open_store();
	CLEANUP(digests_done) struct digests known = { 0 }, theirs = { 0 };
	CLEANUP(buf_done) struct buf index = BUF_INIT;
	struct moving m = { .parcel = &p };
	const struct outbound_sink sink = { has_none, move_one, NULL, &m };
	const struct inbound_options o = { .packs = &p.packs, .known = &theirs };
	struct object_id one = { { 0 } };
	struct inbound_result got;
	struct digest root, again, pack;
	struct buf hold = BUF_INIT;
	struct err err = { 0 };
	struct batch *b;
	struct ref ref;
	uint64_t size, sent;

	stock_fill(from);
	CHECK_OK(ref_get(from, REF_SNAPSHOT, "one", 3, &ref, &hold, &err), &err);
	one = ref.root;
	buf_done(&hold);
	CHECK_OK(outbound_root(from, &known, &one, &sink, &root, &err), &err);
	sent = m.n;
	CHECK(sent > 10);
	/* What is known and there is not sent again, nor looked at. */
	CHECK_OK(outbound_root(from, &known, &one, &sink, &again, &err), &err);
	CHECK_EQ(m.n, sent);
	CHECK(digest_equal(&root, &again));

	CHECK_OK(pack_writer_finish(p.writer, &pack, &size, &index, &err), &err);
	CHECK_OK(pack_set_add(&p.packs, index.data, index.len, p.fd, &err), &err);
	b = stock_begin(to);
	CHECK_OK(inbound_root(b, &o, &root, &got, &err), &err);
	stock_name(b, REF_SNAPSHOT, "taken", &got.root, REF_NEW);
	stock_commit(b);
	batch_end(b);
	digests_done(&theirs);
	m.n = 0;
	CHECK_OK(outbound_root(to, &theirs, &got.root, &sink, &again, &err), &err);
	CHECK(digest_equal(&root, &again));
	CHECK_EQ(m.n, 0);
}

TEST(what_the_base_has_is_not_looked_for_in_the_packs)
{
	CLEANUP(parcel_done) struct parcel p = parcel_new();
	CLEANUP(store_close_p) struct store *s = open_store();
	CLEANUP(digests_done) struct digests known = { 0 };
	CLEANUP(buf_done) struct buf index = BUF_INIT;
	struct inbound_options o = { .packs = &p.packs, .known = &known };
	struct inbound_result one, two;
	struct digest sub, top, root, other, pack;
	struct err err = { 0 };
	struct batch *b;
	uint64_t size;

	put(&p, OBJECT_CHUNK, "x", 1);
	sub = leaf_of(&p, file("deep"));
	top = leaf_of(&p, dir("d", &sub));
	root = root_of(&p, &top, NULL);
	CHECK_OK(pack_writer_finish(p.writer, &pack, &size, &index, &err), &err);
	CHECK_OK(pack_set_add(&p.packs, index.data, index.len, p.fd, &err), &err);
	b = stock_begin(s);
	CHECK_OK(inbound_root(b, &o, &root, &one, &err), &err);
	stock_name(b, REF_SNAPSHOT, "one", &one.root, REF_NEW);
	stock_commit(b);
	batch_end(b);

	/* The second pack has the new top alone; the first is listed and not here. */
	pack_set_done(&p.packs);
	pack_writer_free(p.writer);
	digest_table_done(&p.has);
	CHECK_OK(pack_set_add(&p.packs, index.data, index.len, -1, &err), &err);
	p.fd = open(test_path("second"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	CHECK_OK(pack_writer_new(p.fd, &p.writer, &err), &err);
	{
		struct portable_entry e = dir("d", &sub);

		e.e.mode = S_IFDIR | 0700;
		top = leaf_of(&p, e);
	}
	other = root_of(&p, &top, NULL);
	CHECK_OK(pack_writer_finish(p.writer, &pack, &size, &index, &err), &err);
	CHECK_OK(pack_set_add(&p.packs, index.data, index.len, p.fd, &err), &err);
	b = stock_begin(s);
	CHECK_EQ(inbound_root(b, &o, &other, &two, &err), -ENODATA);
	CHECK(p.packs.packs[0].wanted && !p.packs.packs[1].wanted);
	batch_end(b);
	o.base = &one.root;
	b = stock_begin(s);
	CHECK_OK(inbound_root(b, &o, &other, &two, &err), &err);
	CHECK_EQ(two.files, 1);
	CHECK_EQ(two.objects, 2);
	stock_name(b, REF_SNAPSHOT, "two", &two.root, REF_NEW);
	stock_commit(b);
	batch_end(b);
}

TEST_MAIN("inbound")
