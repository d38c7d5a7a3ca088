#include "snapshot/capture/capture.h"

#include <time.h>

#include "tests/unit/snapshot/capture/capture-fixture.h"

/* What the linker puts in the place of the real ones (--wrap), and what they do then. */
int __real_openat64(int dirfd, const char *path, int flags, ...);
int __wrap_openat64(int dirfd, const char *path, int flags, ...);
ssize_t __real_fdio_pread(int fd, void *data, size_t len, off_t off);
ssize_t __wrap_fdio_pread(int fd, void *data, size_t len, off_t off);
int __real_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t);
ssize_t __real_readlinkat(int dirfd, const char *path, char *target, size_t size);
ssize_t __wrap_readlinkat(int dirfd, const char *path, char *target, size_t size);

static struct hooks {
	struct scene *sc;
	void (*before_open)(struct scene *sc); /* of "x", once */
	void (*before_link)(struct scene *sc); /* before the first symlink is read */
	void (*before_read)(struct scene *sc);
	void (*after_read)(void *data, size_t len);
	unsigned reads;
	time_t clock_ahead;
} hook;

int __wrap_openat64(int dirfd, const char *path, int flags, ...)
{
	void (*play)(struct scene * sc) = hook.before_open;
	mode_t mode = 0;
	va_list ap;

	va_start(ap, flags);
	if (flags & O_CREAT)
		mode = va_arg(ap, mode_t);
	va_end(ap);
	if (play && strcmp(path, "x") == 0) {
		hook.before_open = NULL;
		play(hook.sc);
	}
	return __real_openat64(dirfd, path, flags, mode);
}

ssize_t __wrap_fdio_pread(int fd, void *data, size_t len, off_t off)
{
	ssize_t n;

	hook.reads++;
	if (hook.before_read)
		hook.before_read(hook.sc);
	n = __real_fdio_pread(fd, data, len, off);
	if (hook.after_read && n > 0)
		hook.after_read(data, (size_t)n);
	return n;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
	int rc = __real_clock_gettime(clock, t);

	t->tv_sec += hook.clock_ahead;
	return rc;
}

ssize_t __wrap_readlinkat(int dirfd, const char *path, char *target, size_t size)
{
	void (*play)(struct scene * sc) = hook.before_link;

	hook.before_link = NULL;
	if (play)
		play(hook.sc);
	return __real_readlinkat(dirfd, path, target, size);
}

/* A capture with hooks, by one thread, since they count; none of them is left behind. */
static int try_hooked(struct scene *sc, const struct capture_options *options, struct err *err)
{
	struct capture_options one = { 0 };
	int r;

	if (options)
		one = *options;
	one.threads = 1;
	hook.sc = sc;
	hook.reads = 0;
	r = scene_try(sc, &one, err);
	CHECK(!hook.before_open && !hook.before_link);
	hook = (struct hooks){ .reads = hook.reads };
	return r;
}

static void capture_hooked(struct scene *sc)
{
	struct err err = { 0 };

	CHECK_OK(try_hooked(sc, NULL, &err), &err);
}

/* --- between listing and reading -------------------------------------------------------- */

#define MANY 300

/* Symlinks are read before what is called "x...". */
static void fill(struct scene *sc)
{
	char name[16];

	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "a%d", i);
		CHECK_EQ(symlinkat("x", sc->fd, name), 0);
	}
	scene_text(sc, "x-file", "text");
	scene_mkdir(sc, "x-dir");
	scene_text(sc, "x-dir/f", "text");
	scene_text(sc, "x-stays", "text");
}

static int try_with_trick(struct scene *sc, void (*play)(struct scene *sc), struct err *err)
{
	hook.before_link = play;
	return try_hooked(sc, NULL, err);
}

static void capture_with_trick(struct scene *sc, void (*play)(struct scene *sc))
{
	struct err err = { 0 };

	CHECK_OK(try_with_trick(sc, play, &err), &err);
}

static void remove_both(struct scene *sc)
{
	CHECK_EQ(unlinkat(sc->fd, "x-file", 0), 0);
	CHECK_EQ(unlinkat(sc->fd, "x-dir/f", 0), 0);
	CHECK_EQ(unlinkat(sc->fd, "x-dir", AT_REMOVEDIR), 0);
}

TEST(what_is_gone_before_it_is_read_is_left_out)
{
	CLEANUP(scene_done) struct scene sc = scene_new("gone");

	fill(&sc);
	capture_with_trick(&sc, remove_both);
	CHECK(!scene_has(&sc, "x-file"));
	CHECK(!scene_has(&sc, "x-dir"));
	CHECK(scene_has(&sc, "x-stays"));
	CHECK_EQ(sc.stats.files, MANY + 1);
}

static void exchange(struct scene *sc)
{
	remove_both(sc);
	CHECK_EQ(symlinkat("x-dir", sc->fd, "x-file"), 0);
	CHECK_EQ(symlinkat("/", sc->fd, "x-dir"), 0);
}

TEST(what_became_a_symlink_is_captured_as_one)
{
	CLEANUP(scene_done) struct scene sc = scene_new("exchanged");
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct tree_entry e;

	fill(&sc);
	capture_with_trick(&sc, exchange);
	e = scene_entry(&sc, "x-file", &hold);
	CHECK_MEM(e.target, e.target_len, "x-dir", 5);
	e = scene_entry(&sc, "x-dir", &hold);
	CHECK_MEM(e.target, e.target_len, "/", 1);
}

static void move_away(struct scene *sc)
{
	CHECK_EQ(renameat(sc->fd, "d/d/d", sc->fd, "moved"), 0);
}

static void exchange_dir(struct scene *sc)
{
	move_away(sc);
	scene_mkdir(sc, "d/d/d");
}

/* So many levels below it, a directory has been closed when the walk comes back for its "z". */
static void fails_when_moved(const char *name, void (*play)(struct scene *sc))
{
	CLEANUP(scene_done) struct scene sc = scene_new(name);
	char path[2 * MANY + 4] = "d";
	struct err err = { 0 };

	for (size_t len = 1; len < 2 * MANY; len += 2) {
		scene_mkdir(&sc, path);
		strcpy(path + len, "/z");
		scene_mkdir(&sc, path);
		strcpy(path + len, "/d");
	}
	CHECK_EQ(symlinkat("x", sc.fd, path), 0);
	CHECK_EQ(try_with_trick(&sc, play, &err), -ESTALE);
	CHECK_HAS(err.msg, "/d/d/d': was moved while it was captured");
}

TEST(a_directory_moved_away_while_below_it_was_captured_fails_the_capture)
{
	fails_when_moved("moved", move_away);
	fails_when_moved("replaced", exchange_dir);
}

/* --- between looking and opening -------------------------------------------------------- */

static void put_other(struct scene *sc)
{
	scene_text(sc, "../other", "other");
	CHECK_EQ(renameat(sc->fd, "../other", sc->fd, "x"), 0);
}

TEST(a_file_exchanged_for_another_is_captured_as_what_it_is_now)
{
	CLEANUP(scene_done) struct scene sc = scene_new("other-file");
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	struct tree_entry e;
	struct stat st;

	scene_text(&sc, "x", "text");
	CHECK_EQ(linkat(sc.fd, "x", sc.fd, "y", 0), 0);
	hook.before_open = put_other;
	capture_hooked(&sc);
	e = scene_entry(&sc, "x", &hold);
	CHECK_EQ(fstatat(sc.fd, "x", &st, 0), 0);
	CHECK_EQ(e.ino, st.st_ino);
	bytes = scene_read(&sc, &e);
	CHECK_MEM(bytes.data, bytes.len, "other", 5);
}

static void put_link(struct scene *sc)
{
	CHECK_EQ(unlinkat(sc->fd, "x", 0), 0);
	CHECK_EQ(symlinkat("y", sc->fd, "x"), 0);
}

TEST(a_file_exchanged_for_a_symlink_is_not_followed)
{
	CLEANUP(scene_done) struct scene sc = scene_new("other-link");
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct tree_entry e;

	scene_text(&sc, "x", "text");
	scene_text(&sc, "y", "text");
	hook.before_open = put_link;
	capture_hooked(&sc);
	e = scene_entry(&sc, "x", &hold);
	CHECK_MEM(e.target, e.target_len, "y", 1);
}

static void put_fifo(struct scene *sc)
{
	CHECK_EQ(unlinkat(sc->fd, "x", 0), 0);
	CHECK_EQ(mkfifoat(sc->fd, "x", 0600), 0);
}

TEST(a_file_exchanged_for_a_fifo_is_not_waited_for)
{
	CLEANUP(scene_done) struct scene sc = scene_new("other-fifo");
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct tree_entry e;

	scene_text(&sc, "x", "text");
	hook.before_open = put_fifo;
	alarm(20);
	capture_hooked(&sc);
	alarm(0);
	e = scene_entry(&sc, "x", &hold);
	CHECK(S_ISFIFO(e.mode));
}

static void put_excluded(struct scene *sc)
{
	CHECK_EQ(renameat(sc->fd, "x", sc->fd, "../away"), 0);
	CHECK_EQ(renameat(sc->fd, "store", sc->fd, "x"), 0);
}

TEST(a_directory_exchanged_for_an_excluded_one_is_left_out)
{
	CLEANUP(scene_done) struct scene sc = scene_new("other-dir");
	const char *const exclude[] = { test_path("other-dir/store") };
	const struct capture_options options = { .exclude = exclude, .n_exclude = 1 };
	struct err err = { 0 };

	scene_mkdir(&sc, "x");
	scene_mkdir(&sc, "store");
	hook.before_open = put_excluded;
	CHECK_OK(try_hooked(&sc, &options, &err), &err);
	CHECK(!scene_has(&sc, "x"));
	CHECK_EQ(sc.stats.dirs, 1);
}

/* --- while reading ---------------------------------------------------------------------- */

#define VERSION_SIZE (8 * CHUNK_SIZE_MAX) /* takes more than one read */

static void write_version(struct scene *sc, int byte)
{
	static uint8_t version[VERSION_SIZE];

	memset(version, byte, sizeof(version));
	scene_write(sc, "f", version, sizeof(version));
}

static void holds_version(struct scene *sc, int byte)
{
	static uint8_t version[VERSION_SIZE];
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct tree_entry e = scene_entry(sc, "f", &hold);
	CLEANUP(buf_done) struct buf bytes = scene_read(sc, &e);

	memset(version, byte, sizeof(version));
	CHECK_MEM(bytes.data, bytes.len, version, sizeof(version));
}

static void rewrite_before_second_read(struct scene *sc)
{
	if (hook.reads == 2)
		write_version(sc, 2);
}

TEST(a_file_written_while_it_is_read_is_read_again)
{
	CLEANUP(scene_done) struct scene sc = scene_new("written");

	write_version(&sc, 1);
	scene_settle();
	hook.before_read = rewrite_before_second_read;
	capture_hooked(&sc);
	holds_version(&sc, 2);
}

/* The clock of a file server may be far behind ours: then no file ever looks fresh. */
TEST(a_file_written_while_it_is_read_is_read_again_whatever_the_clock_says)
{
	CLEANUP(scene_done) struct scene sc = scene_new("clock");

	write_version(&sc, 1);
	hook.before_read = rewrite_before_second_read;
	hook.clock_ahead = 3600;
	capture_hooked(&sc);
	holds_version(&sc, 2);
}

/* As if at the second read there was something that was gone when the file was read again. */
static void see_other_bytes(void *data, size_t len)
{
	if (hook.reads == 2)
		memset(data, 9, len);
}

TEST(a_write_within_the_same_tick_of_the_clock_is_noticed)
{
	CLEANUP(scene_done) struct scene sc = scene_new("tick");

	write_version(&sc, 1);
	hook.after_read = see_other_bytes;
	capture_hooked(&sc);
	holds_version(&sc, 1);
}

TEST(a_file_that_was_left_alone_is_read_once)
{
	CLEANUP(scene_done) struct scene sc = scene_new("once");

	write_version(&sc, 1);
	scene_settle();
	capture_hooked(&sc);
	CHECK_EQ(hook.reads, 2);
}

static void rewrite_each_time(struct scene *sc)
{
	scene_text(sc, "f", hook.reads % 2 ? "text" : "TEXT");
}

TEST(a_file_that_never_holds_still_fails_the_capture_with_its_path)
{
	CLEANUP(scene_done) struct scene sc = scene_new("restless");
	struct err err = { 0 };

	scene_text(&sc, "f", "text");
	hook.before_read = rewrite_each_time;
	CHECK_EQ(try_hooked(&sc, NULL, &err), -EBUSY);
	CHECK_HAS(err.msg, "restless/f': changes while it is read");
	CHECK(hook.reads >= 8);
}

/* A log, to which somebody appends whenever it is read. */
static void append(struct scene *sc)
{
	AUTO_CLOSE int fd = openat(sc->fd, "f", O_WRONLY | O_APPEND | O_CLOEXEC);

	CHECK_EQ(fdio_write(fd, "line\n", 5), 0);
}

TEST(a_file_that_only_grows_is_captured_up_to_where_it_ended)
{
	CLEANUP(scene_done) struct scene sc = scene_new("growing");
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct tree_entry e;

	scene_text(&sc, "f", "line\n");
	hook.before_read = append;
	capture_hooked(&sc);
	e = scene_entry(&sc, "f", &hold);
	CLEANUP(buf_done) struct buf bytes = scene_read(&sc, &e);
	CHECK(bytes.len >= 10 && bytes.len % 5 == 0);
	for (size_t i = 0; i < bytes.len; i += 5)
		CHECK_MEM(bytes.data + i, 5, "line\n", 5);
}

static void cut(struct scene *sc)
{
	if (hook.reads == 2)
		scene_text(sc, "f", "cut");
}

TEST(a_file_cut_while_it_is_read_is_captured_as_it_is_then)
{
	CLEANUP(scene_done) struct scene sc = scene_new("cut");
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct tree_entry e;

	write_version(&sc, 1);
	hook.before_read = cut;
	capture_hooked(&sc);
	e = scene_entry(&sc, "f", &hold);
	CHECK_EQ(e.size, 3);
}

TEST_MAIN("capture-race")
