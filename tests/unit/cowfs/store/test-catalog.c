#include "tests/unit/cowfs/store/catalog-fixture.h"

static char tag_name[] = "v1.0/\xff", empty[] = "";

TEST(ids_are_random_never_zero_and_shown_as_hex)
{
	static const struct catalog_id zero;
	char hex[CATALOG_HEX_SIZE];
	struct catalog_id a, b;
	struct err err = { 0 };

	CHECK_OK(catalog_id_new(&a, &err), &err);
	CHECK_OK(catalog_id_new(&b, &err), &err);
	CHECK(!same_id(&a, &b));
	CHECK(!same_id(&a, &zero));
	CHECK_STR(catalog_id_hex(&id_a, hex), "0011223344556677");
}

TEST(a_project_comes_back_as_it_was)
{
	CLEANUP(shelf_done) struct shelf sh = shelf_new("project");
	CLEANUP(project_done) struct project got = { 0 };
	const struct project p = sample_project(&id_a);
	struct err err = { 0 };

	CHECK_OK(project_put(sh.b, &p, REF_NEW, &err), &err);
	shelf_commit(&sh);
	CHECK_OK(project_get(sh.s, &id_a, &got, &err), &err);
	CHECK(same_id(&got.id, &id_a));
	CHECK_STR(got.path, path);
	CHECK_EQ(got.created, -2);
}

TEST(a_snapshot_comes_back_as_it_was)
{
	CLEANUP(shelf_done) struct shelf sh = shelf_new("snapshot");
	CLEANUP(snapshot_done) struct snapshot got = { 0 };
	struct err err = { 0 };

	put_snapshot(&sh, &id_a);
	shelf_commit(&sh);
	CHECK_OK(snapshot_get(sh.s, &id_a, &got, &err), &err);
	CHECK(same_id(&got.id, &id_a));
	CHECK(object_id_equal(&got.root, &sh.root));
	CHECK(same_id(&got.parent, &id_b));
	CHECK(same_id(&got.project, &id_c));
	CHECK_STR(got.clone, clone_name);
	CHECK_STR(got.message, message);
	CHECK_EQ(got.created, INT64_MIN);
	CHECK_EQ(got.files, 3);
	CHECK(got.bytes == UINT64_MAX);
	CHECK_STR(got.lacks, lacks);
	CHECK_STR(got.meta, meta);
	CHECK_STR(got.image, image);
	CHECK_STR(got.part, part);
	CHECK(same_id(&got.base, &id_a));
}

TEST(a_snapshot_of_the_project_itself_names_no_clone)
{
	CLEANUP(shelf_done) struct shelf sh = shelf_new("no-clone");
	CLEANUP(snapshot_done) struct snapshot got = { 0 };
	struct snapshot s = sample_snapshot(&sh, &id_a);
	struct err err = { 0 };

	s.clone = NULL;
	s.message = empty;
	s.parent = (struct catalog_id){ 0 };
	CHECK_OK(snapshot_put(sh.b, &s, REF_NEW, &err), &err);
	shelf_commit(&sh);
	CHECK_OK(snapshot_get(sh.s, &id_a, &got, &err), &err);
	CHECK(!got.clone);
	CHECK_STR(got.message, "");
	CHECK(same_id(&got.parent, &s.parent));
}

TEST(a_tag_comes_back_as_it_was)
{
	CLEANUP(shelf_done) struct shelf sh = shelf_new("tag");
	CLEANUP(tag_done) struct tag got = { 0 };
	struct err err = { 0 };

	put_tag(&sh, tag_name, &id_b);
	shelf_commit(&sh);
	CHECK_OK(tag_get(sh.s, tag_name, &got, &err), &err);
	CHECK_STR(got.name, tag_name);
	CHECK(same_id(&got.snapshot, &id_b));
}

TEST(a_clone_comes_back_as_it_was)
{
	CLEANUP(shelf_done) struct shelf sh = shelf_new("clone");
	const struct clone c = sample_clone(&sh, clone_name);
	CLEANUP(clone_done) struct clone got = { 0 };
	struct err err = { 0 };

	CHECK_OK(clone_put(sh.b, &c, REF_NEW, &err), &err);
	shelf_commit(&sh);
	CHECK_OK(clone_get(sh.s, clone_name, &got, &err), &err);
	CHECK_STR(got.name, clone_name);
	CHECK(object_id_equal(&got.root, &sh.root));
	CHECK(same_id(&got.base, &id_a));
	CHECK(same_id(&got.project, &id_c));
	CHECK_EQ(got.created, 1);
	CHECK_EQ(got.expires, INT64_MAX);
	CHECK(got.quota == UINT64_MAX - 1);
	CHECK(got.next_ino == UINT64_MAX);
	CHECK_EQ(got.grown, -5);
	CHECK_EQ(got.strict, 1);
	CHECK_EQ(got.private, 1);
	CHECK_EQ(got.no_xattrs, 2);
	CHECK(got.owner == UINT64_MAX - 2);
	CHECK(got.run == UINT64_MAX);
	CHECK(same_id(&got.start, &id_b));
}

TEST(a_receipt_comes_back_as_it_was)
{
	CLEANUP(shelf_done) struct shelf sh = shelf_new("receipt");
	CLEANUP(receipt_done) struct receipt got = { 0 }, bare = { 0 };
	struct err err = { 0 };
	static char who[] = "root", sum[] = "00ff", checks[] = "[]";
	struct receipt r = {
		.id = id_a,
		.kind = RECEIPT_PROMOTION,
		.state = RECEIPT_BEGUN,
		.project = id_b,
		.before = id_c,
		.after = id_a,
		.base = id_b,
		.undoes = id_c,
		.clone = clone_name,
		.who = who,
		.uid = 1000,
		.created = -7,
		.sha256 = sum,
		.checks = checks,
		.next_base = id_c,
		.base_due = 1,
	};

	CHECK(receipt_put(sh.b, &r, REF_NEW, &err) == 0);
	r.id = id_b;
	r.clone = r.sha256 = r.checks = NULL;
	CHECK(receipt_put(sh.b, &r, REF_NEW, &err) == 0);
	shelf_commit(&sh);
	CHECK(receipt_get(sh.s, &id_a, &got, &err) == 0);
	CHECK(got.kind == RECEIPT_PROMOTION && got.state == RECEIPT_BEGUN && got.uid == 1000);
	CHECK(catalog_id_same(&got.project, &id_b) && catalog_id_same(&got.before, &id_c));
	CHECK(catalog_id_same(&got.after, &id_a) && catalog_id_same(&got.base, &id_b));
	CHECK(catalog_id_same(&got.undoes, &id_c) && got.created == -7);
	CHECK_STR(got.clone, clone_name);
	CHECK_STR(got.who, who);
	CHECK_STR(got.sha256, sum);
	CHECK_STR(got.checks, checks);
	CHECK(catalog_id_same(&got.next_base, &id_c) && got.base_due == 1);
	CHECK(receipt_get(sh.s, &id_b, &bare, &err) == 0);
	CHECK(!bare.clone && !bare.sha256 && !bare.checks);
}

TEST(numbers_of_hidden_files_come_back_as_they_were)
{
	CLEANUP(shelf_done) struct shelf sh = shelf_new("hidden");
	CLEANUP(hidden_done) struct hidden none = { 0 }, got = { 0 };
	CLEANUP(buf_done) struct buf many = BUF_INIT;
	uint64_t numbers[] = { 2, 7, UINT64_MAX };
	uint64_t dirs[] = { 3 };
	struct hidden h = {
		clone_name, 5, { numbers, ARRAY_LEN(numbers) }, { dirs, ARRAY_LEN(dirs) }
	};
	struct err err = { 0 };

	CHECK_OK(hidden_put(sh.b, &h, &err), &err);
	shelf_commit(&sh);
	CHECK_OK(hidden_get(sh.s, clone_name, &got, &err), &err);
	CHECK_STR(got.clone, clone_name);
	CHECK_EQ(got.created, 5);
	CHECK_MEM(got.numbers.list, got.numbers.n * sizeof(uint64_t), numbers, sizeof(numbers));
	CHECK_MEM(got.dirs.list, got.dirs.n * sizeof(uint64_t), dirs, sizeof(dirs));
	h.numbers.n = 0;
	CHECK_OK(hidden_put(sh.b, &h, &err), &err);
	shelf_commit(&sh);
	CHECK_OK(hidden_get(sh.s, clone_name, &none, &err), &err);
	CHECK_EQ(none.numbers.n, 0);
	CHECK_EQ(buf_append_zero(&many, (RECORD_NUMBERS_MAX + 1) * sizeof(uint64_t)), 0);
	h.numbers = (struct record_numbers){ (uint64_t *)(void *)many.data, RECORD_NUMBERS_MAX };
	CHECK_OK(hidden_put(sh.b, &h, &err), &err);
	h.numbers.n++;
	CHECK_EQ(hidden_put(sh.b, &h, &err), -E2BIG);
	CHECK_HAS(err.msg, "65537 numbers, above 65536");
}

TEST(what_is_not_there_is_enoent_without_a_sentence)
{
	CLEANUP(shelf_done) struct shelf sh = shelf_new("absent");
	struct err err = { 0 };
	struct snapshot s;
	struct project p;
	struct clone c;
	struct tag t;

	CHECK_EQ(project_get(sh.s, &id_a, &p, &err), -ENOENT);
	CHECK_EQ(snapshot_get(sh.s, &id_a, &s, &err), -ENOENT);
	CHECK_EQ(snapshot_find(sh.s, "00", &s, &err), -ENOENT);
	CHECK_EQ(tag_get(sh.s, "v1", &t, &err), -ENOENT);
	CHECK_EQ(tag_get(sh.s, "", &t, &err), -ENOENT);
	CHECK_EQ(clone_get(sh.s, "c", &c, &err), -ENOENT);
	CHECK_EQ(err.code, 0);
}

TEST(nothing_is_visible_before_the_commit)
{
	CLEANUP(shelf_done) struct shelf sh = shelf_new("before-commit");
	struct err err = { 0 };
	struct tag t;

	put_tag(&sh, tag_name, &id_a);
	CHECK_EQ(tag_get(sh.s, tag_name, &t, &err), -ENOENT);
}

TEST(a_new_name_that_is_taken_fails_and_a_replacement_takes_its_place)
{
	CLEANUP(shelf_done) struct shelf sh = shelf_new("mode");
	const struct tag other = { .name = tag_name, .snapshot = id_c };
	CLEANUP(tag_done) struct tag got = { 0 };
	struct err err = { 0 };

	put_tag(&sh, tag_name, &id_a);
	shelf_commit(&sh);
	put_tag(&sh, tag_name, &id_c);
	CHECK_EQ(batch_commit(sh.b, BATCH_SAFE, &err), -EEXIST);
	shelf_next(&sh);

	CHECK_OK(tag_put(sh.b, &other, REF_REPLACE, &err), &err);
	shelf_commit(&sh);
	CHECK_OK(tag_get(sh.s, tag_name, &got, &err), &err);
	CHECK(same_id(&got.snapshot, &id_c));
}

static char *text_of(size_t len)
{
	char *text = malloc(len + 1);

	CHECK(text != NULL);
	memset(text, 'x', len);
	text[len] = '\0';
	return text;
}

TEST(a_message_may_have_64_KiB_and_not_one_byte_more)
{
	CLEANUP(shelf_done) struct shelf sh = shelf_new("long");
	AUTO_FREE char *longest = text_of(TEXT_MAX), *longer = text_of(TEXT_MAX + 1);
	struct snapshot s = sample_snapshot(&sh, &id_a);
	CLEANUP(snapshot_done) struct snapshot got = { 0 };
	struct err err = { 0 };

	s.message = longer;
	CHECK_EQ(snapshot_put(sh.b, &s, REF_NEW, &err), -EINVAL);
	CHECK_STR(err.msg, "snapshot: a text of 65537 bytes, above 65536");

	s.message = longest;
	CHECK_OK(snapshot_put(sh.b, &s, REF_NEW, &err), &err);
	shelf_commit(&sh);
	CHECK_OK(snapshot_get(sh.s, &id_a, &got, &err), &err);
	CHECK_STR(got.message, longest);
}

TEST(a_name_is_neither_empty_nor_longer_than_a_ref_can_be)
{
	CLEANUP(shelf_done) struct shelf sh = shelf_new("names");
	AUTO_FREE char *longer = text_of(REF_NAME_MAX + 1);
	struct tag t = { .name = empty, .snapshot = id_a };
	struct err err = { 0 };

	CHECK_EQ(tag_put(sh.b, &t, REF_NEW, &err), -EINVAL);
	CHECK_STR(err.msg, "the name of a tag has 1 to 4096 bytes");
	t.name = longer;
	CHECK_EQ(tag_put(sh.b, &t, REF_NEW, &err), -EINVAL);
}

/* --- finding and visiting --------------------------------------------------------------- */

static void finds(struct shelf *sh, const char *prefix, const struct catalog_id *want)
{
	CLEANUP(snapshot_done) struct snapshot got = { 0 };
	struct err err = { 0 };

	CHECK_OK(snapshot_find(sh->s, prefix, &got, &err), &err);
	CHECK(same_id(&got.id, want));
	CHECK_STR(got.message, message);
}

static void finds_not(struct shelf *sh, const char *prefix, int code, const char *why)
{
	struct err err = { 0 };
	struct snapshot s;

	CHECK_EQ(snapshot_find(sh->s, prefix, &s, &err), code);
	CHECK_STR(err.msg, why);
}

TEST(a_snapshot_is_found_by_the_digits_that_only_it_begins_with)
{
	CLEANUP(shelf_done) struct shelf sh = shelf_new("find");

	put_snapshot(&sh, &id_a);
	put_snapshot(&sh, &id_b);
	put_snapshot(&sh, &id_c);
	shelf_commit(&sh);
	finds(&sh, "00112233", &id_a);
	finds(&sh, "0011223344556677", &id_a);
	finds(&sh, "0011223F", &id_b);
	finds(&sh, "f", &id_c);
	finds_not(&sh, "0011223", -EINVAL, "several snapshots begin with '0011223'");
	finds_not(&sh, "0", -EINVAL, "several snapshots begin with '0'");
	finds_not(&sh, "1", -ENOENT, "");
	finds_not(&sh, "00112233445566770", -ENOENT, "");
	finds_not(&sh, "", -EINVAL, "'' is no id of a snapshot");
	finds_not(&sh, "00 ", -EINVAL, "'00 ' is no id of a snapshot");
	finds_not(&sh, "v1", -EINVAL, "'v1' is no id of a snapshot");
}

TEST(all_of_a_kind_are_visited_in_the_order_of_names_and_none_of_another)
{
	CLEANUP(shelf_done) struct shelf sh = shelf_new("each");
	static char names[3][2] = { "x", "b", "m" };
	struct seen s = { 0 }, p = { 0 }, t = { 0 }, c = { 0 };
	const struct project project = sample_project(&id_c);
	struct err err = { 0 };

	put_snapshot(&sh, &id_b);
	put_snapshot(&sh, &id_a);
	CHECK_OK(project_put(sh.b, &project, REF_NEW, &err), &err);
	for (int i = 0; i < 3; i++) {
		const struct clone clone = sample_clone(&sh, names[i]);

		put_tag(&sh, names[i], &id_a);
		if (i > 0)
			CHECK_OK(clone_put(sh.b, &clone, REF_NEW, &err), &err);
	}
	shelf_commit(&sh);

	CHECK_OK(project_each(sh.s, note_project, &p, &err), &err);
	CHECK_STR(p.marks, "\xfe");
	CHECK_OK(snapshot_each(sh.s, note_snapshot, &s, &err), &err);
	CHECK_STR(s.marks, "\x33\x3f");
	CHECK_OK(tag_each(sh.s, note_tag, &t, &err), &err);
	CHECK_STR(t.marks, "bmx");
	CHECK_OK(clone_each(sh.s, note_clone, &c, &err), &err);
	CHECK_STR(c.marks, "bm");
}

TEST(a_visit_ends_with_the_first_answer_that_is_not_zero)
{
	CLEANUP(shelf_done) struct shelf sh = shelf_new("stop");
	static char names[3][2] = { "a", "b", "c" };
	struct seen s = { .most = 2 };
	struct err err = { 0 };

	for (int i = 0; i < 3; i++)
		put_tag(&sh, names[i], &id_a);
	shelf_commit(&sh);
	CHECK_EQ(tag_each(sh.s, note_tag, &s, &err), 7);
	CHECK_STR(s.marks, "ab");
}

TEST_MAIN("catalog")
