/* How requests are answered: from memory, by the pool, or not at all. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cowfs/fuse/mount-i.h"
#include "tests/mount/stage.h"

#define NOBODY 65534

/* --- layer_read() that must always wait ------------------------------------------------- */

int __real_layer_read(struct layer *l, const struct layer_call *call, uint64_t node, uint64_t off,
		      size_t len, struct layer_bytes *ret, struct err *err);
int __wrap_layer_read(struct layer *l, const struct layer_call *call, uint64_t node, uint64_t off,
		      size_t len, struct layer_bytes *ret, struct err *err);

static atomic_bool reads_wait;
static const struct stage *watched; /* if set, each read looks what its mount has counted: */
static atomic_uint_fast64_t counted;

static uint64_t all_requests(const struct stage *s)
{
	const struct mount_stats stats = stage_stats(s);

	return stats.requests + stats.deferred;
}

int __wrap_layer_read(struct layer *l, const struct layer_call *call, uint64_t node, uint64_t off,
		      size_t len, struct layer_bytes *ret, struct err *err)
{
	if (reads_wait && !call->may_wait)
		return -EAGAIN;
	if (watched)
		counted = all_requests(watched);
	return __real_layer_read(l, call, node, off, len, ret, err);
}

/* --- layer_sync() that waits until it is let go ----------------------------------------- */

int __real_layer_sync(struct layer *l, uint64_t node, struct err *err);
int __wrap_layer_sync(struct layer *l, uint64_t node, struct err *err);

static pthread_mutex_t gate_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_open = PTHREAD_COND_INITIALIZER;
static bool gate_shut;
static atomic_int waiting;

int __wrap_layer_sync(struct layer *l, uint64_t node, struct err *err)
{
	pthread_mutex_lock(&gate_lock);
	waiting++;
	while (gate_shut)
		pthread_cond_wait(&gate_open, &gate_lock);
	waiting--;
	pthread_mutex_unlock(&gate_lock);
	return __real_layer_sync(l, node, err);
}

static void shut(bool on)
{
	pthread_mutex_lock(&gate_lock);
	gate_shut = on;
	pthread_cond_broadcast(&gate_open);
	pthread_mutex_unlock(&gate_lock);
}

struct syncer {
	pthread_t thread;
	int fd;
	int result; /* 0 or errno */
};

static void *run_syncer(void *arg)
{
	struct syncer *y = arg;

	y->result = fsync(y->fd) == 0 ? 0 : errno;
	return NULL;
}

static void start_syncers(const struct stage *s, struct syncer *list, int n)
{
	static unsigned number;
	char name[16];

	/* Each a file of its own: the kernel syncs one file once at a time. */
	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "sync%u", number++);
		list[i].fd = open(stage_at(s, name), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
		CHECK(list[i].fd >= 0);
		CHECK_EQ(pthread_create(&list[i].thread, NULL, run_syncer, &list[i]), 0);
	}
}

static void join_syncers(struct syncer *list, int n)
{
	for (int i = 0; i < n; i++) {
		CHECK_EQ(pthread_join(list[i].thread, NULL), 0);
		close(list[i].fd);
	}
}

static bool one_waits(const struct stage *s)
{
	return waiting >= 1;
}

/* As many as one mount has threads for. */
static bool many_wait(const struct stage *s)
{
	return waiting >= 14;
}

/* --- what costs no request -------------------------------------------------------------- */

static void use_everything(const struct stage *s)
{
	char target[16];

	CHECK(stage_has(s, "f", "text"));
	CHECK(stage_there(s, "d"));
	CHECK(!stage_there(s, "missing"));
	CHECK_EQ(readlink(stage_at(s, "link"), target, sizeof(target)), 1);
	free(stage_names(s, "d"));
}

/* What the kernel would write by itself some seconds later. */
static void write_out(const struct stage *s, const char *path)
{
	const int fd = open(stage_at(s, path), O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	CHECK_EQ(fsync(fd), 0);
	close(fd);
}

TEST(what_the_kernel_has_seen_costs_no_request)
{
	struct stage s = { 0 };
	uint64_t before;

	stage_open(&s, "warm");
	stage_put(&s, "f", "text");
	write_out(&s, "f");
	CHECK_EQ(mkdir(stage_at(&s, "d"), 0755), 0);
	CHECK_EQ(symlink("f", stage_at(&s, "link")), 0);
	/* Twice: the first read makes the time of access unknown, the second stat asks for it. */
	use_everything(&s);
	use_everything(&s);
	before = all_requests(&s);
	use_everything(&s);
	CHECK_EQ(all_requests(&s), before);
	stage_close(&s);
}

TEST(whoever_has_the_answer_finds_the_request_counted)
{
	for (int wait = 0; wait < 2; wait++) {
		struct stage s = { 0 };
		char have[4];
		int fd;

		stage_open(&s, wait ? "deferred" : "counted");
		live_put(&s.live, "f", "text");
		fd = open(stage_at(&s, "f"), O_RDONLY | O_CLOEXEC);
		watched = &s;
		reads_wait = wait;
		CHECK_EQ(read(fd, have, sizeof(have)), sizeof(have));
		CHECK_EQ(all_requests(&s), counted);
		reads_wait = false;
		watched = NULL;
		close(fd);
		stage_close(&s);
	}
}

TEST(a_small_file_is_made_and_written_with_five_requests)
{
	struct stage s = { 0 };
	uint64_t before;

	stage_open(&s, "make");
	stage_put(&s, "first", "text"); /* OPEN, FLUSH, ... are asked for once */
	stage_put(&s, "first", "text");
	before = stage_stats(&s).requests;
	stage_put(&s, "second", "text");
	/* LOOKUP, GETATTR of the directory, CREATE, GETXATTR security.capability, WRITE */
	CHECK(stage_stats(&s).requests - before <= 5);
	stage_close(&s);
}

/* --- the pool --------------------------------------------------------------------------- */

#define FILES 40

static void put_numbered(struct live *v)
{
	char name[16], text[24];

	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		snprintf(text, sizeof(text), "text %d", i);
		live_put(v, name, text);
	}
}

struct reading {
	pthread_t thread;
	const struct stage *s;
	int first;
	bool ok;
};

static void *run_reading(void *arg)
{
	struct reading *rd = arg;
	char path[600], want[16], have[16];
	ssize_t n;
	int fd;

	rd->ok = true;
	for (int i = 0; i < FILES; i++) {
		const int k = (rd->first + i) % FILES;

		snprintf(path, sizeof(path), "%s/f%d", rd->s->path, k);
		snprintf(want, sizeof(want), "text %d", k);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		n = fd < 0 ? -1 : read(fd, have, sizeof(have));
		rd->ok &= n == (ssize_t)strlen(want) && memcmp(want, have, (size_t)n) == 0;
		if (fd >= 0)
			close(fd);
	}
	return NULL;
}

TEST(what_must_wait_is_answered_by_the_pool)
{
	struct stage s = { 0 };
	struct reading list[4];

	stage_open(&s, "cold");
	put_numbered(&s.live);
	reads_wait = true;
	for (int i = 0; i < 4; i++) {
		list[i] = (struct reading){ .s = &s, .first = i * FILES / 4 };
		CHECK_EQ(pthread_create(&list[i].thread, NULL, run_reading, &list[i]), 0);
	}
	for (int i = 0; i < 4; i++) {
		CHECK_EQ(pthread_join(list[i].thread, NULL), 0);
		CHECK(list[i].ok);
	}
	CHECK(stage_stats(&s).deferred >= FILES);
	reads_wait = false;
	stage_close(&s);
}

TEST(however_many_wait_for_the_disk_others_go_on)
{
	struct stage s = { 0 };
	struct syncer list[40];

	stage_open(&s, "starve");
	put_numbered(&s.live);
	shut(true);
	reads_wait = true;
	start_syncers(&s, list, 40);
	CHECK(stage_wait(many_wait, &s));
	CHECK(stage_has(&s, "f7", "text 7")); /* by the pool, where all others wait */
	CHECK(!stage_there(&s, "missing"));   /* by the reader */
	reads_wait = false;
	shut(false);
	join_syncers(list, 40);
	for (int i = 0; i < 40; i++)
		CHECK_EQ(list[i].result, 0);
	stage_close(&s);
}

TEST(a_close_waits_for_the_answer_that_is_under_way)
{
	struct stage s = { 0 };
	struct syncer y;
	struct err err = { 0 };

	stage_open(&s, "under-way");
	shut(true);
	start_syncers(&s, &y, 1);
	CHECK(stage_wait(one_waits, &s));
	CHECK_EQ(mount_close(s.m, false, &err), -EBUSY);
	shut(false);
	join_syncers(&y, 1);
	CHECK_EQ(y.result, 0);
	stage_close(&s);
}

TEST(a_mount_that_hangs_is_ended_and_its_users_get_an_error)
{
	struct stage s = { 0 };
	struct syncer y;
	struct stat st;

	mounts_watchdog_ms = 400;
	stage_open(&s, "hung");
	mounts_watchdog_ms = WATCHDOG_LIMIT_MS;
	stage_put(&s, "f", "text");
	shut(true);
	start_syncers(&s, &y, 1);
	join_syncers(&y, 1); /* ends although nobody opens the gate */
	CHECK(y.result == ENOTCONN || y.result == ECONNABORTED);
	CHECK(mount_ended(s.m));
	CHECK_EQ(stat(stage_at(&s, "other"), &st), -1);
	CHECK_EQ(errno, ENOTCONN);

	shut(false);
	stage_unmount(&s, true);
	CHECK(live_has(&s.live, "f", "text"));
	stage_close(&s);
}

TEST(a_slow_answer_among_others_is_no_hang)
{
	struct stage s = { 0 };
	struct syncer y, fast;

	mounts_watchdog_ms = 400;
	stage_open(&s, "slow");
	mounts_watchdog_ms = WATCHDOG_LIMIT_MS;
	shut(true);
	start_syncers(&s, &y, 1);
	CHECK(stage_wait(one_waits, &s));
	for (int i = 0; i < 10; i++) {
		usleep(100000);
		/* Another one is answered by the pool meanwhile. */
		pthread_mutex_lock(&gate_lock);
		gate_shut = false;
		pthread_mutex_unlock(&gate_lock);
		start_syncers(&s, &fast, 1);
		join_syncers(&fast, 1);
		CHECK_EQ(fast.result, 0);
		shut(true);
	}
	CHECK(!mount_ended(s.m));
	shut(false);
	join_syncers(&y, 1);
	CHECK_EQ(y.result, 0);
	stage_close(&s);
}

/* --- what libfuse does not know --------------------------------------------------------- */

TEST(a_file_without_a_name_can_be_given_one)
{
	struct stage s = { 0 };
	struct stat st;
	char from[32];
	int fd;

	stage_open(&s, "nameless");
	fd = open(s.path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	CHECK(fd >= 0);
	CHECK_EQ(write(fd, "text", 4), 4);
	CHECK_EQ(fstat(fd, &st), 0);
	CHECK_EQ(st.st_nlink, 0);
	CHECK_EQ(st.st_size, 4);
	snprintf(from, sizeof(from), "/proc/self/fd/%d", fd);
	CHECK_EQ(linkat(AT_FDCWD, from, AT_FDCWD, stage_at(&s, "named"), AT_SYMLINK_FOLLOW), 0);
	CHECK_EQ(fstat(fd, &st), 0);
	CHECK_EQ(st.st_nlink, 1);
	close(fd);
	CHECK(stage_has(&s, "named", "text"));
	stage_close(&s);
}

static int write_to_it(const struct stage *s)
{
	const int fd = open(stage_at(s, "f"), O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, "x", 1) == 1 ? 0 : errno;
}

static int truncate_it(const struct stage *s)
{
	return truncate(stage_at(s, "f"), 1) == 0 ? 0 : errno;
}

static int allocate_it(const struct stage *s)
{
	const int fd = open(stage_at(s, "f"), O_WRONLY | O_CLOEXEC);

	return fd >= 0 && fallocate(fd, 0, 0, 100) == 0 ? 0 : errno;
}

static mode_t mode_after(const struct stage *s, uint32_t id, int (*fn)(const struct stage *s))
{
	struct stat st;

	CHECK_EQ(chmod(stage_at(s, "f"), 06777), 0);
	CHECK_EQ(stage_as(id, fn, s), 0);
	CHECK_EQ(stat(stage_at(s, "f"), &st), 0);
	return st.st_mode & 07777;
}

TEST(set_id_bits_go_when_a_user_writes_and_stay_when_root_does)
{
	struct stage s = { 0 };
	struct stat st;

	if (geteuid() != 0)
		TEST_SKIP("only root can become another user");
	stage_open_with(&s, "set-id", &(struct mount_options){ .others = true });
	stage_put(&s, "f", "text");
	CHECK_EQ(mode_after(&s, NOBODY, write_to_it), 0777);
	CHECK_EQ(mode_after(&s, NOBODY, truncate_it), 0777);
	CHECK_EQ(mode_after(&s, NOBODY, allocate_it), 0777);
	CHECK_EQ(mode_after(&s, 0, write_to_it), 06777);
	CHECK_EQ(chown(stage_at(&s, "f"), 1, 1), 0);
	CHECK_EQ(stat(stage_at(&s, "f"), &st), 0);
	CHECK_EQ(st.st_mode & 07777, 0777);
	stage_close(&s);
}

TEST(attributes_are_kept_and_listed)
{
	struct stage s = { 0 };
	char have[64];

	stage_open(&s, "xattrs");
	stage_put(&s, "f", "text");
	CHECK_EQ(setxattr(stage_at(&s, "f"), "user.note", "abc", 3, 0), 0);
	CHECK_EQ(getxattr(stage_at(&s, "f"), "user.note", have, sizeof(have)), 3);
	CHECK_EQ(getxattr(stage_at(&s, "f"), "user.none", have, sizeof(have)), -1);
	CHECK_EQ(errno, ENODATA);
	CHECK_EQ(listxattr(stage_at(&s, "f"), NULL, 0), 10);
	CHECK_EQ(listxattr(stage_at(&s, "f"), have, sizeof(have)), 10);
	CHECK_STR(have, "user.note");
	stage_close(&s);
}

/* Owner and others as a mode would have it, one user, and the mask. */
static const uint32_t read_by_nobody[] = { 2,          0x00060001, 0xffffffff, 0x00040002,
					   NOBODY,     0x00000004, 0xffffffff, 0x00040010,
					   0xffffffff, 0x00000020, 0xffffffff };

static int read_it(const struct stage *s)
{
	const int fd = open(stage_at(s, "f"), O_RDONLY | O_CLOEXEC);

	return fd < 0 ? errno : close(fd);
}

TEST(an_access_list_is_obeyed)
{
	struct stage s = { 0 };

	if (geteuid() != 0)
		TEST_SKIP("only root can become another user");
	stage_open_with(&s, "acl", &(struct mount_options){ .others = true });
	stage_put(&s, "f", "text");
	CHECK_EQ(chmod(stage_at(&s, "f"), 0600), 0);
	CHECK_EQ(stage_as(NOBODY, read_it, &s), EACCES);
	CHECK_EQ(setxattr(stage_at(&s, "f"), "system.posix_acl_access", read_by_nobody,
			  sizeof(read_by_nobody), 0),
		 0);
	CHECK_EQ(stage_as(NOBODY, read_it, &s), 0);
	CHECK_EQ(stage_as(NOBODY + 1, read_it, &s), EACCES);
	stage_close(&s);
}

TEST(where_nothing_is_checked_an_access_list_is_kept_and_shown)
{
	struct stage s = { 0 };
	struct stat st;
	char have[64];

	if (geteuid() != 0)
		TEST_SKIP("only root can become another user");
	stage_open_with(&s, "acl-unchecked",
			&(struct mount_options){ .others = true, .unchecked = true });
	stage_put(&s, "f", "text");
	CHECK_EQ(setxattr(stage_at(&s, "f"), "system.posix_acl_access", read_by_nobody,
			  sizeof(read_by_nobody), 0),
		 0);
	CHECK_EQ(getxattr(stage_at(&s, "f"), "system.posix_acl_access", have, sizeof(have)),
		 sizeof(read_by_nobody));
	CHECK_EQ(stat(stage_at(&s, "f"), &st), 0);
	CHECK_EQ(st.st_mode & 0777, 0640);
	CHECK_EQ(stage_as(NOBODY + 1, read_it, &s), 0);
	umask(027);
	CHECK_EQ(mkdir(stage_at(&s, "d"), 0777), 0);
	umask(022);
	CHECK_EQ(stat(stage_at(&s, "d"), &st), 0);
	CHECK_EQ(st.st_mode & 0777, 0750);
	stage_close(&s);
}

TEST(what_is_no_terminal_says_so)
{
	struct stage s = { 0 };
	int fd;

	stage_open(&s, "tty");
	stage_put(&s, "f", "text");
	fd = open(stage_at(&s, "f"), O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	CHECK_EQ(isatty(fd), 0);
	CHECK_EQ(errno, ENOTTY);
	close(fd);
	stage_close(&s);
}

TEST(a_megabyte_goes_through_in_one_piece)
{
	static char out[3 << 20], in[sizeof(out)];
	struct stage s = { 0 };
	struct test_rng rng = { test_seed() };
	int fd;

	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = (char)test_rand(&rng);
	stage_open(&s, "large");
	fd = open(stage_at(&s, "f"), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
	CHECK(fd >= 0);
	CHECK_EQ(write(fd, out, sizeof(out)), sizeof(out));
	close(fd);
	stage_unmount(&s, false);
	live_reopen(&s.live);
	stage_mount(&s, &(struct mount_options){ 0 });
	fd = open(stage_at(&s, "f"), O_RDONLY | O_CLOEXEC);
	CHECK_EQ(read(fd, in, sizeof(in)), sizeof(in));
	CHECK_MEM(in, sizeof(in), out, sizeof(out));
	close(fd);
	stage_close(&s);
}

TEST_MAIN("serve")
