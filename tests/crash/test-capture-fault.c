/*
 * Every call by which capture looks at a directory, one after the other, fails.  What is captured
 * then is all of it, or the capture fails and says which path it was, or, if that was asked for, it
 * tells what it left out; never is something missing, or less than it was, without a word.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/sys.h"
#include "snapshot/capture/capture.h"
#include "snapshot/diff/changes.h"
#include "tests/lib/grove.h"

/* --- in the place of the originals (--wrap) --------------------------------------------- */

static struct {
	unsigned long n, at;
	int code;
	bool by_name; /* only calls that are given a name: it may be gone */
	bool reads;   /* every read of a file fails, and nothing else */
	bool armed;
} fault;

/* One worker makes all of these calls, while the thread that started it waits. */
static bool meets(bool by_name)
{
	if (!fault.armed || (fault.by_name && !by_name) || ++fault.n != fault.at)
		return false;
	errno = fault.code;
	return true;
}

#define WRAP(type, name, params, args, by_name, failed) \
	type __real_##name params;                      \
	type __wrap_##name params;                      \
	type __wrap_##name params                       \
	{                                               \
		if (meets(by_name))                     \
			return failed;                  \
		return __real_##name args;              \
	}

WRAP(int, fstat64, (int a, struct stat *b), (a, b), false, -1)
WRAP(int, stat64, (const char *a, struct stat *b), (a, b), false, -1)
WRAP(int, fstatat64, (int a, const char *b, struct stat *c, int d), (a, b, c, d), true, -1)
WRAP(off_t, lseek64, (int a, off_t b, int c), (a, b, c), false, -1)
WRAP(ssize_t, readlinkat, (int a, const char *b, char *c, size_t d), (a, b, c, d), true, -1)
WRAP(int, sys_open_node, (int a, const char *b), (a, b), true, -errno)
WRAP(ssize_t, sys_list_xattrs, (int a, char *b, size_t c), (a, b, c), false, -errno)
WRAP(ssize_t, sys_get_xattr, (int a, const char *b, void *c, size_t d), (a, b, c, d), false, -errno)
WRAP(int, sys_each_name, (int a, sys_name_fn b, void *c), (a, b, c), false, -errno)

ssize_t __real_fdio_pread(int fd, void *data, size_t len, off_t off);
ssize_t __wrap_fdio_pread(int fd, void *data, size_t len, off_t off);

ssize_t __wrap_fdio_pread(int fd, void *data, size_t len, off_t off)
{
	if (fault.reads)
		return -EIO;
	return meets(false) ? -errno : __real_fdio_pread(fd, data, len, off);
}

int __real_openat64(int dirfd, const char *name, int flags, ...);
int __wrap_openat64(int dirfd, const char *name, int flags, ...);

int __wrap_openat64(int dirfd, const char *name, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;

	va_start(ap, flags);
	if (flags & O_CREAT)
		mode = va_arg(ap, mode_t);
	va_end(ap);
	return meets(true) ? -1 : __real_openat64(dirfd, name, flags, mode);
}

/* --- the directory ------------------------------------------------------------------------ */

struct yard {
	struct grove g;
	struct object_id whole;
	struct signatures *known; /* owned; of an earlier state */
};

static unsigned count_fds(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void keep(struct grove *g, const char *name, struct captured *ret)
{
	static const struct capture_options one = { .threads = 1 };
	CLEANUP(batch_end_p) struct batch *b = stock_begin(g->s);
	struct err err = { 0 };

	CHECK_OK(capture_directory(b, g->path, &one, ret, &err), &err);
	stock_name(b, REF_SNAPSHOT, name, &ret->root, REF_REPLACE);
	stock_commit(b);
}

static void set_xattr(struct grove *g, const char *name)
{
	char path[4096];

	CHECK((size_t)snprintf(path, sizeof(path), "%s/%s", g->path, name) < sizeof(path));
	IGNORE_RESULT(setxattr(path, "user.a", "value", 5, 0), "not every file system has them");
}

static struct yard yard_new(const char *name)
{
	struct yard y = { .g = grove_new(name) };
	CLEANUP(captured_done) struct captured old = { 0 };
	CLEANUP(captured_done) struct captured new = { 0 };

	grove_plant(&y.g, true);
	keep(&y.g, "old", &old);
	y.known = TAKE_PTR(old.signatures);
	grove_plant(&y.g, false);
	grove_text(&y.g, ".snapignore", "*.o\n");
	grove_text(&y.g, "left-out.o", "o");
	set_xattr(&y.g, "dir");
	set_xattr(&y.g, "dir/link2");
	keep(&y.g, "new", &new);
	y.whole = new.root;
	return y;
}

static void yard_done(struct yard *y)
{
	fault.armed = false;
	fault.reads = false;
	signatures_free(y->known);
	grove_done(&y->g);
}

/* --- one try ---------------------------------------------------------------------------- */

static int try(struct yard *y, const struct capture_options *options, struct captured *ret,
	       unsigned long at, struct err *err)
{
	const unsigned before = count_fds();
	CLEANUP(batch_end_p) struct batch *b = stock_begin(y->g.s);
	int r;

	fault.n = 0;
	fault.at = at;
	fault.armed = true;
	r = capture_directory(b, y->g.path, options, ret, err);
	fault.armed = false;
	if (r >= 0) {
		stock_name(b, REF_SNAPSHOT, "tried", &ret->root, REF_REPLACE);
		stock_commit(b);
	} else {
		CHECK_EQ(err->code, r);
		CHECK_HAS(err->msg, y->g.path);
	}
	CHECK_EQ(count_fds(), before);
	return r;
}

static bool is_whole(const struct yard *y, const struct captured *c)
{
	return object_id_equal(&c->root, &y->whole);
}

/* Either all of it is there, or it failed with that code.  How many calls there were. */
static unsigned long fail_each(struct yard *y, int code, const struct signatures *known,
			       bool leave_out)
{
	const struct capture_options options = { .threads = 1,
						 .known = known,
						 .skip_unreadable = leave_out };
	unsigned long at, failed = 0, told = 0;

	fault.code = code;
	for (at = 1;; at++) {
		CLEANUP(captured_done) struct captured c = { 0 };
		struct err err = { 0 };
		int r = try(y, &options, &c, at, &err);

		if (fault.n < at) {
			CHECK_OK(r, &err);
			CHECK(is_whole(y, &c));
			break;
		}
		failed += r < 0;
		told += r >= 0 && c.unread.n > 0;
		if (r < 0)
			CHECK_EQ(r, -code);
		else if (c.unread.n == 0 && !is_whole(y, &c))
			printf("# call %lu: something is missing without a word\n", at);
		CHECK(r < 0 || c.unread.n > 0 || is_whole(y, &c));
		CHECK(leave_out || c.unread.n == 0 || r < 0);
	}
	printf("# %lu calls, %lu failed, %lu times something was left out\n", at - 1, failed, told);
	CHECK(failed > 0);
	CHECK_EQ(told > 0, leave_out);
	return at - 1;
}

TEST(whichever_call_fails_the_capture_fails_or_is_whole)
{
	CLEANUP(yard_done) struct yard y = yard_new("whole");

	CHECK(fail_each(&y, EIO, NULL, false) > 100);
}

TEST(whichever_call_fails_of_a_capture_of_what_is_known_it_fails_or_is_whole)
{
	CLEANUP(yard_done) struct yard y = yard_new("known");

	fail_each(&y, EIO, y.known, false);
}

TEST(whichever_call_fails_what_is_left_out_is_told)
{
	CLEANUP(yard_done) struct yard y = yard_new("told");

	fail_each(&y, EIO, NULL, true);
}

/* Rules that cannot be had, for want of descriptors, are not taken for no rules. */
TEST(a_process_without_descriptors_captures_all_of_it_or_nothing)
{
	CLEANUP(yard_done) struct yard y = yard_new("descriptors");

	fail_each(&y, EMFILE, y.known, false);
	fail_each(&y, ENFILE, NULL, false);
}

#define UNREAD (CAPTURE_UNREAD_MAX + 10)

/* In the order of paths, whichever was met first. */
static void check_unread(const struct capture_report *r)
{
	CHECK_EQ(r->n, CAPTURE_UNREAD_MAX);
	CHECK_EQ(r->n + r->more, UNREAD);
	for (size_t i = 0; i < r->n; i++) {
		CHECK_EQ(r->list[i].code, -EIO);
		CHECK_HAS(r->list[i].why, "cannot be read");
		CHECK(i == 0 || strcmp(r->list[i - 1].path, r->list[i].path) < 0);
	}
}

TEST(of_very_many_that_cannot_be_read_the_first_are_told_and_the_others_counted)
{
	CLEANUP(yard_done) struct yard y = { .g = grove_new("many") };
	CLEANUP(captured_done) struct captured failed = { 0 };
	CLEANUP(captured_done) struct captured left_out = { 0 };
	struct capture_options options = { .threads = 1 };
	struct err err = { 0 };
	char name[16], more[64];

	for (unsigned i = 0; i < UNREAD; i++) {
		snprintf(name, sizeof(name), "f%04u", i);
		grove_text(&y.g, name, "text");
	}
	fault.reads = true;
	CHECK_EQ(try(&y, &options, &failed, 1u << 20, &err), -EIO);
	snprintf(more, sizeof(more), "and %d more cannot be read", UNREAD - 1);
	CHECK_HAS(err.msg, more);
	check_unread(&failed.unread);
	options.skip_unreadable = true;
	CHECK_OK(try(&y, &options, &left_out, 1u << 20, &err), &err);
	check_unread(&left_out.unread);
	CHECK_EQ(left_out.stats.files, 0);
}

static int only_removed(const char *path, char status, void *ctx, struct err *err)
{
	(void)ctx;
	/* Where the rules are gone, nothing is left out. */
	if (status == 'D' || strcmp(path, "left-out.o") == 0)
		return 0;
	return err_set(err, -EINVAL, "%c '%s'", status, path);
}

/* A name that is gone when it is to be opened is as if it had never been listed. */
TEST(what_goes_while_it_is_captured_is_whole_or_not_there)
{
	CLEANUP(yard_done) struct yard y = yard_new("goes");
	const struct capture_options options = { .threads = 1 };
	unsigned long at, gone = 0;

	fault.code = ENOENT;
	fault.by_name = true;
	for (at = 1;; at++) {
		CLEANUP(captured_done) struct captured c = { 0 };
		struct err err = { 0 };
		int r = try(&y, &options, &c, at, &err);

		if (fault.n < at)
			break;
		if (r < 0) {
			CHECK(r == -ENOENT || r == -ESTALE);
			continue;
		}
		gone += !is_whole(&y, &c);
		CHECK_OK(changes_each(y.g.s, &y.whole, &c.root, only_removed, NULL, &err), &err);
	}
	fault.by_name = false;
	printf("# %lu calls, %lu times something was gone\n", at - 1, gone);
	CHECK(gone > 0);
}

TEST_MAIN("capture-fault")
