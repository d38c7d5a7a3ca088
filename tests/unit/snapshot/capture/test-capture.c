#include "snapshot/capture/capture.h"

#include <dirent.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "base/sys.h"
#include "cowfs/store/xattrs.h"
#include "tests/unit/snapshot/capture/capture-fixture.h"

/* --- what was captured is what is on disk ----------------------------------------------- */

/* A path that leads to the name in an open directory. */
static const char *proc_path(int dirfd, const char *name, char path[512])
{
	snprintf(path, 512, "/proc/self/fd/%d/%s", dirfd, name);
	return path;
}

static void check_xattrs(struct scene *sc, const struct tree_entry *e, int dirfd, const char *name)
{
	CLEANUP(buf_done) struct buf set = BUF_INIT;
	char path[512], names[4096], value[4096];
	struct err err = { 0 };
	ssize_t len, listed = 0;
	struct xattr x;
	size_t pos = 0;

	proc_path(dirfd, name, path);
	CHECK_OK(xattrs_get(sc->s, &e->xattrs, &set, &err), &err);
	while (xattrs_next(&set, &pos, &x)) {
		char attribute[XATTR_NAME_LEN_MAX + 1] = { 0 };

		memcpy(attribute, x.name, x.name_len);
		len = lgetxattr(path, attribute, value, sizeof(value));
		CHECK(len >= 0);
		CHECK_MEM(x.value, x.value_len, value, (size_t)len);
		listed += (ssize_t)x.name_len + 1;
	}
	len = llistxattr(path, names, sizeof(names));
	CHECK_EQ(len < 0 ? 0 : len, listed);
}

static void check_attributes(const struct tree_entry *e, const struct stat *st)
{
	CHECK_EQ(e->mode, st->st_mode);
	CHECK_EQ(e->uid, st->st_uid);
	CHECK_EQ(e->gid, st->st_gid);
	CHECK_EQ(e->ino, st->st_ino);
	CHECK_EQ(e->mtime_s, SYS_ST_MTIM(st).tv_sec);
	CHECK_EQ(e->mtime_ns, SYS_ST_MTIM(st).tv_nsec);
	CHECK_EQ(e->ctime_s, SYS_ST_CTIM(st).tv_sec);
	CHECK_EQ(e->ctime_ns, SYS_ST_CTIM(st).tv_nsec);
	CHECK_EQ(e->rdev, S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode) ? st->st_rdev : 0);
}

static void check_content(struct scene *sc, const struct tree_entry *e, int dirfd, const char *name)
{
	CLEANUP(buf_done) struct buf have = scene_read(sc, e);
	CLEANUP(buf_done) struct buf want = BUF_INIT;
	struct err err = { 0 };

	CHECK_OK(fdio_read_file(dirfd, name, SIZE_MAX / 2, &want, &err), &err);
	CHECK_MEM(have.data, have.len, want.data, want.len);
}

static void check_target(const struct tree_entry *e, int dirfd, const char *name)
{
	char target[TREE_TARGET_LEN_MAX + 1];
	ssize_t len = readlinkat(dirfd, name, target, sizeof(target));

	CHECK(len > 0);
	CHECK_MEM(e->target, e->target_len, target, (size_t)len);
}

static size_t count_names(int dirfd)
{
	DIR *stream = fdopendir(openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	size_t n = 0;

	CHECK(stream != NULL);
	while (readdir(stream))
		n++;
	closedir(stream);
	return n - 2;
}

/* The depth is that of what the tests make. */
static void check_tree(struct scene *sc, const struct object_id *tree, int dirfd)
{
	CLEANUP(tree_iter_free_p) struct tree_iter *it = NULL;
	struct err err = { 0 };
	struct tree_entry named;
	size_t n = 0;
	int r;

	CHECK_OK(tree_iter_new(sc->s, tree, &it, &err), &err);
	for (; (r = tree_iter_next(it, &named, &err)) == 1; n++) {
		CLEANUP(buf_done) struct buf hold = BUF_INIT;
		char name[TREE_NAME_LEN_MAX + 1] = { 0 };
		struct tree_entry e = named;
		struct stat st;

		memcpy(name, named.name, named.name_len);
		CHECK_EQ(fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
		if (named.form == TREE_LINK) {
			CHECK_EQ(named.mode, st.st_mode & S_IFMT);
			CHECK_OK(root_link(sc->s, &sc->root, named.ino, &e, &hold, &err), &err);
		}
		check_attributes(&e, &st);
		check_xattrs(sc, &e, dirfd, name);
		if (S_ISREG(e.mode)) {
			CHECK_EQ(e.size, st.st_size);
			check_content(sc, &e, dirfd, name);
		} else if (S_ISLNK(e.mode)) {
			check_target(&e, dirfd, name);
		} else if (S_ISDIR(e.mode)) {
			AUTO_CLOSE int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);

			check_tree(sc, &e.id, fd);
		}
	}
	CHECK_OK(r, &err);
	CHECK_EQ(n, count_names(dirfd));
}

static void check_all(struct scene *sc)
{
	struct stat st;

	CHECK_EQ(fstat(sc->fd, &st), 0);
	check_attributes(&sc->root.top, &st);
	check_xattrs(sc, &sc->root.top, sc->fd, ".");
	check_tree(sc, &sc->root.top.id, sc->fd);
}

static void fill(struct scene *sc)
{
	static uint8_t big[3 * CHUNK_SIZE_MAX + 5];
	const struct timespec times[2] = { { .tv_sec = 1 },
					   { .tv_sec = -5, .tv_nsec = 999999999 } };
	struct test_rng rng = { 7 };

	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = (uint8_t)test_rand(&rng);
	scene_text(sc, "empty", "");
	scene_text(sc, "text", "some words\n");
	scene_write(sc, "block", big, CHUNK_SIZE_MAX);
	scene_write(sc, "big", big, sizeof(big));
	scene_mkdir(sc, "sub");
	scene_mkdir(sc, "sub/sub");
	scene_mkdir(sc, "sub.x");
	scene_text(sc, "sub/.hidden", "h");
	scene_text(sc, "sub/sub/file", "f");
	CHECK_EQ(symlinkat("../nowhere/\xff", sc->fd, "sub/link"), 0);
	CHECK_EQ(symlinkat("sub", sc->fd, "to-dir"), 0);
	CHECK_EQ(fchmodat(sc->fd, "text", 04751, 0), 0);
	CHECK_EQ(fchmodat(sc->fd, "sub.x", 01700, 0), 0);
	CHECK_EQ(utimensat(sc->fd, "text", times, 0), 0);
	CHECK_EQ(utimensat(sc->fd, "sub/link", times, AT_SYMLINK_NOFOLLOW), 0);
	CHECK_EQ(utimensat(sc->fd, "sub", times, 0), 0);
}

TEST(everything_in_a_directory_comes_back_as_it_is_on_disk)
{
	CLEANUP(scene_done) struct scene sc = scene_new("all");

	fill(&sc);
	scene_capture(&sc);
	check_all(&sc);
	CHECK(object_id_is_zero(&sc.root.links));
	CHECK_EQ(sc.stats.files, 8);
	CHECK_EQ(sc.stats.dirs, 4);
	CHECK_EQ(sc.stats.bytes, 11 + CHUNK_SIZE_MAX + 3 * CHUNK_SIZE_MAX + 5 + 2);
	CHECK_EQ(sc.root.top.below.files, sc.stats.files);
}

TEST(a_directory_that_did_not_change_gives_the_same_root_again)
{
	CLEANUP(scene_done) struct scene sc = scene_new("twice");
	struct object_id first;

	fill(&sc);
	CHECK_EQ(linkat(sc.fd, "text", sc.fd, "sub/hard", 0), 0);
	scene_capture(&sc);
	first = sc.id;
	scene_capture(&sc);
	CHECK(object_id_equal(&first, &sc.id));
	scene_text(&sc, "sub/sub/file", "g");
	scene_capture(&sc);
	CHECK(!object_id_equal(&first, &sc.id));
	check_all(&sc);
}

TEST(an_empty_directory_is_captured_with_its_attributes)
{
	CLEANUP(scene_done) struct scene sc = scene_new("empty");

	CHECK_EQ(fchmod(sc.fd, 01751), 0);
	scene_capture(&sc);
	check_all(&sc);
	CHECK_EQ(sc.root.top.mode, S_IFDIR | 01751);
	CHECK_EQ(sc.stats.files, 0);
	CHECK_EQ(sc.stats.dirs, 1);
}

TEST(names_may_hold_any_byte_and_be_255_bytes_long)
{
	CLEANUP(scene_done) struct scene sc = scene_new("names");
	char name[TREE_NAME_LEN_MAX + 1] = { 0 };

	for (int byte = 1; byte < 256; byte++) {
		if (byte == '/')
			continue;
		snprintf(name, sizeof(name), "%cx", byte);
		scene_text(&sc, name, name);
	}
	memset(name, 'n', TREE_NAME_LEN_MAX);
	scene_text(&sc, name, "long");
	scene_text(&sc, "...", "dots");
	scene_capture(&sc);
	check_all(&sc);
	CHECK_EQ(sc.stats.files, 256);
}

TEST(a_sparse_file_keeps_its_holes)
{
	CLEANUP(scene_done) struct scene sc = scene_new("sparse");
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	AUTO_CLOSE int fd = openat(sc.fd, "f", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	struct tree_entry e;
	struct stat st;

	CHECK_EQ(fdio_pwrite(fd, "middle", 6, (off_t)(20 * CHUNK_SIZE_MAX + 10)), 0);
	CHECK_EQ(ftruncate(fd, (off_t)(50 * CHUNK_SIZE_MAX + 3)), 0);
	CHECK_EQ(fstat(fd, &st), 0);
	if (st.st_blocks * 512 >= st.st_size)
		TEST_SKIP("this file system has no holes");
	scene_text(&sc, "z", "");
	CHECK_EQ(truncate(proc_path(sc.fd, "z", (char[512]){ 0 }), 1000000), 0);
	scene_capture(&sc);
	check_all(&sc);
	e = scene_entry(&sc, "f", &hold);
	CHECK_EQ(e.data, CHUNK_SIZE_MAX);
	e = scene_entry(&sc, "z", &hold);
	CHECK_EQ(e.form, TREE_NONE);
	CHECK_EQ(e.size, 1000000);
}

/* --- hard links ------------------------------------------------------------------------- */

static void is_link(struct scene *sc, const char *path, uint64_t ino, uint32_t names)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct tree_entry e = scene_entry(sc, path, &hold);
	struct err err = { 0 };

	CHECK_EQ(e.form, TREE_LINK);
	CHECK_EQ(e.ino, ino);
	CHECK_OK(root_link(sc->s, &sc->root, ino, &e, &hold, &err), &err);
	CHECK_EQ(e.nlink, names);
}

static uint64_t ino_of(struct scene *sc, const char *path)
{
	struct stat st;

	CHECK_EQ(fstatat(sc->fd, path, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st.st_ino;
}

TEST(files_with_several_names_inside_stand_once_among_the_links)
{
	CLEANUP(scene_done) struct scene sc = scene_new("links");

	scene_mkdir(&sc, "a");
	scene_mkdir(&sc, "a/b");
	scene_mkdir(&sc, "c");
	scene_text(&sc, "a/b/one", "shared");
	CHECK_EQ(linkat(sc.fd, "a/b/one", sc.fd, "a/b/two", 0), 0);
	CHECK_EQ(linkat(sc.fd, "a/b/one", sc.fd, "zzz", 0), 0);
	scene_text(&sc, "a/other", "own");
	CHECK_EQ(linkat(sc.fd, "a/other", sc.fd, "c/other", 0), 0);
	CHECK_EQ(symlinkat("target", sc.fd, "sym"), 0);
	CHECK_EQ(linkat(sc.fd, "sym", sc.fd, "c/sym", 0), 0);
	CHECK_EQ(mkfifoat(sc.fd, "fifo", 0600), 0);
	CHECK_EQ(linkat(sc.fd, "fifo", sc.fd, "c/fifo", 0), 0);
	scene_capture(&sc);

	check_all(&sc);
	is_link(&sc, "a/b/one", ino_of(&sc, "a/b/one"), 3);
	is_link(&sc, "a/b/two", ino_of(&sc, "zzz"), 3);
	is_link(&sc, "zzz", ino_of(&sc, "zzz"), 3);
	is_link(&sc, "c/other", ino_of(&sc, "a/other"), 2);
	is_link(&sc, "c/sym", ino_of(&sc, "sym"), 2);
	is_link(&sc, "c/fifo", ino_of(&sc, "fifo"), 2);
	CHECK_EQ(sc.root.in_links.files, 4);
	CHECK_EQ(sc.stats.files, 9);
	CHECK_EQ(sc.stats.bytes, 6 + 3);
	CHECK(sc.root.top.below.links);
}

static uint32_t links_of(struct scene *sc, const char *path)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;

	return scene_entry(sc, path, &hold).nlink;
}

TEST(a_directory_has_two_links_and_one_for_each_directory_in_it)
{
	CLEANUP(scene_done) struct scene sc = scene_new("dir-links");

	scene_mkdir(&sc, "none");
	scene_mkdir(&sc, "two");
	scene_mkdir(&sc, "two/a");
	scene_mkdir(&sc, "two/a/deeper");
	scene_mkdir(&sc, "two/b");
	scene_text(&sc, "two/c", "text");
	CHECK_EQ(symlinkat("a", sc.fd, "two/d"), 0);
	/* A directory with such a name is put after all others. */
	CHECK_EQ(linkat(sc.fd, "two/c", sc.fd, "two/a/c", 0), 0);
	scene_capture(&sc);
	CHECK_EQ(sc.root.top.nlink, 4);
	CHECK_EQ(links_of(&sc, "none"), 2);
	CHECK_EQ(links_of(&sc, "two"), 4);
	CHECK_EQ(links_of(&sc, "two/a"), 3);
	CHECK_EQ(links_of(&sc, "two/b"), 2);
}

TEST(a_file_whose_other_names_lie_outside_is_an_ordinary_one)
{
	CLEANUP(scene_done) struct scene sc = scene_new("outside");
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct tree_entry e;

	scene_mkdir(&sc, "d");
	scene_text(&sc, "d/f", "text");
	CHECK_EQ(linkat(sc.fd, "d/f", AT_FDCWD, test_path("outside-name"), 0), 0);
	scene_capture(&sc);
	check_all(&sc);
	e = scene_entry(&sc, "d/f", &hold);
	CHECK_EQ(e.form, TREE_CHUNK);
	CHECK_EQ(e.nlink, 0);
	CHECK(object_id_is_zero(&sc.root.links));
	CHECK(!sc.root.top.below.links);
}

/* --- special files and attributes ------------------------------------------------------- */

TEST(fifos_and_sockets_are_captured_without_being_opened)
{
	CLEANUP(scene_done) struct scene sc = scene_new("special");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/sock", sc.fd);
	CHECK_EQ(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	CHECK_EQ(mkfifoat(sc.fd, "fifo", 0640), 0);
	scene_capture(&sc);
	check_all(&sc);
	CHECK_EQ(sc.stats.files, 2);
	CHECK_EQ(sc.stats.bytes, 0);
}

TEST(devices_keep_their_numbers)
{
	CLEANUP(scene_done) struct scene sc = scene_new("devices");
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct tree_entry e;

	if (mknodat(sc.fd, "null", S_IFCHR | 0600, makedev(1, 3)) < 0)
		TEST_SKIP("making device nodes needs privileges");
	CHECK_EQ(mknodat(sc.fd, "disk", S_IFBLK | 0600, makedev(250, 70000)), 0);
	scene_capture(&sc);
	check_all(&sc);
	e = scene_entry(&sc, "disk", &hold);
	CHECK_EQ(e.rdev, makedev(250, 70000));
}

TEST(extended_attributes_of_files_and_directories_are_kept)
{
	CLEANUP(scene_done) struct scene sc = scene_new("xattrs");
	char value[1500], path[512];

	memset(value, 0xa5, sizeof(value));
	fill(&sc);
	if (fsetxattr(sc.fd, "user.top", "t", 1, 0) < 0)
		TEST_SKIP("this file system has no extended attributes");
	proc_path(sc.fd, "text", path);
	CHECK_EQ(lsetxattr(path, "user.long", value, sizeof(value), 0), 0);
	CHECK_EQ(lsetxattr(path, "user.empty", "", 0, 0), 0);
	CHECK_EQ(lsetxattr(path, "user.short", "short", 5, 0), 0);
	CHECK_EQ(lsetxattr(proc_path(sc.fd, "sub/sub", path), "user.dir", "d\0d", 3, 0), 0);
	scene_capture(&sc);
	check_all(&sc);
	CHECK(!object_id_is_zero(&sc.root.top.xattrs));
}

TEST(extended_attributes_of_symlinks_and_special_files_are_kept)
{
	CLEANUP(scene_done) struct scene sc = scene_new("xattrs-special");
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct tree_entry e;
	char path[512];

	CHECK_EQ(symlinkat("nowhere", sc.fd, "link"), 0);
	CHECK_EQ(mkfifoat(sc.fd, "fifo", 0640), 0);
	if (lsetxattr(proc_path(sc.fd, "link", path), "trusted.a", "of link", 7, 0) < 0)
		TEST_SKIP("trusted attributes need privileges and a file system that has them");
	CHECK_EQ(lsetxattr(proc_path(sc.fd, "fifo", path), "trusted.a", "of fifo", 7, 0), 0);
	scene_capture(&sc);
	check_all(&sc);
	e = scene_entry(&sc, "link", &hold);
	CHECK(!object_id_is_zero(&e.xattrs));
}

/* --- shape ------------------------------------------------------------------------------ */

#define LEVELS 1200

/* A chain of directories, each with a file that comes after the one below it. */
static void dig(struct scene *sc)
{
	int fd = fcntl(sc->fd, F_DUPFD_CLOEXEC, 0);

	for (int i = 0; i < LEVELS; i++) {
		int below;

		CHECK_EQ(mkdirat(fd, "down", 0755), 0);
		CHECK_EQ(symlinkat("x", fd, "up"), 0);
		below = openat(fd, "down", O_RDONLY | O_CLOEXEC);
		CHECK(below >= 0);
		close(fd);
		fd = below;
	}
	close(fd);
}

/* What is this deep cannot be removed by its path. */
static void fill_in(struct scene *sc)
{
	while (faccessat(sc->fd, "down/down", F_OK, 0) == 0) {
		CHECK_EQ(renameat(sc->fd, "down/down", sc->fd, "next"), 0);
		CHECK_EQ(unlinkat(sc->fd, "down/up", 0), 0);
		CHECK_EQ(unlinkat(sc->fd, "down", AT_REMOVEDIR), 0);
		CHECK_EQ(renameat(sc->fd, "next", sc->fd, "down"), 0);
	}
}

/* Leave the process room for `more` descriptors beyond those it has. */
static void limit_fds(rlim_t more, struct rlimit *ret_before)
{
	struct rlimit limit;
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	close(fd);
	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
	*ret_before = limit;
	limit.rlim_cur = (rlim_t)fd + more;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

TEST(a_tree_1200_levels_deep_is_captured_with_few_descriptors)
{
	CLEANUP(scene_done) struct scene sc = scene_new("deep");
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct object_id tree;
	struct rlimit limit;
	struct err err = { 0 };
	struct tree_entry e;
	int r;

	dig(&sc);
	limit_fds(60, &limit);
	r = scene_try(&sc, NULL, &err);
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	fill_in(&sc);
	CHECK_OK(r, &err);

	CHECK_EQ(sc.stats.dirs, LEVELS + 1);
	CHECK_EQ(sc.stats.files, LEVELS);
	tree = sc.root.top.id;
	for (int i = 0; i < LEVELS; i++) {
		CHECK_OK(tree_lookup(sc.s, &tree, "up", 2, &e, &hold, &err), &err);
		CHECK_OK(tree_lookup(sc.s, &tree, "down", 4, &e, &hold, &err), &err);
		CHECK_EQ(e.below.files, LEVELS - 1 - i);
		tree = e.id;
	}
}

/* On two fresh file systems of one kind the same numbers are given to the first files. */
static void mount_two(struct scene *sc)
{
	const char *const names[] = { "one", "two" };
	char path[512];

	for (int i = 0; i < 2; i++) {
		scene_mkdir(sc, names[i]);
		CHECK_EQ(mount("none", proc_path(sc->fd, names[i], path), "tmpfs", 0, NULL), 0);
		snprintf(path, sizeof(path), "%s/f", names[i]);
		scene_text(sc, path, names[i]);
	}
	CHECK_EQ(linkat(sc->fd, "one/f", sc->fd, "one/g", 0), 0);
	CHECK_EQ(linkat(sc->fd, "two/f", sc->fd, "two/g", 0), 0);
}

static void capture_two_devices(void)
{
	CLEANUP(scene_done) struct scene sc = scene_new("devs");
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	struct tree_entry one, two;
	struct err err = { 0 };

	mount_two(&sc);
	CHECK_EQ(ino_of(&sc, "one/f"), ino_of(&sc, "two/f"));
	scene_capture(&sc);
	one = scene_entry(&sc, "one/f", &hold);
	two = scene_entry(&sc, "two/f", &hold);
	CHECK_EQ(one.ino, ino_of(&sc, "one/f"));
	CHECK(one.ino != two.ino);
	is_link(&sc, "one/g", one.ino, 2);
	is_link(&sc, "two/g", two.ino, 2);
	CHECK_OK(root_link(sc.s, &sc.root, two.ino, &two, &hold, &err), &err);
	bytes = scene_read(&sc, &two);
	CHECK_MEM(bytes.data, bytes.len, "two", 3);
	one = scene_entry(&sc, "one", &hold);
	two = scene_entry(&sc, "two", &hold);
	CHECK(one.ino != two.ino);
}

TEST(files_of_two_file_systems_with_one_inode_number_are_told_apart)
{
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (pid == 0) {
		if (unshare(CLONE_NEWNS) < 0 ||
		    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
			_exit(77);
		capture_two_devices();
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	if (status == 77 << 8)
		TEST_SKIP("mounting needs privileges");
	CHECK_EQ(status, 0);
}

TEST_MAIN("capture")
