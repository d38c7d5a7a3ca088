/*
 * What goes wrong on the way: memory that runs out at the n-th request, objects that are not
 * what they claim or not there.  Every merge fails with a sentence, or does without.
 */
#include <errno.h>

#include "snapshot/merge/merge.h"
#include "tests/lib/damage.h"
#include "tests/unit/cowfs/store/edit-fixture.h"
#include "tests/unit/snapshot/merge/merge-fixture.h"

#define TEXT "1\n2\n3\n4\n5\n6\n7\n8\n9\n"

/* Something of everything: merged texts, renames, links, attributes, directories, conflicts. */
static const struct leaf base[] = {
	F("a/text", TEXT),       F("a/moves", "x\n" TEXT), F("h", "1", .link = 5),
	F("i", "1", .link = 5),  F("gone/f", "1"),         F("x", "1", .xattr = "user.a=1"),
	F("both", "1\n"),        F("type", "1"),           D("d", 0755),
	F("l", TEXT, .link = 7), F("m", TEXT, .link = 7),  LEAF_END,
};
static const struct leaf ours[] = {
	F("a/text", "o\n" TEXT),
	F("a/moves", "x\n" TEXT "o\n"),
	F("h", "1", .link = 5),
	F("i", "1", .link = 5),
	F("gone/f", "1"),
	F("x", "1", .xattr = "user.a=2"),
	F("both", "2\n"),
	F("type", "2"),
	D("d", 0755),
	F("l", "o\n" TEXT, .link = 7, .xattr = "user.o=1"),
	F("m", "o\n" TEXT, .link = 7, .xattr = "user.o=1"),
	LEAF_END,
};
static const struct leaf theirs[] = {
	F("a/text", TEXT "t\n"),
	F("b/moved", "x\n" TEXT),
	F("h", "2", .link = 5),
	F("i", "2", .link = 5),
	F("j", "3", .link = 6),
	F("k", "3", .link = 6),
	F("x", "1", .xattr = "user.a=3"),
	F("both", "3\n"),
	SYM("type", "to"),
	D("d", 0700),
	F("l", TEXT "t\n", .link = 7, .xattr = "user.t=1"),
	F("m", TEXT "t\n", .link = 7, .xattr = "user.t=1"),
	LEAF_END,
};

char *__real_strdup(const char *s);
char *__wrap_strdup(const char *s);
char *__real_strndup(const char *s, size_t n);
char *__wrap_strndup(const char *s, size_t n);

char *__wrap_strdup(const char *s)
{
	return memory_fails() ? NULL : __real_strdup(s);
}

char *__wrap_strndup(const char *s, size_t n)
{
	return memory_fails() ? NULL : __real_strndup(s, n);
}

struct three {
	struct store *s;
	const char *path;
	struct object_id base, ours, theirs;
};

static struct three three_new(const char *name)
{
	struct three t = { .path = test_path(name) };

	t.s = stock_open(t.path, STORE_CREATE);
	t.base = leaf_tree(t.s, "base", base);
	t.ours = leaf_tree(t.s, "ours", ours);
	t.theirs = leaf_tree(t.s, "theirs", theirs);
	/* A store that is open may still carry copies of the chunks that will be missing. */
	store_close(t.s);
	t.s = stock_open(t.path, STORE_WRITE);
	return t;
}

static void three_done(struct three *t)
{
	store_close(t->s);
}

static int try(struct three *t, struct err *err)
{
	static const struct merge_options options = { .on_conflict = MERGE_THEIRS };
	CLEANUP(batch_end_p) struct batch *b = NULL;
	CLEANUP(merge_done) struct merge m = { 0 };
	int r = batch_begin(t->s, &b, err);

	return r < 0 ? r : merge_trees(b, &t->base, &t->ours, &t->theirs, &options, &m, err);
}

TEST(a_merge_whose_memory_runs_out_says_so)
{
	CLEANUP(three_done) struct three t = three_new("memory");
	struct err err = { 0 };
	unsigned n;
	int r;

	/* libgit2 is loaded once, and what it keeps is not to be counted. */
	CHECK_OK(try(&t, &err), &err);
	for (n = 1;; n++) {
		err = (struct err){ 0 };
		memory_ran_out = false;
		memory_lasts = n;
		r = try(&t, &err);
		memory_lasts = 0;
		if (!memory_ran_out)
			break;
		if (r < 0) {
			CHECK_EQ(r, -ENOMEM);
			CHECK_EQ(err.code, r);
			CHECK(err.msg[0] != '\0');
		}
	}
	CHECK_OK(r, &err);
	CHECK(n > 100);
	printf("# %u requests\n", n);
}

static void damage_all(struct three *t, const char *file, const char *table)
{
	const int64_t rows = damage_ask(t->path, file, "SELECT max(seq) FROM %s", table);
	int64_t failed = 0;

	for (int64_t seq = 0; seq <= rows; seq++) {
		struct err err = { 0 };
		int r;

		damage_sql(t->path, file, "CREATE TABLE kept AS SELECT * FROM %s WHERE seq = %lld",
			   table, (long long)seq);
		damage_sql(t->path, file, "DELETE FROM %s WHERE seq = %lld", table, (long long)seq);
		r = try(t, &err);
		damage_sql(t->path, file, "INSERT INTO %s SELECT * FROM kept", table);
		damage_sql(t->path, file, "DROP TABLE kept");
		if (r >= 0)
			continue;
		CHECK_EQ(r, -EBADMSG);
		CHECK_EQ(err.code, r);
		CHECK(err.msg[0] != '\0');
		failed++;
	}
	printf("# %lld of %lld rows of %s were missed\n", (long long)failed, (long long)rows,
	       table);
	CHECK(failed > 0);
}

TEST(a_merge_that_misses_an_object_says_which)
{
	CLEANUP(three_done) struct three t = three_new("missing");
	struct err err = { 0 };

	damage_all(&t, "meta.db", "object");
	damage_all(&t, "chunks.db", "chunk");
	CHECK_OK(try(&t, &err), &err);
}

/* The damage is named by the path that it belongs to. */
TEST(a_damaged_text_is_told_with_its_path)
{
	CLEANUP(three_done) struct three t = three_new("damaged");
	CLEANUP(batch_end_p) struct batch *b = stock_begin(t.s);
	struct err err = { 0 };
	struct content c;

	CHECK_OK(content_put(b, TEXT "t\n", strlen(TEXT "t\n"), &c, &err), &err);
	damage_object(t.path, OBJECT_CHUNK, &c.id);
	CHECK_EQ(try(&t, &err), -EBADMSG);
	CHECK_HAS(err.msg, "'a/text'");
}

TEST_MAIN("merge-fault")
