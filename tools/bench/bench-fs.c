/*
 * bench-fs - the loops of tools/bench/run fs: what one kind of operation costs in a directory.
 *
 *   bench-fs walk|list|read|all TREE       one pass over a tree: stat each, names, bytes, all three
 *   bench-fs meta DIR N                    N small files and directories made, moved, removed
 *   bench-fs burst DIR N                   N packages installed as npm does
 *   bench-fs sequential FILE SIZE REQUEST  write, write again, read
 *   bench-fs reread FILE REQUEST           read twice; prints the second time
 *   bench-fs random FILE SIZE N [SEED]     N writes of 4 KiB into a file of that size
 *
 * Prints one line of JSON: microseconds an operation, or milliseconds in all (_ms).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/cleanup.h"

#define PAGE 4096

NORETURN static void die(const char *what)
{
	fprintf(stderr, "error: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static bool first_figure = true;

static void tell(const char *name, double value)
{
	printf("%s\"%s\":%.3f", first_figure ? "{" : ",", name, value);
	first_figure = false;
}

/* --- trees ------------------------------------------------------------------------------- */

enum pass { PASS_LIST = 1, PASS_STAT = 2, PASS_READ = 4 };

struct tree_sums {
	uint64_t entries, files, bytes;
};

static void read_file(int dir, const char *name, struct tree_sums *sums)
{
	static char data[1 << 17];
	AUTO_CLOSE int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		die(name);
	while ((n = read(fd, data, sizeof(data))) > 0)
		sums->bytes += (uint64_t)n;
	if (n < 0)
		die(name);
	sums->files++;
}

/* Trees that are measured are made by make-tree, which bounds their depth. */
static void pass_over(int dir, unsigned what, struct tree_sums *sums)
{
	struct dirent *e;
	struct stat st;
	DIR *d = fdopendir(dir);

	if (!d)
		die("fdopendir");
	while ((e = readdir(d))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		sums->entries++;
		if ((what & PASS_STAT) && fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
			die(e->d_name);
		if (e->d_type == DT_DIR) {
			int inner =
			    openat(dir, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

			if (inner < 0)
				die(e->d_name);
			pass_over(inner, what, sums);
		} else if ((what & PASS_READ) && e->d_type == DT_REG) {
			read_file(dir, e->d_name, sums);
		}
	}
	closedir(d);
}

static void tree_pass(const char *path, unsigned what)
{
	struct tree_sums sums = { 0 };
	double start = now_us();
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		die(path);
	pass_over(fd, what, &sums);
	tell("pass_ms", (now_us() - start) / 1e3);
	tell("entries", (double)sums.entries);
	tell("bytes", (double)sums.bytes);
}

/* --- small files ------------------------------------------------------------------------- */

static char page[PAGE];

static const char *numbered(const char *prefix, unsigned i)
{
	static char name[2][64];
	static unsigned turn;
	char *n = name[turn++ % 2];

	snprintf(n, sizeof(name[0]), "%s%u", prefix, i);
	return n;
}

static void create_one(unsigned i)
{
	int fd = open(numbered("file-", i), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	if (fd < 0 || write(fd, page, PAGE) != PAGE || close(fd) != 0)
		die("create");
}

static void rename_one(unsigned i)
{
	if (rename(numbered("file-", i), numbered("moved-", i)) != 0)
		die("rename");
}

static void stat_one(unsigned i)
{
	struct stat st;

	if (lstat(numbered("moved-", i), &st) != 0)
		die("lstat");
}

static void open_one(unsigned i)
{
	int fd = open(numbered("moved-", i), O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, page, PAGE) != PAGE || close(fd) != 0)
		die("open");
}

static void missing_one(unsigned i)
{
	struct stat st;

	if (lstat(numbered("missing-", i), &st) == 0)
		die("lstat");
}

static void unlink_one(unsigned i)
{
	if (unlink(numbered("moved-", i)) != 0)
		die("unlink");
}

static void mkdir_one(unsigned i)
{
	if (mkdir(numbered("dir-", i), 0755) != 0)
		die("mkdir");
}

static void rmdir_one(unsigned i)
{
	if (rmdir(numbered("dir-", i)) != 0)
		die("rmdir");
}

static void symlink_one(unsigned i)
{
	if (symlink("some/where", numbered("link-", i)) != 0)
		die("symlink");
}

static void unlink_link(unsigned i)
{
	if (unlink(numbered("link-", i)) != 0)
		die("unlink");
}

static void meta(const char *dir, unsigned n)
{
	static const struct {
		const char *name; /* NULL: not told */
		void (*one)(unsigned i);
	} steps[] = {
		{ "create", create_one },   { "rename", rename_one },   { NULL, open_one },
		{ NULL, stat_one },         { "stat", stat_one },       { "open", open_one },
		{ "missing", missing_one }, { "unlink", unlink_one },   { "mkdir", mkdir_one },
		{ "rmdir", rmdir_one },     { "symlink", symlink_one }, { NULL, unlink_link },
	};
	size_t k;
	unsigned i;
	double start;

	if (chdir(dir) != 0)
		die(dir);
	for (k = 0; k < ARRAY_LEN(steps); k++) {
		start = now_us();
		for (i = 0; i < n; i++)
			steps[k].one(i);
		if (steps[k].name)
			tell(steps[k].name, (now_us() - start) / n);
	}
}

/* --- packages ---------------------------------------------------------------------------- */

static uint64_t rng = 88172645463325252u;

static uint64_t next_random(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng;
}

static void write_file(const char *path, const char *data, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	if (fd < 0 || write(fd, data, len) != (ssize_t)len || fchmod(fd, 0644) != 0 ||
	    close(fd) != 0)
		die(path);
}

/* Unpack beside, look, move into place, link what it offers. */
static void install(unsigned package, const char *data)
{
	static const char *const folders[] = { "", "lib/", "dist/", "dist/esm/" };
	char path[256], to[64];
	struct stat st;
	unsigned i;
	int fd;

	snprintf(path, sizeof(path), ".tmp-%u", package);
	if (mkdir(path, 0755) != 0)
		die(path);
	for (i = 1; i < ARRAY_LEN(folders); i++) {
		snprintf(path, sizeof(path), ".tmp-%u/%s", package, folders[i]);
		if (mkdir(path, 0755) != 0)
			die(path);
	}
	for (i = 0; i < 25; i++) {
		size_t len = next_random() % 8 ? next_random() % 3000 : next_random() % 30000;

		snprintf(path, sizeof(path), ".tmp-%u/%sfile-%u.js", package, folders[i % 4], i);
		if (lstat(path, &st) == 0)
			die(path);
		write_file(path, data, len);
	}
	snprintf(path, sizeof(path), ".tmp-%u", package);
	snprintf(to, sizeof(to), "package-%u", package);
	if (rename(path, to) != 0)
		die(path);
	snprintf(path, sizeof(path), "package-%u/file-0.js", package);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, page, PAGE) < 0 || close(fd) != 0)
		die(path);
	snprintf(path, sizeof(path), ".bin/package-%u", package);
	snprintf(to, sizeof(to), "../package-%u/file-0.js", package);
	if (symlink(to, path) != 0)
		die(path);
}

static void burst(const char *dir, unsigned n)
{
	static char data[30000];
	double start;
	unsigned i;

	for (i = 0; i < sizeof(data); i++)
		data[i] = (char)(' ' + next_random() % 64);
	if (chdir(dir) != 0 || mkdir(".bin", 0755) != 0)
		die(dir);
	start = now_us();
	for (i = 0; i < n; i++)
		install(i, data);
	tell("burst_ms", (now_us() - start) / 1e3);
}

/* --- one large file ------------------------------------------------------------------------ */

/* Bytes of which a compressor saves about half, different at every offset. */
static void stamp(char *data, size_t len, uint64_t off)
{
	size_t i;

	for (i = 0; i + PAGE <= len; i += PAGE) {
		uint64_t where = off + i;

		memcpy(data + i, &where, sizeof(where));
	}
}

static double write_all(int fd, char *data, uint64_t size, size_t request)
{
	double start = now_us();
	uint64_t off;

	for (off = 0; off < size; off += request) {
		stamp(data, request, off);
		if (pwrite(fd, data, request, (off_t)off) != (ssize_t)request)
			die("write");
	}
	return (now_us() - start) / 1e3;
}

static char *noise(size_t len)
{
	char *data = malloc(len);
	size_t i;

	if (!data)
		die("malloc");
	for (i = 0; i < len; i += 8) {
		uint64_t r = next_random();

		memcpy(data + i, i % 256 < 128 ? (char *)&r : "unchange", 8);
	}
	return data;
}

/* The first time to warm up. */
static void read_twice(int fd, char *data, uint64_t size, size_t request)
{
	double start = 0;
	uint64_t off;
	int turn;

	for (turn = 0; turn < 2; turn++) {
		start = now_us();
		for (off = 0; off < size; off += request)
			if (pread(fd, data, request, (off_t)off) != (ssize_t)request)
				die("read");
	}
	tell("read_ms", (now_us() - start) / 1e3);
}

static void reread(const char *path, size_t request)
{
	AUTO_FREE char *data = noise(request);
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0)
		die(path);
	read_twice(fd, data, (uint64_t)st.st_size / request * request, request);
}

static void sequential(const char *path, uint64_t size, size_t request)
{
	AUTO_FREE char *data = noise(request);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0)
		die(path);
	tell("write_ms", write_all(fd, data, size, request));
	tell("rewrite_ms", write_all(fd, data, size, request));
	read_twice(fd, data, size, request);
	close(fd);
}

static void random_writes(const char *path, uint64_t size, unsigned n, uint64_t seed)
{
	AUTO_FREE char *data = noise(PAGE);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	struct stat st;
	double start;
	unsigned i;

	if (fd < 0 || fstat(fd, &st) != 0)
		die(path);
	if ((uint64_t)st.st_size < size) {
		AUTO_FREE char *large = noise(1 << 20);

		write_all(fd, large, size, 1 << 20);
	}
	rng += seed * 0x9e3779b97f4a7c15u;
	start = now_us();
	for (i = 0; i < n; i++) {
		uint64_t off = next_random() % (size / PAGE) * PAGE;

		stamp(data, PAGE, off + i + seed);
		if (pwrite(fd, data, PAGE, (off_t)off) != PAGE)
			die("write");
	}
	tell("random_write", n ? (now_us() - start) / n : 0);
	close(fd);
}

/* ----------------------------------------------------------------------------------------- */

NORETURN static void usage(void)
{
	fputs("usage: bench-fs walk|list|read|all TREE | meta|burst DIR N | "
	      "sequential FILE SIZE REQUEST | reread FILE REQUEST | random FILE SIZE N [SEED]\n",
	      stderr);
	exit(2);
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	uint64_t a = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
	uint64_t b = argc > 4 ? strtoull(argv[4], NULL, 10) : 0;

	if (strcmp(what, "walk") == 0)
		tree_pass(argv[2], PASS_LIST | PASS_STAT);
	else if (strcmp(what, "list") == 0)
		tree_pass(argv[2], PASS_LIST);
	else if (strcmp(what, "read") == 0)
		tree_pass(argv[2], PASS_LIST | PASS_READ);
	else if (strcmp(what, "all") == 0)
		tree_pass(argv[2], PASS_LIST | PASS_STAT | PASS_READ);
	else if (strcmp(what, "meta") == 0 && a)
		meta(argv[2], (unsigned)a);
	else if (strcmp(what, "burst") == 0 && a)
		burst(argv[2], (unsigned)a);
	else if (strcmp(what, "sequential") == 0 && a && b)
		sequential(argv[2], a, (size_t)b);
	else if (strcmp(what, "reread") == 0 && a)
		reread(argv[2], (size_t)a);
	else if (strcmp(what, "random") == 0 && a)
		random_writes(argv[2], a, (unsigned)b, argc > 5 ? strtoull(argv[5], NULL, 10) : 1);
	else
		usage();
	printf("}\n");
	return 0;
}
