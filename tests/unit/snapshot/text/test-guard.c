/*
 * A guard remembers what it has found to be free.  That must not show: one that has looked at any
 * number of paths says of the next what one says that has looked at none.
 */
#include "tests/lib/test.h"

#include <stdio.h>
#include <sys/stat.h>

#include "snapshot/text/guard.h"

static const struct guard_rule more[] = {
	{ "ours", "/vault/\nsecret*\nlib/**/keys\n", "it is ours" },
};

static struct guard *fresh(void)
{
	struct guard *g = NULL;
	struct err err = { 0 };

	CHECK_OK(guard_new(more, ARRAY_LEN(more), &g, &err), &err);
	return g;
}

static const char *name_of(const struct guard_rule *rule)
{
	return rule ? rule->name : "";
}

static const char *fresh_name(const char *path, uint32_t mode, char status)
{
	CLEANUP(guard_free_p) struct guard *g = fresh();

	return name_of(guard_match(g, path, mode, status));
}

TEST(paths_are_held_by_what_they_are_named_and_lie_in)
{
	static const struct {
		const char *path, *rule;
	} rows[] = {
		{ "src/a.c", "" },
		{ "src/b.c", "" },
		{ "src/.github", "" },
		{ "src/.github/a", "ci" },
		{ "src/.githubs/a", "" },
		{ "src/deep/er/a", "" },
		{ "src/deep/er/.git/config", "git" },
		{ "src/deep/er.d/.git", "git" },
		{ "src/deep/b", "" },
		{ "sr/c", "" },
		{ "vault/a", "ours" },
		{ "src/vault/a", "" },
		{ "lib/x/y/keys/z", "ours" },
		{ "lib/x/y/z", "" },
		{ "secrets/a", "ours" },
		{ "a", "" },
		{ "Jenkinsfile", "ci" },
	};
	CLEANUP(guard_free_p) struct guard *g = fresh();

	for (int round = 0; round < 2; round++)
		for (size_t i = 0; i < ARRAY_LEN(rows); i++)
			CHECK_STR(name_of(guard_match(g, rows[i].path, S_IFREG | 0644, 'M')),
				  rows[i].rule);
}

TEST(what_was_looked_at_before_does_not_show)
{
	static const char *const parts[] = {
		"a", "ab", "b", ".git", ".github", "vault", "lib", "keys", "secret", ".x",
	};
	static const uint32_t modes[] = { S_IFREG | 0644, S_IFREG | 0755, S_IFLNK | 0777,
					  S_IFDIR | 0755, S_IFREG | S_ISUID | 0755 };
	CLEANUP(guard_free_p) struct guard *g = fresh();
	struct test_rng rng = { .s = test_seed() };

	for (int i = 0; i < 3000; i++) {
		const uint32_t mode = modes[test_rand(&rng) % ARRAY_LEN(modes)];
		const char status = test_rand(&rng) % 3 ? 'M' : 'D';
		const size_t depth = 1 + test_rand(&rng) % 5;
		char path[64] = "";

		for (size_t d = 0; d < depth; d++)
			snprintf(path + strlen(path), sizeof(path) - strlen(path), "%s%s",
				 d ? "/" : "", parts[test_rand(&rng) % (d < 3 ? 3 : 10)]);
		CHECK_STR(name_of(guard_match(g, path, mode, status)),
			  fresh_name(path, mode, status));
	}
}

/* Root runs what is there, or what it names. */
TEST(a_system_holds_what_root_runs)
{
	static const char *const held[] = {
		"etc/sudo.conf",
		"etc/sudoers",
		"etc/sudoers.d/x",
		"usr/share/x/y",
		"usr/etc/x",
		"usr/bin/x",
		"etc/rc.d/x",
		"etc/logrotate.conf",
		"etc/logrotate.d/x",
		"etc/default/x",
		"etc/sysconfig/x",
		"etc/bash_completion.d/x",
		"etc/dhcp/x",
		"etc/networkd-dispatcher/x",
		"etc/gitconfig",
		"etc/exports",
		"etc/apparmor.d/x",
		"etc/selinux/config",
		"etc/network/interfaces",
		"etc/wireguard/wg0.conf",
		"etc/ufw/before.init",
		"etc/passwd-",
		"etc/systemd/system/x",
		"root/.ssh/authorized_keys",
		"init",
	};
	static const char *const free_[] = { "etc/motd", "etc/app/x", "etc/nginx/nginx.conf",
					     "srv/www/a" };
	CLEANUP(guard_free_p) struct guard *g = NULL;
	struct err err = { 0 };
	size_t n;
	const struct guard_rule *rules = guard_system_rules(&n);

	CHECK_OK(guard_new(rules, n, &g, &err), &err);
	for (size_t i = 0; i < ARRAY_LEN(held); i++) {
		const struct guard_rule *rule = guard_match(g, held[i], S_IFREG | 0644, 'M');

		CHECK_STR(rule && rule->level == GUARD_HOLD ? held[i] : "not held", held[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(free_); i++)
		CHECK_STR(name_of(guard_match(g, free_[i], S_IFREG | 0644, 'M')), "");
}

TEST_MAIN("guard")
