#include "cowfs/core/acl.h"

#include <errno.h>
#include <sys/stat.h>

#include "tests/unit/cowfs/core/acl-fixture.h"

#define NAMED "u:rwx u1000:rw- g:r-x g5:-wx m:r-x o:--x"

static int check(const char *text)
{
	CLEANUP(buf_done) struct buf acl = BUF_INIT;

	acl_parse(text, &acl);
	return acl_check(acl.data, acl.len);
}

TEST(a_list_in_the_right_order_with_what_it_needs_is_good)
{
	CHECK_EQ(check("u:rwx g:r-x o:---"), 0);
	CHECK_EQ(check("u:rwx g:r-x m:r-- o:---"), 0);
	CHECK_EQ(check("u:rwx u1:r-- g:r-x m:rwx o:---"), 0);
	CHECK_EQ(check("u:rwx g:r-x g1:rwx m:rwx o:---"), 0);
	CHECK_EQ(check("u:rwx u9:r-- u1:rw- u9:--- g:r-x g2:rwx g1:r-- m:rwx o:---"), 0);
}

TEST(a_list_without_what_it_needs_is_refused)
{
	CHECK_EQ(check(""), -EINVAL);
	CHECK_EQ(check("u:rwx"), -EINVAL);
	CHECK_EQ(check("u:rwx g:r-x"), -EINVAL);
	CHECK_EQ(check("u:rwx o:r-x"), -EINVAL);
	CHECK_EQ(check("g:rwx o:r-x"), -EINVAL);
	CHECK_EQ(check("u:rwx g:r-x m:rwx"), -EINVAL);
	CHECK_EQ(check("u:rwx u1:rwx g:r-x o:---"), -EINVAL); /* no mask */
	CHECK_EQ(check("u:rwx g:r-x g1:rwx o:---"), -EINVAL);
	CHECK_EQ(check("u:rwx u1:rwx g:r-x g1:r-- o:---"), -EINVAL);
}

TEST(a_list_out_of_order_is_refused)
{
	CHECK_EQ(check("g:rwx u:rwx o:---"), -EINVAL);
	CHECK_EQ(check("u1:rwx u:rwx g:r-x m:rwx o:---"), -EINVAL);
	CHECK_EQ(check("u:rwx g:r-x u1:rwx m:rwx o:---"), -EINVAL);
	CHECK_EQ(check("u:rwx g1:r-x g:rwx m:rwx o:---"), -EINVAL);
	CHECK_EQ(check("u:rwx g:r-x m:rwx g1:rwx o:---"), -EINVAL);
	CHECK_EQ(check("u:rwx g:r-x o:--- m:rwx"), -EINVAL);
	CHECK_EQ(check("u:rwx u:rwx g:r-x o:---"), -EINVAL);
	CHECK_EQ(check("u:rwx g:r-x g:r-x o:---"), -EINVAL);
	CHECK_EQ(check("u:rwx g:r-x m:rwx m:rwx o:---"), -EINVAL);
	CHECK_EQ(check("u:rwx g:r-x o:--- o:---"), -EINVAL);
}

TEST(what_is_no_list_at_all_is_refused)
{
	CLEANUP(buf_done) struct buf acl = BUF_INIT;

	acl_parse(NAMED, &acl);
	for (size_t len = 0; len < acl.len; len++)
		CHECK_EQ(acl_check(acl.data, len), -EINVAL);
	acl.data[0] = 1; /* the version */
	CHECK_EQ(acl_check(acl.data, acl.len), -EINVAL);
	acl_parse(NAMED, &acl);
	acl.data[4] = 3; /* two tags at once */
	CHECK_EQ(acl_check(acl.data, acl.len), -EINVAL);
	acl.data[4] = 0;
	CHECK_EQ(acl_check(acl.data, acl.len), -EINVAL);
	acl.data[4] = 0x40;
	CHECK_EQ(acl_check(acl.data, acl.len), -EINVAL);
	acl_parse(NAMED, &acl);
	acl.data[6] = 8; /* no such permission */
	CHECK_EQ(acl_check(acl.data, acl.len), -EINVAL);
	acl_parse(NAMED, &acl);
	le32_store(acl.data + 16, UINT32_MAX); /* nobody has this id */
	CHECK_EQ(acl_check(acl.data, acl.len), -EINVAL);
}

TEST(a_list_without_entries_is_empty)
{
	CLEANUP(buf_done) struct buf acl = BUF_INIT;

	acl_parse("", &acl);
	CHECK(acl_is_empty(acl.data, acl.len));
	CHECK(acl_is_empty(acl.data, 0));
	acl.data[0] = 3;
	CHECK(!acl_is_empty(acl.data, acl.len));
	acl_parse("u:rwx g:r-x o:---", &acl);
	CHECK(!acl_is_empty(acl.data, acl.len));
}

static uint32_t mode_of(const char *text, bool *ret_is_mode)
{
	CLEANUP(buf_done) struct buf acl = BUF_INIT;

	acl_parse(text, &acl);
	*ret_is_mode = acl_is_mode(acl.data, acl.len);
	return acl_mode(acl.data, acl.len);
}

TEST(a_mode_shows_the_mask_where_there_is_one)
{
	bool is_mode;

	CHECK_EQ(mode_of("u:rwx g:r-x o:-w-", &is_mode), 0752);
	CHECK(is_mode);
	CHECK_EQ(mode_of("u:rw- g:rwx m:r-- o:--x", &is_mode), 0641);
	CHECK(!is_mode);
	CHECK_EQ(mode_of(NAMED, &is_mode), 0751);
	CHECK(!is_mode);
}

static const char *changed(const char *text, uint32_t mode)
{
	CLEANUP(buf_done) struct buf acl = BUF_INIT;

	acl_parse(text, &acl);
	acl_chmod(acl.data, acl.len, mode);
	return acl_text(acl.data, acl.len);
}

TEST(chmod_changes_the_mask_and_leaves_the_group_behind_it)
{
	CHECK_STR(changed(NAMED, 0624), "u:rw- u1000:rw- g:r-x g5:-wx m:-w- o:r--");
	CHECK_STR(changed(NAMED, 06000 | S_IFREG), "u:--- u1000:rw- g:r-x g5:-wx m:--- o:---");
	CHECK_STR(changed("u:rwx g:r-x m:r-x o:---", 0770), "u:rwx g:r-x m:rwx o:---");
	CHECK_STR(changed("u:rwx g:r-x o:---", 0624), "u:rw- g:-w- o:r--");
}

static uint32_t inherited(const char *text, uint32_t mode, const char **ret)
{
	CLEANUP(buf_done) struct buf acl = BUF_INIT;
	uint32_t granted;

	acl_parse(text, &acl);
	granted = acl_inherit(acl.data, acl.len, mode);
	*ret = acl_text(acl.data, acl.len);
	return granted;
}

TEST(what_is_new_gets_what_both_the_list_and_its_maker_grant)
{
	const char *now;

	CHECK_EQ(inherited(NAMED, 0666, &now), 0640);
	CHECK_STR(now, "u:rw- u1000:rw- g:r-x g5:-wx m:r-- o:---");
	CHECK_EQ(inherited(NAMED, S_IFDIR | 02777, &now), S_IFDIR | 02751);
	CHECK_STR(now, NAMED);
	CHECK_EQ(inherited(NAMED, 0, &now), 0);
	CHECK_STR(now, "u:--- u1000:rw- g:r-x g5:-wx m:--- o:---");
	CHECK_EQ(inherited("u:rwx g:r-x o:r--", 04666, &now), 04644);
	CHECK_STR(now, "u:rw- g:r-- o:r--");
}

TEST(only_two_attributes_are_lists)
{
	CHECK(acl_is_name("system.posix_acl_access"));
	CHECK(acl_is_name("system.posix_acl_default"));
	CHECK(!acl_is_name("system.posix_acl"));
	CHECK(!acl_is_name("system.posix_acl_access2"));
	CHECK(!acl_is_name("user.posix_acl_access"));
}

TEST_MAIN("acl")
