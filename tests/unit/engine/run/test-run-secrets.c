#include "tests/unit/engine/run/run-secrets-fixture.h"

#define MANY 50100

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
