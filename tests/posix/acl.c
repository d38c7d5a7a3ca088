/*
 * Access control lists: who they let in, who inherits them, and what modes have to do with it.
 *
 * Lists are written as text, "u:rwx U:r-- g:r-x G:-w- m:rwx o:---": U is the user OTHER, G his
 * group.
 */
#include <endian.h>
#include <sys/xattr.h>

#include "tests/posix/posix.h"

#define ACCESS  "system.posix_acl_access"
#define DEFAULT "system.posix_acl_default"
#define NAMED   "u:rwx U:rw- g:r-x m:rwx o:---"
#define ENTRIES 8

struct list {
	size_t n;
	struct {
		uint32_t version;
		struct {
			uint16_t tag, perm;
			uint32_t id;
		} e[ENTRIES];
	} a; /* as the kernel wants it */
};

/* By tag, as a letter. */
static const struct {
	char letter;
	uint16_t tag;
	uint32_t id;
} kinds[] = { { 'u', 1, UINT32_MAX }, { 'U', 2, OTHER },       { 'g', 4, UINT32_MAX },
	      { 'G', 8, OTHER },      { 'm', 16, UINT32_MAX }, { 'o', 32, UINT32_MAX } };

static size_t size_of_list(const struct list *l)
{
	return sizeof(l->a.version) + l->n * sizeof(l->a.e[0]);
}

static struct list parse(const char *text)
{
	struct list l = { .a.version = htole32(2) };

	for (; *text; text += *text == ' ') {
		for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
			if (kinds[i].letter == *text) {
				l.a.e[l.n].tag = htole16(kinds[i].tag);
				l.a.e[l.n].id = htole32(kinds[i].id);
			}
		l.a.e[l.n++].perm = htole16(
		    (uint16_t)((text[2] != '-') * 4 + (text[3] != '-') * 2 + (text[4] != '-')));
		text += 5;
	}
	return l;
}

static int set(const char *path, const char *name, const char *text)
{
	struct list l = parse(text);

	return setxattr(path, name, &l.a, size_of_list(&l), 0);
}

/* The list of a file as text, or why there is none. */
static const char *get(const char *path, const char *name)
{
	static char ring[4][ENTRIES * 6 + 32];
	static unsigned at;
	char *text = ring[at++ % 4], *p = text;
	struct list l;
	ssize_t n = lgetxattr(path, name, &l.a, sizeof(l.a));

	if (n < 0)
		return strerrorname_np(errno);
	*p = '\0';
	for (size_t i = 0; i < ((size_t)n - 4) / 8; i++)
		for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
			if (le16toh(l.a.e[i].tag) == kinds[k].tag) {
				const unsigned perm = le16toh(l.a.e[i].perm);

				p += sprintf(p, "%s%c:%c%c%c", i ? " " : "", kinds[k].letter,
					     perm & 4 ? 'r' : '-', perm & 2 ? 'w' : '-',
					     perm & 1 ? 'x' : '-');
			}
	return text;
}

#define LIST_IS(path, name, want) check_list(path, name, want, __LINE__)

static void check_list(const char *path, const char *name, const char *want, int line)
{
	const char *have = get(path, name);

	check_say(strcmp(have, want) != 0, __FILE__, line, "%s of '%s' is \"%s\", want \"%s\"",
		  name, path, have, want);
}

static int mode_of(const char *path)
{
	return (int)(stat_of(path).st_mode & 07777);
}

static void need_acls(void)
{
	make_file("probe", "");
	if (set("probe", ACCESS, NAMED) != 0 && errno == EOPNOTSUPP)
		skip("no ACLs on this file system");
	NEED(unlink("probe"));
}

/* --- who may ------------------------------------------------------------------------------ */

/* What of rwx the calling process may do to "f". */
static void may_exactly(void *arg)
{
	const int want = *(int *)arg;
	int have = 0;

	for (int bit = 4; bit > 0; bit /= 2)
		have |= access("f", bit) == 0 ? bit : 0; /* R_OK, W_OK and X_OK are these numbers */
	IS(have, want);
	if (!(want & 4))
		FAILS(open("f", O_RDONLY | O_CLOEXEC), EACCES);
	if (!(want & 2))
		FAILS(open("f", O_WRONLY | O_CLOEXEC), EACCES);
}

static void user_may(uid_t uid, gid_t gid, int want)
{
	trying("user %u of group %u", uid, gid);
	as_user(uid, gid, may_exactly, &want);
	trying("%s", "");
}

CASE(acl, a_list_says_who_may)
{
	need_acls();
	need_other_user();
	make_file("f", "");
	NEED(chown("f", OTHER2, OTHER2));
	OK(set("f", ACCESS, "u:r-- U:rwx g:-w- G:r-x m:rwx o:--x"));
	user_may(OTHER2, OTHER2, 4);    /* the owner */
	user_may(OTHER, OTHER, 7);      /* a user that is named, whatever his groups may */
	user_may(OTHER + 9, OTHER2, 2); /* the group of the file */
	user_may(OTHER + 9, OTHER, 5);  /* a group that is named */
	user_may(OTHER + 9, OTHER + 9, 1);
}

CASE(acl, the_mask_limits_all_but_owner_and_others)
{
	need_acls();
	need_other_user();
	make_file("f", "");
	NEED(chown("f", OTHER2, OTHER2));
	OK(set("f", ACCESS, "u:rwx U:rwx g:rwx G:rwx m:r-- o:-wx"));
	user_may(OTHER2, OTHER2, 7);
	user_may(OTHER, OTHER2, 4);
	user_may(OTHER + 9, OTHER2, 4);
	user_may(OTHER + 9, OTHER, 4);
	user_may(OTHER + 9, OTHER + 9, 3);
	OK(chmod("f", 0701)); /* without a mask nobody but these two */
	user_may(OTHER, OTHER2, 0);
	user_may(OTHER + 9, OTHER + 9, 1);
	OK(chmod("f", 0771)); /* and what was behind it comes back */
	user_may(OTHER, OTHER2, 7);
}

static void walk_in(void *arg)
{
	make_file("d/mine", "");
	OK(unlink("d/mine"));
	OK(access("d/f", R_OK));
}

static void kept_out(void *arg)
{
	FAILS(open("d/mine", O_CREAT | O_WRONLY | O_CLOEXEC, 0644), EACCES);
	FAILS(access("d/f", F_OK), EACCES);
	FAILS(open("d", O_RDONLY | O_DIRECTORY | O_CLOEXEC), EACCES);
}

CASE(acl, a_directory_lets_in_whom_its_list_names)
{
	need_acls();
	need_other_user();
	NEED(mkdir("d", 0700));
	make_file("d/f", "");
	as_user(OTHER, OTHER, kept_out, NULL);
	OK(set("d", ACCESS, "u:rwx U:rwx g:--- m:rwx o:---"));
	as_user(OTHER, OTHER, walk_in, NULL);
	as_user(OTHER2, OTHER2, kept_out, NULL);
	OK(removexattr("d", ACCESS));
	as_user(OTHER, OTHER, kept_out, NULL); /* though the mode is 0770 */
	IS(mode_of("d"), 0770);
}

static void not_mine(void *arg)
{
	FAILS(set("f", ACCESS, NAMED), EPERM);
	FAILS(removexattr("f", ACCESS), EPERM);
	FAILS(set("d", DEFAULT, NAMED), EPERM);
	LIST_IS("f", ACCESS, "u:rwx U:rwx g:--- m:rwx o:---"); /* everybody may look */
}

CASE(acl, only_the_owner_changes_it)
{
	need_acls();
	need_other_user();
	make_file("f", "");
	NEED(mkdir("d", 0777));
	OK(set("f", ACCESS, "u:rwx U:rwx g:--- m:rwx o:---"));
	as_user(OTHER, OTHER, not_mine, NULL);
}

/* --- lists and modes ---------------------------------------------------------------------- */

CASE(acl, chmod_sets_the_mask_and_the_mask_shows)
{
	struct stamp was;

	need_acls();
	make_file("f", "");
	OK(chmod("f", 04755));
	was = stamp_of("f");
	tick();
	OK(set("f", ACCESS, "u:rw- U:rwx g:r-- m:-wx o:r--"));
	MOVED("f", was, MOVES_C);
	IS(mode_of("f"), 04634);
	OK(chmod("f", 0751));
	LIST_IS("f", ACCESS, "u:rwx U:rwx g:r-- m:r-x o:--x");
	IS(mode_of("f"), 0751);
	OK(chmod("f", 0));
	LIST_IS("f", ACCESS, "u:--- U:rwx g:r-- m:--- o:---");
	OK(chmod("f", 0640));
	OK(set("f", ACCESS, "u:rw- g:rwx m:r-- o:---")); /* a mask and nobody named is kept */
	LIST_IS("f", ACCESS, "u:rw- g:rwx m:r-- o:---");
	OK(set("f", ACCESS, "u:rw- g:rwx o:r--"));
	LIST_IS("f", ACCESS, "ENODATA");
	IS(mode_of("f"), 0674);
}

CASE(acl, a_list_without_entries_is_none)
{
	need_acls();
	NEED(mkdir("d", 0755));
	OK(set("d", ACCESS, NAMED));
	OK(set("d", DEFAULT, NAMED));
	OK(set("d", ACCESS, ""));
	LIST_IS("d", ACCESS, "ENODATA");
	IS(mode_of("d"), 0770);
	OK(setxattr("d", DEFAULT, NULL, 0, 0));
	LIST_IS("d", DEFAULT, "ENODATA");
	OK(removexattr("d", ACCESS)); /* once more */
	OK(removexattr("d", DEFAULT));
}

CASE(acl, what_is_wrong_is_refused)
{
	static const char *const wrong[] = {
		"u:rwx",
		"u:rwx g:rwx",
		"u:rwx U:r-- g:rwx o:rwx",
		"u:rwx g:rwx G:rwx o:rwx",
		"g:rwx u:rwx o:rwx",
		"u:rwx g:rwx o:rwx m:rwx",
		"u:rwx u:rwx g:rwx o:rwx",
		"u:rwx g:rwx U:rwx m:rwx o:rwx",
		"u:rwx g:rwx o:rwx o:rwx",
	};
	struct list l = parse(NAMED);

	need_acls();
	make_file("f", "");
	NEED(mkdir("d", 0755));
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		trying("%s", wrong[i]);
		FAILS(set("f", ACCESS, wrong[i]), EINVAL);
		FAILS(set("d", DEFAULT, wrong[i]), EINVAL);
	}
	trying("%s", "");
	FAILS(setxattr("f", ACCESS, &l.a, size_of_list(&l) - 1, 0), EINVAL);
	l.a.e[0].perm = htole16(8);
	FAILS(setxattr("f", ACCESS, &l.a, size_of_list(&l), 0), EINVAL);
	FAILS(set("f", DEFAULT, NAMED), EACCES);
	make(LINK_NONE, "s");
	l = parse(NAMED);
	FAILS(lsetxattr("s", ACCESS, &l.a, size_of_list(&l), 0), EOPNOTSUPP);
	IS(mode_of("f"), 0644);
	IS(mode_of("d"), 0755);
	LIST_IS("f", ACCESS, "ENODATA");
}

static void set_by_owner(void *arg)
{
	OK(set("f", ACCESS, NAMED));
	IS(mode_of("f"), 0770);
}

CASE(acl, the_set_gid_bit_goes_with_a_list_of_one_who_is_not_in_the_group)
{
	need_acls();
	need_other_user();
	make_file("f", "");
	NEED(chown("f", OTHER, OTHER2));
	NEED(chmod("f", 02755));
	OK(set("f", ACCESS, "u:rwx U:r-- g:r-x m:r-x o:r-x")); /* root may */
	IS(mode_of("f"), 02755);
	as_user(OTHER, OTHER, set_by_owner, NULL);
	NEED(chmod("f", 02755));
	OK(removexattr("f", ACCESS));
	IS(mode_of("f"), 02755);
}

CASE(acl, writing_and_chown_leave_the_list)
{
	int fd;

	need_acls();
	need_root();
	make_file("f", "text");
	OK(set("f", ACCESS, NAMED));
	OK(chmod("f", 06770));
	fd = (int)NEED(open("f", O_WRONLY | O_TRUNC | O_CLOEXEC));
	OK(write(fd, "x", 1));
	close(fd);
	OK(chown("f", OTHER2, OTHER2));
	LIST_IS("f", ACCESS, NAMED);
	IS(mode_of("f"), 0770);
}

/* --- inheriting ---------------------------------------------------------------------------- */

CASE(acl, everything_that_is_made_inherits)
{
	int fd;

	need_acls();
	NEED(mkdir("d", 0755));
	OK(set("d", DEFAULT, NAMED));
	umask(077);
	close((int)NEED(open("d/f", O_CREAT | O_WRONLY | O_CLOEXEC, 0666)));
	close((int)NEED(open("d/shut", O_CREAT | O_WRONLY | O_CLOEXEC, 0600)));
	OK(mkdir("d/sub", 0777));
	OK(mkfifo("d/p", 0640));
	OK(symlink("f", "d/l"));
	OK(mkdir("d/sub/sub", 0700));
	LIST_IS("d/f", ACCESS, "u:rw- U:rw- g:r-x m:rw- o:---");
	IS(mode_of("d/f"), 0660);
	LIST_IS("d/shut", ACCESS, "u:rw- U:rw- g:r-x m:--- o:---");
	IS(mode_of("d/shut"), 0600);
	LIST_IS("d/sub", ACCESS, NAMED);
	LIST_IS("d/sub", DEFAULT, NAMED);
	IS(mode_of("d/sub"), 0770);
	LIST_IS("d/p", ACCESS, "u:rw- U:rw- g:r-x m:r-- o:---");
	LIST_IS("d/sub/sub", ACCESS, "u:rwx U:rw- g:r-x m:--- o:---");
	LIST_IS("d/sub/sub", DEFAULT, NAMED);
	IS(mode_of("d/l"), 0777);
	LIST_IS("d", ACCESS, "ENODATA"); /* the directory itself is as it was */
	IS(mode_of("d"), 0755);
	fd = open("d", O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
	if (fd >= 0) {
		IS(fgetxattr(fd, ACCESS, NULL, 0), 44);
		IS(stat_fd(fd).st_mode & 07777, 0660);
		close(fd);
	}
}

CASE(acl, a_default_list_that_is_a_mode_stands_in_the_place_of_the_umask)
{
	need_acls();
	NEED(mkdir("d", 0755));
	OK(set("d", DEFAULT, "u:rwx g:rwx o:r--"));
	umask(077);
	close((int)NEED(open("d/f", O_CREAT | O_WRONLY | O_CLOEXEC, 0666)));
	NEED(mkdir("d/sub", 0777));
	IS(mode_of("d/f"), 0664);
	LIST_IS("d/f", ACCESS, "ENODATA");
	IS(mode_of("d/sub"), 0774);
	LIST_IS("d/sub", ACCESS, "ENODATA");
	LIST_IS("d/sub", DEFAULT, "u:rwx g:rwx o:r--");
	OK(removexattr("d", DEFAULT));
	close((int)NEED(open("d/g", O_CREAT | O_WRONLY | O_CLOEXEC, 0666)));
	IS(mode_of("d/g"), 0600);
}

CASE(acl, a_set_gid_directory_gives_group_and_list)
{
	need_acls();
	need_root();
	NEED(mkdir("d", 0755));
	NEED(chown("d", 0, OTHER2));
	NEED(chmod("d", 02755));
	OK(set("d", DEFAULT, NAMED));
	NEED(mkdir("d/sub", 0777));
	make_file("d/f", "");
	IS(mode_of("d/sub"), 02770);
	IS(stat_of("d/sub").st_gid, OTHER2);
	IS(mode_of("d/f"), 0640);
	IS(stat_of("d/f").st_gid, OTHER2);
	LIST_IS("d/f", ACCESS, "u:rw- U:rw- g:r-x m:r-- o:---");
}

CASE(acl, what_moves_keeps_its_list_and_inherits_nothing)
{
	need_acls();
	NEED(mkdir("d", 0755));
	OK(set("d", DEFAULT, NAMED));
	make_file("plain", "");
	make_file("listed", "");
	OK(set("listed", ACCESS, "u:rw- U:rwx g:r-- m:rwx o:---"));
	OK(rename("plain", "d/plain"));
	OK(rename("listed", "d/listed"));
	OK(link("d/listed", "other"));
	OK(unlink("d/listed"));
	LIST_IS("d/plain", ACCESS, "ENODATA");
	IS(mode_of("d/plain"), 0644);
	LIST_IS("other", ACCESS, "u:rw- U:rwx g:r-- m:rwx o:---");
	OK(rename("d", "e"));
	LIST_IS("e", DEFAULT, NAMED);
	make_file("e/new", "");
	LIST_IS("e/new", ACCESS, "u:rw- U:rw- g:r-x m:r-- o:---");
}

CASE(acl, lists_are_listed)
{
	char names[256];
	ssize_t n;
	int found = 0;

	need_acls();
	NEED(mkdir("d", 0755));
	OK(set("d", ACCESS, NAMED));
	OK(set("d", DEFAULT, NAMED));
	n = NEED(listxattr("d", names, sizeof(names)));
	for (char *p = names; p < names + n; p += strlen(p) + 1)
		found += strcmp(p, ACCESS) == 0 || strcmp(p, DEFAULT) == 0;
	IS(found, 2);
}
