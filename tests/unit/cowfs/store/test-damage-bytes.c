/*
 * Every byte of every row of a small store, changed in the file, one at a time.
 * Whatever was changed: the store refuses to open or check reports it, and nothing is
 * handed out but what was put.
 */
#include <stdio.h>

#include "tests/lib/damage.h"
#include "tests/lib/pristine.h"

#define LEAF_TABLE 0x0d
#define LEAF_INDEX 0x0a

static unsigned be16(const uint8_t *p)
{
	return (unsigned)p[0] << 8 | p[1];
}

static size_t varint(const uint8_t *p, uint64_t *ret)
{
	uint64_t v = 0;

	for (size_t i = 0; i < 8; i++) {
		v = v << 7 | (p[i] & 0x7f);
		if (!(p[i] & 0x80)) {
			*ret = v;
			return i + 1;
		}
	}
	*ret = v << 8 | p[8];
	return 9;
}

/* The one leaf page that a table or an index of so small a store consists of. */
struct leaf {
	size_t file;
	const struct buf *bytes;
	size_t page; /* offset of the page */
	size_t head; /* offset of the b-tree header: page 1 has the file's before it */
	unsigned type;
	unsigned n;
};

static struct leaf find_leaf(const struct pristine *p, size_t file, const char *name)
{
	const int64_t number =
	    damage_ask(p->path, pristine_file[file],
		       "SELECT rootpage FROM sqlite_schema WHERE name = '%s'", name);
	struct leaf l = { .file = file, .bytes = &p->file[file] };
	const size_t page_size = be16(l.bytes->data + 16);

	l.page = (size_t)(number - 1) * page_size;
	l.head = l.page;
	CHECK(number > 1 && l.page + page_size <= l.bytes->len);
	l.type = l.bytes->data[l.head];
	CHECK(l.type == LEAF_TABLE || l.type == LEAF_INDEX);
	l.n = be16(l.bytes->data + l.head + 3);
	return l;
}

/* Where cell i lies: payload length, for a table the row number, then the record. */
static size_t find_cell(const struct leaf *l, unsigned i, size_t *ret_len)
{
	const size_t at = l->page + be16(l->bytes->data + l->head + 8 + 2 * i);
	const uint8_t *p = l->bytes->data + at;
	uint64_t payload, seq;
	size_t len = varint(p, &payload);

	if (l->type == LEAF_TABLE)
		len += varint(p + len, &seq);
	*ret_len = len + payload;
	CHECK(at + *ret_len <= l->bytes->len);
	return at;
}

/* Change one byte; the byte is back when it returns. */
static bool change_is_noticed(const struct pristine *p, size_t file, size_t at, uint8_t mask)
{
	const uint8_t was = p->file[file].data[at];
	bool found;

	damage_poke(p->path, pristine_file[file], at, was ^ mask);
	found = pristine_is_damaged(p);
	damage_poke(p->path, pristine_file[file], at, was);
	return found;
}

static void damage_range(const struct pristine *p, size_t file, const char *what, size_t from,
			 size_t len)
{
	static const uint8_t masks[] = { 0x01, 0x80, 0xff };
	char text[160];

	for (size_t at = from; at < from + len; at++)
		for (size_t m = 0; m < ARRAY_LEN(masks); m++) {
			snprintf(text, sizeof(text), "%s: %s byte %zu of %zu ^ 0x%02x was noticed",
				 pristine_file[file], what, at - from, len, masks[m]);
			test_check(change_is_noticed(p, file, at, masks[m]), text, __FILE__,
				   __LINE__);
		}
}

static void damage_cells(const struct pristine *p, size_t file, const char *name, unsigned n)
{
	const struct leaf l = find_leaf(p, file, name);

	CHECK_EQ(l.n, n);
	for (unsigned i = 0; i < l.n; i++) {
		char what[64];
		size_t len, at = find_cell(&l, i, &len);

		snprintf(what, sizeof(what), "%s cell %u", name, i);
		damage_range(p, file, what, at, len);
	}
	CHECK(!pristine_is_damaged(p));
}

/* Type, free blocks, number of cells, where they lie. */
static void damage_head(const struct pristine *p, size_t file, const char *name)
{
	const struct leaf l = find_leaf(p, file, name);

	damage_range(p, file, name, l.head, 8 + 2 * l.n);
}

TEST(any_changed_byte_of_any_object_row_is_noticed)
{
	CLEANUP(pristine_done) struct pristine p = pristine_new("raw-object");

	damage_cells(&p, 0, "object", 4);
}

TEST(any_changed_byte_of_any_chunk_row_is_noticed)
{
	CLEANUP(pristine_done) struct pristine p = pristine_new("raw-chunk");

	damage_cells(&p, 1, "chunk", 2);
}

TEST(any_changed_byte_of_any_ref_is_noticed)
{
	CLEANUP(pristine_done) struct pristine p = pristine_new("raw-ref");

	damage_cells(&p, 0, "ref", 2);
}

TEST(any_changed_byte_of_an_index_is_noticed)
{
	CLEANUP(pristine_done) struct pristine p = pristine_new("raw-index");

	damage_cells(&p, 0, "object_by_id", 4);
	damage_cells(&p, 1, "chunk_by_id", 2);
}

TEST(any_changed_byte_of_the_head_of_a_page_of_rows_is_noticed)
{
	CLEANUP(pristine_done) struct pristine p = pristine_new("raw-head");

	damage_head(&p, 0, "object");
	damage_head(&p, 0, "ref");
	damage_head(&p, 1, "chunk");
}

/* Every other byte: these are not rows of objects, and most of them are text. */
TEST(any_change_of_the_settings_or_the_schema_is_noticed_or_does_no_harm)
{
	CLEANUP(pristine_done) struct pristine p = pristine_new("raw-first");

	for (size_t f = 0; f < PRISTINE_FILES; f++) {
		const struct leaf settings = find_leaf(&p, f, "setting");
		const size_t page_size = be16(p.file[f].data + 16);
		const size_t starts[] = { 0, settings.page };
		size_t found = 0;

		for (size_t s = 0; s < ARRAY_LEN(starts); s++)
			for (size_t at = starts[s]; at < starts[s] + page_size; at += 2)
				if (p.file[f].data[at] != 0)
					found += change_is_noticed(&p, f, at, 0xff);
		CHECK(found > 0);
		CHECK(!pristine_is_damaged(&p));
	}
}

TEST_MAIN("damage-bytes")
