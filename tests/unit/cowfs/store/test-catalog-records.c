/*
 * Records that are damaged, foreign or old: refused with a sentence, or read for what they say.
 */
#include "tests/unit/cowfs/store/catalog-fixture.h"

/* The snapshot's record, as docs/reference/format.md has it. */
static struct buf sample_record(void)
{
	struct buf v = BUF_INIT;

	CHECK_EQ(buf_append_u8(&v, 7), 0);
	CHECK_EQ(buf_append(&v, id_b.b, sizeof(id_b.b)), 0);
	CHECK_EQ(buf_append(&v, id_c.b, sizeof(id_c.b)), 0);
	CHECK_EQ(buf_append_u32(&v, 5), 0);
	CHECK_EQ(buf_append_str(&v, clone_name), 0);
	CHECK_EQ(buf_append_u32(&v, (uint32_t)strlen(message)), 0);
	CHECK_EQ(buf_append_str(&v, message), 0);
	CHECK_EQ(buf_append_u64(&v, (uint64_t)INT64_MIN), 0);
	CHECK_EQ(buf_append_u64(&v, 3), 0);
	CHECK_EQ(buf_append_u64(&v, UINT64_MAX), 0);
	CHECK_EQ(buf_append_u32(&v, (uint32_t)strlen(lacks)), 0);
	CHECK_EQ(buf_append_str(&v, lacks), 0);
	CHECK_EQ(buf_append(&v, id_a.b, sizeof(id_a.b)), 0);
	CHECK_EQ(buf_append_u64(&v, SNAPSHOT_MADE_AUTOMATICALLY), 0);
	CHECK_EQ(buf_append_u32(&v, (uint32_t)strlen(meta)), 0);
	CHECK_EQ(buf_append_str(&v, meta), 0);
	CHECK_EQ(buf_append_u32(&v, (uint32_t)strlen(image)), 0);
	CHECK_EQ(buf_append_str(&v, image), 0);
	CHECK_EQ(buf_append_u32(&v, (uint32_t)strlen(part)), 0);
	CHECK_EQ(buf_append_str(&v, part), 0);
	return v;
}

#define RECORD_CLONE_AT (1 + 8 + 8)

static void put_raw(struct shelf *sh, enum ref_kind kind, const char *name, size_t name_len,
		    const struct object_id *root, const void *value, size_t value_len)
{
	struct ref ref = {
		.kind = kind,
		.name = name,
		.name_len = name_len,
		.value = value,
		.value_len = value_len,
	};
	struct err err = { 0 };

	if (root)
		ref.root = *root;
	CHECK_OK(ref_put(sh->b, &ref, REF_REPLACE, &err), &err);
}

static void put_record(struct shelf *sh, const struct catalog_id *id, const void *value, size_t len)
{
	char hex[CATALOG_HEX_SIZE];

	put_raw(sh, REF_SNAPSHOT, catalog_id_hex(id, hex), 16, &sh->root, value, len);
}

static void is_refused_with(struct shelf *sh, const struct catalog_id *id, int code,
			    const char *why)
{
	struct snapshot s = { .files = 4711 };
	struct err err = { 0 };
	char hex[CATALOG_HEX_SIZE];

	CHECK_EQ(snapshot_get(sh->s, id, &s, &err), code);
	CHECK_HAS(err.msg, catalog_id_hex(id, hex));
	CHECK_HAS(err.msg, why);
	CHECK_EQ(s.files, 4711);
}

static void is_refused(struct shelf *sh, const struct catalog_id *id, const char *why)
{
	is_refused_with(sh, id, -EBADMSG, why);
}

static void refuses(struct shelf *sh, const void *value, size_t len, const char *why)
{
	put_record(sh, &id_a, value, len);
	shelf_commit(sh);
	is_refused(sh, &id_a, why);
}

TEST(the_bytes_of_a_record_are_those_of_the_format)
{
	CLEANUP(shelf_done) struct shelf sh = shelf_new("bytes");
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	CLEANUP(buf_done) struct buf want = sample_record();
	char hex[CATALOG_HEX_SIZE];
	struct err err = { 0 };
	struct ref ref;

	put_snapshot(&sh, &id_a);
	shelf_commit(&sh);
	CHECK_OK(ref_get(sh.s, REF_SNAPSHOT, catalog_id_hex(&id_a, hex), 16, &ref, &hold, &err),
		 &err);
	CHECK_MEM(ref.value, ref.value_len, want.data, want.len);
	CHECK(object_id_equal(&ref.root, &sh.root));
}

TEST(a_record_cut_off_anywhere_is_refused)
{
	CLEANUP(shelf_done) struct shelf sh = shelf_new("cut");
	CLEANUP(buf_done) struct buf v = sample_record();

	for (size_t len = 0; len < v.len; len++)
		put_record(&sh, &(struct catalog_id){ { 1, (uint8_t)len } }, v.data, len);
	shelf_commit(&sh);
	for (size_t len = 0; len < v.len; len++)
		is_refused(&sh, &(struct catalog_id){ { 1, (uint8_t)len } },
			   "the record is cut off");
}

TEST(bytes_behind_a_record_are_refused)
{
	CLEANUP(shelf_done) struct shelf sh = shelf_new("behind");
	CLEANUP(buf_done) struct buf v = sample_record();

	CHECK_EQ(buf_append_zero(&v, 2), 0);
	refuses(&sh, v.data, v.len, "2 bytes follow the record");
}

TEST(a_record_of_another_version_is_refused_with_its_sentence)
{
	CLEANUP(shelf_done) struct shelf sh = shelf_new("version");
	CLEANUP(buf_done) struct buf v = sample_record();

	v.data[0] = 8;
	put_record(&sh, &id_a, v.data, v.len);
	shelf_commit(&sh);
	is_refused_with(&sh, &id_a, -EPROTO, "record of a later version");
	v.data[0] = 0;
	refuses(&sh, v.data, v.len, "record of no version");
}

/* As version 1 has it. */
static struct buf old_clone_record(void)
{
	struct buf v = BUF_INIT;

	CHECK_EQ(buf_append_u8(&v, 1), 0);
	CHECK_EQ(buf_append(&v, id_a.b, sizeof(id_a.b)), 0);
	CHECK_EQ(buf_append(&v, id_c.b, sizeof(id_c.b)), 0);
	CHECK_EQ(buf_append_u64(&v, 1), 0);
	CHECK_EQ(buf_append_u64(&v, 2), 0);
	CHECK_EQ(buf_append_u64(&v, 3), 0);
	return v;
}

TEST(a_clone_written_before_it_had_inode_numbers_has_none)
{
	CLEANUP(shelf_done) struct shelf sh = shelf_new("old-clone");
	CLEANUP(buf_done) struct buf v = old_clone_record();
	CLEANUP(clone_done) struct clone got = { .next_ino = 7, .grown = 7 };
	struct err err = { 0 };

	put_raw(&sh, REF_CLONE, "c", 1, &sh.root, v.data, v.len);
	shelf_commit(&sh);
	CHECK_OK(clone_get(sh.s, "c", &got, &err), &err);
	CHECK(same_id(&got.base, &id_a) && same_id(&got.project, &id_c));
	CHECK_EQ(got.quota, 3);
	CHECK_EQ(got.next_ino, 0);
	CHECK_EQ(got.grown, 0);
}

TEST(a_snapshot_written_before_it_told_what_it_lacks_lacks_nothing)
{
	CLEANUP(shelf_done) struct shelf sh = shelf_new("old-snapshot");
	CLEANUP(buf_done) struct buf v = sample_record();
	CLEANUP(snapshot_done) struct snapshot got = { 0 };
	struct err err = { 0 };

	v.data[0] = 1;
	put_record(&sh, &id_a, v.data,
		   v.len - 4 - strlen(lacks) - CATALOG_ID_SIZE - 8 - META_SIZE - IMAGE_SIZE -
		       PART_SIZE);
	shelf_commit(&sh);
	CHECK_OK(snapshot_get(sh.s, &id_a, &got, &err), &err);
	CHECK_STR(got.message, message);
	CHECK(!got.lacks);
}

TEST(a_snapshot_written_before_clones_were_rebased_names_no_base)
{
	CLEANUP(shelf_done) struct shelf sh = shelf_new("old-base");
	CLEANUP(buf_done) struct buf v = sample_record();
	CLEANUP(snapshot_done) struct snapshot got = { 0 };
	struct err err = { 0 };

	v.data[0] = 2;
	put_record(&sh, &id_a, v.data,
		   v.len - CATALOG_ID_SIZE - 8 - META_SIZE - IMAGE_SIZE - PART_SIZE);
	shelf_commit(&sh);
	CHECK_OK(snapshot_get(sh.s, &id_a, &got, &err), &err);
	CHECK_STR(got.lacks, lacks);
	CHECK(catalog_id_is_zero(&got.base));
}

TEST(a_snapshot_written_before_it_told_who_wanted_it_does_not_know)
{
	CLEANUP(shelf_done) struct shelf sh = shelf_new("old-made");
	CLEANUP(buf_done) struct buf v = sample_record();
	CLEANUP(snapshot_done) struct snapshot got = { .made = 7 };
	struct err err = { 0 };

	v.data[0] = 3;
	put_record(&sh, &id_a, v.data, v.len - 8 - META_SIZE - IMAGE_SIZE - PART_SIZE);
	shelf_commit(&sh);
	CHECK_OK(snapshot_get(sh.s, &id_a, &got, &err), &err);
	CHECK(same_id(&got.base, &id_a));
	CHECK_EQ(got.made, SNAPSHOT_MADE_UNKNOWN);
}

TEST(a_snapshot_written_before_there_were_labels_has_none)
{
	CLEANUP(shelf_done) struct shelf sh = shelf_new("old-meta");
	CLEANUP(buf_done) struct buf v = sample_record();
	CLEANUP(snapshot_done) struct snapshot got = { 0 };
	struct err err = { 0 };

	v.data[0] = 4;
	put_record(&sh, &id_a, v.data, v.len - META_SIZE - IMAGE_SIZE - PART_SIZE);
	shelf_commit(&sh);
	CHECK_OK(snapshot_get(sh.s, &id_a, &got, &err), &err);
	CHECK_EQ(got.made, SNAPSHOT_MADE_AUTOMATICALLY);
	CHECK(!got.meta);
}

TEST(a_snapshot_written_before_there_were_images_is_none)
{
	CLEANUP(shelf_done) struct shelf sh = shelf_new("old-image");
	CLEANUP(buf_done) struct buf v = sample_record();
	CLEANUP(snapshot_done) struct snapshot got = { 0 };
	struct err err = { 0 };

	v.data[0] = 5;
	put_record(&sh, &id_a, v.data, v.len - IMAGE_SIZE - PART_SIZE);
	shelf_commit(&sh);
	CHECK_OK(snapshot_get(sh.s, &id_a, &got, &err), &err);
	CHECK_STR(got.meta, meta);
	CHECK(!got.image);
}

TEST(a_snapshot_written_before_there_were_parts_is_whole)
{
	CLEANUP(shelf_done) struct shelf sh = shelf_new("old-part");
	CLEANUP(buf_done) struct buf v = sample_record();
	CLEANUP(snapshot_done) struct snapshot got = { 0 };
	struct err err = { 0 };

	v.data[0] = 6;
	put_record(&sh, &id_a, v.data, v.len - PART_SIZE);
	shelf_commit(&sh);
	CHECK_OK(snapshot_get(sh.s, &id_a, &got, &err), &err);
	CHECK_STR(got.image, image);
	CHECK(!got.part);
}

TEST(a_record_has_the_fields_of_its_own_version_and_no_others)
{
	CLEANUP(shelf_done) struct shelf sh = shelf_new("own-fields");
	CLEANUP(buf_done) struct buf v = old_clone_record();
	struct clone got;
	struct err err = { 0 };

	CHECK_EQ(buf_append_u64(&v, 4), 0);
	CHECK_EQ(buf_append_u64(&v, 5), 0);
	put_raw(&sh, REF_CLONE, "one", 3, &sh.root, v.data, v.len);
	v.data[0] = 2;
	put_raw(&sh, REF_CLONE, "two", 3, &sh.root, v.data, v.len - 1);
	v.data[0] = 8;
	put_raw(&sh, REF_CLONE, "three", 5, &sh.root, v.data, v.len);
	shelf_commit(&sh);
	CHECK_EQ(clone_get(sh.s, "one", &got, &err), -EBADMSG);
	CHECK_HAS(err.msg, "16 bytes follow the record");
	CHECK_EQ(clone_get(sh.s, "two", &got, &err), -EBADMSG);
	CHECK_HAS(err.msg, "the record is cut off");
	CHECK_EQ(clone_get(sh.s, "three", &got, &err), -EPROTO);
	CHECK_HAS(err.msg, "record of a later version");
}

TEST(a_text_that_is_too_long_cut_off_or_holds_a_NUL_is_refused)
{
	CLEANUP(shelf_done) struct shelf sh = shelf_new("texts");
	CLEANUP(buf_done) struct buf v = sample_record();

	v.data[RECORD_CLONE_AT + 4] = '\0';
	refuses(&sh, v.data, v.len, "a text with a NUL in it");
	le32_store(v.data + RECORD_CLONE_AT, 1000);
	refuses(&sh, v.data, v.len, "the record is cut off");
	le32_store(v.data + RECORD_CLONE_AT, UINT32_MAX);
	refuses(&sh, v.data, v.len, "a text of 4294967295 bytes, above 65536");
	CHECK_EQ(buf_append_zero(&v, TEXT_MAX + 100), 0);
	memset(v.data + RECORD_CLONE_AT + 4, 'x', TEXT_MAX + 1);
	le32_store(v.data + RECORD_CLONE_AT, TEXT_MAX + 1);
	refuses(&sh, v.data, v.len, "a text of 65537 bytes, above 65536");
}

static void numbers_are_refused(struct shelf *sh, const struct buf *v, size_t len, const char *why)
{
	struct hidden got = { .created = 4711 };
	struct err err = { 0 };

	put_raw(sh, REF_HIDDEN, "c", 1, NULL, v->data, len);
	shelf_commit(sh);
	CHECK_EQ(hidden_get(sh->s, "c", &got, &err), -EBADMSG);
	CHECK_HAS(err.msg, "list of hidden files 'c'");
	CHECK_HAS(err.msg, why);
	CHECK_EQ(got.created, 4711);
}

TEST(numbers_that_are_too_many_or_cut_off_are_refused)
{
	CLEANUP(shelf_done) struct shelf sh = shelf_new("numbers");
	CLEANUP(buf_done) struct buf v = BUF_INIT;
	size_t count;

	CHECK_EQ(buf_append_u8(&v, 1), 0);
	CHECK_EQ(buf_append_u64(&v, 5), 0);
	count = v.len;
	CHECK_EQ(buf_append_u32(&v, 2), 0);
	CHECK_EQ(buf_append_u64(&v, 7), 0);
	CHECK_EQ(buf_append_u64(&v, 8), 0);
	numbers_are_refused(&sh, &v, v.len - 1, "the record is cut off");
	numbers_are_refused(&sh, &v, count + 3, "the record is cut off");
	le32_store(v.data + count, 1);
	numbers_are_refused(&sh, &v, v.len, "8 bytes follow the record");
	le32_store(v.data + count, RECORD_NUMBERS_MAX + 1);
	numbers_are_refused(&sh, &v, v.len, "65537 numbers, above 65536");
}

TEST(a_damaged_record_ends_a_visit_and_a_search)
{
	CLEANUP(shelf_done) struct shelf sh = shelf_new("damaged-each");
	struct seen seen = { 0 };
	struct err err = { 0 };
	struct snapshot s;

	put_record(&sh, &id_a, "", 0);
	shelf_commit(&sh);
	CHECK_EQ(snapshot_each(sh.s, note_snapshot, &seen, &err), -EBADMSG);
	CHECK_EQ(seen.n, 0);
	CHECK_EQ(snapshot_find(sh.s, "00", &s, &err), -EBADMSG);
}

TEST(a_ref_whose_name_is_no_id_is_no_snapshot)
{
	static const char *const names[] = { "00112233445566FF", "00", "001122334455667788",
					     "001122334455667g" };
	CLEANUP(shelf_done) struct shelf sh = shelf_new("no-id");
	CLEANUP(buf_done) struct buf v = sample_record();
	struct err err = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const size_t len = strlen(names[i]);
		struct seen seen = { 0 };

		put_raw(&sh, REF_SNAPSHOT, names[i], len, &sh.root, v.data, v.len);
		shelf_commit(&sh);
		CHECK_EQ(snapshot_each(sh.s, note_snapshot, &seen, &err), -EBADMSG);
		CHECK_HAS(err.msg, names[i]);
		CHECK_HAS(err.msg, "its name is no id");
		CHECK_OK(ref_delete(sh.b, REF_SNAPSHOT, names[i], len, &err), &err);
	}
}

TEST(a_ref_with_a_NUL_in_its_name_is_no_tag)
{
	CLEANUP(shelf_done) struct shelf sh = shelf_new("nul");
	unsigned char value[1 + CATALOG_ID_SIZE] = { 1 };
	struct seen seen = { 0 };
	struct err err = { 0 };

	put_raw(&sh, REF_TAG, "a\0b", 3, NULL, value, sizeof(value));
	shelf_commit(&sh);
	CHECK_EQ(tag_each(sh.s, note_tag, &seen, &err), -EBADMSG);
	CHECK_STR(err.msg, "tag 'a\\x00b': a text with a NUL in it");
}

TEST(a_tree_where_none_belongs_or_none_where_one_does_is_refused)
{
	CLEANUP(shelf_done) struct shelf sh = shelf_new("roots");
	unsigned char value[1 + CATALOG_ID_SIZE] = { 1 };
	CLEANUP(buf_done) struct buf v = sample_record();
	char hex[CATALOG_HEX_SIZE];
	struct err err = { 0 };
	struct snapshot s;
	struct tag t;

	put_raw(&sh, REF_TAG, "t", 1, &sh.root, value, sizeof(value));
	put_raw(&sh, REF_SNAPSHOT, catalog_id_hex(&id_a, hex), 16, NULL, v.data, v.len);
	shelf_commit(&sh);
	CHECK_EQ(tag_get(sh.s, "t", &t, &err), -EBADMSG);
	CHECK_STR(err.msg, "tag 't': it has a tree");
	CHECK_EQ(snapshot_get(sh.s, &id_a, &s, &err), -EBADMSG);
	CHECK_HAS(err.msg, "it has no tree");
}

TEST_MAIN("catalog-records")
