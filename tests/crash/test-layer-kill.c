/*
 * kill -9 of a process with a layer, at random moments of a load that never rests.  What it
 * had synced must be there afterwards; and whatever else is there must be a prefix of
 * what it did: numbered files are made in order, so none may be missing before the last.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fdio.h"
#include "tests/lib/live.h"

#define LIVES   100
#define LIFE_US 80000

/* --- a life: in a process of its own until it is killed ----------------------------------- */

static void write_number(struct live *v, uint64_t n)
{
	char path[64], text[64];

	snprintf(path, sizeof(path), "d%" PRIu64 "/m%" PRIu64, n / 50, n);
	snprintf(text, sizeof(text), "this is number %" PRIu64, n);
	if (n % 50 == 0) {
		char dir[32];

		snprintf(dir, sizeof(dir), "d%" PRIu64, n / 50);
		IGNORE_RESULT(live_try_make(v, dir, S_IFDIR | 0755),
			      "an earlier life may have made it");
	}
	live_put(v, path, text);
}

/* Things that come and go beside the numbers: a big file that is rewritten, renames, links. */
static void make_noise(struct live *v, struct test_rng *rng)
{
	uint8_t data[5000];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)test_rand(rng);
	if (live_try_stat(v, "noise", &(struct stat){ 0 }) < 0)
		live_put(v, "noise", "");
	CHECK_EQ(live_try_write(v, "noise", test_rand(rng) % 500000, data, sizeof(data)), 0);
	if (test_rand(rng) % 4 == 0)
		IGNORE_RESULT(live_try_link(v, "noise", "noise2"), "may be there");
	if (test_rand(rng) % 4 == 0)
		CHECK_EQ(live_try_rename(v, "noise", "noise3", 0), 0);
	else
		IGNORE_RESULT(live_try_unlink(v, "noise2"), "may not be there");
}

NORETURN static void live_a_life(const char *path, uint64_t next, int pipe_fd, uint64_t seed)
{
	struct live v = { .options.persist_ms = 3 };
	struct test_rng rng = { .s = seed };
	struct err err = { 0 };

	v.store = stock_open(path, STORE_WRITE);
	CHECK_OK(layers_new(v.store, &v.options, &v.layers, &err), &err);
	CHECK_OK(layer_open(v.layers, "work", &v.l, &err), &err);
	for (;; next++) {
		write_number(&v, next);
		make_noise(&v, &rng);
		if (test_rand(&rng) % 3 == 0) {
			CHECK_OK(layer_sync(v.l, LAYER_ROOT, &err), &err);
			CHECK_EQ(fdio_write(pipe_fd, &next, sizeof(next)), 0);
		}
	}
}

/* --- afterwards ------------------------------------------------------------------------- */

/* How many numbers there are; they must be all from 0 on. */
static uint64_t count_numbers(struct live *v)
{
	char path[64], text[64];
	struct stat st;
	uint64_t n = 0;

	for (;; n++) {
		snprintf(path, sizeof(path), "d%" PRIu64 "/m%" PRIu64, n / 50, n);
		snprintf(text, sizeof(text), "this is number %" PRIu64, n);
		if (live_try_stat(v, path, &st) < 0)
			break;
		/* The last may be made and not written yet. */
		if (!live_has(v, path, text)) {
			snprintf(path, sizeof(path), "d%" PRIu64 "/m%" PRIu64, (n + 1) / 50, n + 1);
			CHECK_EQ(live_try_stat(v, path, &st), -ENOENT);
			break;
		}
	}
	return n;
}

static void check_nothing_beyond(struct live *v, uint64_t n)
{
	char path[64];

	for (uint64_t i = n + 1; i < n + 200; i++) {
		snprintf(path, sizeof(path), "d%" PRIu64 "/m%" PRIu64, i / 50, i);
		CHECK_EQ(live_try_stat(v, path, &(struct stat){ 0 }), -ENOENT);
	}
}

static uint64_t last_synced(int fd, uint64_t before)
{
	uint64_t n, last = before;

	while (read(fd, &n, sizeof(n)) == sizeof(n))
		last = n + 1;
	return last;
}

TEST(what_was_synced_is_there_and_the_rest_is_a_prefix)
{
	const char *path = test_path("store");
	struct test_rng rng = { .s = test_seed() };
	uint64_t synced = 0, there = 0;
	struct live v = { 0 };

	live_open(&v, "store");
	live_close(&v);
	for (int life = 0; life < LIVES; life++) {
		int fds[2];
		pid_t pid;

		CHECK_EQ(pipe(fds), 0);
		pid = fork();
		CHECK(pid >= 0);
		if (pid == 0) {
			close(fds[0]);
			live_a_life(path, there, fds[1], test_rand(&rng));
		}
		close(fds[1]);
		usleep((useconds_t)(test_rand(&rng) % LIFE_US));
		CHECK_EQ(kill(pid, SIGKILL), 0);
		CHECK_EQ(waitpid(pid, NULL, 0), pid);
		synced = last_synced(fds[0], synced);
		close(fds[0]);

		v.store = stock_open(path, STORE_WRITE);
		live_crash(&v);
		there = count_numbers(&v);
		CHECK(there >= synced);
		check_nothing_beyond(&v, there);
		if (life % 20 == 19)
			stock_check_clean(v.store);
		live_close(&v);
		test_rand(&rng);
	}
	printf("# %" PRIu64 " numbers, %" PRIu64 " of them synced\n", there, synced);
	CHECK(synced > 0);
}

TEST_MAIN("layer-kill")
