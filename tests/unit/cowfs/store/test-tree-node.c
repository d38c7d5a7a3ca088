#include "tests/lib/test.h"

#include <errno.h>

#include "base/le.h"
#include "cowfs/store/tree-node.h"
#include "tests/unit/cowfs/store/tree-fixture.h"

#define HEADER     16
#define LEAF_REC   128
#define BRANCH_REC 64

static struct tree_child child(const char *name)
{
	return (struct tree_child){
		.name = name,
		.name_len = strlen(name),
		.id = sample_id,
		.entries = 128,
		.below = { .files = 7, .bytes = 1 << 30, .links = true },
	};
}

static void encode_leaf(const struct tree_entry *list, size_t n, struct buf *out)
{
	CLEANUP(tree_node_writer_done) struct tree_node_writer w = { 0 };

	for (size_t i = 0; i < n; i++) {
		size_t before = tree_node_writer_size(&w);

		CHECK_EQ(tree_node_add_entry(&w, &list[i]), 0);
		CHECK_EQ(tree_node_writer_size(&w) - before, tree_node_entry_size(&list[i]));
	}
	buf_reset(out);
	CHECK_EQ(tree_node_finish(&w, out), 0);
	CHECK_EQ(w.n, 0);
	CHECK_EQ(tree_node_writer_size(&w), HEADER);
}

static void encode_branch(unsigned level, const struct tree_child *list, size_t n, struct buf *out)
{
	CLEANUP(tree_node_writer_done) struct tree_node_writer w = { .level = level };

	for (size_t i = 0; i < n; i++)
		CHECK_EQ(tree_node_add_child(&w, &list[i]), 0);
	buf_reset(out);
	CHECK_EQ(tree_node_finish(&w, out), 0);
}

/* One entry of each sort, in the order of names. */
static size_t every_sort(struct tree_entry *list)
{
	size_t n = 0;

	list[n++] = sample_file("\x01", 1);
	list[n++] = sample_directory("a");
	list[n++] = sample_file("a\x01", CHUNK_SIZE_MAX);
	list[n++] = sample_file("aa", CHUNK_SIZE_MAX + 1);
	list[n++] = sample_file("aaa", 0);
	list[n++] = sample_hole("b", INT64_MAX);
	list[n++] = sample_symlink("c", "../x/\xff");
	list[n++] = sample_device("d");
	list[n++] = sample_entry("e", TREE_NONE, S_IFIFO | 0600);
	list[n++] = sample_entry("f", TREE_NONE, S_IFSOCK | 0777);
	list[n++] = sample_entry("g", TREE_NONE, S_IFCHR);
	list[n++] = sample_link("h");
	list[n++] = sample_file("\xff\xff", INT64_MAX);
	list[n - 1].data = 1;
	list[n - 1].nlink = 2;
	return n;
}
#define SORTS 13

static void encode_every_sort(struct buf *out)
{
	struct tree_entry list[SORTS];

	encode_leaf(list, every_sort(list), out);
}

static void encode_some_branch(struct buf *out)
{
	struct tree_child list[] = { child("a"), child("ab"), child("b"), child("\xff") };

	encode_branch(3, list, ARRAY_LEN(list), out);
}

TEST(entries_of_every_sort_come_back_as_they_were)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	struct tree_entry list[SORTS], got;
	struct err err = { 0 };
	struct tree_node node;
	uint32_t at;
	bool equal;

	CHECK_EQ(every_sort(list), SORTS);
	encode_leaf(list, SORTS, &bytes);
	CHECK_OK(tree_node_open(bytes.data, bytes.len, &node, &err), &err);
	CHECK_OK(tree_node_verify(&node, &err), &err);
	CHECK_EQ(node.level, 0);
	CHECK_EQ(node.n, SORTS);
	for (uint32_t i = 0; i < SORTS; i++) {
		CHECK_OK(tree_node_entry(&node, i, &got, &err), &err);
		CHECK(tree_entry_equal(&got, &list[i]));
		CHECK_OK(tree_node_find(&node, got.name, got.name_len, &at, &equal, &err), &err);
		CHECK(equal && at == i);
	}
}

TEST(a_record_goes_into_another_leaf_as_it_is)
{
	CLEANUP(tree_node_writer_done) struct tree_node_writer w = { 0 };
	CLEANUP(buf_done) struct buf bytes = BUF_INIT, some = BUF_INIT, copied = BUF_INIT;
	struct tree_entry list[SORTS], odd[SORTS];
	struct err err = { 0 };
	struct tree_record rec;
	struct tree_node node;
	size_t n = 0;

	CHECK_EQ(every_sort(list), SORTS);
	encode_leaf(list, SORTS, &bytes);
	CHECK_OK(tree_node_open(bytes.data, bytes.len, &node, &err), &err);
	for (uint32_t i = 0; i < SORTS; i++) {
		const struct tree_entry *e = &list[i];
		const bool dir = e->form == TREE_DIR;

		CHECK_OK(tree_node_record(&node, i, &rec, &err), &err);
		CHECK_EQ(rec.size, tree_node_entry_size(e));
		CHECK_EQ(rec.counts.files, dir ? e->below.files : 1);
		CHECK_EQ(rec.counts.bytes, dir ? e->below.bytes : e->size);
		CHECK_EQ(rec.counts.links, dir ? e->below.links : e->form == TREE_LINK);
		if (i % 2 == 0)
			continue;
		CHECK_EQ(tree_node_add_record(&w, &rec), 0);
		odd[n++] = *e;
	}
	encode_leaf(odd, n, &some);
	CHECK_EQ(tree_node_finish(&w, &copied), 0);
	CHECK_MEM(copied.data, copied.len, some.data, some.len);
}

TEST(children_of_a_branch_come_back_as_they_were)
{
	struct tree_child list[] = { child("a"), child("b") };
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	struct err err = { 0 };
	struct tree_node node;
	struct tree_child got;

	list[0].entries = UINT64_MAX;
	list[1].id = sample_other_id;
	list[1].below = (struct tree_summary){ 0 };
	encode_branch(TREE_LEVEL_MAX, list, 2, &bytes);
	CHECK_OK(tree_node_open(bytes.data, bytes.len, &node, &err), &err);
	CHECK_OK(tree_node_verify(&node, &err), &err);
	CHECK_EQ(node.level, TREE_LEVEL_MAX);
	for (uint32_t i = 0; i < 2; i++) {
		CHECK_OK(tree_node_child(&node, i, &got, &err), &err);
		CHECK_MEM(got.name, got.name_len, list[i].name, list[i].name_len);
		CHECK(object_id_equal(&got.id, &list[i].id));
		CHECK(got.entries == list[i].entries);
		CHECK_EQ(got.below.files, list[i].below.files);
		CHECK_EQ(got.below.bytes, list[i].below.bytes);
		CHECK_EQ(got.below.links, list[i].below.links);
	}
}

TEST(an_empty_directory_is_a_header_alone)
{
	static const uint8_t want[HEADER] = { 'T', 1 };
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	struct err err = { 0 };
	struct tree_node node;
	uint32_t at = 9;
	bool equal = true;

	encode_leaf(NULL, 0, &bytes);
	CHECK_MEM(bytes.data, bytes.len, want, sizeof(want));
	CHECK_OK(tree_node_open(bytes.data, bytes.len, &node, &err), &err);
	CHECK_OK(tree_node_verify(&node, &err), &err);
	CHECK_OK(tree_node_find(&node, "a", 1, &at, &equal, &err), &err);
	CHECK(at == 0 && !equal);
}

TEST(the_bytes_of_a_leaf_are_those_of_the_format)
{
	/* clang-format off */
	static const uint8_t want[] = {
		'T', 1, 0, 0,  2, 0, 0, 0,  6, 0, 0, 0,  0, 0, 0, 0,
		/* "ln": heap end, name, form, flags, mode, uid, gid, nlink, ino */
		4, 0, 0, 0,  2, 0,  0,  0,  0xff, 0xa1, 0, 0,  0xe8, 0x03, 0, 0,
		0xfe, 0xff, 0xff, 0xff,  3, 0, 0, 0,  8, 7, 6, 5, 4, 3, 2, 1,
		/* size, mtime, ctime, nanoseconds of both */
		2, 0, 0, 0, 0, 0, 0, 0,  0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		0x00, 0xf1, 0x53, 0x65, 0, 0, 0, 0,  0xff, 0xc9, 0x9a, 0x3b,  1, 0, 0, 0,
		/* id, xattrs, a, b, reserved */
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
		0, 0, 0, 0, 0, 0, 0, 0,  0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		/* "tt": the same, with form, flags, id, files and bytes of a directory */
		6, 0, 0, 0,  2, 0,  3,  1,  0xff, 0x43, 0, 0,  0xe8, 0x03, 0, 0,
		0xfe, 0xff, 0xff, 0xff,  0, 0, 0, 0,  8, 7, 6, 5, 4, 3, 2, 1,
		0, 0, 0, 0, 0, 0, 0, 0,  0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		0x00, 0xf1, 0x53, 0x65, 0, 0, 0, 0,  0xff, 0xc9, 0x9a, 0x3b,  1, 0, 0, 0,
		0xd0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
		5, 0, 0, 0, 0, 0, 0, 0,  0, 0, 0x10, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		'l', 'n', 't', 'o', 't', 't',
	};
	/* clang-format on */
	struct tree_entry list[] = { sample_symlink("ln", "to"), sample_directory("tt") };
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;

	list[0].nlink = 3;
	list[0].xattrs = sample_other_id;
	encode_leaf(list, 2, &bytes);
	CHECK_MEM(bytes.data, bytes.len, want, sizeof(want));
}

TEST(the_bytes_of_a_branch_are_those_of_the_format)
{
	/* clang-format off */
	static const uint8_t want[] = {
		'T', 1, 3, 0,  2, 0, 0, 0,  3, 0, 0, 0,  0, 0, 0, 0,
		/* heap end, name, zero, flags, entries, files, bytes, id, reserved */
		1, 0, 0, 0,  1, 0,  0,  1,  128, 0, 0, 0, 0, 0, 0, 0,
		7, 0, 0, 0, 0, 0, 0, 0,  0, 0, 0, 0x40, 0, 0, 0, 0,
		0xd0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		3, 0, 0, 0,  2, 0,  0,  0,  128, 0, 0, 0, 0, 0, 0, 0,
		7, 0, 0, 0, 0, 0, 0, 0,  0, 0, 0, 0x40, 0, 0, 0, 0,
		0xd0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		'a', 'a', 'b',
	};
	/* clang-format on */
	struct tree_child list[] = { child("a"), child("ab") };
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;

	list[1].below.links = false;
	encode_branch(3, list, 2, &bytes);
	CHECK_MEM(bytes.data, bytes.len, want, sizeof(want));
}

TEST(finding_a_name_gives_its_place_or_that_of_the_next)
{
	static const struct {
		const char *name;
		uint32_t at;
		bool equal;
	} cases[] = {
		{ "", 0, false },      { "A", 0, false },   { "a", 0, true },
		{ "a\x01", 1, false }, { "ab", 1, true },   { "aba", 2, false },
		{ "b", 2, true },      { "b!", 3, false },  { "\x80", 3, true },
		{ "\x7f", 3, false },  { "\xff", 4, true }, { "\xff\xff", 5, false },
	};
	struct tree_entry list[] = { sample_file("a", 1), sample_file("ab", 1), sample_file("b", 1),
				     sample_file("\x80", 1), sample_file("\xff", 1) };
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	struct err err = { 0 };
	struct tree_node node;
	uint32_t at;
	bool equal;

	encode_leaf(list, ARRAY_LEN(list), &bytes);
	CHECK_OK(tree_node_open(bytes.data, bytes.len, &node, &err), &err);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CHECK_OK(
		    tree_node_find(&node, cases[i].name, strlen(cases[i].name), &at, &equal, &err),
		    &err);
		CHECK_EQ(at, cases[i].at);
		CHECK_EQ(equal, cases[i].equal);
	}
}

/* Opening or verifying must refuse these bytes, with this sentence. */
static void refused(const struct buf *bytes, const char *sentence)
{
	struct err err = { 0 };
	struct tree_node node;
	int r;

	r = tree_node_open(bytes->data, bytes->len, &node, &err);
	if (r == 0)
		r = tree_node_verify(&node, &err);
	CHECK_EQ(r, -EBADMSG);
	CHECK_EQ(err.code, -EBADMSG);
	CHECK_HAS(err.msg, sentence);
}

static void accepted(const struct buf *bytes)
{
	struct err err = { 0 };
	struct tree_node node;

	CHECK_OK(tree_node_open(bytes->data, bytes->len, &node, &err), &err);
	CHECK_OK(tree_node_verify(&node, &err), &err);
}

/* A value of `width` bytes at `at` in a node. */
struct patch {
	size_t at;
	unsigned width;
	uint64_t value;
	const char *sentence;
};

static void patch_node(struct buf *bytes, const struct patch *p)
{
	CHECK(p->at + p->width <= bytes->len);
	for (unsigned i = 0; i < p->width; i++)
		bytes->data[p->at + i] = (uint8_t)(p->value >> 8 * i);
}

/* The sound node is accepted, and each patch by itself is enough to have it refused. */
static void each_is_refused(const struct buf *sound, const struct patch *list, size_t n)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;

	accepted(sound);
	for (size_t i = 0; i < n; i++) {
		buf_reset(&bytes);
		CHECK_EQ(buf_append(&bytes, sound->data, sound->len), 0);
		patch_node(&bytes, &list[i]);
		refused(&bytes, list[i].sentence);
	}
}

TEST(a_header_that_is_not_ours_is_refused)
{
	static const struct patch leaf[] = {
		{ 0, 1, 'R', "not a tree node of a known version" },
		{ 1, 1, 2, "not a tree node of a known version" },
		{ 2, 1, TREE_LEVEL_MAX + 1, "a tree node of level 9" },
		{ 2, 1, 1, "do not make" },
		{ 3, 1, 1, "reserved bytes of the header" },
		{ 12, 1, 1, "reserved bytes of the header" },
		{ 15, 1, 1, "reserved bytes of the header" },
		{ 4, 4, 2, "do not make" },
		{ 4, 4, 0, "do not make" },
		{ 4, 4, 0x02000001, "do not make" }, /* the same modulo 2^32 */
		{ 8, 4, 0, "do not make" },
		{ 8, 4, 2, "do not make" },
		{ HEADER, 4, 0, "records own 0 of 1 bytes" },
		{ HEADER, 4, 2, "records own 2 of 1 bytes" },
	};
	struct tree_entry e = sample_file("a", 1);
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;

	encode_leaf(&e, 1, &bytes);
	each_is_refused(&bytes, leaf, ARRAY_LEN(leaf));
}

/* A node with one record of a branch, which the writer refuses to make. */
TEST(a_branch_of_fewer_than_two_nodes_is_refused)
{
	static const uint8_t none[HEADER] = { 'T', 1, 1 };
	struct tree_child list[] = { child("a"), child("b") };
	CLEANUP(buf_done) struct buf two = BUF_INIT, one = BUF_INIT, zero = BUF_INIT;

	encode_branch(1, list, 2, &two);
	CHECK_EQ(buf_append(&one, two.data, HEADER + BRANCH_REC), 0);
	CHECK_EQ(buf_append(&one, "a", 1), 0);
	le32_store(one.data + 4, 1);
	le32_store(one.data + 8, 1);
	refused(&one, "a branch of fewer than two nodes");

	CHECK_EQ(buf_append(&zero, none, sizeof(none)), 0);
	refused(&zero, "a branch of fewer than two nodes");
}

/* Give the first of two records another name, whatever it is. */
static void rename_first(const struct buf *sound, size_t rec_size, const char *name, size_t len,
			 struct buf *out)
{
	const size_t heap = HEADER + 2 * rec_size;

	buf_reset(out);
	CHECK_EQ(buf_append(out, sound->data, heap), 0);
	CHECK_EQ(buf_append(out, name, len), 0);
	CHECK_EQ(buf_append(out, sound->data + heap + 1, 1), 0);
	le32_store(out->data + 8, (uint32_t)len + 1);
	le32_store(out->data + HEADER, (uint32_t)len);
	le16_store(out->data + HEADER + 4, (uint16_t)len);
	le32_store(out->data + HEADER + rec_size, (uint32_t)len + 1);
}

TEST(names_that_cannot_stand_in_a_directory_are_refused)
{
	struct tree_entry entries[] = { sample_file("a", 1), sample_file("\xff", 1) };
	struct tree_child children[] = { child("a"), child("\xff") };
	CLEANUP(buf_done) struct buf leaf = BUF_INIT, branch = BUF_INIT, bytes = BUF_INIT;
	char longest[TREE_NAME_LEN_MAX + 1];
	const struct {
		const char *name;
		size_t len;
		bool good;
	} cases[] = {
		{ "", 0, false },    { ".", 1, false },       { "..", 2, false },
		{ "a/b", 3, false }, { "/", 1, false },       { "a\0b", 3, false },
		{ "\0", 1, false },  { longest, 256, false }, { longest, 255, true },
		{ "...", 3, true },  { ".a", 2, true },       { "\n\x1b\xfe", 3, true },
	};

	memset(longest, 'x', sizeof(longest));
	encode_leaf(entries, 2, &leaf);
	encode_branch(1, children, 2, &branch);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		rename_first(&leaf, LEAF_REC, cases[i].name, cases[i].len, &bytes);
		if (cases[i].good)
			accepted(&bytes);
		else
			refused(&bytes, "record 0: its name cannot stand in a directory");
		rename_first(&branch, BRANCH_REC, cases[i].name, cases[i].len, &bytes);
		if (cases[i].good)
			accepted(&bytes);
		else
			refused(&bytes, "record 0: its name cannot stand in a directory");
	}
}

TEST(names_that_do_not_rise_are_refused)
{
	struct tree_entry entries[] = { sample_file("a", 1), sample_file("m", 1) };
	struct tree_child children[] = { child("a"), child("m") };
	CLEANUP(buf_done) struct buf leaf = BUF_INIT, branch = BUF_INIT, bytes = BUF_INIT;
	static const char *const above[] = { "m", "n", "ma", "\xff" };

	encode_leaf(entries, 2, &leaf);
	encode_branch(1, children, 2, &branch);
	for (size_t i = 0; i < ARRAY_LEN(above); i++) {
		rename_first(&leaf, LEAF_REC, above[i], strlen(above[i]), &bytes);
		refused(&bytes, "record 1: its name does not follow the one before");
		rename_first(&branch, BRANCH_REC, above[i], strlen(above[i]), &bytes);
		refused(&bytes, "record 1: its name does not follow the one before");
	}
}

TEST(records_that_point_outside_the_names_are_refused)
{
	static const struct patch leaf[] = {
		{ HEADER, 4, UINT32_MAX, "record 0: its part of the names lies outside" },
		{ HEADER, 4, 4, "record 0: its part of the names lies outside" },
		{ HEADER + 4, 2, 2, "record 0: its name is longer than its part" },
		{ HEADER + 4, 2, UINT16_MAX, "record 0: its name is longer than its part" },
		{ HEADER + 2 * LEAF_REC + 4, 2, 2, "record 2: its name is longer than its part" },
	};
	static const struct patch branch[] = {
		{ HEADER, 4, 4, "record 0: its part of the names lies outside" },
		{ HEADER + 4, 2, 2, "record 0: its name is longer than its part" },
		{ HEADER + 2 * BRANCH_REC + 4, 2, 0, "record 2: bytes behind its name" },
	};
	struct tree_entry entries[] = { sample_file("a", 1), sample_file("b", 1),
					sample_file("c", 1) },
			  e;
	struct tree_child children[] = { child("a"), child("b"), child("c") };
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	struct err err = { 0 };
	struct tree_node node;
	uint32_t at;
	bool equal;

	encode_branch(1, children, 3, &bytes);
	each_is_refused(&bytes, branch, ARRAY_LEN(branch));
	encode_leaf(entries, 3, &bytes);
	each_is_refused(&bytes, leaf, ARRAY_LEN(leaf));

	/* The second record would end before it starts. */
	le32_store(bytes.data + HEADER, 3);
	CHECK_OK(tree_node_open(bytes.data, bytes.len, &node, &err), &err);
	CHECK_EQ(tree_node_entry(&node, 1, &e, &err), -EBADMSG);
	CHECK_HAS(err.msg, "record 1: its part of the names lies outside");
	CHECK_EQ(tree_node_find(&node, "b", 1, &at, &equal, &err), -EBADMSG);
	CHECK_HAS(err.msg, "record 1: its part of the names lies outside");
}

TEST(reserved_bytes_and_unknown_values_are_refused)
{
	static const struct patch leaf[] = {
		{ HEADER + 6, 1, TREE_LAZY + 1, "an unknown form" },
		{ HEADER + 7, 1, 0x02, "unknown flags" },
		{ HEADER + 7, 1, 0x80, "unknown flags" },
		{ HEADER + 7, 1, 0x01, "a summary of what is no directory" },
		{ HEADER + 104, 1, 1, "a summary of what is no directory" },
		{ HEADER + 112, 1, 1, "reserved bytes are not zero" },
		{ HEADER + 127, 1, 1, "reserved bytes are not zero" },
	};
	static const struct patch branch[] = {
		{ HEADER + 6, 1, 1, "reserved bytes are not zero" },
		{ HEADER + 7, 1, 0x02, "unknown flags" },
		{ HEADER + 48, 1, 1, "reserved bytes are not zero" },
		{ HEADER + 63, 1, 1, "reserved bytes are not zero" },
		{ HEADER + 8, 8, 0, "a node without entries" },
	};
	static const struct patch fifo = { HEADER + 96, 8, 1,
					   "content of what is no regular file" };
	struct tree_entry entries[] = { sample_file("a", 1),
					sample_entry("b", TREE_NONE, S_IFIFO | 0600) };
	struct tree_child children[] = { child("a"), child("b") };
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;

	encode_leaf(&entries[0], 1, &bytes);
	each_is_refused(&bytes, leaf, ARRAY_LEN(leaf));
	encode_leaf(&entries[1], 1, &bytes);
	each_is_refused(&bytes, &fifo, 1);
	encode_branch(1, children, 2, &bytes);
	each_is_refused(&bytes, branch, ARRAY_LEN(branch));
	memset(bytes.data + HEADER + 32, 0, OBJECT_ID_SIZE);
	refused(&bytes, "a branch without a node");
}

/*
 * Look at everything in bytes that may hold anything; the copy ends where memory does.
 * What is accepted must be what the writer makes of it.  Says whether it was.
 */
static bool survives(const void *data, size_t len)
{
	AUTO_FREE uint8_t *copy = malloc(len > 0 ? len : 1);
	CLEANUP(tree_node_writer_done) struct tree_node_writer w = { 0 };
	CLEANUP(buf_done) struct buf again = BUF_INIT;
	struct tree_node node;
	struct tree_entry e;
	struct tree_child c;
	bool good, equal;
	uint32_t at;
	int r;

	CHECK(copy);
	memcpy(copy, data, len);
	if (tree_node_open(copy, len, &node, NULL) < 0)
		return false;
	good = tree_node_verify(&node, NULL) == 0;
	w.level = node.level;
	for (uint32_t i = 0; i < node.n; i++) {
		if (node.level == 0) {
			r = tree_node_entry(&node, i, &e, NULL);
			if (r == 0)
				r = tree_node_add_entry(&w, &e);
		} else {
			r = tree_node_child(&node, i, &c, NULL);
			if (r == 0)
				r = tree_node_add_child(&w, &c);
		}
		CHECK(r == 0 || !good);
	}
	r = tree_node_find(&node, "aa", 2, &at, &equal, NULL);
	CHECK(r < 0 || at <= node.n);
	r = tree_node_find(&node, "\xff\xff\xff", 3, &at, &equal, NULL);
	CHECK(r < 0 || at <= node.n);
	if (good) {
		CHECK_EQ(tree_node_finish(&w, &again), 0);
		CHECK_MEM(again.data, again.len, data, len);
	}
	return good;
}

TEST(a_node_cut_short_or_grown_is_refused)
{
	CLEANUP(buf_done) struct buf leaf = BUF_INIT, branch = BUF_INIT;
	struct buf *const nodes[] = { &leaf, &branch };

	encode_every_sort(&leaf);
	encode_some_branch(&branch);
	for (size_t n = 0; n < 2; n++) {
		CHECK(survives(nodes[n]->data, nodes[n]->len));
		for (size_t len = 0; len < nodes[n]->len; len++)
			CHECK(!survives(nodes[n]->data, len));
		CHECK_EQ(buf_append(nodes[n], "x", 1), 0);
		CHECK(!survives(nodes[n]->data, nodes[n]->len));
	}
}

TEST(a_node_with_any_byte_changed_is_refused_or_still_canonical)
{
	static const uint8_t flips[] = { 0x01, 0x02, 0x10, 0x80, 0xff };
	CLEANUP(buf_done) struct buf leaf = BUF_INIT, branch = BUF_INIT;
	struct buf *const nodes[] = { &leaf, &branch };

	encode_every_sort(&leaf);
	encode_some_branch(&branch);
	for (size_t n = 0; n < 2; n++)
		for (size_t at = 0; at < nodes[n]->len; at++)
			for (size_t f = 0; f < sizeof(flips); f++) {
				bool good;

				nodes[n]->data[at] ^= flips[f];
				good = survives(nodes[n]->data, nodes[n]->len);
				CHECK(!good || at == 2 || at >= HEADER); /* 2: another level */
				nodes[n]->data[at] ^= flips[f];
			}
}

TEST_MAIN("tree-node")
