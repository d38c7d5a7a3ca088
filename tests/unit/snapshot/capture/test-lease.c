#include "snapshot/capture/lease.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fdio.h"
#include "tests/lib/test.h"

#define NOBODY    65534
#define KEYS      5000
#define OLD_BYTES "as it was"
#define MANY      150 /* more than a set notes of signals that found no lease */

/* What takers and writers, which are other processes, see of each other. */
struct board {
	atomic_int taken[KEYS + 1];   /* times that take was called for a key */
	atomic_int different;         /* takes that read something else than OLD_BYTES */
	atomic_int unheld;            /* takes after which the lease was gone */
	atomic_int early;             /* writers that were let in before their file was taken */
	atomic_int gate_shut;         /* takes wait while this is set */
	atomic_int in_gate;           /* takes that wait or have waited */
	atomic_int unknown;           /* below this key, none can be taken yet */
	atomic_int put_off[KEYS + 1]; /* times that take said so */
};

struct scene {
	struct board *b;
	struct leases *l;
	int answer; /* what take returns */
};

static int take(void *ctx, uint64_t key, int fd)
{
	struct scene *sc = ctx;
	struct board *b = sc->b;
	char text[64];
	ssize_t n;

	atomic_fetch_add(&b->in_gate, 1);
	while (atomic_load(&b->gate_shut))
		usleep(1000);
	if (key < (uint64_t)atomic_load(&b->unknown)) {
		atomic_fetch_add(&b->put_off[key], 1);
		return -EAGAIN;
	}
	n = fdio_pread(fd, text, sizeof(text), 0);
	if (n != (ssize_t)strlen(OLD_BYTES) || memcmp(text, OLD_BYTES, (size_t)n) != 0)
		atomic_fetch_add(&b->different, 1);
	if (lease_held(fd) != 1)
		atomic_fetch_add(&b->unheld, 1);
	atomic_fetch_add(&b->taken[key], 1);
	return sc->answer;
}

static struct scene scene_new(void)
{
	struct scene sc = { .b = mmap(NULL, sizeof(struct board), PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_ANONYMOUS, -1, 0) };

	CHECK(sc.b != MAP_FAILED);
	return sc;
}

static void scene_open(struct scene *sc, size_t max, unsigned takers)
{
	const struct leases_options options = {
		.max = max, .takers = takers, .take = take, .ctx = sc
	};
	struct err err = { 0 };

	signal(SIGIO, SIG_IGN);
	CHECK_OK(leases_open(&options, &sc->l, &err), &err);
}

static void scene_done(struct scene *sc)
{
	leases_close(sc->l);
	munmap(sc->b, sizeof(*sc->b));
}

#define SCENE(sc, max, takers)                             \
	CLEANUP(scene_done) struct scene sc = scene_new(); \
	scene_open(&(sc), (max), (takers))

static const char *name_of(uint64_t key)
{
	static char name[32];

	snprintf(name, sizeof(name), "f%llu", (unsigned long long)key);
	return test_path(name);
}

static void make_file(const char *path)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	CHECK(fd >= 0);
	CHECK_EQ(fdio_write(fd, OLD_BYTES, strlen(OLD_BYTES)), 0);
}

static int open_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	if (!lease_possible(fd)) {
		close(fd);
		TEST_SKIP("no leases on the file system of the test directory");
	}
	return fd;
}

/* As if it were one step; a descriptor that is refused has no lease. */
static int add(struct scene *sc, uint64_t key, int fd, bool likely)
{
	struct lease_trial trial;
	int r = leases_try(sc->l, fd, likely, &trial);

	if (r == 0)
		r = leases_add(sc->l, key, fd, &trial);
	if (r < 0)
		lease_give_up(fd, &trial);
	return r;
}

static void add_file(struct scene *sc, uint64_t key)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s", name_of(key));
	unlink(path); /* of an earlier test, which may have it open */
	make_file(path);
	fd = open_file(path);
	CHECK_EQ(add(sc, key, fd, key % 2), 0);
}

/* What the linked functions of a child may do after a fork with threads: system calls only. */
typedef int (*act_fn)(const char *path);

static int write_some(int fd)
{
	return fd >= 0 && pwrite(fd, "X", 1, 0) == 1 ? 0 : 1;
}

static int open_wronly(const char *path)
{
	return write_some(open(path, O_WRONLY));
}

static int open_rdwr(const char *path)
{
	return write_some(open(path, O_RDWR));
}

static int open_append(const char *path)
{
	return write_some(open(path, O_WRONLY | O_APPEND));
}

static int open_trunc(const char *path)
{
	return open(path, O_WRONLY | O_TRUNC) >= 0 ? 0 : 1;
}

static int open_creat(const char *path)
{
	return open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644) >= 0 ? 0 : 1;
}

static int truncate_path(const char *path)
{
	return truncate(path, 1) == 0 ? 0 : 1;
}

static pid_t start_writer(struct scene *sc, uint64_t key, act_fn act)
{
	char path[256];
	pid_t pid;

	snprintf(path, sizeof(path), "%s", name_of(key));
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		int status = act(path);

		if (!atomic_load(&sc->b->taken[key]))
			atomic_fetch_add(&sc->b->early, 1);
		_exit(status);
	}
	return pid;
}

static int end_of(pid_t pid)
{
	int status = -1;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void check_clean(const struct scene *sc)
{
	CHECK_EQ(atomic_load(&sc->b->different), 0);
	CHECK_EQ(atomic_load(&sc->b->unheld), 0);
	CHECK_EQ(atomic_load(&sc->b->early), 0);
	CHECK_EQ(leases_count(sc->l).lapsed, 0);
}

TEST(a_writer_waits_until_the_file_is_taken)
{
	static const act_fn acts[] = { open_wronly, open_rdwr,  open_append,
				       open_trunc,  open_creat, truncate_path };
	SCENE(sc, 0, 0);

	for (size_t i = 0; i < ARRAY_LEN(acts); i++) {
		add_file(&sc, i);
		CHECK_EQ(end_of(start_writer(&sc, i, acts[i])), 0);
		CHECK_EQ(atomic_load(&sc.b->taken[i]), 1);
	}
	check_clean(&sc);
	CHECK_EQ(leases_count(sc.l).broken, ARRAY_LEN(acts));
	CHECK_EQ(leases_drop(sc.l, 0), -ENOENT);
}

TEST(reading_and_renaming_break_nothing_and_the_descriptor_keeps_the_file)
{
	AUTO_CLOSE int mine = -1;
	char path[256], text[64];
	struct stat st;
	SCENE(sc, 0, 0);

	for (uint64_t key = 1; key <= 4; key++)
		add_file(&sc, key);
	snprintf(path, sizeof(path), "%s", name_of(1));
	close(open_file(path));
	CHECK_EQ(chmod(path, 0600), 0);
	CHECK_EQ(utimensat(AT_FDCWD, path, NULL, 0), 0);
	CHECK_EQ(unlink(path), 0);
	make_file(test_path("other"));
	CHECK_EQ(rename(test_path("other"), name_of(2)), 0);
	snprintf(path, sizeof(path), "%s", name_of(3));
	CHECK_EQ(rename(path, test_path("elsewhere")), 0);
	CHECK_EQ(link(name_of(4), test_path("second-name")), 0);
	for (uint64_t key = 1; key <= 4; key++) {
		mine = leases_dup(sc.l, key);
		CHECK(mine >= 0);
		CHECK_EQ(fdio_pread(mine, text, sizeof(text), 0), strlen(OLD_BYTES));
		CHECK_MEM(text, strlen(OLD_BYTES), OLD_BYTES, strlen(OLD_BYTES));
		CHECK_EQ(lease_held(mine), 1);
		CHECK_EQ(fstat(mine, &st), 0);
		CHECK_EQ(leases_drop(sc.l, key), 1);
		CHECK_EQ(lease_held(mine), 0);
		close(TAKE_FD(mine));
	}
	CHECK_EQ(leases_count(sc.l).broken, 0);
	CHECK_EQ(leases_count(sc.l).held, 0);
}

TEST(a_write_through_another_name_breaks_it)
{
	SCENE(sc, 0, 0);
	char path[256];
	pid_t pid;

	add_file(&sc, 1);
	snprintf(path, sizeof(path), "%s", test_path("a-link"));
	CHECK_EQ(link(name_of(1), path), 0);
	pid = fork();
	if (pid == 0)
		_exit(open_wronly(path) || !atomic_load(&sc.b->taken[1]));
	CHECK_EQ(end_of(pid), 0);
	check_clean(&sc);
}

/* The hole in the kernel's leases that lease.h names: should it be closed one day, this says so. */
TEST(emptying_by_an_open_for_reading_shows_in_the_size_alone)
{
	AUTO_CLOSE int mine = -1, other = -1;
	SCENE(sc, 0, 0);
	struct stat st;

	add_file(&sc, 1);
	mine = leases_dup(sc.l, 1);
	other = open(name_of(1), O_RDONLY | O_TRUNC | O_CLOEXEC);
	CHECK(other >= 0);
	CHECK_EQ(fstat(mine, &st), 0);
	CHECK_EQ(st.st_size, 0);
	CHECK_EQ(lease_held(mine), 1);
	CHECK_EQ(end_of(start_writer(&sc, 1, open_wronly)),
		 0); /* and nobody makes it grow unseen */
	CHECK_EQ(atomic_load(&sc.b->different), 1);
	CHECK_EQ(atomic_load(&sc.b->early), 0);
}

TEST(five_thousand_files_are_taken_before_their_writers)
{
	enum { WRITERS = 4 };
	pid_t pids[WRITERS];
	char path[256];
	SCENE(sc, 0, 0);

	for (uint64_t key = 0; key < KEYS; key++)
		add_file(&sc, key);
	CHECK_EQ(leases_count(sc.l).held, KEYS);
	for (int w = 0; w < WRITERS; w++) {
		pids[w] = fork();
		if (pids[w])
			continue;
		for (int key = w; key < KEYS; key += WRITERS) {
			snprintf(path, sizeof(path), "%s", name_of((uint64_t)key));
			if (open_wronly(path) != 0)
				_exit(1);
			if (!atomic_load(&sc.b->taken[key]))
				_exit(2);
		}
		_exit(0);
	}
	for (int w = 0; w < WRITERS; w++)
		CHECK_EQ(end_of(pids[w]), 0);
	for (uint64_t key = 0; key < KEYS; key++)
		CHECK_EQ(atomic_load(&sc.b->taken[key]), 1);
	check_clean(&sc);
	CHECK_EQ(leases_count(sc.l).broken, KEYS);
	CHECK_EQ(leases_count(sc.l).held, 0);
}

TEST(lost_signals_lose_no_break)
{
	enum { FILES = 200 };
	struct rlimit before;
	pid_t pids[FILES];
	SCENE(sc, 0, 0);

	for (uint64_t key = 0; key < FILES; key++)
		add_file(&sc, key);
	CHECK_EQ(getrlimit(RLIMIT_SIGPENDING, &before), 0);
	CHECK_EQ(setrlimit(RLIMIT_SIGPENDING, &(struct rlimit){ 0, before.rlim_max }), 0);
	for (uint64_t key = 0; key < FILES; key++)
		pids[key] = start_writer(&sc, key, open_wronly);
	for (uint64_t key = 0; key < FILES; key++)
		CHECK_EQ(end_of(pids[key]), 0);
	CHECK_EQ(setrlimit(RLIMIT_SIGPENDING, &before), 0);
	check_clean(&sc);
	CHECK_EQ(leases_count(sc.l).broken, FILES);
	CHECK(leases_count(sc.l).swept > 0);
}

TEST(a_take_that_fails_lets_the_writer_go_on)
{
	SCENE(sc, 0, 0);

	sc.answer = -EIO;
	add_file(&sc, 1);
	CHECK_EQ(end_of(start_writer(&sc, 1, open_wronly)), 0);
	CHECK_EQ(leases_drop(sc.l, 1), -ENOENT);
	CHECK_EQ(leases_count(sc.l).failed, 1);
	check_clean(&sc);
}

static void wait_until_broken(int fd)
{
	WAIT_FOR(fcntl(fd, F_GETLEASE) != F_RDLCK);
}

static void *close_leases(void *arg)
{
	struct scene *sc = arg;

	leases_close(TAKE_PTR(sc->l));
	return NULL;
}

TEST(closing_serves_the_breaks_that_have_begun)
{
	AUTO_CLOSE int second = -1, third = -1;
	pthread_t closer;
	pid_t pids[3];
	char path[256];
	SCENE(sc, 0, 1); /* one taker: the second break stands in the queue */

	for (uint64_t key = 1; key <= 3; key++)
		add_file(&sc, key);
	second = leases_dup(sc.l, 2);
	third = leases_dup(sc.l, 3);
	atomic_store(&sc.b->gate_shut, 1);
	pids[0] = start_writer(&sc, 1, open_wronly);
	WAIT_FOR(atomic_load(&sc.b->in_gate));
	pids[1] = start_writer(&sc, 2, truncate_path);
	wait_until_broken(second);
	CHECK_EQ(pthread_create(&closer, NULL, close_leases, &sc), 0);
	atomic_store(&sc.b->gate_shut, 0);
	CHECK_EQ(pthread_join(closer, NULL), 0);
	CHECK_EQ(end_of(pids[0]), 0);
	CHECK_EQ(end_of(pids[1]), 0);
	CHECK_EQ(atomic_load(&sc.b->taken[1]), 1);
	CHECK_EQ(atomic_load(&sc.b->taken[2]), 1);
	CHECK_EQ(atomic_load(&sc.b->early), 0);
	CHECK_EQ(atomic_load(&sc.b->different), 0);
	/* The third was never broken.  Its lease is gone, although a duplicate of its descriptor is here. */
	snprintf(path, sizeof(path), "%s", name_of(3));
	CHECK_EQ(lease_held(third), 0);
	CHECK_EQ(open_wronly(path), 0);
	CHECK_EQ(atomic_load(&sc.b->taken[3]), 0);
}

static void wait_until_put_off(struct scene *sc, uint64_t key)
{
	WAIT_FOR(atomic_load(&sc->b->put_off[key]));
}

TEST(files_that_cannot_be_taken_yet_hold_up_no_other)
{
	pid_t pids[2];
	SCENE(sc, 0, 2); /* a taker for each of those that wait */

	for (uint64_t key = 1; key <= 3; key++)
		add_file(&sc, key);
	atomic_store(&sc.b->unknown, 3);
	pids[0] = start_writer(&sc, 1, open_wronly);
	pids[1] = start_writer(&sc, 2, open_wronly);
	wait_until_put_off(&sc, 1);
	wait_until_put_off(&sc, 2);
	CHECK_EQ(end_of(start_writer(&sc, 3, open_wronly)), 0);
	atomic_store(&sc.b->unknown, 0);
	CHECK_EQ(end_of(pids[0]), 0);
	CHECK_EQ(end_of(pids[1]), 0);
	for (uint64_t key = 1; key <= 3; key++)
		CHECK_EQ(atomic_load(&sc.b->taken[key]), 1);
	CHECK_EQ(leases_count(sc.l).broken, 3);
	check_clean(&sc);
}

TEST(closing_does_not_wait_for_files_that_cannot_be_taken_yet)
{
	pid_t pid;
	SCENE(sc, 0, 1);

	add_file(&sc, 1);
	atomic_store(&sc.b->unknown, 2);
	pid = start_writer(&sc, 1, open_wronly);
	wait_until_put_off(&sc, 1);
	close_leases(&sc);
	CHECK_EQ(end_of(pid), 0);
	CHECK_EQ(atomic_load(&sc.b->taken[1]), 0);
}

TEST(dropping_does_not_wait_for_a_take_under_way)
{
	pid_t pid;
	SCENE(sc, 0, 0);

	add_file(&sc, 1);
	atomic_store(&sc.b->gate_shut, 1);
	pid = start_writer(&sc, 1, open_wronly);
	WAIT_FOR(atomic_load(&sc.b->in_gate));
	CHECK_EQ(leases_drop(sc.l, 1), -EBUSY);
	atomic_store(&sc.b->gate_shut, 0);
	CHECK_EQ(end_of(pid), 0);
	CHECK_EQ(atomic_load(&sc.b->taken[1]), 1);
	check_clean(&sc);
}

TEST(a_file_that_is_open_or_mapped_for_writing_is_refused)
{
	AUTO_CLOSE int fd = -1;
	int writer;
	void *at;
	SCENE(sc, 0, 0);

	make_file(test_path("busy"));
	fd = open_file(test_path("busy"));
	writer = open(test_path("busy"), O_RDWR | O_CLOEXEC);
	CHECK_EQ(add(&sc, 1, fd, true), -EAGAIN);
	at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, writer, 0);
	CHECK(at != MAP_FAILED);
	close(writer);
	CHECK_EQ(add(&sc, 1, fd, true), -EAGAIN);
	munmap(at, 4096);
	CHECK_EQ(add(&sc, 1, TAKE_FD(fd), true), 0);
	CHECK_EQ(leases_count(sc.l).held, 1);
}

/* Wait until the kernel has begun to break the lease, so that its signal was sent. */
static void wait_for_break(int fd)
{
	WAIT_FOR(fcntl(fd, F_GETLEASE) != F_RDLCK);
}

TEST(a_writer_that_comes_before_the_file_is_in_the_set_is_served)
{
	struct lease_trial trial;
	pid_t pid;
	int fd;

	for (int i = 0; i < 40; i++) {
		const uint64_t key = 1 + (uint64_t)i % 4;
		const bool likely = i % 3 != 0;
		SCENE(sc, 0, 0);

		unlink(name_of(key));
		make_file(name_of(key));
		fd = open_file(name_of(key));
		CHECK_EQ(leases_try(sc.l, fd, likely, &trial), 0);
		pid = start_writer(&sc, key, open_wronly);
		wait_for_break(fd);
		/* With the signal received, or on its way, or lost. */
		if (i % 2)
			usleep(2000);
		CHECK_EQ(leases_add(sc.l, key, fd, &trial), 0);
		CHECK_EQ(end_of(pid), 0);
		CHECK_EQ(atomic_load(&sc.b->taken[key]), 1);
		check_clean(&sc);
	}
}

TEST(more_missed_signals_than_can_be_noted_are_none_too_few)
{
	struct lease_trial trials[MANY];
	int fds[MANY];
	pid_t pids[MANY];
	SCENE(sc, 0, 0);

	for (uint64_t i = 0; i < MANY; i++) {
		unlink(name_of(i + 1));
		make_file(name_of(i + 1));
		fds[i] = open_file(name_of(i + 1));
		CHECK_EQ(leases_try(sc.l, fds[i], true, &trials[i]), 0);
		pids[i] = start_writer(&sc, i + 1, open_wronly);
		wait_for_break(fds[i]);
	}
	for (uint64_t i = 0; i < MANY; i++)
		CHECK_EQ(leases_add(sc.l, i + 1, fds[i], &trials[i]), 0);
	for (uint64_t i = 0; i < MANY; i++) {
		CHECK_EQ(end_of(pids[i]), 0);
		CHECK_EQ(atomic_load(&sc.b->taken[i + 1]), 1);
	}
	check_clean(&sc);
}

TEST(a_lease_that_was_tried_ends_with_its_descriptor_or_before)
{
	struct lease_trial trial;
	int fd;
	SCENE(sc, 0, 0);

	make_file(name_of(1));
	fd = open_file(name_of(1));
	CHECK_EQ(leases_try(sc.l, fd, true, &trial), 0);
	lease_give_up(fd, &trial);
	CHECK(!trial.is_set);
	CHECK_EQ(fcntl(fd, F_GETLEASE), F_UNLCK);
	CHECK_EQ(leases_try(sc.l, fd, false, &trial), 0);
	close(fd);
	fd = open(name_of(1), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	CHECK(fd >= 0);
	close(fd);
	CHECK_EQ(leases_count(sc.l).held, 0);
}

TEST(each_refusal_has_its_own_code_and_leaves_the_descriptor)
{
	AUTO_CLOSE int fd = -1, dir = -1, proc = -1;
	SCENE(sc, 2, 0);

	add_file(&sc, 1);
	make_file(test_path("one"));
	fd = open_file(test_path("one"));
	CHECK_EQ(add(&sc, 1, fd, true), -EEXIST);
	dir = open(test_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_EQ(add(&sc, 2, dir, true), -ENOTSUP);
	proc = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	CHECK(!lease_possible(proc));
	add_file(&sc, 3);
	CHECK_EQ(add(&sc, 4, fd, true), -EMFILE);
	CHECK_EQ(leases_dup(sc.l, 4), -ENOENT);
	CHECK_EQ(leases_drop(sc.l, 3), 1);
	CHECK_EQ(add(&sc, 4, TAKE_FD(fd), true), 0);
}

TEST(files_of_another_owner_are_refused_without_the_privilege)
{
	pid_t pid;

	if (geteuid() != 0)
		TEST_SKIP("only root can become another user");
	make_file(test_path("roots"));
	close(open_file(test_path("roots")));
	pid = fork();
	if (pid == 0) {
		struct scene sc = scene_new();
		int fd = open(test_path("roots"), O_RDONLY | O_CLOEXEC);
		const struct leases_options options = { .take = take, .ctx = &sc };

		if (setresuid(NOBODY, NOBODY, NOBODY) < 0)
			_exit(1);
		if (leases_open(&options, &sc.l, NULL) < 0)
			_exit(2);
		_exit(add(&sc, 1, fd, true) == -EACCES ? 0 : 3);
	}
	CHECK_EQ(end_of(pid), 0);
}

/* In the long run only: the kernel's patience is 45 s, and it is one for the whole machine. */
TEST(a_take_that_outlasts_the_kernel_knows_it)
{
	pid_t pid;

	if (!getenv("SNAP_TESTS_LONG"))
		return;
	SCENE(sc, 0, 0);
	add_file(&sc, 1);
	atomic_store(&sc.b->gate_shut, 1);
	pid = start_writer(&sc, 1, open_wronly);
	CHECK_EQ(end_of(pid), 0);
	CHECK_EQ(atomic_load(&sc.b->early), 1);
	atomic_store(&sc.b->gate_shut, 0);
	WAIT_FOR(leases_count(sc.l).held == 0);
	CHECK_EQ(leases_count(sc.l).lapsed, 1);
	CHECK_EQ(atomic_load(&sc.b->unheld), 1);
}

TEST_MAIN("lease")
