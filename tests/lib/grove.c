#include "tests/lib/grove.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/path.h"
#include "snapshot/apply/journal.h"
#include "snapshot/capture/capture.h"

#define PATH_SIZE 512

struct grove grove_new(const char *name)
{
	char store_name[64];
	struct grove g = { .path = test_path(name) };

	snprintf(store_name, sizeof(store_name), "%s.store", name);
	g.store_path = test_path(store_name);
	CHECK_EQ(mkdir(g.path, 0755), 0);
	g.fd = open(g.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(g.fd >= 0);
	g.s = stock_open(g.store_path, STORE_CREATE);
	return g;
}

void grove_done(struct grove *g)
{
	cleanup_close(&g->fd);
	store_close(g->s);
}

/* --- changing it ------------------------------------------------------------------------ */

static const char *full(const struct grove *g, const char *path, char out[PATH_SIZE])
{
	CHECK(snprintf(out, PATH_SIZE, "%s/%s", g->path, path) < PATH_SIZE);
	return out;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static bool shut; /* a directory was, and has not been entered */

static int open_up(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)at;
	shut |= type == FTW_DNR;
	return type == FTW_D || type == FTW_DNR ? chmod(path, 0700) : 0;
}

static void remove_all(const struct grove *g, const char *path)
{
	char name[PATH_SIZE];

	full(g, path, name);
	do {
		shut = false;
		if (geteuid() != 0)
			nftw(name, open_up, 16, FTW_PHYS);
	} while (shut);
	nftw(name, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void grove_clear(struct grove *g)
{
	DIR *dir = fdopendir(openat(g->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct dirent *e;

	CHECK(dir != NULL);
	while ((e = readdir(dir)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			remove_all(g, e->d_name);
	closedir(dir);
}

void grove_text(struct grove *g, const char *path, const char *text)
{
	AUTO_CLOSE int fd = openat(g->fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	CHECK(fd >= 0);
	CHECK_EQ(fdio_write(fd, text, strlen(text)), 0);
}

bool grove_has(struct grove *g, const char *path)
{
	struct stat st;

	return fstatat(g->fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

char *grove_read(struct grove *g, const char *path)
{
	struct buf b = BUF_INIT;
	struct err err = { 0 };
	int r = fdio_read_file(g->fd, path, (size_t)1 << 24, &b, &err);

	if (r == -ENOENT)
		return NULL;
	CHECK_OK(r, &err);
	CHECK(buf_str(&b) != NULL);
	return (char *)b.data;
}

/* Two to eight blocks of which some are holes, and a tail. */
static void write_sparse(struct grove *g, const char *path, struct test_rng *rng)
{
	AUTO_CLOSE int fd = openat(g->fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	char text[64];

	CHECK(fd >= 0);
	for (unsigned i = 0; i < 2 + test_rand(rng) % 7; i++) {
		if (test_rand(rng) % 2)
			continue;
		snprintf(text, sizeof(text), "block %llu", (unsigned long long)test_rand(rng));
		CHECK_EQ(fdio_pwrite(fd, text, strlen(text), (off_t)i * 65536), 0);
	}
	CHECK_EQ(ftruncate(fd, (off_t)(test_rand(rng) % 600000)), 0);
}

/* One to three names of four letters each. */
static void random_path(struct test_rng *rng, char path[PATH_SIZE])
{
	const unsigned depth = 1 + test_rand(rng) % 3;
	size_t n = 0;

	for (unsigned i = 0; i < depth; i++)
		n += (size_t)snprintf(path + n, PATH_SIZE - n, "%s%c%s", i ? "/" : "",
				      (char)('a' + test_rand(rng) % 5),
				      test_rand(rng) % 8 == 0 ? ".x\377" : "");
}

static void make_parents(struct grove *g, const char *path)
{
	char up[PATH_SIZE];
	struct stat st;

	for (const char *p = path; (p = strchr(p, '/')); p++) {
		snprintf(up, sizeof(up), "%.*s", (int)(p - path), path);
		if (fstatat(g->fd, up, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
			continue;
		remove_all(g, up);
		CHECK_EQ(mkdirat(g->fd, up, 0755), 0);
	}
}

static void make_something(struct grove *g, const char *path, struct test_rng *rng)
{
	char text[64], other[PATH_SIZE];
	struct stat st;

	snprintf(text, sizeof(text), "number %llu", (unsigned long long)test_rand(rng) % 1000);
	switch (test_rand(rng) % 9) {
	case 0:
	case 1:
	case 2:
		grove_text(g, path, text);
		break;
	case 3:
		CHECK_EQ(mkdirat(g->fd, path, 0755), 0);
		break;
	case 4:
		CHECK_EQ(symlinkat(text, g->fd, path), 0);
		break;
	case 5:
		CHECK_EQ(mkfifoat(g->fd, path, 0640), 0);
		break;
	case 6:
		write_sparse(g, path, rng);
		break;
	case 7:
		CHECK_EQ(mknodat(g->fd, path, S_IFSOCK | 0600, 0), 0);
		break;
	default:
		random_path(rng, other);
		if (fstatat(g->fd, other, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode))
			CHECK_EQ(linkat(g->fd, other, g->fd, path, 0), 0);
		else
			grove_text(g, path, "no link");
	}
}

static void change_attribute(struct grove *g, const char *path, const struct stat *st,
			     struct test_rng *rng)
{
	const struct timespec ts[2] = {
		{ .tv_nsec = UTIME_OMIT },
		{ .tv_sec = (time_t)(1000000000 + test_rand(rng) % 1000),
		  .tv_nsec = (long)(test_rand(rng) % 1000000000) },
	};
	char name[PATH_SIZE], value[32];

	snprintf(value, sizeof(value), "%llu", (unsigned long long)test_rand(rng) % 10);
	switch (test_rand(rng) % 5) {
	case 0:
		/* Without root it goes on only where the mode allows. */
		if (!S_ISLNK(st->st_mode))
			CHECK_EQ(fchmodat(g->fd, path,
					  (0400 + test_rand(rng) % 0400) |
					      (geteuid() == 0         ? 0
					       : S_ISDIR(st->st_mode) ? 0700
								      : 0600),
					  0),
				 0);
		break;
	case 1:
		CHECK_EQ(utimensat(g->fd, path, ts, AT_SYMLINK_NOFOLLOW), 0);
		break;
	case 2:
		if (S_ISREG(st->st_mode) || S_ISDIR(st->st_mode))
			IGNORE_RESULT(
			    setxattr(full(g, path, name), "user.grove", value, strlen(value), 0),
			    "not every file system has them");
		break;
	case 3:
		if (geteuid() == 0)
			CHECK_EQ(fchownat(g->fd, path, (uid_t)(test_rand(rng) % 5),
					  (gid_t)(test_rand(rng) % 5), AT_SYMLINK_NOFOLLOW),
				 0);
		break;
	default:
		if (S_ISREG(st->st_mode))
			grove_text(g, path, value);
	}
}

void grove_change(struct grove *g, struct test_rng *rng)
{
	char path[PATH_SIZE];
	struct stat st;
	bool there;

	random_path(rng, path);
	there = fstatat(g->fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (there && test_rand(rng) % 3 != 0) {
		change_attribute(g, path, &st, rng);
		return;
	}
	if (there)
		remove_all(g, path);
	if (there && test_rand(rng) % 2)
		return;
	make_parents(g, path);
	make_something(g, path, rng);
}

static void set_time(struct grove *g, const char *path, time_t s)
{
	const struct timespec ts[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = s, .tv_nsec = 7 } };

	CHECK_EQ(utimensat(g->fd, path, ts, AT_SYMLINK_NOFOLLOW), 0);
}

void grove_plant(struct grove *g, bool other)
{
	struct test_rng rng = { .s = other ? 2 : 1 };
	char name[PATH_SIZE];

	grove_clear(g);
	for (const char *const *d =
		 (const char *const[]){ "dir", "dir/sub", "locked", "same", NULL };
	     *d; d++)
		CHECK_EQ(mkdirat(g->fd, *d, 0755), 0);
	grove_text(g, "same/file", "never changes");
	grove_text(g, "file", other ? "two" : "one");
	grove_text(g, "mode", "m");
	CHECK_EQ(fchmodat(g->fd, "mode", other ? 0600 : 0755, 0), 0);
	grove_text(g, "time", "t");
	IGNORE_RESULT(setxattr(full(g, "mode", name), "user.note", other ? "b" : "a", 1, 0),
		      "not every file system has them");
	CHECK_EQ(symlinkat(other ? "there" : "here", g->fd, "sym"), 0);
	write_sparse(g, "sparse", &rng);
	grove_text(g, "locked/file", other ? "2" : "1");
	grove_text(g, "dir/sub/deep", other ? "deeper" : "deep");
	grove_text(g, "link1", other ? "linked, too" : "linked");
	CHECK_EQ(linkat(g->fd, "link1", g->fd, "dir/link2", 0), 0);
	grove_text(g, "pair1", "pair");
	CHECK_EQ(linkat(g->fd, "pair1", g->fd, "pair2", 0), 0);
	if (other) {
		CHECK_EQ(linkat(g->fd, "pair1", g->fd, "pair3", 0), 0);
		CHECK_EQ(mkdirat(g->fd, "new", 0750), 0);
		grove_text(g, "new/file", "new");
		CHECK_EQ(mkfifoat(g->fd, "new/fifo", 0600), 0);
		CHECK_EQ(mkdirat(g->fd, "turns", 0755), 0);
		grove_text(g, "turns/inside", "i");
		grove_text(g, "turned", "a file");
	} else {
		CHECK_EQ(mkdirat(g->fd, "old", 0700), 0);
		CHECK_EQ(mkdirat(g->fd, "old/empty", 0711), 0);
		grove_text(g, "old/file", "old");
		grove_text(g, "turns", "a file");
		CHECK_EQ(mkdirat(g->fd, "turned", 0755), 0);
		grove_text(g, "turned/inside", "i");
	}
	set_time(g, "time", other ? 2000 : 1000);
	set_time(g, "dir", other ? 2001 : 1001);
	CHECK_EQ(fchmodat(g->fd, "locked", 0555, 0), 0);
	set_time(g, "locked", 1500);
	CHECK_EQ(fchmodat(g->fd, "dir/sub", other ? 0700 : 0755, 0), 0);
	set_time(g, ".", other ? 2002 : 1002);
}

/* --- comparing -------------------------------------------------------------------------- */

struct object_id grove_capture(struct grove *g)
{
	static const struct capture_options none;
	CLEANUP(batch_end_p) struct batch *b = stock_begin(g->s);
	CLEANUP(captured_done) struct captured c = { 0 };
	struct err err = { 0 };
	struct timespec now;
	static unsigned n;
	char name[32];

	clock_gettime(CLOCK_REALTIME, &now);
	g->as_of = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
	CHECK_OK(capture_directory(b, g->path, &none, &c, &err), &err);
	snprintf(name, sizeof(name), "capture-%u", n++ % 4);
	stock_name(b, REF_SNAPSHOT, name, &c.root, REF_REPLACE);
	CHECK_OK(batch_commit(b, BATCH_SAFE, &err), &err);
	return c.root;
}

struct plan grove_plan(struct grove *g, const struct object_id *now, const struct object_id *wanted)
{
	const struct plan_options options = { .as_of = g->as_of };
	struct err err = { 0 };
	struct plan p = { 0 };

	CHECK_OK(plan_make(g->s, now, wanted, &options, &p, &err), &err);
	return p;
}

static void show(const struct plan_step *s)
{
	printf("# '%s': act %d, what %u\n", s->path, (int)s->act, s->what);
}

bool grove_is(struct grove *g, const struct object_id *root)
{
	const struct object_id now = grove_capture(g);
	CLEANUP(plan_done) struct plan p = grove_plan(g, &now, root);

	return plan_is_empty(&p);
}

void grove_explain(struct grove *g, const struct object_id *root)
{
	const struct object_id now = grove_capture(g);
	CLEANUP(plan_done) struct plan p = grove_plan(g, &now, root);

	for (size_t i = 0; i < p.n_dirs; i++)
		if (p.dirs[i].act != PLAN_TOUCH || p.dirs[i].what != 0)
			show(&p.dirs[i]);
	for (size_t i = 0; i < p.n_files; i++)
		show(&p.files[i]);
}

static bool has_stage(struct grove *g)
{
	DIR *dir = fdopendir(openat(g->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct dirent *e;
	bool found = false;

	CHECK(dir != NULL);
	while ((e = readdir(dir)))
		found |= strncmp(e->d_name, STAGE_NAME_PREFIX, strlen(STAGE_NAME_PREFIX)) == 0;
	closedir(dir);
	return found;
}

static int count(struct journal *j, void *ctx, struct err *err)
{
	(void)j;
	(void)err;
	*(int *)ctx += 1;
	return 0;
}

bool grove_is_tidy(struct grove *g)
{
	struct err err = { 0 };
	int n = 0;

	CHECK_OK(journal_each(g->s, NULL, count, &n, &err), &err);
	return n == 0 && !has_stage(g);
}
