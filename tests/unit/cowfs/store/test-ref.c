#include "cowfs/store/ref.h"

#include <errno.h>
#include <stdio.h>

#include "tests/lib/damage.h"
#include "tests/lib/stock.h"

static struct ref make_ref(enum ref_kind kind, const void *name, size_t name_len, const void *value,
			   size_t value_len)
{
	return (struct ref){ .kind = kind,
			     .name = name,
			     .name_len = name_len,
			     .value = value,
			     .value_len = value_len };
}

static void put(struct batch *b, const struct ref *ref, enum ref_mode mode)
{
	struct err err = { 0 };

	CHECK_OK(ref_put(b, ref, mode, &err), &err);
}

/* One batch of its own. */
static void put_now(struct store *s, const struct ref *ref, enum ref_mode mode)
{
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);

	put(b, ref, mode);
	stock_commit(b);
}

static void put_name(struct store *s, enum ref_kind kind, const char *name)
{
	const struct ref ref = make_ref(kind, name, strlen(name), NULL, 0);

	put_now(s, &ref, REF_NEW);
}

static void check_got(struct store *s, const struct ref *want)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct err err = { 0 };
	struct ref got;

	CHECK_OK(ref_get(s, want->kind, want->name, want->name_len, &got, &hold, &err), &err);
	CHECK_EQ(got.kind, want->kind);
	CHECK_MEM(got.name, got.name_len, want->name, want->name_len);
	CHECK_MEM(got.value, got.value_len, want->value, want->value_len);
	CHECK_MEM(got.root.b, OBJECT_ID_SIZE, want->root.b, OBJECT_ID_SIZE);
}

static void check_absent(struct store *s, enum ref_kind kind, const void *name, size_t len)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct err err = { 0 };
	struct ref got;

	CHECK_EQ(ref_get(s, kind, name, len, &got, &hold, &err), -ENOENT);
	CHECK_EQ(err.code, 0);
}

/* --- putting and getting ---------------------------------------------------------------------- */

TEST(a_ref_comes_back_as_it_was_put)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("back"), STORE_CREATE);
	const struct object_id root = stock_snapshot(s, "other", "text");

	for (int k = 1; k <= REF_KINDS; k++) {
		struct ref ref = make_ref((enum ref_kind)k, "name", 4, "value", 5);

		check_absent(s, ref.kind, "name", 4);
		ref.root = root;
		put_now(s, &ref, REF_NEW);
		check_got(s, &ref);
	}
}

TEST(a_batch_keeps_copies_of_what_it_is_given)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("copies"), STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	char name[] = "name", value[] = "value";
	struct ref ref = make_ref(REF_TAG, name, 4, value, 5);

	put(b, &ref, REF_NEW);
	memset(name, 'x', 4);
	memset(value, 'x', 5);
	stock_commit(b);
	ref = make_ref(REF_TAG, "name", 4, "value", 5);
	check_got(s, &ref);
}

TEST(one_name_of_two_kinds_is_two_refs)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("kinds"), STORE_CREATE);
	const struct ref tag = make_ref(REF_TAG, "n", 1, "t", 1);
	const struct ref clone = make_ref(REF_CLONE, "n", 1, "c", 1);

	put_now(s, &tag, REF_NEW);
	put_now(s, &clone, REF_NEW);
	check_got(s, &tag);
	check_got(s, &clone);
	check_absent(s, REF_SNAPSHOT, "n", 1);
}

TEST(names_and_values_are_bytes_of_any_sort_up_to_their_limits)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("bytes"), STORE_CREATE);
	AUTO_FREE char *value = malloc(REF_VALUE_MAX);
	char longest[REF_NAME_MAX], all[256];
	const struct ref refs[] = {
		make_ref(REF_TAG, "\0", 1, "\0", 1),
		make_ref(REF_TAG, "\0\0", 2, NULL, 0),
		make_ref(REF_TAG, "a", 1, "x\0y", 3),
		make_ref(REF_TAG, "a\0", 2, "", 0),
		make_ref(REF_TAG, "a\0b", 3, "n", 1),
		make_ref(REF_TAG, "\377", 1, "\377\376", 2),
		make_ref(REF_TAG, "' OR 1; --", 10, "'", 1),
		make_ref(REF_TAG, all, sizeof(all), all, sizeof(all)),
		make_ref(REF_TAG, longest, sizeof(longest), value, REF_VALUE_MAX),
		make_ref(REF_TAG, longest, sizeof(longest) - 1, value, REF_VALUE_MAX - 1),
	};

	CHECK(value);
	for (size_t i = 0; i < REF_VALUE_MAX; i++)
		value[i] = (char)(i * i >> 4);
	for (size_t i = 0; i < sizeof(all); i++)
		all[i] = (char)i;
	memset(longest, 'n', sizeof(longest));
	for (size_t i = 0; i < ARRAY_LEN(refs); i++)
		put_now(s, &refs[i], REF_NEW);
	for (size_t i = 0; i < ARRAY_LEN(refs); i++)
		check_got(s, &refs[i]);
}

TEST(an_empty_name_or_one_over_a_limit_is_refused_and_the_batch_goes_on)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("limits"), STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	AUTO_FREE char *bytes = calloc(1, REF_VALUE_MAX + 1);
	const struct ref good = make_ref(REF_TAG, "n", 1, "v", 1);
	const struct ref empty = make_ref(REF_TAG, bytes, 0, NULL, 0);
	const struct ref nowhere = make_ref(REF_PROJECT, NULL, 0, NULL, 0);
	const struct ref name = make_ref(REF_CLONE, bytes, REF_NAME_MAX + 1, NULL, 0);
	const struct ref value = make_ref(REF_SNAPSHOT, "n", 1, bytes, REF_VALUE_MAX + 1);
	struct err err = { 0 };

	CHECK(bytes);
	put(b, &good, REF_NEW);
	CHECK_EQ(ref_put(b, &empty, REF_NEW, &err), -EINVAL);
	CHECK_STR(err.msg, "the name of a tag is empty");
	CHECK_EQ(ref_put(b, &nowhere, REF_REPLACE, &err), -EINVAL);
	CHECK_EQ(ref_put(b, &name, REF_REPLACE, &err), -EINVAL);
	CHECK_STR(err.msg, "the name of a clone has 4097 bytes, above 4096");
	CHECK_EQ(ref_put(b, &value, REF_NEW, &err), -EINVAL);
	CHECK_STR(err.msg, "the value of a snapshot has 1048577 bytes, above 1048576");
	CHECK_EQ(ref_delete(b, REF_TAG, "", 0, &err), -EINVAL);
	CHECK_STR(err.msg, "the name of a tag is empty");
	CHECK_EQ(ref_delete(b, REF_TAG, bytes, REF_NAME_MAX + 1, &err), -EINVAL);
	CHECK_STR(err.msg, "the name of a tag has 4097 bytes, above 4096");
	stock_commit(b);
	check_got(s, &good);
	check_absent(s, REF_SNAPSHOT, "n", 1);
}

TEST(replacing_leaves_nothing_of_the_old)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("replace"), STORE_CREATE);
	struct ref ref = make_ref(REF_CLONE, "n", 1, "a long value", 12);

	ref.root = stock_snapshot(s, "other", "text");
	put_now(s, &ref, REF_REPLACE);
	check_got(s, &ref);
	ref = make_ref(REF_CLONE, "n", 1, NULL, 0);
	put_now(s, &ref, REF_REPLACE);
	check_got(s, &ref);
}

TEST(a_deleted_ref_is_gone_and_its_name_is_free)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("delete"), STORE_CREATE);

	stock_snapshot(s, "a", "text");
	stock_snapshot(s, "ab", "text");
	stock_drop(s, "a");
	check_absent(s, REF_SNAPSHOT, "a", 1);
	CHECK(stock_has_snapshot(s, "ab"));
	put_name(s, REF_SNAPSHOT, "a");
	CHECK(stock_has_snapshot(s, "a"));
}

TEST(deleting_what_is_not_there_keeps_the_whole_batch_out)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("delete-none"), STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *b = NULL;
	struct err err = { 0 };

	put_name(s, REF_TAG, "b");
	b = stock_begin(s);
	stock_name(b, REF_TAG, "a", NULL, REF_NEW);
	CHECK_OK(ref_delete(b, REF_TAG, "b", 1, &err), &err);
	CHECK_OK(ref_delete(b, REF_CLONE, "b", 1, &err), &err);
	CHECK_EQ(batch_commit(b, BATCH_SAFE, &err), -ENOENT);
	CHECK_HAS(err.msg, "clone 'b' does not exist");
	check_absent(s, REF_TAG, "a", 1);
	check_got(s, &(struct ref){ .kind = REF_TAG, .name = "b", .name_len = 1 });
}

TEST(changes_of_one_batch_take_effect_in_their_order)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("order"), STORE_CREATE);
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	const struct ref first = make_ref(REF_TAG, "n", 1, "first", 5);
	const struct ref second = make_ref(REF_TAG, "n", 1, "second", 6);
	const struct ref third = make_ref(REF_TAG, "n", 1, "third", 5);
	struct err err = { 0 };

	put(b, &first, REF_NEW);
	CHECK_OK(ref_delete(b, REF_TAG, "n", 1, &err), &err);
	put(b, &second, REF_NEW);
	put(b, &third, REF_REPLACE);
	stock_commit(b);
	check_got(s, &third);
}

/* --- walking ---------------------------------------------------------------------------------- */

struct walk {
	struct store *store;
	struct buf names; /* each behind a '|' */
	int stop_after;   /* 0: never */
	unsigned n;
};

static int on_ref(const struct ref *ref, void *ctx, struct err *err)
{
	struct walk *w = ctx;

	w->n++;
	if (buf_append_u8(&w->names, '|') < 0 ||
	    buf_append(&w->names, ref->name, ref->name_len) < 0)
		return err_nomem(err);
	return w->stop_after && (int)w->n == w->stop_after ? 42 : 0;
}

static void check_each(struct store *s, const char *prefix, size_t prefix_len, const char *want,
		       size_t want_len)
{
	struct walk w = { .store = s };
	struct err err = { 0 };

	CHECK_OK(ref_each(s, REF_TAG, prefix, prefix_len, on_ref, &w, &err), &err);
	CHECK_MEM(w.names.data, w.names.len, want, want_len);
	buf_done(&w.names);
}

#define CHECK_EACH(s, prefix, want) \
	check_each(s, prefix, sizeof(prefix) - 1, want, sizeof(want) - 1)

TEST(a_walk_goes_through_the_names_that_begin_so_in_the_order_of_their_bytes)
{
	static const char *const names[] = { "b",        "a",    "ab", "abc", "ac",   "\377",
					     "\377\377", "\376", "B",  "b/1", "b/10", "b/2" };
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("walk"), STORE_CREATE);
	const struct ref nul = make_ref(REF_TAG, "a\0z", 3, NULL, 0);

	CHECK_EACH(s, "", "");
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		put_name(s, REF_TAG, names[i]);
	put_now(s, &nul, REF_NEW);
	put_name(s, REF_CLONE, "abx");
	put_name(s, REF_SNAPSHOT, "abx");
	CHECK_EACH(s, "", "|B|a|a\0z|ab|abc|ac|b|b/1|b/10|b/2|\376|\377|\377\377");
	check_each(s, NULL, 0, "|B|a|a\0z|ab|abc|ac|b|b/1|b/10|b/2|\376|\377|\377\377",
		   sizeof("|B|a|a\0z|ab|abc|ac|b|b/1|b/10|b/2|\376|\377|\377\377") - 1);
	CHECK_EACH(s, "a", "|a|a\0z|ab|abc|ac");
	CHECK_EACH(s, "ab", "|ab|abc");
	CHECK_EACH(s, "a\0", "|a\0z");
	CHECK_EACH(s, "b/", "|b/1|b/10|b/2");
	CHECK_EACH(s, "\377", "|\377|\377\377");
	CHECK_EACH(s, "\377\377\377", "");
	CHECK_EACH(s, "abd", "");
	CHECK_EACH(s, "x", "");
}

TEST(a_walk_ends_with_the_first_answer_that_is_not_zero)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("stop"), STORE_CREATE);
	struct walk w = { .store = s, .stop_after = 2 };
	struct err err = { 0 };

	put_name(s, REF_TAG, "a");
	put_name(s, REF_TAG, "b");
	put_name(s, REF_TAG, "c");
	CHECK_EQ(ref_each(s, REF_TAG, NULL, 0, on_ref, &w, &err), 42);
	CHECK_EQ(w.n, 2);
	buf_done(&w.names);
	CHECK_EACH(s, "", "|a|b|c");
}

static int change_refs(const struct ref *ref, void *ctx, struct err *err)
{
	struct walk *w = ctx;
	char name[32];

	w->n++;
	CHECK(stock_has_snapshot(w->store, "read"));
	snprintf(name, sizeof(name), "z%u", w->n);
	put_name(w->store, REF_TAG, name);
	if (w->n == 1) {
		CLEANUP(batch_end_p) struct batch *b = stock_begin(w->store);

		CHECK_OK(ref_delete(b, REF_TAG, "b", 1, err), err);
		stock_commit(b);
	}
	return 0;
}

TEST(a_walk_is_of_one_moment_whatever_is_changed_meanwhile)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("moment"), STORE_CREATE);
	struct walk w = { .store = s };
	struct err err = { 0 };

	put_name(s, REF_SNAPSHOT, "read");
	put_name(s, REF_TAG, "a");
	put_name(s, REF_TAG, "b");
	put_name(s, REF_TAG, "c");
	CHECK_OK(ref_each(s, REF_TAG, NULL, 0, change_refs, &w, &err), &err);
	CHECK_EQ(w.n, 3);
	CHECK_EACH(s, "", "|a|c|z1|z2|z3");
}

/* --- damage ----------------------------------------------------------------------------------- */

static void check_damaged(struct store *s, const char *name)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct walk w = { .store = s };
	struct ref got = { .value_len = 99 };
	struct err err = { 0 };

	CHECK_EQ(ref_get(s, REF_TAG, name, strlen(name), &got, &hold, &err), -EBADMSG);
	CHECK_HAS(err.msg, "is damaged");
	CHECK_HAS(err.msg, name);
	CHECK_EQ(got.value_len, 99);
	err = (struct err){ 0 };
	CHECK_EQ(ref_each(s, REF_TAG, NULL, 0, on_ref, &w, &err), -EBADMSG);
	CHECK_EQ(w.n, 1);
	buf_done(&w.names);
}

TEST(a_damaged_ref_is_reported_and_not_handed_out)
{
	static const char *const damage[] = {
		"UPDATE ref SET root = x'00' WHERE name = CAST('bad' AS BLOB)",
		"UPDATE ref SET root = zeroblob(16) WHERE name = CAST('bad' AS BLOB)",
		"UPDATE ref SET root = zeroblob(17) WHERE name = CAST('bad' AS BLOB)",
		"UPDATE ref SET value = x'' WHERE name = CAST('bad' AS BLOB)",
		"UPDATE ref SET value = x'76616c7566' WHERE name = CAST('bad' AS BLOB)",
		"UPDATE ref SET value = zeroblob(2000000) WHERE name = CAST('bad' AS BLOB)",
		"UPDATE ref SET sum = sum + 1 WHERE name = CAST('bad' AS BLOB)",
		"UPDATE ref SET sum = 0 WHERE name = CAST('bad' AS BLOB)",
		"UPDATE ref SET kind = 3 WHERE kind = 4",
		"UPDATE ref SET name = CAST('bad' AS BLOB) WHERE kind = 3 AND value = x'77'",
	};

	for (size_t i = 0; i < ARRAY_LEN(damage); i++) {
		char dir[32];
		const char *path;
		struct ref bad = make_ref(REF_TAG, "bad", 3, "value", 5);
		const struct ref other = make_ref(REF_TAG, "other", 5, "w", 1);
		struct store *s;

		snprintf(dir, sizeof(dir), "damage-%zu", i);
		path = test_path(dir);
		s = stock_open(path, STORE_CREATE);
		bad.root = stock_snapshot(s, "s", "text");
		if (i >= 8)
			bad.kind = REF_CLONE;
		put_name(s, REF_TAG, "a");
		put_now(s, &bad, REF_NEW);
		if (i == 9)
			put_now(s, &other, REF_NEW);
		damage_sql(path, "meta.db", "%s", damage[i]);
		check_damaged(s, "bad");
		check_got(s, &(struct ref){ .kind = REF_TAG, .name = "a", .name_len = 1 });
		store_close(s);
	}
}

TEST(a_damaged_name_is_fit_for_showing)
{
	const char *path = test_path("shown");
	CLEANUP(store_close_p) struct store *s = stock_open(path, STORE_CREATE);
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct err err = { 0 };
	struct ref got;

	put_name(s, REF_TAG, "a\n\033[1m");
	damage_sql(path, "meta.db", "UPDATE ref SET sum = 1");
	CHECK_EQ(ref_get(s, REF_TAG, "a\n\033[1m", 6, &got, &hold, &err), -EBADMSG);
	CHECK_HAS(err.msg, "tag 'a\\x0a\\x1b[1m' is damaged");
}

TEST(every_kind_has_a_name)
{
	CHECK_STR(ref_kind_name(REF_PROJECT), "project");
	CHECK_STR(ref_kind_name(REF_SNAPSHOT), "snapshot");
	CHECK_STR(ref_kind_name(REF_TAG), "tag");
	CHECK_STR(ref_kind_name(REF_CLONE), "clone");
	CHECK_STR(ref_kind_name(REF_RECEIPT), "receipt");
	CHECK_STR(ref_kind_name(REF_AUDIT), "audit entry");
	CHECK_STR(ref_kind_name((enum ref_kind)(REF_KINDS + 1)), "ref of unknown kind");
}

TEST_MAIN("ref")
