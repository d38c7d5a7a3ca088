#include "engine/run/run-secrets.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/vec.h"
#include "cowfs/store/record.h"
#include "tests/lib/live.h"

#define MANY 50100

static struct run_secrets_in looking_in(const struct live *v)
{
	return (struct run_secrets_in){
		.store = v->store,
		.top = "/p",
		.dir = -1,
		.each = 8,
		.max = 150,
		.until_ms = UINT64_MAX,
	};
}

static int by_path(const void *a, const void *b)
{
	const struct run_secret *x = a, *y = b;

	return strcmp(x->path, y->path);
}

/* " PATH" for each, in order.  All have the numbers of what is there. */
static char *paths_of(struct live *v, struct run_secrets_found *f)
{
	struct buf out = BUF_INIT;
	char *text;

	VEC_SORT(f->list, f->n, by_path);
	for (size_t i = 0; i < f->n; i++) {
		CHECK_EQ(buf_printf(&out, " %s", f->list[i].path), 0);
		CHECK_EQ(live_stat(v, f->list[i].path).st_ino, f->list[i].ino);
	}
	text = strdup(buf_str(&out));
	buf_done(&out);
	return text;
}

static int try_find(struct live *v, const struct run_secrets_in *in, struct run_secrets_found *ret,
		    struct err *err)
{
	CLEANUP(run_search_free_p) struct run_search *s = NULL;
	const struct object_id now = live_persist(v);

	CHECK_OK(run_search_new(in, &s, err), err);
	return run_search_look(s, &now, ret, err);
}

static void check_found_in(struct live *v, const struct run_secrets_in *in, const char *want)
{
	CLEANUP(run_secrets_found_done) struct run_secrets_found found = { 0 };
	AUTO_FREE char *got = NULL;
	struct err err = { 0 };

	CHECK_OK(try_find(v, in, &found, &err), &err);
	got = paths_of(v, &found);
	CHECK_STR(got, want);
}

/* The same for a clone that began with another state. */
static void check_found(struct live *v, const struct object_id *before, const char *want)
{
	struct run_secrets_in in = looking_in(v);

	in.before = before;
	check_found_in(v, &in, want);
}

/* 0.key and so on. */
static void put_keys(struct live *v, const char *dir, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		char path[64];

		snprintf(path, sizeof(path), "%s%u.key", dir, i);
		live_put(v, path, "secret");
	}
}

TEST(they_are_found_by_their_names_but_not_among_packages)
{
	CLEANUP(live_close) struct live v = { 0 };

	live_open(&v, "names");
	live_mkdir(&v, "a");
	live_mkdir(&v, "a/b");
	live_mkdir(&v, "a/.ssh");
	live_mkdir(&v, "vendor");
	live_put(&v, "a/b/.env", "secret");
	live_put(&v, "a/b/.env.example", "");
	live_put(&v, "a/.ssh/key", "secret");
	live_put(&v, "a/.ssh/id_rsa", "secret");
	live_put(&v, "vendor/.env", "secret");
	live_put(&v, "x.key", "secret");
	check_found(&v, NULL, " a/.ssh a/b/.env x.key");
}

TEST(a_pem_is_one_wherever_in_it_the_key_is)
{
	const size_t chain = 20000;
	CLEANUP(live_close) struct live v = { 0 };
	AUTO_FREE char *text = calloc(1, chain + 64);

	live_open(&v, "pem");
	memset(text, 'A', chain);
	live_put(&v, "chain.pem", text);
	strcpy(text + chain, "\n-----BEGIN PRIVATE KEY-----\n");
	live_put(&v, "both.pem", text);
	CHECK_EQ(live_try_link(&v, "both.pem", "other"), 0);
	CHECK_EQ(live_try_make(&v, "large.pem", S_IFREG | 0644), 0);
	CHECK_EQ(live_try_truncate(&v, "large.pem", (uint64_t)1 << 40), 0);
	check_found(&v, NULL, " both.pem large.pem other");
}

TEST(none_is_missed_however_many_directories_there_are)
{
	CLEANUP(live_close) struct live v = { 0 };

	live_open(&v, "many");
	for (unsigned i = 0; i < MANY; i++) {
		char path[32];

		snprintf(path, sizeof(path), "d%05u", i);
		live_mkdir(&v, path);
	}
	live_mkdir(&v, "d00000/last");
	live_put(&v, "d00000/last/.env", "secret");
	check_found(&v, NULL, " d00000/last/.env");
}

TEST(what_cannot_all_be_found_or_hidden_is_refused)
{
	CLEANUP(live_close) struct live v = { 0 };
	CLEANUP(run_secrets_found_done) struct run_secrets_found found = { 0 };
	struct run_secrets_in in;
	struct err err = { 0 };

	live_open(&v, "refused");
	put_keys(&v, "", 151);
	in = looking_in(&v);
	CHECK_EQ(try_find(&v, &in, &found, &err), -E2BIG);
	CHECK_HAS(err.msg, "looking for secrets in the clone: more than 150 files");
	in.max = 151;
	in.until_ms = 1;
	CHECK_EQ(try_find(&v, &in, &found, &err), -ETIMEDOUT);
	CHECK_HAS(err.msg, "instead of '@secrets'");
	in.until_ms = UINT64_MAX;
	run_secrets_found_done(&found);
	CHECK_OK(try_find(&v, &in, &found, &err), &err);
	CHECK_EQ(found.n, 151);
}

TEST(a_directory_with_many_is_hidden_as_a_whole)
{
	CLEANUP(live_close) struct live v = { 0 };

	live_open(&v, "whole");
	live_mkdir(&v, "certs");
	live_mkdir(&v, "certs/below");
	live_mkdir(&v, "few");
	live_put(&v, "certs/below/.env", "secret");
	put_keys(&v, "certs/", 9);
	put_keys(&v, "few/", 2);
	check_found(&v, NULL, " certs few/0.key few/1.key");
}

TEST(other_names_of_what_a_hidden_directory_holds_are_hidden_too)
{
	CLEANUP(live_close) struct live v = { 0 };

	live_open(&v, "linked");
	live_mkdir(&v, ".ssh");
	live_mkdir(&v, ".ssh/keys");
	live_mkdir(&v, "certs");
	live_mkdir(&v, "certs/below");
	live_mkdir(&v, "node_modules");
	live_put(&v, ".ssh/keys/work", "secret");
	live_put(&v, "certs/below/.env", "secret");
	live_put(&v, "certs/notes", "none");
	put_keys(&v, "certs/", 9);
	CHECK_EQ(live_try_link(&v, ".ssh/keys/work", "node_modules/a"), 0);
	CHECK_EQ(live_try_link(&v, "certs/below/.env", "b"), 0);
	CHECK_EQ(live_try_link(&v, "certs/3.key", "c"), 0);
	CHECK_EQ(live_try_link(&v, "certs/notes", "d"), 0);
	check_found(&v, NULL, " .ssh b c certs node_modules/a");
}

TEST(what_was_in_one_is_found_wherever_it_was_moved)
{
	CLEANUP(live_close) struct live v = { 0 };
	struct object_id before;

	live_open(&v, "moved");
	live_mkdir(&v, ".ssh");
	live_mkdir(&v, "certs");
	live_mkdir(&v, "vendor");
	live_put(&v, ".ssh/work", "secret");
	live_put(&v, ".env", "secret");
	put_keys(&v, "certs/", 10);
	before = live_persist(&v);
	check_found(&v, &before, " .env .ssh certs");
	CHECK_EQ(live_try_rename(&v, ".ssh/work", "vendor/a", 0), 0);
	CHECK_EQ(live_try_rename(&v, "certs/3.key", "b", 0), 0);
	CHECK_EQ(live_try_rename(&v, ".env", "c", 0), 0);
	live_put(&v, "d", "none");
	check_found(&v, &before, " .ssh b c certs vendor/a");
}

TEST(what_a_symlink_of_such_a_name_leads_to_is_hidden)
{
	CLEANUP(live_close) struct live v = { 0 };
	struct object_id before;

	live_open(&v, "symlinks");
	live_mkdir(&v, "conf");
	live_mkdir(&v, "keys");
	live_mkdir(&v, "deep");
	live_mkdir(&v, "deep/er");
	live_put(&v, "conf/dev", "secret");
	live_put(&v, "conf/prod", "secret");
	live_put(&v, "conf/stage", "secret");
	live_put(&v, "conf/plain", "none");
	live_put(&v, "keys/work", "secret");
	CHECK_EQ(live_try_link(&v, "keys/work", "linked"), 0);
	CHECK_EQ(live_try_symlink(&v, "conf/dev", "hop"), 0);
	CHECK_EQ(live_try_symlink(&v, "../../hop", "deep/er/.env"), 0);
	CHECK_EQ(live_try_symlink(&v, "/p/conf/prod", ".env.prod"), 0);
	CHECK_EQ(live_try_symlink(&v, "../p/./conf/stage", ".env.stage"), 0);
	CHECK_EQ(live_try_symlink(&v, "/etc/passwd", "id_rsa"), 0);
	CHECK_EQ(live_try_symlink(&v, "..", "deep/.env"), 0);
	CHECK_EQ(live_try_symlink(&v, "id_dsa", "id_dsa"), 0);
	CHECK_EQ(live_try_symlink(&v, "keys", ".ssh"), 0);
	check_found(&v, NULL, " conf/dev conf/prod conf/stage keys linked");
	/* Also when the symlink is gone that said so. */
	before = live_persist(&v);
	CHECK_EQ(live_try_unlink(&v, "deep/er/.env"), 0);
	CHECK_EQ(live_try_unlink(&v, ".ssh"), 0);
	check_found(&v, &before, " conf/dev conf/prod conf/stage keys linked");
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

TEST(a_symlink_alone_makes_what_it_leads_to_one)
{
	CLEANUP(live_close) struct live v = { 0 };

	live_open(&v, "one-symlink");
	live_mkdir(&v, "conf");
	live_put(&v, "conf/dev", "secret");
	CHECK_EQ(live_try_symlink(&v, "conf/dev", ".env"), 0);
	check_found(&v, NULL, " conf/dev");
}

TEST(a_symlink_to_a_private_key_may_be_called_pem)
{
	static const char key[] = "-----BEGIN PRIVATE KEY-----";
	CLEANUP(live_close) struct live v = { 0 };

	live_open(&v, "pem-symlink");
	live_mkdir(&v, "conf");
	live_put(&v, "conf/key", key);
	live_put(&v, "conf/linked", key);
	CHECK_EQ(live_try_link(&v, "conf/linked", "again"), 0);
	live_put(&v, "conf/certificate", "-----BEGIN CERTIFICATE-----");
	CHECK_EQ(live_try_symlink(&v, "conf/key", "a.pem"), 0);
	CHECK_EQ(live_try_symlink(&v, "conf/linked", "b.pem"), 0);
	CHECK_EQ(live_try_symlink(&v, "conf/certificate", "c.pem"), 0);
	CHECK_EQ(live_try_symlink(&v, "conf", "d.pem"), 0);
	CHECK_EQ(live_try_symlink(&v, "nothing", "e.pem"), 0);
	check_found(&v, NULL, " again conf/key conf/linked");
}

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

TEST(a_key_in_a_file_with_two_names_is_found_though_its_directories_are_as_they_were)
{
	CLEANUP(live_close) struct live v = { 0 };
	struct object_id before;

	live_open(&v, "two-names");
	live_mkdir(&v, "a");
	live_mkdir(&v, "b");
	live_put(&v, "a/server.pem", "certificate");
	CHECK_EQ(live_try_link(&v, "a/server.pem", "b/server.pem"), 0);
	before = live_persist(&v);
	live_put(&v, "a/server.pem", "-----BEGIN PRIVATE KEY-----");
	check_found(&v, &before, " a/server.pem b/server.pem");
}

TEST(what_lies_too_deep_for_a_path_is_refused_unless_numbers_are_wanted)
{
	const size_t step = 200;
	CLEANUP(live_close) struct live v = { 0 };
	CLEANUP(run_secrets_found_done) struct run_secrets_found found = { 0 };
	struct run_secrets_in in;
	struct err err = { 0 };
	char path[PATH_MAX + 512] = "";

	live_open(&v, "too-deep");
	while (strlen(path) < PATH_MAX) {
		memset(path + strlen(path), 'd', step);
		live_mkdir(&v, path);
		strcat(path, "/");
	}
	strcat(path, ".env");
	live_put(&v, path, "secret");
	in = looking_in(&v);
	CHECK_EQ(try_find(&v, &in, &found, &err), -ENAMETOOLONG);
	CHECK_HAS(err.msg, "deeper than a path can be long");
	run_secrets_found_done(&found);
	in.each = SIZE_MAX;
	CHECK_OK(try_find(&v, &in, &found, &err), &err);
	CHECK_EQ(found.n, 1);
	CHECK_EQ(found.list[0].ino, live_stat(&v, path).st_ino);
}

TEST(a_tree_is_looked_through_to_its_bottom)
{
	CLEANUP(live_close) struct live v = { 0 };
	CLEANUP(run_secrets_found_done) struct run_secrets_found found = { 0 };
	CLEANUP(buf_done) struct buf path = BUF_INIT;
	struct run_secrets_in in;
	struct err err = { 0 };

	live_open(&v, "deep");
	CHECK_EQ(buf_append_str(&path, "d"), 0);
	for (unsigned i = 0; i < 300; i++) {
		live_mkdir(&v, buf_str(&path));
		CHECK_EQ(buf_append_str(&path, "/d"), 0);
	}
	live_put(&v, buf_str(&path), "none");
	path.len -= 2;
	CHECK_EQ(buf_append_str(&path, "/.env"), 0);
	live_put(&v, buf_str(&path), "secret");
	in = looking_in(&v);
	CHECK_OK(try_find(&v, &in, &found, &err), &err);
	CHECK_EQ(found.n, 1);
	CHECK_STR(found.list[0].path, buf_str(&path));
}

TEST_MAIN("run-secrets")
