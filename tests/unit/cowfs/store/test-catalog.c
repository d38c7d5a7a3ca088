#include "cowfs/store/catalog.h"

#include <errno.h>
#include <stdio.h>

#include "base/le.h"
#include "tests/lib/stock.h"
#include "tests/lib/test.h"

#define TEXT_MAX ((size_t)64 << 10)

/* A store of its own for each test, a batch to write to it, and a tree for roots to name. */
struct shelf {
	struct store *s;
	struct batch *b;
	struct object_id root;
};

/* End the batch, committed or not, and begin another. */
static void shelf_next(struct shelf *sh)
{
	batch_end(sh->b);
	sh->b = stock_begin(sh->s);
	sh->root = stock_put_root(sh->b, "text");
}

static struct shelf shelf_new(const char *name)
{
	struct shelf sh = { .s = stock_open(test_path(name), STORE_CREATE) };

	shelf_next(&sh);
	return sh;
}

static void shelf_done(struct shelf *sh)
{
	batch_end(sh->b);
	store_close(sh->s);
}

/* What was put so far can now be read. */
static void shelf_commit(struct shelf *sh)
{
	stock_commit(sh->b);
	shelf_next(sh);
}

static char path[] = "/home/a b/\xff\n", message[] = "before the\nstep \xe2\x82\xac";
static char clone_name[] = "try-1", tag_name[] = "v1.0/\xff", empty[] = "";
static char lacks[] = "a b//c/\xff";
static char meta[] = "step=1\nwho=me";

/* The bytes by which the labels of the sample lengthen it. */
#define META_SIZE (4 + sizeof(meta) - 1)

static const struct catalog_id id_a = { { 0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77 } };
static const struct catalog_id id_b = { { 0, 0x11, 0x22, 0x3f, 0xff, 0xff, 0xff, 0xff } };
static const struct catalog_id id_c = { { 0xfe, 1, 2, 3, 4, 5, 6, 7 } };

static struct project sample_project(const struct catalog_id *id)
{
	return (struct project){ .id = *id, .path = path, .created = -2 };
}

static struct snapshot sample_snapshot(const struct shelf *sh, const struct catalog_id *id)
{
	return (struct snapshot){
		.id = *id,
		.root = sh->root,
		.parent = id_b,
		.project = id_c,
		.clone = clone_name,
		.message = message,
		.created = INT64_MIN,
		.files = 3,
		.bytes = UINT64_MAX,
		.lacks = lacks,
		.meta = meta,
		.base = id_a,
		.made = SNAPSHOT_MADE_AUTOMATICALLY,
	};
}

static struct clone sample_clone(const struct shelf *sh, char *name)
{
	return (struct clone){
		.name = name,
		.root = sh->root,
		.base = id_a,
		.project = id_c,
		.created = 1,
		.expires = INT64_MAX,
		.quota = UINT64_MAX - 1,
		.next_ino = UINT64_MAX,
		.grown = -5,
		.strict = 1,
		.private = 1,
		.no_xattrs = 2,
		.run = UINT64_MAX,
		.start = id_b,
		.owner = UINT64_MAX - 2,
	};
}

static void put_snapshot(struct shelf *sh, const struct catalog_id *id)
{
	const struct snapshot s = sample_snapshot(sh, id);
	struct err err = { 0 };

	CHECK_OK(snapshot_put(sh->b, &s, REF_NEW, &err), &err);
}

static void put_tag(struct shelf *sh, char *name, const struct catalog_id *id)
{
	const struct tag t = { .name = name, .snapshot = *id };
	struct err err = { 0 };

	CHECK_OK(tag_put(sh->b, &t, REF_NEW, &err), &err);
}

static bool same_id(const struct catalog_id *a, const struct catalog_id *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

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

/* The first byte of each id or name, in the order of visits; stops after `most`. */
struct seen {
	char marks[8];
	size_t n, most;
};

static int note(struct seen *s, char mark)
{
	s->marks[s->n++] = mark;
	return s->n == s->most ? 7 : 0;
}

static int note_project(const struct project *p, void *ctx, struct err *err)
{
	CHECK_STR(p->path, path);
	return note(ctx, (char)p->id.b[0]);
}

static int note_snapshot(const struct snapshot *s, void *ctx, struct err *err)
{
	CHECK_STR(s->message, message);
	return note(ctx, (char)s->id.b[3]);
}

static int note_tag(const struct tag *t, void *ctx, struct err *err)
{
	return note(ctx, t->name[0]);
}

static int note_clone(const struct clone *c, void *ctx, struct err *err)
{
	CHECK(same_id(&c->base, &id_a));
	return note(ctx, c->name[0]);
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

/* --- records that are none -------------------------------------------------------------- */

/* The snapshot's record, as docs/reference/format.md has it. */
static struct buf sample_record(void)
{
	struct buf v = BUF_INIT;

	CHECK_EQ(buf_append_u8(&v, 5), 0);
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

static void is_refused(struct shelf *sh, const struct catalog_id *id, const char *why)
{
	struct snapshot s = { .files = 4711 };
	struct err err = { 0 };
	char hex[CATALOG_HEX_SIZE];

	CHECK_EQ(snapshot_get(sh->s, id, &s, &err), -EBADMSG);
	CHECK_HAS(err.msg, catalog_id_hex(id, hex));
	CHECK_HAS(err.msg, why);
	CHECK_EQ(s.files, 4711);
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

	v.data[0] = 6;
	refuses(&sh, v.data, v.len, "record of a later version");
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
	put_record(&sh, &id_a, v.data, v.len - 4 - strlen(lacks) - CATALOG_ID_SIZE - 8 - META_SIZE);
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
	put_record(&sh, &id_a, v.data, v.len - CATALOG_ID_SIZE - 8 - META_SIZE);
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
	put_record(&sh, &id_a, v.data, v.len - 8 - META_SIZE);
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
	put_record(&sh, &id_a, v.data, v.len - META_SIZE);
	shelf_commit(&sh);
	CHECK_OK(snapshot_get(sh.s, &id_a, &got, &err), &err);
	CHECK_EQ(got.made, SNAPSHOT_MADE_AUTOMATICALLY);
	CHECK(!got.meta);
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
	v.data[0] = 7;
	put_raw(&sh, REF_CLONE, "three", 5, &sh.root, v.data, v.len);
	shelf_commit(&sh);
	CHECK_EQ(clone_get(sh.s, "one", &got, &err), -EBADMSG);
	CHECK_HAS(err.msg, "16 bytes follow the record");
	CHECK_EQ(clone_get(sh.s, "two", &got, &err), -EBADMSG);
	CHECK_HAS(err.msg, "the record is cut off");
	CHECK_EQ(clone_get(sh.s, "three", &got, &err), -EBADMSG);
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

TEST_MAIN("catalog")
