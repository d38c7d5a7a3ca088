/* Searches after the first one of a run, which look at what changed. */
#include "tests/unit/engine/run/run-secrets-fixture.h"

/* Look through the clone as it is now. */
static void check_next(struct live *v, struct run_search *s, const char *want)
{
	CLEANUP(run_secrets_found_done) struct run_secrets_found found = { 0 };
	const struct object_id now = live_persist(v);
	AUTO_FREE char *got = NULL;
	struct err err = { 0 };

	CHECK_OK(run_search_look(s, &now, &found, &err), &err);
	got = paths_of(v, &found);
	CHECK_STR(got, want);
}

static struct run_search *search_new(const struct run_secrets_in *in)
{
	struct err err = { 0 };
	struct run_search *s;

	CHECK_OK(run_search_new(in, &s, &err), &err);
	return s;
}

TEST(a_later_state_is_looked_through_where_it_differs)
{
	CLEANUP(live_close) struct live v = { 0 };
	CLEANUP(run_search_free_p) struct run_search *s = NULL;
	CLEANUP(run_secrets_found_done) struct run_secrets_found found = { 0 };
	struct run_secrets_in in;
	struct object_id now;
	struct err err = { 0 };
	AUTO_FREE char *one = NULL, *two = NULL;

	live_open(&v, "later");
	for (unsigned i = 0; i < 8; i++) {
		char path[32];

		snprintf(path, sizeof(path), "d%u", i);
		live_mkdir(&v, path);
		snprintf(path, sizeof(path), "d%u/e", i);
		live_mkdir(&v, path);
	}
	live_put(&v, "d1/e/.env", "secret");
	CHECK_EQ(live_try_link(&v, "d1/e/.env", "d2/linked"), 0);
	now = live_persist(&v);
	in = looking_in(&v);
	in.before = &now;
	CHECK_OK(run_search_new(&in, &s, &err), &err);
	CHECK_OK(run_search_look(s, &now, &found, &err), &err);
	one = paths_of(&v, &found);
	CHECK_STR(one, " d1/e/.env d2/linked");
	run_secrets_found_done(&found);
	CHECK_EQ(live_try_rename(&v, "d1/e", "d3/other", 0), 0);
	CHECK_EQ(live_try_rename(&v, "d2/linked", "d4/e/linked", 0), 0);
	live_put(&v, "d5/e/.npmrc", "secret");
	CHECK_EQ(live_try_link(&v, "d5/e/.npmrc", "d6/e/again"), 0);
	now = live_persist(&v);
	CHECK_OK(run_search_look(s, &now, &found, &err), &err);
	two = paths_of(&v, &found);
	CHECK_STR(two, " d3/other/.env d4/e/linked d5/e/.npmrc d6/e/again");
}

TEST(what_becomes_a_secret_is_found_where_nothing_was_before)
{
	CLEANUP(live_close) struct live v = { 0 };
	CLEANUP(run_search_free_p) struct run_search *s = NULL;
	struct run_secrets_in in;

	live_open(&v, "becomes");
	live_mkdir(&v, "a");
	live_mkdir(&v, "b");
	live_put(&v, "a/plain", "secret");
	CHECK_EQ(live_try_link(&v, "a/plain", "b/plain"), 0);
	live_put(&v, "x.key", "secret");
	CHECK_EQ(live_try_link(&v, "x.key", "linked"), 0);
	in = looking_in(&v);
	s = search_new(&in);
	check_next(&v, s, " linked x.key");
	/* `a` is as it was. */
	CHECK_EQ(live_try_rename(&v, "b/plain", "b/.env", 0), 0);
	check_next(&v, s, " a/plain b/.env linked x.key");
}

TEST(what_was_found_once_is_found_wherever_it_was_moved)
{
	CLEANUP(live_close) struct live v = { 0 };
	CLEANUP(run_search_free_p) struct run_search *s = NULL, *next = NULL;
	struct run_secrets_in in;
	struct err err = { 0 };
	uint64_t number;

	live_open(&v, "once");
	live_mkdir(&v, "conf");
	live_mkdir(&v, "vendor");
	live_put(&v, "conf/.env", "secret");
	number = live_stat(&v, "conf/.env").st_ino;
	in = looking_in(&v);
	s = search_new(&in);
	check_next(&v, s, " conf/.env");
	CHECK_EQ(live_try_rename(&v, "conf", "vendor/conf", 0), 0);
	check_next(&v, s, " vendor/conf/.env");
	/* Another search must be told. */
	check_found(&v, NULL, "");
	next = search_new(&in);
	CHECK_OK(run_search_know(next, &(struct hidden){ .numbers = { &number, 1 } }, &err), &err);
	check_next(&v, next, " vendor/conf/.env");
}

/* A search that knows what `s` kept, which ends. */
static struct run_search *search_after(struct run_search *s, const struct run_secrets_in *in)
{
	struct run_search *next = search_new(in);
	const struct hidden kept = run_search_kept(s);
	struct err err = { 0 };

	CHECK_OK(run_search_know(next, &kept, &err), &err);
	run_search_free(s);
	return next;
}

static void remove_keys(struct live *v, const char *dir, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		char path[64];

		snprintf(path, sizeof(path), "%s%u.key", dir, i);
		CHECK_EQ(live_try_unlink(v, path), 0);
	}
}

TEST(what_was_in_a_hidden_directory_is_found_by_later_searches)
{
	CLEANUP(live_close) struct live v = { 0 };
	CLEANUP(run_search_free_p) struct run_search *s = NULL;
	struct run_secrets_in in;

	live_open(&v, "inside");
	live_mkdir(&v, ".ssh");
	live_mkdir(&v, "certs");
	live_mkdir(&v, "certs/in");
	live_mkdir(&v, "vendor");
	live_put(&v, ".ssh/work", "secret");
	live_put(&v, "certs/in/.env", "secret");
	put_keys(&v, "certs/", 10);
	in = looking_in(&v);
	s = search_new(&in);
	check_next(&v, s, " .ssh certs");
	s = search_after(s, &in);
	CHECK_EQ(live_try_rename(&v, ".ssh/work", "vendor/a", 0), 0);
	CHECK_EQ(live_try_rename(&v, "certs/3.key", "b", 0), 0);
	CHECK_EQ(live_try_rename(&v, "certs/in", "vendor/in", 0), 0);
	check_next(&v, s, " .ssh b certs vendor/a vendor/in/.env");
}

TEST(a_directory_with_many_is_seen_again_when_they_are_gone)
{
	CLEANUP(live_close) struct live v = { 0 };
	CLEANUP(run_search_free_p) struct run_search *s = NULL;
	struct run_secrets_in in;

	live_open(&v, "again");
	live_mkdir(&v, "src");
	put_keys(&v, "src/", 9);
	/* Then all is looked through by number, too. */
	CHECK_EQ(live_try_link(&v, "src/0.key", "linked"), 0);
	in = looking_in(&v);
	s = search_new(&in);
	for (int i = 0; i < 2; i++) {
		check_next(&v, s, " linked src");
		s = search_after(s, &in);
	}
	remove_keys(&v, "src/", 9);
	check_next(&v, s, " linked");
}

TEST(directories_with_many_are_not_many_themselves)
{
	CLEANUP(live_close) struct live v = { 0 };
	CLEANUP(run_search_free_p) struct run_search *s = NULL;
	struct run_secrets_in in;

	live_open(&v, "climb");
	live_mkdir(&v, "d");
	for (unsigned i = 0; i < 9; i++) {
		char path[32];

		snprintf(path, sizeof(path), "d/%u", i);
		live_mkdir(&v, path);
		strcat(path, "/");
		put_keys(&v, path, 9);
	}
	CHECK_EQ(live_try_link(&v, "d/0/0.key", "linked"), 0);
	in = looking_in(&v);
	s = search_new(&in);
	for (int i = 0; i < 2; i++) {
		check_next(&v, s, " d/0 d/1 d/2 d/3 d/4 d/5 d/6 d/7 d/8 linked");
		s = search_after(s, &in);
	}
}

static void check_kept(const struct run_search *s, size_t numbers, size_t dirs)
{
	const struct hidden kept = run_search_kept(s);

	CHECK_EQ(kept.numbers.n, numbers);
	CHECK_EQ(kept.dirs.n, dirs);
}

TEST(of_what_is_in_a_hidden_directory_a_part_is_kept)
{
	CLEANUP(live_close) struct live v = { 0 };
	CLEANUP(run_search_free_p) struct run_search *s = NULL;
	AUTO_FREE uint64_t *full = calloc(RECORD_NUMBERS_MAX / 2, sizeof(*full));
	struct hidden much = { .numbers = { full, RECORD_NUMBERS_MAX / 2 } };
	struct run_secrets_in in;
	struct err err = { 0 };

	CHECK(full);
	live_open(&v, "part");
	live_mkdir(&v, ".ssh");
	live_mkdir(&v, "src");
	put_keys(&v, ".ssh/", 1100);
	put_keys(&v, "src/", 1100);
	in = looking_in(&v);
	s = search_new(&in);
	check_next(&v, s, " .ssh src");
	check_kept(s, 1 + 1024 + (9 + 1024), 1);
	run_search_free(TAKE_PTR(s));
	/* When much is kept, only what is hidden itself comes to it. */
	for (size_t i = 0; i < RECORD_NUMBERS_MAX / 2; i++)
		full[i] = ((uint64_t)1 << 62) + i;
	s = search_new(&in);
	CHECK_OK(run_search_know(s, &much, &err), &err);
	check_next(&v, s, " .ssh src");
	check_kept(s, RECORD_NUMBERS_MAX / 2 + 1 + 9, 1);
}

TEST(a_directory_with_more_than_can_be_kept_is_hidden_until_none_is_left_in_it)
{
	CLEANUP(live_close) struct live v = { 0 };
	CLEANUP(run_search_free_p) struct run_search *s = NULL;
	struct run_secrets_in in;

	live_open(&v, "none-left");
	live_mkdir(&v, "src");
	live_mkdir(&v, "src/in");
	live_mkdir(&v, "vendor");
	put_keys(&v, "src/", 1100);
	in = looking_in(&v);
	s = search_new(&in);
	check_next(&v, s, " src");
	s = search_after(s, &in);
	/* The last one is not known by its number: it counts wherever it lies in the directory now. */
	CHECK_EQ(live_try_rename(&v, "src", "vendor/src", 0), 0);
	CHECK_EQ(live_try_rename(&v, "vendor/src/999.key", "vendor/src/in/999.key", 0), 0);
	remove_keys(&v, "vendor/src/", 999);
	for (unsigned i = 1000; i < 1100; i++) {
		char path[64];

		snprintf(path, sizeof(path), "vendor/src/%u.key", i);
		CHECK_EQ(live_try_unlink(&v, path), 0);
	}
	check_next(&v, s, " vendor/src");
	s = search_after(s, &in);
	check_next(&v, s, " vendor/src");
	CHECK_EQ(live_try_unlink(&v, "vendor/src/in/999.key"), 0);
	live_put(&v, "vendor/src/main.c", "no secret");
	check_next(&v, s, "");
	s = search_after(s, &in);
	check_next(&v, s, "");
	/* Nobody can tell whether that one was in it before. */
	live_put(&v, "vendor/src/in/.env", "secret");
	check_next(&v, s, " vendor/src");
}

TEST_MAIN("run-secrets-later")
