/*
 * One attribute asked for alone, as stat(1) does with statx(2), is as fresh as all together.
 */
#include <sys/mman.h>
#include <sys/xattr.h>

#include "tests/posix/posix.h"

struct field {
	unsigned mask;
	const char *name;
};

static const struct field fields[] = {
	{ STATX_MODE, "mode" }, { STATX_NLINK, "links" },   { STATX_UID, "uid" },
	{ STATX_GID, "gid" },   { STATX_MTIME, "mtime" },   { STATX_CTIME, "ctime" },
	{ STATX_SIZE, "size" }, { STATX_BLOCKS, "blocks" }, { STATX_INO, "inode" },
	{ STATX_TYPE, "type" },
};

static int64_t value_of(const struct statx *x, unsigned mask)
{
	switch (mask) {
	case STATX_MODE:
		return x->stx_mode & 07777;
	case STATX_NLINK:
		return x->stx_nlink;
	case STATX_UID:
		return x->stx_uid;
	case STATX_GID:
		return x->stx_gid;
	case STATX_MTIME:
		return x->stx_mtime.tv_sec * 1000000000 + x->stx_mtime.tv_nsec;
	case STATX_CTIME:
		return x->stx_ctime.tv_sec * 1000000000 + x->stx_ctime.tv_nsec;
	case STATX_SIZE:
		return (int64_t)x->stx_size;
	case STATX_BLOCKS:
		return (int64_t)x->stx_blocks;
	case STATX_INO:
		return (int64_t)x->stx_ino;
	default:
		return x->stx_mode & S_IFMT;
	}
}

/* One field, asked for alone after the operation; then all, fresh. */
static void compare(const char *what, const char *path, const struct field *f)
{
	struct statx one, all;

	NEED(statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, f->mask, &one));
	NEED(statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS,
		   &all));
	trying("%s", what);
	SAY_IF(value_of(&one, f->mask) != value_of(&all, f->mask),
	       "the %s of '%s' was reported as %jd, and is %jd", f->name, path,
	       (intmax_t)value_of(&one, f->mask), (intmax_t)value_of(&all, f->mask));
}

/* --- operations on "f", in "d", of which "other" is a second name -------------------------------- */

static void do_write(void *arg)
{
	int fd = (int)NEED(open("d/f", O_WRONLY | O_CLOEXEC));

	write_pattern(fd, 50000, 30000, 1);
	close(fd);
}

static void do_append(void *arg)
{
	int fd = (int)NEED(open("d/f", O_WRONLY | O_APPEND | O_CLOEXEC));

	OK(write(fd, "more", 4));
	close(fd);
}

static void do_truncate(void *arg)
{
	OK(truncate("d/f", 12));
}

static void do_open_trunc(void *arg)
{
	close((int)NEED(open("d/f", O_WRONLY | O_TRUNC | O_CLOEXEC)));
}

static void do_allocate(void *arg)
{
	int fd = (int)NEED(open("d/f", O_WRONLY | O_CLOEXEC));

	OK(fallocate(fd, 0, 0, 300000));
	close(fd);
}

static void do_punch(void *arg)
{
	int fd = (int)NEED(open("d/f", O_WRONLY | O_CLOEXEC));

	OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 65536));
	close(fd);
}

static void do_copy(void *arg)
{
	int from = (int)NEED(open("source", O_RDONLY | O_CLOEXEC));
	int to = (int)NEED(open("d/f", O_WRONLY | O_CLOEXEC));

	OK(copy_file_range(from, NULL, to, NULL, 1000, 0));
	close(from);
	close(to);
}

static void do_map(void *arg)
{
	int fd = (int)NEED(open("d/f", O_RDWR | O_CLOEXEC));
	char *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	NEED(map == MAP_FAILED ? -1 : 0);
	map[0] = 'x';
	OK(msync(map, 4096, MS_SYNC));
	munmap(map, 4096);
	close(fd);
}

static void do_link(void *arg)
{
	OK(link("other", "d/second"));
}

static void do_unlink(void *arg)
{
	OK(unlink("other"));
}

static void do_rename_over(void *arg)
{
	OK(rename("source", "other"));
}

static void do_rename(void *arg)
{
	OK(rename("source", "d/moved"));
}

static void do_exchange(void *arg)
{
	OK(renameat2(AT_FDCWD, "e", AT_FDCWD, "d/sub", RENAME_EXCHANGE));
}

static void do_chmod(void *arg)
{
	OK(chmod("other", 0600));
}

static void do_utimens(void *arg)
{
	OK(utimensat(AT_FDCWD, "other", (struct timespec[]){ { 5, 6 }, { 7, 8 } }, 0));
}

static void do_setxattr(void *arg)
{
	if (setxattr("other", "user.a", "v", 1, 0) != 0)
		IS(errno, EOPNOTSUPP);
}

static void do_mkdir(void *arg)
{
	OK(mkdir("d/new", 0755));
}

static void do_rmdir(void *arg)
{
	OK(rmdir("d/sub"));
}

static void do_create(void *arg)
{
	close(open_new("d/created"));
}

static void do_symlink(void *arg)
{
	OK(symlink("x", "d/link"));
}

static const struct step {
	const char *name;
	void (*fn)(void *arg);
	bool writes; /* bytes, which takes set-id bits away */
} steps[] = {
	{ "write", do_write, true },
	{ "append", do_append, true },
	{ "truncate", do_truncate, true },
	{ "O_TRUNC", do_open_trunc, true },
	{ "fallocate", do_allocate, true },
	{ "punching", do_punch, true },
	{ "copy_file_range", do_copy, true },
	{ "a mapping", do_map, false },
	{ "link", do_link, false },
	{ "unlink", do_unlink, false },
	{ "rename over", do_rename_over, false },
	{ "rename", do_rename, false },
	{ "exchange", do_exchange, false },
	{ "chmod", do_chmod, false },
	{ "utimensat", do_utimens, false },
	{ "setxattr", do_setxattr, false },
	{ "mkdir", do_mkdir, false },
	{ "rmdir", do_rmdir, false },
	{ "create", do_create, false },
	{ "symlink", do_symlink, false },
};

static const char *const looked_at[] = { "d/f", "other", "d", "d/sub", "e", "." };

static void set_stage(mode_t mode)
{
	struct stat st;
	size_t i;
	int fd;

	remove_all("stage");
	NEED(mkdir("stage", 0755));
	NEED(chdir("stage"));
	NEED(chmod(".", 0777));
	NEED(mkdir("d", 0755));
	NEED(mkdir("e", 0755));
	NEED(mkdir("d/sub", 0755));
	make_file("source", "0123456789");
	fd = open_new("d/f");
	write_pattern(fd, 0, 200000, 1);
	close(fd);
	NEED(chmod("d/f", mode));
	NEED(link("d/f", "other"));
	for (i = 0; i < ARRAY_LEN(looked_at); i++)
		NEED(lstat(looked_at[i], &st)); /* now they are cached */
	tick();
}

CASE(fields, each_is_fresh_after_every_operation)
{
	size_t s, f, p;

	for (s = 0; s < ARRAY_LEN(steps); s++)
		for (f = 0; f < ARRAY_LEN(fields); f++) {
			set_stage(0644);
			steps[s].fn(NULL);
			for (p = 0; p < ARRAY_LEN(looked_at); p++)
				if (access(looked_at[p], F_OK) == 0)
					compare(steps[s].name, looked_at[p], &fields[f]);
			NEED(chdir(".."));
		}
}

CASE(fields, the_mode_is_fresh_after_a_write_took_its_set_id_bits)
{
	size_t s;

	need_other_user();
	for (s = 0; s < ARRAY_LEN(steps); s++) {
		if (!steps[s].writes)
			continue;
		set_stage(06777);
		as_user(OTHER, OTHER, steps[s].fn, NULL);
		compare(steps[s].name, "other", &fields[0]);
		NEED(chdir(".."));
	}
}
