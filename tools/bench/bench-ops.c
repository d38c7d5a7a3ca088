/*
 * bench-ops DIR N [ROUNDS] - what one file-system operation costs, below DIR.
 *
 * Makes, uses and removes N small files and directories in a directory of its own, ROUNDS
 * times (5), and prints one line of JSON: microseconds per operation, the best and the
 * middle of the rounds.  Every figure is of one thread that does one thing after the other.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS_MAX 99

static char block[4096];

__attribute__((noreturn)) static void fail(const char *what)
{
	fprintf(stderr, "bench-ops: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void check(bool ok, const char *what)
{
	if (!ok)
		fail(what);
}

static void do_missing(const char *name, const char *other)
{
	struct stat st;

	check(stat(name, &st) < 0 && errno == ENOENT, "stat of what is not there");
}

static void do_create(const char *name, const char *other)
{
	const int fd = open(name, O_CREAT | O_EXCL | O_WRONLY, 0644);

	check(fd >= 0, name);
	close(fd);
}

static void do_create_write(const char *name, const char *other)
{
	const int fd = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0644);

	check(fd >= 0 && write(fd, block, sizeof(block)) == sizeof(block), name);
	close(fd);
}

static void do_stat(const char *name, const char *other)
{
	struct stat st;

	check(stat(name, &st) == 0, name);
}

static void do_read(const char *name, const char *other)
{
	const int fd = open(name, O_RDONLY);

	check(fd >= 0 && read(fd, block, sizeof(block)) == sizeof(block), name);
	close(fd);
}

/* Eight writes between one open and one close: what every further write costs. */
static void do_write_8(const char *name, const char *other)
{
	const int fd = open(name, O_WRONLY);

	check(fd >= 0, name);
	for (int i = 0; i < 8; i++)
		check(write(fd, block, sizeof(block)) == sizeof(block), name);
	close(fd);
}

static void do_rename(const char *name, const char *other)
{
	check(rename(name, other) == 0, name);
}

static void do_unlink(const char *name, const char *other)
{
	check(unlink(name) == 0, name);
}

static void do_unlink_other(const char *name, const char *other)
{
	check(unlink(other) == 0, other);
}

static void do_mkdir(const char *name, const char *other)
{
	check(mkdir(name, 0755) == 0, name);
}

static void do_rmdir(const char *name, const char *other)
{
	check(rmdir(name) == 0, name);
}

static const struct step {
	const char *label;
	void (*run)(const char *name, const char *other);
} steps[] = {
	{ "missing", do_missing },
	{ "missing_again", do_missing },
	{ "create", do_create },
	{ "unlink_empty", do_unlink },
	{ "create_write_4k", do_create_write },
	{ "stat_after_write", do_stat },
	{ "stat", do_stat },
	{ "open_read_4k", do_read },
	{ "open_read_4k_again", do_read },
	{ "truncate_write_4k", do_create_write },
	{ "write_8x4k", do_write_8 },
	{ "rename", do_rename },
	{ "unlink", do_unlink_other },
	{ "mkdir", do_mkdir },
	{ "rmdir", do_rmdir },
};
#define N_STEPS (sizeof(steps) / sizeof(steps[0]))

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static double run_step(const struct step *s, int n)
{
	const double start = now_us();
	char name[32], other[32];

	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		snprintf(other, sizeof(other), "g%d", i);
		s->run(name, other);
	}
	return (now_us() - start) / n;
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	static double us[N_STEPS][ROUNDS_MAX];
	const int n = argc > 2 ? atoi(argv[2]) : 0;
	const int rounds = argc > 3 ? atoi(argv[3]) : 5;
	char dir[] = "bench-ops.XXXXXX";

	if (n <= 0 || rounds <= 0 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: bench-ops DIR N [ROUNDS]\n");
		return 2;
	}
	check(chdir(argv[1]) == 0, argv[1]);
	check(mkdtemp(dir) != NULL && chdir(dir) == 0, dir);
	memset(block, 'x', sizeof(block));
	for (int r = 0; r < rounds; r++)
		for (size_t i = 0; i < N_STEPS; i++)
			us[i][r] = run_step(&steps[i], n);
	check(chdir("..") == 0 && rmdir(dir) == 0, dir);

	printf("{\"n\":%d,\"rounds\":%d", n, rounds);
	for (size_t i = 0; i < N_STEPS; i++) {
		qsort(us[i], (size_t)rounds, sizeof(us[i][0]), compare);
		printf(",\"%s\":[%.2f,%.2f]", steps[i].label, us[i][0], us[i][rounds / 2]);
	}
	printf("}\n");
	return 0;
}
