/*
 * lease-fixture.h - for tests of leases: files, processes that write to them, and what both see of each other.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fdio.h"
#include "snapshot/capture/lease.h"
#include "tests/lib/test.h"

#define KEYS      5000
#define OLD_BYTES "as it was"

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

static inline int take(void *ctx, uint64_t key, int fd)
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

static inline struct scene scene_new(void)
{
	struct scene sc = { .b = mmap(NULL, sizeof(struct board), PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_ANONYMOUS, -1, 0) };

	CHECK(sc.b != MAP_FAILED);
	return sc;
}

static inline void scene_open(struct scene *sc, size_t max, unsigned takers)
{
	const struct leases_options options = {
		.max = max, .takers = takers, .take = take, .ctx = sc
	};
	struct err err = { 0 };

	signal(SIGIO, SIG_IGN);
	CHECK_OK(leases_open(&options, &sc->l, &err), &err);
}

static inline void scene_done(struct scene *sc)
{
	leases_close(sc->l);
	munmap(sc->b, sizeof(*sc->b));
}

#define SCENE(sc, max, takers)                             \
	CLEANUP(scene_done) struct scene sc = scene_new(); \
	scene_open(&(sc), (max), (takers))

static inline const char *name_of(uint64_t key)
{
	static char name[32];

	snprintf(name, sizeof(name), "f%llu", (unsigned long long)key);
	return test_path(name);
}

static inline void make_file(const char *path)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	CHECK(fd >= 0);
	CHECK_EQ(fdio_write(fd, OLD_BYTES, strlen(OLD_BYTES)), 0);
}

static inline int open_file(const char *path)
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
static inline int add(struct scene *sc, uint64_t key, int fd, bool likely)
{
	struct lease_trial trial;
	int r = leases_try(sc->l, fd, likely, &trial);

	if (r == 0)
		r = leases_add(sc->l, key, fd, &trial);
	if (r < 0)
		lease_give_up(fd, &trial);
	return r;
}

static inline void add_file(struct scene *sc, uint64_t key)
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

static inline int write_some(int fd)
{
	return fd >= 0 && pwrite(fd, "X", 1, 0) == 1 ? 0 : 1;
}

static inline int open_wronly(const char *path)
{
	return write_some(open(path, O_WRONLY));
}

static inline int open_rdwr(const char *path)
{
	return write_some(open(path, O_RDWR));
}

static inline int open_append(const char *path)
{
	return write_some(open(path, O_WRONLY | O_APPEND));
}

static inline int open_trunc(const char *path)
{
	return open(path, O_WRONLY | O_TRUNC) >= 0 ? 0 : 1;
}

static inline int open_creat(const char *path)
{
	return open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644) >= 0 ? 0 : 1;
}

static inline int truncate_path(const char *path)
{
	return truncate(path, 1) == 0 ? 0 : 1;
}

static inline pid_t start_writer(struct scene *sc, uint64_t key, act_fn act)
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

static inline int end_of(pid_t pid)
{
	int status = -1;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static inline void check_clean(const struct scene *sc)
{
	CHECK_EQ(atomic_load(&sc->b->different), 0);
	CHECK_EQ(atomic_load(&sc->b->unheld), 0);
	CHECK_EQ(atomic_load(&sc->b->early), 0);
	CHECK_EQ(leases_count(sc->l).lapsed, 0);
}
