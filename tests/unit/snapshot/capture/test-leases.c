/*
 * A set of leases: many files, signals that are lost, and its end.
 */
#include <pthread.h>
#include <sys/resource.h>

#include "tests/unit/snapshot/capture/lease-fixture.h"

#define MANY 150 /* more than a set notes of signals that found no lease */

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

TEST_MAIN("leases")
