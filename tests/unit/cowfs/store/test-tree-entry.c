#include "tests/lib/test.h"

#include <errno.h>

#include "base/le.h"
#include "cowfs/store/tree-node.h"
#include "tests/unit/cowfs/store/tree-fixture.h"

#define HEADER   16
#define LEAF_REC 128

/* A leaf of one entry, written from the description of the format without regard to its rules. */
static void encode_blindly(const struct tree_entry *e, struct buf *out)
{
	uint8_t b[HEADER + LEAF_REC] = { 'T', 1 }, *rec = b + HEADER;
	const uint32_t heap = (uint32_t)(e->name_len + e->target_len);

	b[4] = 1;
	le32_store(b + 8, heap);
	le32_store(rec, heap);
	le16_store(rec + 4, (uint16_t)e->name_len);
	rec[6] = (uint8_t)e->form;
	rec[7] = e->below.links;
	le32_store(rec + 8, e->mode);
	le32_store(rec + 12, e->uid);
	le32_store(rec + 16, e->gid);
	le32_store(rec + 20, e->nlink);
	le64_store(rec + 24, e->ino);
	le64_store(rec + 32, e->size);
	le64_store(rec + 40, (uint64_t)e->mtime_s);
	le64_store(rec + 48, (uint64_t)e->ctime_s);
	le32_store(rec + 56, e->mtime_ns);
	le32_store(rec + 60, e->ctime_ns);
	memcpy(rec + 64, e->id.b, OBJECT_ID_SIZE);
	memcpy(rec + 80, e->xattrs.b, OBJECT_ID_SIZE);
	le64_store(rec + 96, e->data + e->rdev + e->below.files);
	le64_store(rec + 104, e->below.bytes);
	buf_reset(out);
	CHECK_EQ(buf_append(out, b, sizeof(b)), 0);
	CHECK_EQ(buf_append(out, e->name, e->name_len), 0);
	CHECK_EQ(buf_append(out, e->target, e->target_len), 0);
}

static void not_canonical(const struct tree_entry *e, const char *sentence)
{
	const char *flaw = tree_entry_flaw(e);

	CHECK(flaw);
	CHECK_HAS(flaw, sentence);
}

/* As bytes it is refused with the same sentence, and not handed out. */
static void not_readable(const struct tree_entry *e, const char *sentence)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	struct tree_entry got = { .ino = 1 };
	struct err err = { 0 };
	struct tree_node node;

	not_canonical(e, sentence);
	encode_blindly(e, &bytes);
	CHECK_OK(tree_node_open(bytes.data, bytes.len, &node, &err), &err);
	CHECK_EQ(tree_node_verify(&node, &err), -EBADMSG);
	CHECK_HAS(err.msg, sentence);
	CHECK_EQ(tree_node_entry(&node, 0, &got, NULL), -EBADMSG);
	CHECK_EQ(got.ino, 1);
}

/* `base` is sound, and `edit` of a copy `e` is all that is wrong with it. */
#define REFUSED(base, edit, sentence)                 \
	do {                                          \
		struct tree_entry e = (base);         \
		CHECK_STR(tree_entry_flaw(&e), NULL); \
		edit;                                 \
		not_readable(&e, sentence);           \
	} while (0)

#define DIFFERS(base, edit)                            \
	do {                                           \
		struct tree_entry e = (base);          \
		CHECK(tree_entry_equal(&e, &(base)));  \
		edit;                                  \
		CHECK(!tree_entry_equal(&e, &(base))); \
	} while (0)

TEST(attributes_beyond_their_range_are_refused)
{
	const struct tree_entry f = sample_file("f", 1);

	REFUSED(f, e.mtime_ns = 1000000000, "more nanoseconds than a second");
	REFUSED(f, e.ctime_ns = 1000000000, "more nanoseconds than a second");
	REFUSED(f, e.mode = 0644, "its mode is of no known type");
	REFUSED(f, e.mode = 0150000 | 0644, "its mode is of no known type");
	REFUSED(f, e.mode |= 0200000, "its mode is of no known type");
	REFUSED(f, e.mode |= 0x80000000, "its mode is of no known type");
	REFUSED(sample_hole("h", INT64_MAX), e.size++, "its size is beyond what a file can have");
}

TEST(a_form_that_does_not_fit_the_type_is_refused)
{
	const struct tree_entry fifo = sample_entry("p", TREE_NONE, S_IFIFO | 0600);
	const struct tree_entry d = sample_directory("d");

	REFUSED(sample_file("f", 1), e.form = TREE_DIR, "directory and tree do not go together");
	REFUSED(d, e.form = TREE_CHUNK, "directory and tree do not go together");
	REFUSED(d, (e.form = TREE_NONE, e.id = (struct object_id){ 0 }),
		"directory and tree do not go together");
	REFUSED(fifo, (e.form = TREE_CHUNK, e.id = sample_id),
		"content of what is no regular file");
	REFUSED(fifo, (e.form = TREE_RECIPE, e.id = sample_id),
		"content of what is no regular file");
	REFUSED(fifo, e.id = sample_id, "its form and its object do not go together");
	REFUSED(d, e.id = (struct object_id){ 0 }, "its form and its object do not go together");
	REFUSED(sample_file("f", 1), e.id = (struct object_id){ 0 },
		"its form and its object do not go together");
}

TEST(a_size_that_does_not_fit_the_content_is_refused)
{
	const struct tree_entry small = sample_file("s", CHUNK_SIZE_MAX),
				large = sample_file("l", CHUNK_SIZE_MAX + 1);

	REFUSED(small, e.size = e.data = CHUNK_SIZE_MAX + 1, "does not fit a single chunk");
	REFUSED(small, e.size = e.data = 0, "does not fit a single chunk");
	REFUSED(large, e.size = e.data = CHUNK_SIZE_MAX, "does not fit a recipe");
	REFUSED(large, e.data++, "it has more data than bytes");
	REFUSED(large, e.data = 0, "data and content do not go together");
	REFUSED(small, e.data--, "a single chunk with a hole in it");
	REFUSED(sample_hole("h", 10), e.data = 10, "data and content do not go together");
}

TEST(fields_of_another_type_are_refused)
{
	const struct tree_entry fifo = sample_entry("p", TREE_NONE, S_IFIFO | 0600);
	const struct tree_entry sock = sample_entry("s", TREE_NONE, S_IFSOCK | 0600);
	struct tree_entry odd;

	REFUSED(fifo, e.size = 1, "a size of what is neither");
	REFUSED(sock, e.size = 1, "a size of what is neither");
	REFUSED(sample_device("b"), e.size = 1, "a size of what is neither");
	REFUSED(sample_directory("d"), e.size = 4096, "a size of what is neither");
	REFUSED(sample_directory("d"), e.nlink = 1, "a directory of one link");
	REFUSED(fifo, e.below.links = true, "a summary of what is no directory");
	REFUSED(fifo, e.below.bytes = 1, "a summary of what is no directory");
	REFUSED(sample_file("f", 1), (e.target = "t", e.target_len = 1),
		"a target of what is no symlink");
	REFUSED(sample_directory("d"), (e.target = "t", e.target_len = 1),
		"a target of what is no symlink");

	/* In bytes these share a field with what the type does have. */
	odd = sample_file("f", 10);
	odd.rdev = 1;
	not_canonical(&odd, "a device number of what is no device");
	odd = sample_device("b");
	odd.data = 1;
	not_canonical(&odd, "content of what is no regular file");
	odd = fifo;
	odd.below.files = 1;
	not_canonical(&odd, "a summary of what is no directory");
}

TEST(a_symlink_without_a_sound_target_is_refused)
{
	const struct tree_entry l = sample_symlink("l", "to");
	char longest[TREE_TARGET_LEN_MAX + 1];

	memset(longest, 'x', sizeof(longest));
	REFUSED(l, e.target_len = e.size = 0, "a symlink without a target");
	REFUSED(l, (e.target = longest, e.target_len = e.size = sizeof(longest)),
		"its target is too long");
	REFUSED(l, e.target = "t\0", "its target holds a NUL");
	REFUSED(l, e.size = 1, "the size of a symlink");
}

TEST(a_link_with_anything_of_its_own_is_refused)
{
	const char *own = "a link has attributes of its own";
	const struct tree_entry l = sample_link("l");

	REFUSED(l, e.mode = S_IFDIR, "a directory with several names");
	REFUSED(l, e.mode |= 0600, own);
	REFUSED(l, e.uid = 1, own);
	REFUSED(l, e.gid = 1, own);
	REFUSED(l, e.nlink = 2, own);
	REFUSED(l, e.size = 1, own);
	REFUSED(l, e.mtime_s = 1, own);
	REFUSED(l, e.ctime_s = 1, own);
	REFUSED(l, e.mtime_ns = 1, own);
	REFUSED(l, e.ctime_ns = 1, own);
	REFUSED(l, e.xattrs = sample_id, own);
	REFUSED(l, e.data = 1, own);
	REFUSED(l, (e.target = "t", e.target_len = 1), own);
	REFUSED(l, e.id = sample_id, "its form and its object do not go together");
}

TEST(entries_are_equal_only_if_everything_is)
{
	const struct tree_entry f = sample_file("f", 70000), l = sample_symlink("l", "to");

	DIFFERS(f, e.name = "g");
	DIFFERS(f, e.name_len = 0);
	DIFFERS(f, e.form = TREE_CHUNK);
	DIFFERS(f, e.mode++);
	DIFFERS(f, e.uid++);
	DIFFERS(f, e.gid++);
	DIFFERS(f, e.ino++);
	DIFFERS(f, e.size++);
	DIFFERS(f, e.mtime_s++);
	DIFFERS(f, e.ctime_s++);
	DIFFERS(f, e.mtime_ns++);
	DIFFERS(f, e.ctime_ns++);
	DIFFERS(f, e.id.b[15]++);
	DIFFERS(f, e.xattrs.b[0]++);
	DIFFERS(f, e.data++);
	DIFFERS(f, e.rdev++);
	DIFFERS(f, e.nlink++);
	DIFFERS(f, e.below.files++);
	DIFFERS(f, e.below.bytes++);
	DIFFERS(f, e.below.links = true);
	DIFFERS(l, e.target = "tO");
	DIFFERS(l, e.target_len--);
}

TEST(content_goes_into_an_entry_and_comes_out_the_same)
{
	static const struct content list[] = {
		{ .form = CONTENT_HOLE },
		{ .form = CONTENT_HOLE, .size = 1 << 20 },
		{ .form = CONTENT_CHUNK, .id = { { 1 } }, .size = 3, .data = 3 },
		{ .form = CONTENT_RECIPE, .id = { { 2 } }, .size = 70000, .data = 65536 },
	};
	struct tree_entry e = sample_file("f", 9);
	struct content got;

	for (size_t i = 0; i < ARRAY_LEN(list); i++) {
		tree_entry_set_content(&e, &list[i]);
		CHECK_STR(tree_entry_flaw(&e), NULL);
		got = tree_entry_content(&e);
		CHECK(content_equal(&got, &list[i]));
	}
}

TEST(a_copy_borrows_nothing)
{
	char target[] = "to";
	struct tree_entry e = sample_symlink("l", target), dir = sample_directory("d");
	struct tree_entry copy = { 0 }, empty = { 0 };

	CHECK_EQ(tree_entry_copy(&e, &copy), 0);
	target[0] = 'x';
	CHECK_MEM(copy.target, copy.target_len, "to", 2);
	CHECK(!copy.name && copy.name_len == 0);
	CHECK_EQ(copy.mode, e.mode);
	tree_entry_done(&copy);
	CHECK_EQ(tree_entry_copy(&dir, &copy), 0);
	CHECK(!copy.target && copy.below.files == 0);
	tree_entry_done(&copy);
	tree_entry_done(&empty);
}

TEST_MAIN("tree-entry")
