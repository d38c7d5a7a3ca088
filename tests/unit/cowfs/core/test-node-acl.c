#include <errno.h>
#include <sys/xattr.h>

#include "cowfs/core/acl.h"
#include "tests/lib/live.h"
#include "tests/unit/cowfs/core/acl-fixture.h"

#define NAMED "u:rwx u1000:rw- g:r-x m:rwx o:---"

static const struct layer_call call = {
	.uid = 1000,
	.gid = 1000,
	.umask = 027,
	.may_wait = true,
};

static int set_with(struct live *v, const char *path, const char *name, const char *text, int flags)
{
	CLEANUP(buf_done) struct buf acl = BUF_INIT;
	const uint64_t node = live_hold(v, path);
	int r;

	acl_parse(text, &acl);
	r = layer_setxattr(v->l, &call, node, name, acl.data, acl.len, flags, NULL);
	live_drop(v, node);
	return r;
}

static int set(struct live *v, const char *path, const char *name, const char *text)
{
	return set_with(v, path, name, text, 0);
}

/* The text of a list, or "none". */
static const char *get(struct live *v, const char *path, const char *name)
{
	const uint64_t node = live_hold(v, path);
	char acl[512];
	ssize_t n;

	n = layer_getxattr(v->l, &call, node, name, acl, sizeof(acl), NULL);
	live_drop(v, node);
	if (n == -ENODATA)
		return "none";
	CHECK(n > 0);
	return acl_text(acl, (size_t)n);
}

static int take(struct live *v, const char *path, const char *name)
{
	const uint64_t node = live_hold(v, path);
	const int r = layer_removexattr(v->l, &call, node, name, NULL);

	live_drop(v, node);
	return r;
}

static void set_mode(struct live *v, const char *path, uint32_t mode)
{
	const uint64_t node = live_hold(v, path);
	const struct stat st = { .st_mode = mode };
	struct stat now;

	CHECK_EQ(layer_setattr(v->l, &call, node, &st, LAYER_SET_MODE, &now, NULL), 0);
	CHECK_EQ(now.st_mode & 07777, mode);
	live_drop(v, node);
}

static uint32_t mode_of(struct live *v, const char *path)
{
	return live_stat(v, path).st_mode & 07777;
}

static void make(struct live *v, const char *dir, const char *name, uint32_t mode)
{
	const uint64_t node = live_hold(v, dir);
	struct layer_found found;

	CHECK_EQ(layer_make(v->l, &call, node, name, mode, 0, &found, NULL), 0);
	live_drop(v, found.node);
	live_drop(v, node);
}

TEST(the_mode_follows_the_access_list)
{
	CLEANUP(live_close) struct live v = { 0 };

	live_open(&v, "mode");
	live_put(&v, "f", "text");
	set_mode(&v, "f", 02755);
	CHECK_EQ(set(&v, "f", ACL_ACCESS, "u:rw- u5:rwx g:r-- m:r-x o:-w-"), 0);
	CHECK_EQ(mode_of(&v, "f"), 02652);
	CHECK_EQ(set_with(&v, "f", ACL_ACCESS, NAMED, LAYER_ACL_KILL_SGID), 0);
	CHECK_EQ(mode_of(&v, "f"), 0770);
	CHECK_EQ(take(&v, "f", ACL_ACCESS), 0);
	CHECK_EQ(mode_of(&v, "f"), 0770);
	CHECK_EQ(take(&v, "f", ACL_ACCESS), 0); /* once more: without an announcement */
}

TEST(a_list_that_says_no_more_than_a_mode_is_not_kept)
{
	CLEANUP(live_close) struct live v = { 0 };
	const char *plain = "u:rw- g:r-- o:---";

	live_open(&v, "plain");
	live_mkdir(&v, "d");
	CHECK_EQ(set(&v, "d", ACL_ACCESS, plain), 0);
	CHECK_EQ(mode_of(&v, "d"), 0640);
	CHECK_STR(get(&v, "d", ACL_ACCESS), "none");
	CHECK_EQ(set(&v, "d", ACL_ACCESS, NAMED), 0);
	CHECK_STR(get(&v, "d", ACL_ACCESS), NAMED);
	CHECK_EQ(set(&v, "d", ACL_ACCESS, plain), 0);
	CHECK_STR(get(&v, "d", ACL_ACCESS), "none");
	CHECK_EQ(set(&v, "d", ACL_DEFAULT, plain), 0); /* a default list is not a mode */
	CHECK_STR(get(&v, "d", ACL_DEFAULT), plain);
}

TEST(an_empty_list_takes_the_list_away)
{
	CLEANUP(live_close) struct live v = { 0 };

	live_open(&v, "empty");
	live_mkdir(&v, "d");
	live_put(&v, "f", "");
	CHECK_EQ(set(&v, "d", ACL_ACCESS, NAMED), 0);
	CHECK_EQ(set(&v, "d", ACL_DEFAULT, NAMED), 0);
	CHECK_EQ(set(&v, "d", ACL_ACCESS, ""), 0);
	CHECK_STR(get(&v, "d", ACL_ACCESS), "none");
	CHECK_STR(get(&v, "d", ACL_DEFAULT), NAMED);
	CHECK_EQ(mode_of(&v, "d"), 0770);
	CHECK_EQ(set(&v, "d", ACL_DEFAULT, ""), 0);
	CHECK_STR(get(&v, "d", ACL_DEFAULT), "none");
	CHECK_EQ(set(&v, "f", ACL_DEFAULT, ""), 0); /* there was none */
}

TEST(what_is_no_list_or_in_no_place_for_one_is_refused_and_changes_nothing)
{
	CLEANUP(live_close) struct live v = { 0 };

	live_open(&v, "refused");
	live_put(&v, "f", "");
	set_mode(&v, "f", 0640);
	CHECK_EQ(live_try_symlink(&v, "f", "s"), 0);
	CHECK_EQ(set(&v, "f", ACL_ACCESS, "u:rwx u1:r-- g:rwx o:rwx"), -EINVAL);
	CHECK_EQ(set(&v, "f", ACL_ACCESS, "u:rwx"), -EINVAL);
	CHECK_EQ(set(&v, "f", ACL_DEFAULT, NAMED), -EACCES);
	CHECK_EQ(set(&v, "s", ACL_ACCESS, NAMED), -EOPNOTSUPP);
	CHECK_EQ(mode_of(&v, "f"), 0640);
	CHECK_STR(get(&v, "f", ACL_ACCESS), "none");
}

TEST(chmod_keeps_the_list_in_step_and_other_attributes_as_they_are)
{
	CLEANUP(live_close) struct live v = { 0 };
	uint64_t node;
	char value[8];

	live_open(&v, "chmod");
	live_put(&v, "f", "");
	node = live_hold(&v, "f");
	CHECK_EQ(layer_setxattr(v.l, &call, node, "user.a", "1", 1, 0, NULL), 0);
	live_drop(&v, node);
	CHECK_EQ(set(&v, "f", ACL_ACCESS, NAMED), 0);
	live_reopen(&v); /* the set is stored now */
	set_mode(&v, "f", 04651);
	CHECK_STR(get(&v, "f", ACL_ACCESS), "u:rw- u1000:rw- g:r-x m:r-x o:--x");
	live_reopen(&v);
	CHECK_STR(get(&v, "f", ACL_ACCESS), "u:rw- u1000:rw- g:r-x m:r-x o:--x");
	CHECK_EQ(mode_of(&v, "f"), 04651);
	node = live_hold(&v, "f");
	CHECK_EQ(layer_getxattr(v.l, &call, node, "user.a", value, sizeof(value), NULL), 1);
	live_drop(&v, node);
}

TEST(without_a_default_list_the_umask_is_taken_away)
{
	CLEANUP(live_close) struct live v = { 0 };

	live_open(&v, "umask");
	make(&v, "", "f", S_IFREG | 0666);
	make(&v, "", "d", S_IFDIR | 01777);
	CHECK_EQ(mode_of(&v, "f"), 0640);
	CHECK_EQ(mode_of(&v, "d"), 01750);
}

TEST(what_is_made_in_a_directory_inherits_its_default_list)
{
	CLEANUP(live_close) struct live v = { 0 };

	live_open(&v, "inherit");
	live_mkdir(&v, "d");
	CHECK_EQ(set(&v, "d", ACL_DEFAULT, NAMED), 0);
	for (int i = 0; i < 2; i++, live_reopen(&v)) { /* from memory, and stored */
		const char *dir = i ? "d/sub1" : "d/sub0", *file = i ? "d/f1" : "d/f0";

		make(&v, "d", file + 2, S_IFREG | 0666);
		make(&v, "d", dir + 2, S_IFDIR | 0777);
		CHECK_EQ(mode_of(&v, file), 0660);
		CHECK_STR(get(&v, file, ACL_ACCESS), "u:rw- u1000:rw- g:r-x m:rw- o:---");
		CHECK_STR(get(&v, file, ACL_DEFAULT), "none");
		CHECK_EQ(mode_of(&v, dir), 0770);
		CHECK_STR(get(&v, dir, ACL_ACCESS), NAMED);
		CHECK_STR(get(&v, dir, ACL_DEFAULT), NAMED);
		make(&v, dir, "below", S_IFIFO | 0600);
	}
	CHECK_STR(get(&v, "d/sub0/below", ACL_ACCESS), "u:rw- u1000:rw- g:r-x m:--- o:---");
	CHECK_EQ(live_try_symlink(&v, "x", "d/s"), 0);
	CHECK_EQ(mode_of(&v, "d/s"), 0777);
	CHECK_STR(get(&v, "d/s", ACL_ACCESS), "none");
	stock_check_clean(v.store);
}

TEST(a_default_list_that_is_a_mode_gives_a_mode_and_no_list)
{
	CLEANUP(live_close) struct live v = { 0 };
	const char *plain = "u:rwx g:rwx o:r--";

	live_open(&v, "plain-default");
	live_mkdir(&v, "d");
	CHECK_EQ(set(&v, "d", ACL_DEFAULT, plain), 0);
	make(&v, "d", "f", S_IFREG | 0666);
	make(&v, "d", "sub", S_IFDIR | 0777);
	CHECK_EQ(mode_of(&v, "d/f"), 0664);
	CHECK_STR(get(&v, "d/f", ACL_ACCESS), "none");
	CHECK_EQ(mode_of(&v, "d/sub"), 0774);
	CHECK_STR(get(&v, "d/sub", ACL_ACCESS), "none");
	CHECK_STR(get(&v, "d/sub", ACL_DEFAULT), plain);
}

TEST(a_file_without_a_name_inherits_too)
{
	CLEANUP(live_close) struct live v = { 0 };
	struct layer_found found;
	char acl[256];
	uint64_t dir;

	live_open(&v, "nameless");
	live_mkdir(&v, "d");
	CHECK_EQ(set(&v, "d", ACL_DEFAULT, NAMED), 0);
	live_reopen(&v);
	dir = live_hold(&v, "d");
	CHECK_EQ(layer_make_nameless(v.l, &call, dir, S_IFREG | 0666, &found, NULL), 0);
	CHECK_EQ(found.st.st_mode & 07777, 0660);
	CHECK_EQ(layer_getxattr(v.l, &call, found.node, ACL_ACCESS, acl, sizeof(acl), NULL), 44);
	live_drop(&v, found.node);
	live_drop(&v, dir);
}

TEST(a_rollback_brings_back_the_lists_and_says_so)
{
	CLEANUP(live_close) struct live v = { 0 };
	struct layer_changes changes;
	struct object_id before;
	struct err err = { 0 };
	bool told = false;
	uint64_t dir;

	live_open(&v, "rollback");
	live_mkdir(&v, "d");
	live_put(&v, "f", "");
	CHECK_EQ(set(&v, "d", ACL_DEFAULT, NAMED), 0);
	CHECK_EQ(set(&v, "f", ACL_ACCESS, NAMED), 0);
	before = live_persist(&v);
	CHECK_EQ(take(&v, "d", ACL_DEFAULT), 0);
	set_mode(&v, "f", 0600);
	dir = live_hold(&v, "d");
	CHECK_OK(live_roll_back(v.l, &before, NULL, NULL, &changes, &err), &err);
	for (size_t i = 0; i < changes.n_dirs; i++)
		told = told || changes.dirs[i] == dir;
	CHECK(told); /* whoever knows the old list must forget it */
	layer_changes_done(&changes);
	live_drop(&v, dir);
	CHECK_STR(get(&v, "d", ACL_DEFAULT), NAMED);
	CHECK_STR(get(&v, "f", ACL_ACCESS), NAMED);
}

TEST_MAIN("node-acl")
