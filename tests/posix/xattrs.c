/*
 * Extended attributes and ACLs.
 */
#include <endian.h>
#include <linux/capability.h>
#include <sys/xattr.h>

#include "tests/posix/posix.h"

static void need_xattrs(void)
{
	make_file("probe", "");
	if (setxattr("probe", "user.probe", "", 0, 0) != 0 && errno == EOPNOTSUPP)
		skip("no user.* attributes on this file system");
	NEED(unlink("probe"));
}

static bool value_is(const char *path, const char *name, const void *want, size_t len)
{
	char have[65536];
	ssize_t n = getxattr(path, name, have, sizeof(have));

	return n == (ssize_t)len && memcmp(have, want, len) == 0;
}

/* How often a name stands in the list. */
static int listed(const char *path, const char *name)
{
	char list[65536], *p;
	ssize_t n = listxattr(path, list, sizeof(list));
	int found = 0;

	for (p = list; n > 0 && p < list + n; p += strlen(p) + 1)
		found += strcmp(p, name) == 0;
	return found;
}

CASE(xattrs, set_get_list_remove)
{
	char value[64];

	need_xattrs();
	make_file("f", "");
	FAILS(getxattr("f", "user.a", value, sizeof(value)), ENODATA);
	FAILS(removexattr("f", "user.a"), ENODATA);
	OK(setxattr("f", "user.a", "value", 5, 0));
	TRUE(value_is("f", "user.a", "value", 5));
	IS(listed("f", "user.a"), 1);
	OK(setxattr("f", "user.a", "other value", 11, 0));
	TRUE(value_is("f", "user.a", "other value", 11));
	IS(listed("f", "user.a"), 1);
	OK(setxattr("f", "user.b", "", 0, 0));
	TRUE(value_is("f", "user.b", "", 0));
	OK(setxattr("f", "user.bin", "\0\xff\0", 3, 0));
	TRUE(value_is("f", "user.bin", "\0\xff\0", 3));
	OK(removexattr("f", "user.a"));
	FAILS(getxattr("f", "user.a", value, sizeof(value)), ENODATA);
	IS(listed("f", "user.a"), 0);
	IS(listed("f", "user.b"), 1);
	FAILS(getxattr("none", "user.a", value, sizeof(value)), ENOENT);
}

CASE(xattrs, create_and_replace_are_told_apart)
{
	need_xattrs();
	make_file("f", "");
	FAILS(setxattr("f", "user.a", "1", 1, XATTR_REPLACE), ENODATA);
	OK(setxattr("f", "user.a", "1", 1, XATTR_CREATE));
	FAILS(setxattr("f", "user.a", "2", 1, XATTR_CREATE), EEXIST);
	TRUE(value_is("f", "user.a", "1", 1));
	OK(setxattr("f", "user.a", "3", 1, XATTR_REPLACE));
	TRUE(value_is("f", "user.a", "3", 1));
	FAILS(setxattr("f", "user.a", "4", 1, 0x80), EINVAL);
}

CASE(xattrs, sizes_are_told_and_limits_kept)
{
	char name[XATTR_NAME_MAX + 8], value[64], *big = calloc(1, XATTR_SIZE_MAX + 1);
	ssize_t need;

	need_xattrs();
	make_file("f", "");
	OK(setxattr("f", "user.a", "12345", 5, 0));
	IS(getxattr("f", "user.a", NULL, 0), 5);
	FAILS(getxattr("f", "user.a", value, 4), ERANGE);
	IS(getxattr("f", "user.a", value, 5), 5);
	need = listxattr("f", NULL, 0);
	TRUE(need >= 7);
	FAILS(listxattr("f", value, (size_t)need - 1), ERANGE);
	IS(listxattr("f", value, (size_t)need), need);
	memset(name, 'n', sizeof(name));
	memcpy(name, "user.", 5);
	name[XATTR_NAME_MAX] = '\0';
	OK(setxattr("f", name, "long", 4, 0));
	TRUE(value_is("f", name, "long", 4));
	name[XATTR_NAME_MAX] = 'n';
	name[XATTR_NAME_MAX + 1] = '\0';
	FAILS(setxattr("f", name, "v", 1, 0), ERANGE);
	FAILS(setxattr("f", "user.", "v", 1, 0), EINVAL);
	FAILS(setxattr("f", "", "v", 1, 0), ERANGE);
	FAILS(setxattr("f", "user.big", big, XATTR_SIZE_MAX + 1, 0), E2BIG);
	FAILS(setxattr("f", "nospace.name", "v", 1, 0), EOPNOTSUPP);
	FAILS(getxattr("f", "nospace.name", value, 1), EOPNOTSUPP);
	memset(big, 'v', 2000);
	OK(setxattr("f", "user.big", big, 2000, 0));
	TRUE(value_is("f", "user.big", big, 2000));
	free(big);
}

CASE(xattrs, many_of_them)
{
	char name[32], value[32];
	unsigned i;

	need_xattrs();
	make_file("f", "");
	/* ext4 has one block for all of them. */
	for (i = 0; i < 60; i++) {
		snprintf(name, sizeof(name), "user.n%u", i);
		snprintf(value, sizeof(value), "value %u", i * i);
		OK(setxattr("f", name, value, strlen(value), 0));
	}
	for (i = 0; i < 60; i += 2) {
		snprintf(name, sizeof(name), "user.n%u", i);
		OK(removexattr("f", name));
	}
	for (i = 0; i < 60; i++) {
		snprintf(name, sizeof(name), "user.n%u", i);
		snprintf(value, sizeof(value), "value %u", i * i);
		trying("%s", name);
		IS(listed("f", name), i % 2);
		if (i % 2)
			TRUE(value_is("f", name, value, strlen(value)));
	}
}

CASE(xattrs, user_attributes_are_for_files_and_directories)
{
	char value[8];
	int fd;

	need_xattrs();
	make(LINK_FILE, "s");
	make(FIFO_, "p");
	make(DIR_, "d");
	FAILS(lsetxattr("s", "user.a", "v", 1, 0), EPERM);
	FAILS(setxattr("p", "user.a", "v", 1, 0), EPERM);
	OK(setxattr("s", "user.a", "followed", 8, 0));
	TRUE(value_is("s.to", "user.a", "followed", 8));
	FAILS(lgetxattr("s", "user.a", value, 8), ENODATA, EPERM);
	IS(llistxattr("s", value, 8), 0);
	OK(setxattr("d", "user.a", "dir", 3, 0));
	TRUE(value_is("d", "user.a", "dir", 3));
	fd = open_new("f");
	OK(fsetxattr(fd, "user.a", "fd", 2, 0));
	IS(fgetxattr(fd, "user.a", value, 8), 2);
	IS(flistxattr(fd, NULL, 0), listxattr("f", NULL, 0));
	OK(fremovexattr(fd, "user.a"));
	close(fd);
}

CASE(xattrs, they_belong_to_the_file_and_not_to_the_name)
{
	need_xattrs();
	make_file("a", "");
	OK(setxattr("a", "user.x", "1", 1, 0));
	OK(link("a", "b"));
	TRUE(value_is("b", "user.x", "1", 1));
	OK(setxattr("b", "user.x", "2", 1, 0));
	TRUE(value_is("a", "user.x", "2", 1));
	OK(unlink("a"));
	OK(rename("b", "c"));
	TRUE(value_is("c", "user.x", "2", 1));
	OK(truncate("c", 100));
	TRUE(value_is("c", "user.x", "2", 1));
	OK(unlink("c"));
	make_file("c", "");
	FAILS(getxattr("c", "user.x", NULL, 0), ENODATA);
}

static void without_permission(void *arg)
{
	char value[8];

	FAILS(setxattr("ro", "user.a", "w", 1, 0), EACCES);
	IS(getxattr("ro", "user.a", value, 8), 1);
	FAILS(getxattr("shut", "user.a", value, 8), EACCES);
	FAILS(setxattr("sticky", "user.a", "w", 1, 0), EPERM);
	FAILS(setxattr("open", "trusted.a", "w", 1, 0), EPERM);
	FAILS(getxattr("open", "trusted.a", value, 8), ENODATA, EPERM);
	IS(listed("open", "trusted.a"), 0);
	OK(setxattr("open", "user.a", "w", 1, 0));
}

CASE(xattrs, permissions_of_the_file_decide)
{
	need_xattrs();
	need_other_user();
	make_file("ro", "");
	make_file("shut", "");
	make_file("open", "");
	NEED(mkdir("sticky", 0755));
	NEED(chmod("sticky", 01777));
	NEED(setxattr("ro", "user.a", "v", 1, 0));
	NEED(setxattr("shut", "user.a", "v", 1, 0));
	NEED(setxattr("open", "trusted.a", "v", 1, 0));
	TRUE(value_is("open", "trusted.a", "v", 1));
	IS(listed("open", "trusted.a"), 1);
	NEED(chmod("shut", 0600));
	NEED(chmod("open", 0666));
	as_user(OTHER, OTHER, without_permission, NULL);
}

CASE(xattrs, writing_takes_capabilities_away)
{
	struct vfs_cap_data cap = {
		.magic_etc = htole32(VFS_CAP_REVISION_2),
		.data[0].permitted = htole32(1 << CAP_NET_RAW),
	};
	int fd;

	need_root();
	make_file("f", "program");
	if (setxattr("f", "security.capability", &cap, XATTR_CAPS_SZ_2, 0) != 0) {
		SAY_IF(errno != EOPNOTSUPP, "setting it failed with %s", strerrorname_np(errno));
		skip("no capabilities on this file system");
	}
	IS(getxattr("f", "security.capability", NULL, 0), XATTR_CAPS_SZ_2);
	fd = (int)NEED(open("f", O_WRONLY | O_CLOEXEC));
	OK(write(fd, "P", 1));
	close(fd);
	FAILS(getxattr("f", "security.capability", NULL, 0), ENODATA);
	OK(setxattr("f", "security.capability", &cap, XATTR_CAPS_SZ_2, 0));
	OK(truncate("f", 1));
	FAILS(getxattr("f", "security.capability", NULL, 0), ENODATA);
	OK(setxattr("f", "security.capability", &cap, XATTR_CAPS_SZ_2, 0));
	OK(chown("f", OTHER, OTHER));
	FAILS(getxattr("f", "security.capability", NULL, 0), ENODATA);
}

/* --- ACLs, as they stand in their attribute ---------------------------------------------------- */

struct acl_entry {
	uint16_t tag, perm;
	uint32_t id;
};

struct acl {
	uint32_t version;
	struct acl_entry e[5];
};

enum { ACL_USER_OBJ = 1, ACL_USER = 2, ACL_GROUP_OBJ = 4, ACL_MASK = 16, ACL_OTHER = 32 };

/* rw for the owner, what is given for OTHER, nothing for anybody else. */
static struct acl acl_for_other(unsigned perm)
{
	uint32_t none = (uint32_t)-1;

	return (struct acl){ htole32(2),
			     { { htole16(ACL_USER_OBJ), htole16(7), none },
			       { htole16(ACL_USER), htole16((uint16_t)perm), htole32(OTHER) },
			       { htole16(ACL_GROUP_OBJ), htole16(0), none },
			       { htole16(ACL_MASK), htole16(7), none },
			       { htole16(ACL_OTHER), htole16(0), none } } };
}

static void need_acls(void)
{
	struct acl acl = acl_for_other(4);

	make_file("probe", "");
	if (setxattr("probe", "system.posix_acl_access", &acl, sizeof(acl), 0) != 0 &&
	    errno == EOPNOTSUPP)
		skip("no ACLs on this file system");
	NEED(unlink("probe"));
}

static void may_read_only(void *arg)
{
	close((int)NEED(open("f", O_RDONLY | O_CLOEXEC)));
	FAILS(open("f", O_WRONLY | O_CLOEXEC), EACCES);
}

static void may_nothing(void *arg)
{
	FAILS(open("f", O_RDONLY | O_CLOEXEC), EACCES);
}

CASE(xattrs, an_acl_lets_one_user_in)
{
	struct acl acl = acl_for_other(4);

	need_acls();
	need_other_user();
	make_file("f", "");
	OK(setxattr("f", "system.posix_acl_access", &acl, sizeof(acl), 0));
	IS(stat_of("f").st_mode & 0777, 0770); /* the group's bits show the mask */
	as_user(OTHER, OTHER, may_read_only, NULL);
	as_user(OTHER2, OTHER2, may_nothing, NULL);
	OK(chmod("f", 0700)); /* and set it */
	as_user(OTHER, OTHER, may_nothing, NULL);
	OK(removexattr("f", "system.posix_acl_access"));
	IS(stat_of("f").st_mode & 0777, 0700);
}

CASE(xattrs, a_default_acl_is_inherited)
{
	struct acl acl = acl_for_other(4);

	need_acls();
	NEED(mkdir("d", 0755));
	OK(setxattr("d", "system.posix_acl_default", &acl, sizeof(acl), 0));
	umask(077);
	close((int)NEED(open("d/f", O_WRONLY | O_CREAT | O_CLOEXEC, 0666)));
	NEED(mkdir("d/sub", 0777));
	IS(stat_of("d/f").st_mode & 0777, 0660); /* no umask where there is a default ACL */
	IS(getxattr("d/f", "system.posix_acl_access", NULL, 0), sizeof(acl));
	FAILS(getxattr("d/f", "system.posix_acl_default", NULL, 0), ENODATA, EACCES);
	IS(getxattr("d/sub", "system.posix_acl_default", NULL, 0), sizeof(acl));
	FAILS(setxattr("d/f", "system.posix_acl_default", &acl, sizeof(acl), 0), EACCES);
}

CASE(xattrs, an_acl_that_says_what_the_mode_says_is_not_kept)
{
	uint32_t none = (uint32_t)-1;
	struct {
		uint32_t version;
		struct acl_entry e[3];
	} acl = { htole32(2),
		  { { htole16(ACL_USER_OBJ), htole16(6), none },
		    { htole16(ACL_GROUP_OBJ), htole16(4), none },
		    { htole16(ACL_OTHER), htole16(0), none } } };

	need_acls();
	make_file("f", "");
	OK(setxattr("f", "system.posix_acl_access", &acl, sizeof(acl), 0));
	IS(stat_of("f").st_mode & 0777, 0640);
	FAILS(getxattr("f", "system.posix_acl_access", NULL, 0), ENODATA);
	FAILS(setxattr("f", "system.posix_acl_access", "junk", 4, 0), EINVAL, EOPNOTSUPP);
}
