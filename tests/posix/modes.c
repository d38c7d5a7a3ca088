/*
 * Modes and owners: who may, what is inherited, what is stripped.
 */
#include <grp.h>

#include "tests/posix/posix.h"

static int mode_of(const char *path)
{
	return (int)stat_of(path).st_mode & 07777;
}

CASE(modes, the_umask_is_applied)
{
	static const int masks[] = { 0, 022, 027, 077, 0777 };
	size_t i;

	for (i = 0; i < ARRAY_LEN(masks); i++) {
		trying("umask %o", masks[i]);
		umask((mode_t)masks[i]);
		close((int)NEED(open("f", O_WRONLY | O_CREAT | O_CLOEXEC, 0777)));
		IS(mode_of("f"), 0777 & ~masks[i]);
		NEED(mkdir("d", 0777));
		IS(mode_of("d") & 0777, 0777 & ~masks[i]);
		NEED(mkfifo("p", 0666));
		IS(mode_of("p"), 0666 & ~masks[i]);
		OK(unlink("f"));
		OK(unlink("p"));
		OK(rmdir("d"));
	}
	umask(0);
	close((int)NEED(open("f", O_WRONLY | O_CREAT | O_CLOEXEC, 04755)));
	IS(mode_of("f"), 04755);
	NEED(mkdir("d", 01777));
	IS(mode_of("d") & 01777, 01777);
}

CASE(modes, chmod_sets_every_mode)
{
	int fd, m;

	make_file("f", "");
	NEED(mkdir("d", 0755));
	fd = (int)NEED(open("f", O_RDONLY | O_CLOEXEC));
	for (m = 0; m < 010000; m++) {
		if (chmod("f", (mode_t)m) != 0 || mode_of("f") != m) {
			SAY_IF(true, "chmod to %04o made it %04o", m, mode_of("f"));
			break;
		}
	}
	for (m = 0; m < 010000; m += 7) {
		NEED(fchmod(fd, (mode_t)m));
		if (!IS(mode_of("f"), m))
			break;
		NEED(chmod("d", (mode_t)m));
		if (!IS(mode_of("d"), m))
			break;
	}
	NEED(chmod("d", 0755));
	close(fd);
	TRUE(S_ISREG(stat_of("f").st_mode));
	TRUE(S_ISDIR(stat_of("d").st_mode));
}

CASE(modes, the_owner_is_who_made_it)
{
	enum kind k;

	for (k = 0; k < KINDS; k++) {
		char path[32];

		snprintf(path, sizeof(path), "new-%d", (int)k);
		make(k, path);
		IS(stat_of(path).st_uid, geteuid());
		IS(stat_of(path).st_gid, getegid());
	}
}

static void make_as_other(void *arg)
{
	make_file("open/theirs", "");
	NEED(mkdir("open/their-dir", 0755));
	IS(stat_of("open/theirs").st_uid, OTHER);
	IS(stat_of("open/their-dir").st_gid, OTHER);
}

CASE(modes, another_user_owns_what_he_makes)
{
	need_other_user();
	NEED(mkdir("open", 0755));
	NEED(chmod("open", 0777));
	as_user(OTHER, OTHER, make_as_other, NULL);
	IS(stat_of("open/theirs").st_uid, OTHER);
}

CASE(modes, chown_changes_what_it_is_told)
{
	struct stat st;

	need_root();
	make_file("f", "");
	OK(chown("f", OTHER, OTHER2));
	st = stat_of("f");
	IS(st.st_uid, OTHER);
	IS(st.st_gid, OTHER2);
	OK(chown("f", (uid_t)-1, OTHER));
	st = stat_of("f");
	IS(st.st_uid, OTHER);
	IS(st.st_gid, OTHER);
	OK(chown("f", 0, (gid_t)-1));
	st = stat_of("f");
	IS(st.st_uid, 0);
	IS(st.st_gid, OTHER);
	OK(chown("f", 0xfffffffe, 0xfffffffe));
	IS(stat_of("f").st_uid, 0xfffffffe);
}

/* --- set-id bits ------------------------------------------------------------------------- */

CASE(modes, chown_strips_set_id_bits)
{
	need_root();
	make_file("f", "");
	OK(chmod("f", 06755));
	OK(chown("f", OTHER, OTHER));
	IS(mode_of("f"), 0755);
	OK(chmod("f", 06745)); /* without group execution the bit means locking, and stays */
	OK(chown("f", OTHER2, OTHER2));
	IS(mode_of("f"), 02745);
	NEED(mkdir("d", 0755));
	OK(chmod("d", 02755));
	OK(chown("d", OTHER, OTHER));
	IS(mode_of("d"), 02755);
	make(FIFO_, "p");
	make(SOCKET_, "s");
	OK(chmod("p", 06755));
	OK(chmod("s", 06755));
	OK(chown("p", OTHER, OTHER));
	OK(chown("s", OTHER, OTHER));
	IS(mode_of("p"), 0755); /* all but directories */
	IS(mode_of("s"), 0755);
}

static void write_one(void *arg)
{
	int fd = (int)NEED(open(arg, O_WRONLY | O_CLOEXEC));

	IS(write(fd, "x", 1), 1);
	close(fd);
}

static void truncate_one(void *arg)
{
	OK(truncate(arg, 1));
}

static void open_trunc_one(void *arg)
{
	close((int)NEED(open(arg, O_WRONLY | O_TRUNC | O_CLOEXEC)));
}

static void append_one(void *arg)
{
	int fd = (int)NEED(open(arg, O_WRONLY | O_APPEND | O_CLOEXEC));

	IS(write(fd, "x", 1), 1);
	close(fd);
}

static void direct_one(void *arg)
{
	int fd = open(arg, O_WRONLY | O_DIRECT | O_CLOEXEC);
	void *data = NULL;

	if (fd < 0) { /* a file system without it */
		IS(errno, EINVAL);
		write_one(arg);
		return;
	}
	NEED(posix_memalign(&data, 4096, 4096) ? -1 : 0);
	memset(data, 'x', 4096);
	IS(write(fd, data, 4096), 4096);
	free(data);
	close(fd);
}

static void fallocate_by(const char *path, int mode)
{
	int fd = (int)NEED(open(path, O_WRONLY | O_CLOEXEC));

	if (fallocate(fd, mode, 0, 5000) != 0) {
		IS(errno, EOPNOTSUPP);
		IS(write(fd, "x", 1), 1);
	}
	close(fd);
}

static void allocate_one(void *arg)
{
	fallocate_by(arg, 0);
}

static void punch_one(void *arg)
{
	fallocate_by(arg, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE);
}

static void zero_one(void *arg)
{
	fallocate_by(arg, FALLOC_FL_ZERO_RANGE);
}

static void copy_into(void *arg)
{
	int from = (int)NEED(open("source", O_RDONLY | O_CLOEXEC));
	int to = (int)NEED(open(arg, O_WRONLY | O_CLOEXEC));

	IS(copy_file_range(from, NULL, to, NULL, 5, 0), 5);
	close(from);
	close(to);
}

CASE(modes, writing_by_others_strips_set_id_bits)
{
	static const struct {
		const char *name;
		void (*write)(void *arg);
	} ways[] = {
		{ "write", write_one },           { "append", append_one },
		{ "truncate", truncate_one },     { "O_TRUNC", open_trunc_one },
		{ "O_DIRECT", direct_one },       { "fallocate", allocate_one },
		{ "punching", punch_one },        { "zeroing", zero_one },
		{ "copy_file_range", copy_into },
	};
	char f[] = "f";
	size_t i;

	need_other_user();
	make_file("source", "bytes");
	for (i = 0; i < ARRAY_LEN(ways); i++) {
		make_file("f", "content");
		OK(chmod("f", 06777));
		as_user(OTHER, OTHER, ways[i].write, f);
		trying("%s", ways[i].name);
		SAY_IF(mode_of("f") != 0777, "06777 became %04o, want 0777", mode_of("f"));
		OK(chmod("f", 04777));
		as_user(OTHER, OTHER, ways[i].write, f);
		trying("%s", ways[i].name);
		SAY_IF(mode_of("f") != 0777, "04777 became %04o, want 0777", mode_of("f"));
		OK(chmod("f", 06767)); /* nobody of the group may run it, and still */
		as_user(OTHER, OTHER, ways[i].write, f);
		trying("%s", ways[i].name);
		SAY_IF(mode_of("f") != 0767, "06767 became %04o, want 0767", mode_of("f"));
	}
	trying("%s", "");
	OK(chmod("f", 06777));
	write_one(f); /* root may */
	IS(mode_of("f"), 06777);
}

CASE(modes, writing_by_an_ordinary_owner_strips_set_id_bits)
{
	char f[] = "f";

	if (geteuid() == 0) {
		need_other_user();
		make_file("f", "content");
		NEED(chown("f", OTHER, OTHER));
		NEED(chmod("f", 06755));
		as_user(OTHER, OTHER, write_one, f);
	} else {
		make_file("f", "content");
		NEED(chmod("f", 06755));
		IS(mode_of("f"), 06755);
		write_one(f);
	}
	IS(mode_of("f"), 0755);
}

static void chmod_setgid(void *arg)
{
	OK(chmod("f", 02755));
}

CASE(modes, a_group_one_is_not_in_cannot_be_set_id)
{
	need_other_user();
	make_file("f", "");
	NEED(chown("f", OTHER, OTHER2));
	as_user(OTHER, OTHER, chmod_setgid, NULL);
	IS(mode_of("f"), 0755);
	as_user(OTHER, OTHER2, chmod_setgid, NULL);
	IS(mode_of("f"), 02755);
}

static void make_in_setgid(void *arg)
{
	umask(0);
	close((int)NEED(open("d/f", O_WRONLY | O_CREAT | O_CLOEXEC, 0755)));
	close((int)NEED(open("d/s", O_WRONLY | O_CREAT | O_CLOEXEC, 02755)));
	NEED(mkdir("d/sub", 0755));
	NEED(symlink("x", "d/link"));
	NEED(mkfifo("d/fifo", 0644));
}

CASE(modes, a_setgid_directory_gives_its_group)
{
	if (geteuid() == 0) {
		need_other_user();
		NEED(mkdir("d", 0755));
		NEED(chown("d", 0, OTHER2));
		NEED(chmod("d", 02777));
		as_user(OTHER, OTHER, make_in_setgid, NULL);
		IS(stat_of("d/f").st_gid, OTHER2);
		IS(stat_of("d/sub").st_gid, OTHER2);
		IS(stat_of("d/link").st_gid, OTHER2);
		IS(stat_of("d/fifo").st_gid, OTHER2);
		IS(mode_of("d/s"), 0755); /* not a member, so no set-id file of that group */
	} else {
		NEED(mkdir("d", 0755));
		NEED(chmod("d", 02777));
		make_in_setgid(NULL);
		IS(mode_of("d/s"), 02755);
	}
	IS(mode_of("d/f"), 0755);
	IS(mode_of("d/sub"), 02755);
}

/* --- permissions -------------------------------------------------------------------------- */

static void denied_everything(void *arg)
{
	struct stat st;

	FAILS(open("shut-file", O_RDONLY | O_CLOEXEC), EACCES);
	FAILS(open("shut-file", O_WRONLY | O_CLOEXEC), EACCES);
	FAILS(truncate("shut-file", 0), EACCES);
	FAILS(access("shut-file", R_OK), EACCES);
	FAILS(stat("shut/f", &st), EACCES);
	FAILS(open("shut/f", O_RDONLY | O_CLOEXEC), EACCES);
	FAILS(open("shut", O_RDONLY | O_DIRECTORY | O_CLOEXEC), EACCES);
	FAILS(chdir("shut"), EACCES);
	FAILS(mkdir("shut/new", 0755), EACCES);
	FAILS(rename("shut/f", "shut/g"), EACCES);
	FAILS(unlink("shut/f"), EACCES);
	FAILS(link("shut/f", "l"), EACCES);
	FAILS(utimensat(AT_FDCWD, "shut/f", NULL, 0), EACCES);
	FAILS(access("shut", X_OK), EACCES);
	OK(access("shut", F_OK));
	OK(stat("shut", &st));
	/* Readable without search: names, but nothing about them; and the other way round. */
	FAILS(stat("list-only/f", &st), EACCES);
	close((int)NEED(open("list-only", O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
	OK(stat("pass-only/f", &st));
	FAILS(open("pass-only", O_RDONLY | O_DIRECTORY | O_CLOEXEC), EACCES);
	FAILS(mkdir("read-only/new", 0755), EACCES);
	FAILS(open("read-only/new", O_WRONLY | O_CREAT | O_CLOEXEC, 0644), EACCES);
	FAILS(symlink("x", "read-only/new"), EACCES);
	FAILS(unlink("read-only/f"), EACCES);
	FAILS(rename("read-only/f", "read-only/g"), EACCES);
	OK(stat("read-only/f", &st));
}

CASE(modes, what_is_shut_stays_shut)
{
	if (geteuid() == 0)
		need_other_user();
	NEED(mkdir("shut", 0755));
	NEED(mkdir("list-only", 0755));
	NEED(mkdir("pass-only", 0755));
	NEED(mkdir("read-only", 0755));
	make_file("shut/f", "");
	make_file("list-only/f", "");
	make_file("pass-only/f", "");
	make_file("read-only/f", "");
	make_file("shut-file", "");
	NEED(chmod("shut-file", 0));
	NEED(chmod("shut", 0));
	NEED(chmod("list-only", 0444));
	NEED(chmod("pass-only", 0111));
	NEED(chmod("read-only", 0555));
	if (geteuid() == 0)
		as_user(OTHER, OTHER, denied_everything, NULL);
	else
		denied_everything(NULL);
	NEED(chmod("shut", 0755));
	NEED(chmod("list-only", 0755));
	NEED(chmod("pass-only", 0755));
	NEED(chmod("read-only", 0755));
}

static void not_the_owner(void *arg)
{
	struct timespec t[2] = { { 1, 1 }, { 1, 1 } };
	struct timespec now_and_omit[2] = { { 0, UTIME_NOW }, { 0, UTIME_OMIT } };

	FAILS(chmod("f", 0777), EPERM);
	FAILS(chown("f", OTHER, (gid_t)-1), EPERM);
	FAILS(chown("f", (uid_t)-1, OTHER), EPERM);
	FAILS(utimensat(AT_FDCWD, "f", t, 0), EPERM);
	FAILS(utimensat(AT_FDCWD, "f", NULL, 0), EACCES);
	FAILS(utimensat(AT_FDCWD, "writable", t, 0), EPERM);
	OK(utimensat(AT_FDCWD, "writable", NULL, 0));
	FAILS(utimensat(AT_FDCWD, "writable", now_and_omit, 0), EPERM);
	FAILS(truncate("f", 0), EACCES);
	FAILS(open("f", O_WRONLY | O_CLOEXEC), EACCES);
	FAILS(open("f", O_RDONLY | O_TRUNC | O_CLOEXEC), EACCES);
	OK(access("f", R_OK));
}

CASE(modes, only_the_owner_changes_attributes)
{
	need_other_user();
	make_file("f", "x");
	make_file("writable", "x");
	NEED(chmod("writable", 0666));
	as_user(OTHER, OTHER, not_the_owner, NULL);
}

static void change_group(void *arg)
{
	OK(chown("f", (uid_t)-1, OTHER));
	OK(chown("f", OTHER, OTHER));
	FAILS(chown("f", (uid_t)-1, OTHER2), EPERM);
	FAILS(chown("f", OTHER2, (gid_t)-1), EPERM);
	FAILS(chown("f", 0, (gid_t)-1), EPERM);
}

CASE(modes, an_owner_gives_a_file_to_his_groups_only)
{
	need_other_user();
	make_file("f", "");
	NEED(chown("f", OTHER, OTHER2));
	as_user(OTHER, OTHER, change_group, NULL);
	IS(stat_of("f").st_gid, OTHER);
}

static void in_sticky(void *arg)
{
	FAILS(unlink("tmp/roots"), EPERM);
	FAILS(rename("tmp/roots", "tmp/mine"), EPERM);
	FAILS(rmdir("tmp/roots-dir"), EPERM);
	make_file("tmp/own", "");
	FAILS(rename("tmp/own", "tmp/roots"), EPERM);
	FAILS(renameat2(AT_FDCWD, "tmp/own", AT_FDCWD, "tmp/roots", RENAME_EXCHANGE), EPERM);
	OK(rename("tmp/own", "tmp/own2"));
	OK(unlink("tmp/own2"));
	OK(unlink("tmp/given"));
	OK(unlink("free/roots"));
}

CASE(modes, a_sticky_directory_protects_what_others_own)
{
	need_other_user();
	NEED(mkdir("tmp", 0755));
	NEED(chmod("tmp", 01777));
	NEED(mkdir("free", 0755));
	NEED(chmod("free", 0777));
	make_file("tmp/roots", "");
	make_file("free/roots", "");
	NEED(mkdir("tmp/roots-dir", 0777));
	make_file("tmp/given", "");
	NEED(chown("tmp/given", OTHER, OTHER));
	as_user(OTHER, OTHER, in_sticky, NULL);
	TRUE(exists("tmp/roots"));
}

static void through_group(void *arg)
{
	NEED(setresgid(OTHER, OTHER, OTHER));
	NEED(setgroups(1, (gid_t[]){ OTHER2 }));
	NEED(setresuid(OTHER, OTHER, OTHER));
	close((int)NEED(open("for-group", O_RDWR | O_CLOEXEC)));
	FAILS(open("for-owner", O_RDONLY | O_CLOEXEC), EACCES);
	FAILS(open("not-for-group", O_RDONLY | O_CLOEXEC), EACCES);
}

CASE(modes, supplementary_groups_count)
{
	need_other_user();
	make_file("for-group", "");
	NEED(chown("for-group", 0, OTHER2));
	NEED(chmod("for-group", 0660));
	make_file("for-owner", "");
	NEED(chmod("for-owner", 0600));
	make_file("not-for-group", "");
	NEED(chown("not-for-group", 0, OTHER2));
	NEED(chmod("not-for-group", 0606)); /* the first class that fits decides */
	gather(start(through_group, NULL));
}

static void keep_using(void *arg)
{
	int fd = (int)NEED(open("f", O_RDWR | O_CLOEXEC));

	NEED(fchmod(fd, 0));
	IS(write(fd, "still", 5), 5);
	IS(pread(fd, (char[5]){ 0 }, 5, 0), 5);
	OK(ftruncate(fd, 2));
	close(fd);
}

CASE(modes, a_descriptor_outlives_its_permission)
{
	make_file("f", "");
	if (geteuid() == 0) {
		need_other_user();
		NEED(chown("f", OTHER, OTHER));
		as_user(OTHER, OTHER, keep_using, NULL);
	} else {
		keep_using(NULL);
	}
	IS(size_of("f"), 2);
}

static void make_read_only(void *arg)
{
	/* The mode is for later opens; this descriptor may write. */
	int fd = (int)NEED(open("open/ro", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0444));

	IS(write(fd, "x", 1), 1);
	close(fd);
	FAILS(open("open/ro", O_WRONLY | O_CLOEXEC), EACCES);
	fd = (int)NEED(open("open/none", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0));
	IS(write(fd, "x", 1), 1);
	close(fd);
}

CASE(modes, creating_read_only_gives_a_writable_descriptor)
{
	NEED(mkdir("open", 0755));
	NEED(chmod("open", 0777));
	if (geteuid() == 0) {
		need_other_user();
		as_user(OTHER, OTHER, make_read_only, NULL);
	} else {
		make_read_only(NULL);
	}
	IS(size_of("open/ro"), 1);
}
