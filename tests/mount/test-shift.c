/*
 * A second mount of a layer, with shifted ids, as a sandbox of root's needs it on kernels that map no
 * ids of FUSE mounts: the ids look as on an idmapped mount, and each mount soon shows what changed
 * through the other.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tests/mount/stage.h"

#define FIRST 524288
#define ACL   "system.posix_acl_access"

static const struct mount_options for_others = { .source = "stage", .others = true };

struct pair {
	struct stage s;     /* with the ids of the layer */
	struct stage shown; /* with shifted ones; only its path and mount are its own */
};

static void pair_open(struct pair *p, const char *name, const char *beside)
{
	struct mount_options o = {
		.source = "beside",
		.others = true,
		.shift = { .first = FIRST, .n = 65536 },
	};
	struct err err = { 0 };

	if (geteuid() != 0)
		TEST_SKIP("only root has files of many users");
	stage_open_with(&p->s, name, &for_others);
	p->shown = p->s;
	p->shown.path = o.path = stage_dir(beside);
	o.beside = p->s.m;
	CHECK_OK(mount_open(p->s.mounts, p->s.live.l, &o, &p->shown.m, &err), &err);
}

static void pair_close(struct pair *p)
{
	struct err err = { 0 };

	CHECK_OK(mount_close(p->shown.m, false, &err), &err);
	stage_close(&p->s);
}

static bool owned_by(const struct stage *s, const char *name, uint32_t uid, uint32_t gid)
{
	struct stat st;

	return lstat(stage_at(s, name), &st) == 0 && st.st_uid == uid && st.st_gid == gid;
}

/* --- ids -------------------------------------------------------------------------------- */

/* In a child that is root of the shifted ids: system calls only. */
static int work(const struct stage *s)
{
	struct stat st;
	int fd;

	if (stat(stage_at(s, "old"), &st) < 0 || st.st_uid != FIRST || st.st_gid != FIRST)
		return 1;
	fd = open(stage_at(s, "old"), O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "NEW", 3) != 3)
		return 2;
	fd = open(stage_at(s, "made"), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, "x", 1) != 1 || fstat(fd, &st) < 0 || st.st_uid != FIRST)
		return 3;
	if (mkdir(stage_at(s, "dir"), 0700) < 0 || symlink("x", stage_at(s, "link")) < 0)
		return 4;
	fd = open(s->path, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != FIRST || st.st_gid != FIRST)
		return 5;
	if (chmod(stage_at(s, "made"), 06755) < 0 || stat(stage_at(s, "made"), &st) < 0 ||
	    (st.st_mode & 07777) != 06755)
		return 6;
	/* As on an idmapped mount: without the capability the owner is not given away. */
	if (chown(stage_at(s, "made"), FIRST + 1, FIRST) == 0 || errno != EPERM)
		return 7;
	if (chown(stage_at(s, "made"), FIRST, FIRST) < 0)
		return 8;
	/* A file of another user is another user's. */
	if (open(stage_at(s, "other"), O_WRONLY | O_CLOEXEC) >= 0 || errno != EACCES)
		return 9;
	return 0;
}

TEST(shifted_ids_look_as_mapped_ones_do)
{
	struct pair p = { 0 };

	pair_open(&p, "look", "look-beside");
	stage_put(&p.s, "old", "was");
	stage_put(&p.s, "other", "was");
	CHECK_EQ(chown(stage_at(&p.s, "other"), 12, 12), 0);
	CHECK_EQ(stage_as(FIRST, work, &p.shown), 0);
	CHECK(owned_by(&p.s, "old", 0, 0));
	CHECK(owned_by(&p.s, "made", 0, 0));
	CHECK(owned_by(&p.s, "dir", 0, 0));
	CHECK(owned_by(&p.s, "link", 0, 0));
	CHECK(stage_has(&p.s, "old", "NEW"));
	pair_close(&p);
}

TEST(ids_outside_of_the_shift_are_nobodys)
{
	struct pair p = { 0 };

	pair_open(&p, "ids", "ids-beside");
	stage_put(&p.s, "forged", "x");
	stage_put(&p.s, "far", "x");
	stage_put(&p.s, "near", "x");
	CHECK_EQ(chown(stage_at(&p.s, "forged"), FIRST, FIRST + 7), 0);
	CHECK_EQ(chown(stage_at(&p.s, "far"), 1000000, 65536), 0);
	CHECK_EQ(chown(stage_at(&p.s, "near"), 65535, 1), 0);
	/* What is stored under an id of the users of the mount is not theirs. */
	CHECK(owned_by(&p.shown, "forged", 65534, 65534));
	CHECK(owned_by(&p.shown, "far", 1000000, 65536));
	CHECK(owned_by(&p.shown, "near", FIRST + 65535, FIRST + 1));
	/* A user without an id in the map can own nothing. */
	CHECK_EQ(mkdir(stage_at(&p.shown, "made"), 0700), -1);
	CHECK_EQ(errno, EOVERFLOW);
	CHECK_EQ(chown(stage_at(&p.shown, "near"), 5, 5), -1);
	CHECK_EQ(errno, EOVERFLOW);
	CHECK_EQ(chown(stage_at(&p.shown, "near"), FIRST + 5, FIRST + 6), 0);
	pair_close(&p);
}

static bool is_given(const struct stage *s)
{
	return owned_by(s, "f", 5, 6);
}

TEST(an_owner_that_is_set_is_shifted_back)
{
	struct pair p = { 0 };

	pair_open(&p, "chown", "chown-beside");
	stage_put(&p.s, "f", "x");
	CHECK_EQ(chown(stage_at(&p.shown, "f"), FIRST + 5, FIRST + 6), 0);
	CHECK(owned_by(&p.shown, "f", FIRST + 5, FIRST + 6));
	CHECK(stage_wait(is_given, &p.s));
	pair_close(&p);
}

/* --- access lists ----------------------------------------------------------------------- */

struct acl_entry {
	uint16_t tag, perm;
	uint32_t id;
};

struct acl {
	uint32_t version;
	struct acl_entry list[5];
};

static struct acl acl_for(uint32_t user)
{
	return (struct acl){ 2,
			     { { 0x01, 6, UINT32_MAX },
			       { 0x02, 4, user },
			       { 0x04, 4, UINT32_MAX },
			       { 0x10, 4, UINT32_MAX },
			       { 0x20, 0, UINT32_MAX } } };
}

static bool has_acl(const struct stage *s, uint32_t user)
{
	const struct acl want = acl_for(user);
	struct acl got;

	return getxattr(stage_at(s, "f"), ACL, &got, sizeof(got)) == sizeof(got) &&
	       memcmp(&want, &got, sizeof(got)) == 0;
}

static bool has_second_acl(const struct stage *s)
{
	return has_acl(s, 13);
}

static int read_f(const struct stage *s)
{
	return open(stage_at(s, "f"), O_RDONLY | O_CLOEXEC) >= 0 ? 0 : errno;
}

TEST(ids_in_an_access_list_are_shifted_both_ways)
{
	struct acl acl = acl_for(12);
	struct pair p = { 0 };

	pair_open(&p, "acl", "acl-beside");
	stage_put(&p.s, "f", "x");
	CHECK_EQ(setxattr(stage_at(&p.s, "f"), ACL, &acl, sizeof(acl), 0), 0);
	CHECK(has_acl(&p.shown, FIRST + 12));
	CHECK_EQ(stage_as(FIRST + 12, read_f, &p.shown), 0);
	CHECK_EQ(stage_as(FIRST + 13, read_f, &p.shown), EACCES);
	acl = acl_for(FIRST + 13);
	CHECK_EQ(setxattr(stage_at(&p.shown, "f"), ACL, &acl, sizeof(acl), 0), 0);
	CHECK(stage_wait(has_second_acl, &p.s));
	acl = acl_for(7);
	CHECK_EQ(setxattr(stage_at(&p.shown, "f"), ACL, &acl, sizeof(acl), 0), -1);
	CHECK_EQ(errno, EOVERFLOW);
	pair_close(&p);
}

/* --- one layer, two mounts -------------------------------------------------------------- */

static bool sees_first(const struct stage *s)
{
	return stage_has(s, "f", "first") && stage_there(s, "gone") && !stage_there(s, "moved") &&
	       !stage_there(s, "fresh");
}

static bool sees_second(const struct stage *s)
{
	AUTO_FREE char *names = stage_names(s, ".");

	return stage_has(s, "f", "second") && strcmp(names, " f fresh moved") == 0 &&
	       !stage_there(s, "gone") && stage_there(s, "moved") && stage_there(s, "fresh");
}

/* In a child, so that the ids are right on either mount. */
static int change(const struct stage *s)
{
	const int fd = open(stage_at(s, "f"), O_WRONLY | O_TRUNC | O_CLOEXEC);

	if (fd < 0 || write(fd, "second", 6) != 6)
		return 1;
	if (mkdir(stage_at(s, "fresh"), 0755) < 0)
		return 2;
	return rename(stage_at(s, "gone"), stage_at(s, "moved")) < 0 ? 3 : 0;
}

static void change_through(struct pair *p, bool shown)
{
	const struct stage *from = shown ? &p->shown : &p->s, *to = shown ? &p->s : &p->shown;

	stage_put(&p->s, "f", "first");
	stage_put(&p->s, "gone", "x");
	/* Now the kernel knows all of it, by both. */
	CHECK(stage_wait(sees_first, to));
	CHECK(stage_wait(sees_first, from));
	CHECK_EQ(stage_as(shown ? FIRST : 0, change, from), 0);
	CHECK(sees_second(from));
	CHECK(stage_wait(sees_second, to));
}

TEST(a_change_through_one_mount_is_soon_seen_through_the_other)
{
	struct pair p = { 0 };

	pair_open(&p, "plain", "plain-beside");
	change_through(&p, false);
	pair_close(&p);
	pair_open(&p, "shown", "shown-beside");
	change_through(&p, true);
	pair_close(&p);
}

TEST(all_changes_are_seen_once_the_other_mount_is_closed)
{
	struct pair p = { 0 };
	struct err err = { 0 };

	pair_open(&p, "closed", "closed-beside");
	stage_put(&p.s, "f", "first");
	stage_put(&p.s, "gone", "x");
	CHECK(sees_first(&p.s));
	CHECK_EQ(stage_as(FIRST, change, &p.shown), 0);
	CHECK_OK(mount_close(p.shown.m, false, &err), &err);
	CHECK(sees_second(&p.s));
	stage_close(&p.s);
}

/* The kernel forgets without a word what it knew of a mount that ends. */
TEST(a_closed_mount_leaves_no_reference_to_the_layer)
{
	struct layer_usage before, after;
	struct pair p = { 0 };
	struct err err = { 0 };

	pair_open(&p, "refs", "refs-beside");
	layer_usage(p.s.live.l, &before);
	for (int i = 0; i < 20; i++) {
		char name[16];

		snprintf(name, sizeof(name), "f%d", i);
		stage_put(&p.s, name, "x");
	}
	free(stage_names(&p.shown, "."));
	for (int i = 0; i < 20; i++) {
		char name[16];

		snprintf(name, sizeof(name), "f%d", i);
		CHECK(stage_has(&p.shown, name, "x"));
		CHECK_EQ(unlink(stage_at(&p.s, name)), 0);
	}
	CHECK_OK(mount_close(p.shown.m, true, &err), &err);
	stage_unmount(&p.s, false);
	layer_usage(p.s.live.l, &after);
	CHECK_EQ(after.nodes, before.nodes);
	stage_mount(&p.s, &for_others);
	stage_close(&p.s);
}

TEST_MAIN("shift")
