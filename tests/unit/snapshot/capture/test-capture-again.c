/*
 * Captures that use what an earlier one saw: whatever happened in between, the root is the one that
 * a capture without signatures gives, and what did not change is not read.
 */
#include "snapshot/capture/capture.h"

#include <stdatomic.h>
#include <sys/xattr.h>
#include <time.h>

#include "base/sys.h"
#include "tests/unit/snapshot/capture/capture-fixture.h"

/* What the linker objects in the place of the real ones (--wrap). */
ssize_t __real_fdio_pread(int fd, void *data, size_t len, off_t off);
ssize_t __wrap_fdio_pread(int fd, void *data, size_t len, off_t off);
int __real_batch_put(struct batch *b, enum object_kind kind, const void *data, size_t len,
		     struct object_id *ret_id, struct err *err);
int __wrap_batch_put(struct batch *b, enum object_kind kind, const void *data, size_t len,
		     struct object_id *ret_id, struct err *err);
int __real_sys_each_name(int fd, sys_name_fn fn, void *ctx);
int __wrap_sys_each_name(int fd, sys_name_fn fn, void *ctx);

static atomic_uint reads, objects, listings;

int __wrap_sys_each_name(int fd, sys_name_fn fn, void *ctx)
{
	listings++;
	return __real_sys_each_name(fd, fn, ctx);
}

ssize_t __wrap_fdio_pread(int fd, void *data, size_t len, off_t off)
{
	reads++;
	return __real_fdio_pread(fd, data, len, off);
}

int __wrap_batch_put(struct batch *b, enum object_kind kind, const void *data, size_t len,
		     struct object_id *ret_id, struct err *err)
{
	objects++;
	return __real_batch_put(b, kind, data, len, ret_id, err);
}

static struct scene scene_again(const char *name)
{
	struct scene sc = scene_new(name);

	sc.incremental = true;
	return sc;
}

/* Capture with signatures; the same as one without. */
static void capture_both(struct scene *sc)
{
	struct object_id whole;

	scene_capture(sc);
	whole = scene_capture_whole(sc);
	CHECK(object_id_equal(&whole, &sc->id));
}

/* Once with signatures, of what is no longer fresh, and only that counts as listed. */
static void capture_again(struct scene *sc)
{
	struct object_id whole;
	unsigned listed;

	scene_settle();
	listings = 0;
	scene_capture(sc);
	listed = listings;
	whole = scene_capture_whole(sc);
	CHECK(object_id_equal(&whole, &sc->id));
	listings = listed;
}

static void fill(struct scene *sc)
{
	scene_mkdir(sc, "a");
	scene_mkdir(sc, "a/b");
	scene_mkdir(sc, "c");
	scene_mkdir(sc, "empty");
	scene_text(sc, "a/one", "one");
	scene_text(sc, "a/b/two", "two");
	scene_text(sc, "c/three", "three");
	scene_text(sc, "four", "four");
	CHECK_EQ(symlinkat("four", sc->fd, "c/sym"), 0);
	CHECK_EQ(mkfifoat(sc->fd, "a/fifo", 0600), 0);
	CHECK_EQ(linkat(sc->fd, "a/b/two", sc->fd, "c/two", 0), 0);
}

TEST(a_tree_in_which_nothing_changed_is_neither_read_nor_put)
{
	CLEANUP(scene_done) struct scene sc = scene_again("unchanged");
	struct object_id first;

	fill(&sc);
	scene_settle();
	scene_capture(&sc);
	first = sc.id;
	CHECK(sc.known != NULL);
	CHECK_EQ(sc.known->names, 12);
	reads = objects = 0;
	scene_capture(&sc);
	CHECK(object_id_equal(&first, &sc.id));
	CHECK_EQ(reads, 0);
	CHECK_EQ(objects, 0);
	CHECK_EQ(sc.stats.files, 7);
	CHECK_EQ(sc.stats.dirs, 5);
	CHECK_EQ(sc.stats.bytes, 3 + 3 + 5 + 4);
}

TEST(of_a_tree_only_what_changed_is_read_and_only_directories_above_it_are_put)
{
	CLEANUP(scene_done) struct scene sc = scene_again("changed");

	fill(&sc);
	scene_settle();
	scene_capture(&sc);
	scene_text(&sc, "a/one", "ONE");
	scene_settle();
	reads = objects = 0;
	scene_capture(&sc);
	CHECK_EQ(reads, 1);
	/* Its bytes, a, the top, the links, and the root. */
	CHECK_EQ(objects, 5);
	capture_both(&sc);
}

TEST(what_was_fresh_when_it_was_read_is_read_again_once)
{
	CLEANUP(scene_done) struct scene sc = scene_again("fresh");

	fill(&sc);
	scene_capture(&sc);
	scene_settle();
	reads = objects = 0;
	scene_capture(&sc);
	CHECK(reads > 0);
	reads = objects = 0;
	scene_capture(&sc);
	CHECK_EQ(reads, 0);
	CHECK_EQ(objects, 0);
}

TEST(a_rewrite_of_the_same_size_and_times_is_noticed)
{
	CLEANUP(scene_done) struct scene sc = scene_again("back");
	struct timespec times[2];
	struct stat st;

	scene_text(&sc, "f", "old");
	scene_settle();
	scene_capture(&sc);
	CHECK_EQ(fstatat(sc.fd, "f", &st, 0), 0);
	times[0] = st.st_atim;
	times[1] = st.st_mtim;
	scene_text(&sc, "f", "new");
	CHECK_EQ(utimensat(sc.fd, "f", times, 0), 0);
	capture_both(&sc);
}

TEST(rewrites_within_one_tick_of_the_clock_are_noticed)
{
	CLEANUP(scene_done) struct scene sc = scene_again("tick");
	char text[16];

	for (int i = 0; i < 60; i++) {
		snprintf(text, sizeof(text), "%08d", i);
		scene_text(&sc, "f", text);
		capture_both(&sc);
	}
}

TEST(a_directory_that_did_not_change_is_not_listed)
{
	CLEANUP(scene_done) struct scene sc = scene_again("unlisted");

	fill(&sc);
	scene_settle();
	scene_capture(&sc);
	scene_text(&sc, "a/one", "ONE");
	capture_again(&sc);
	CHECK_EQ(listings, 0);
	CHECK_EQ(renameat(sc.fd, "a/one", sc.fd, "c/one"), 0);
	capture_again(&sc);
	CHECK_EQ(listings, 2);
	CHECK_EQ(unlinkat(sc.fd, "c/three", 0), 0);
	scene_settle();
	capture_both(&sc);
}

/* Nothing that is done to the file changes the directory that holds its name. */
TEST(a_name_that_was_left_out_is_looked_for_again)
{
	CLEANUP(scene_done) struct scene sc = scene_again("left-out");

	fill(&sc);
	scene_text(&sc, ".snapignore", "two\n");
	scene_settle();
	scene_capture(&sc);
	CHECK_EQ(sc.stats.files, 6);
	scene_text(&sc, ".snapignore", "\n");
	capture_both(&sc);
	CHECK_EQ(sc.stats.files, 8);
	scene_text(&sc, ".snapignore", "three\n");
	capture_both(&sc);
	CHECK_EQ(sc.stats.files, 7);
	scene_settle();
	capture_both(&sc);
	CHECK_EQ(sc.stats.files, 7);
}

TEST(a_directory_that_was_fresh_when_it_was_listed_is_listed_again_once)
{
	CLEANUP(scene_done) struct scene sc = scene_again("fresh-directory");

	fill(&sc);
	scene_settle();
	scene_capture(&sc);
	scene_text(&sc, "c/new", "new");
	scene_capture(&sc);
	scene_settle();
	listings = 0;
	scene_capture(&sc);
	CHECK_EQ(listings, 1);
	scene_capture(&sc);
	CHECK_EQ(listings, 1);
}

TEST(links_that_come_and_go_are_noticed)
{
	CLEANUP(scene_done) struct scene sc = scene_again("links");

	fill(&sc);
	scene_settle();
	capture_both(&sc);
	CHECK_EQ(linkat(sc.fd, "a/one", sc.fd, "empty/one", 0), 0);
	capture_both(&sc);
	CHECK_EQ(linkat(sc.fd, "a/one", AT_FDCWD, test_path("outside-one"), 0), 0);
	capture_both(&sc);
	CHECK_EQ(unlinkat(sc.fd, "empty/one", 0), 0);
	capture_both(&sc);
	scene_text(&sc, "c/two", "2");
	capture_both(&sc);
	CHECK_EQ(unlinkat(sc.fd, "c/two", 0), 0);
	capture_both(&sc);
}

TEST(signatures_of_a_tree_are_the_same_bytes_however_they_came_about)
{
	CLEANUP(scene_done) struct scene sc = scene_again("bytes");
	CLEANUP(signatures_free_p) struct signatures *grown = NULL;

	fill(&sc);
	scene_capture(&sc);
	scene_text(&sc, "c/more", "more");
	scene_settle();
	scene_capture(&sc);
	scene_capture(&sc);
	grown = TAKE_PTR(sc.known);
	scene_capture(&sc);
	CHECK_MEM(grown->bytes.data, grown->bytes.len, sc.known->bytes.data, sc.known->bytes.len);
}

/* --- what may happen to a tree, at random ----------------------------------------------------- */

#define PLACES 7

static const char *const places[PLACES] = { ".", "a", "a/b", "c", "c/d", "c/d/e", "f" };

static const char *pick(struct test_rng *rng, char path[64])
{
	snprintf(path, 64, "%s/%c", places[test_rand(rng) % PLACES],
		 (char)('p' + test_rand(rng) % 6));
	return path;
}

/* The same size and the same mtime, as somebody who wants to be overlooked would do it. */
static void rewrite_unseen(struct scene *sc, const char *path, unsigned i)
{
	struct timespec times[2];
	struct stat st;
	AUTO_CLOSE int fd = openat(sc->fd, path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size == 0)
		return;
	times[0] = st.st_atim;
	times[1] = st.st_mtim;
	CHECK_EQ(fdio_pwrite(fd, &i, 1, 0), 0);
	CHECK_EQ(futimens(fd, times), 0);
}

static void write_some(struct scene *sc, const char *path, struct test_rng *rng)
{
	AUTO_CLOSE int fd = openat(sc->fd, path,
				   O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC |
				       (test_rand(rng) % 2 ? O_TRUNC : 0),
				   0644);
	const uint64_t text = test_rand(rng);

	if (fd >= 0)
		CHECK_EQ(fdio_write(fd, &text, 1 + test_rand(rng) % 8), 0);
}

static void set_attribute(struct scene *sc, const char *path, struct test_rng *rng)
{
	char proc[128];

	snprintf(proc, sizeof(proc), "/proc/self/fd/%d/%s", sc->fd, path);
	if (test_rand(rng) % 3 == 0)
		removexattr(proc, "user.x");
	else
		setxattr(proc, "user.x", proc, 1 + test_rand(rng) % 5, 0);
}

/* What fails, since there is no such thing or another one, changes nothing. */
static void disturb(struct scene *sc, struct test_rng *rng)
{
	char path[64], other[64];

	pick(rng, path);
	pick(rng, other);
	switch (test_rand(rng) % 12) {
	case 0:
		unlinkat(sc->fd, path, 0);
		break;
	case 1:
		renameat(sc->fd, path, sc->fd, other);
		break;
	case 2:
		IGNORE_RESULT(linkat(sc->fd, path, sc->fd, other, 0),
			      "whatever it comes to is a state to capture");
		break;
	case 3:
		IGNORE_RESULT(symlinkat(other, sc->fd, path),
			      "whatever it comes to is a state to capture");
		break;
	case 4:
		IGNORE_RESULT(fchmodat(sc->fd, path, test_rand(rng) % 2 ? 0600 : 0755, 0),
			      "whatever it comes to is a state to capture");
		break;
	case 5:
		set_attribute(sc, path, rng);
		break;
	case 6:
		set_attribute(sc, places[test_rand(rng) % PLACES], rng);
		break;
	case 7:
		rewrite_unseen(sc, path, (unsigned)test_rand(rng));
		break;
	case 8:
		renameat(sc->fd, test_rand(rng) % 2 ? "f" : "a/b", sc->fd, "swap");
		renameat(sc->fd, "swap", sc->fd, "f");
		mkdirat(sc->fd, "a/b", 0755);
		break;
	case 9:
		mkfifoat(sc->fd, path, 0600);
		break;
	default:
		write_some(sc, path, rng);
	}
}

TEST(after_any_changes_a_capture_with_signatures_gives_what_one_without_gives)
{
	CLEANUP(scene_done) struct scene sc = scene_again("random");
	const int steps = getenv("SNAP_TESTS_LONG") ? 5000 : 400;
	struct test_rng rng = { test_seed() };

	for (int i = 1; i < PLACES; i++)
		scene_mkdir(&sc, places[i]);
	for (int i = 0; i < steps; i++) {
		for (unsigned n = test_rand(&rng) % 4; n > 0; n--)
			disturb(&sc, &rng);
		if (test_rand(&rng) % 8 == 0)
			scene_settle();
		capture_both(&sc);
		/* Through its bytes, as another process would have them. */
		if (sc.known && test_rand(&rng) % 4 == 0) {
			CLEANUP(buf_done) struct buf bytes = BUF_INIT;
			struct signatures *again;
			struct err err = { 0 };

			buf_swap(&bytes, &sc.known->bytes);
			CHECK_OK(signatures_decode(&bytes, store_key(sc.s), &again, &err), &err);
			signatures_free(sc.known);
			sc.known = again;
		}
	}
	stock_check_clean(sc.s);
}

TEST_MAIN("capture-again")
