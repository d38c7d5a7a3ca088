/*
 * bench-land FROM TO - what it costs to make a tree whose files appear whole and survive power loss.
 *
 * The tree FROM is read into memory first, which is not timed.  Then, as whoever lands a tree in a directory must:
 * one thread for each processor writes the files beside TO, with their modes and times; all is synced; the directories
 * are made, and each file is renamed into its place; all is synced again.  No journal is written, nothing is compared,
 * and nothing is read back.  TO is made.  Prints milliseconds.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 16
#define OPEN_MAX    64 /* directories that nftw() keeps open */

struct node {
	char *path; /* below FROM */
	char *data; /* of a file, or a symlink's target */
	struct stat st;
};

static struct node *list; /* in the order of a walk: a directory before what lies in it */
static size_t n, cap;
static size_t from_len;
static size_t taken; /* nodes that a thread has, or has done */
static int top, stage;

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "bench-land: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void read_file(struct node *node, const char *path)
{
	const size_t size = (size_t)node->st.st_size;
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	check(fd >= 0, path);
	check(read(fd, node->data, size) == (ssize_t)size, path);
	close(fd);
}

static int add(const char *path, const struct stat *st, int flag, struct FTW *unused)
{
	struct node *node;

	if (path[from_len] == '\0' ||
	    !(S_ISDIR(st->st_mode) || S_ISREG(st->st_mode) || S_ISLNK(st->st_mode)))
		return 0;
	if (n == cap) {
		cap = cap ? 2 * cap : 1024;
		list = realloc(list, cap * sizeof(*list));
		check(list != NULL, "memory");
	}
	node = &list[n++];
	node->st = *st;
	node->path = strdup(path + from_len + 1);
	node->data = calloc(1, S_ISDIR(st->st_mode) ? 1 : (size_t)st->st_size + 1);
	check(node->path && node->data, "memory");
	if (S_ISREG(st->st_mode))
		read_file(node, path);
	else if (S_ISLNK(st->st_mode))
		check(readlink(path, node->data, (size_t)st->st_size) == st->st_size, path);
	return 0;
}

static void set_times(int dir, const char *name, const struct stat *st)
{
	const struct timespec times[] = { st->st_atim, st->st_mtim };

	check(utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW) == 0, name);
}

static void write_one(size_t i)
{
	const struct node *node = &list[i];
	const size_t size = (size_t)node->st.st_size;
	char slot[32];
	int fd;

	snprintf(slot, sizeof(slot), "n%zu", i);
	if (S_ISLNK(node->st.st_mode)) {
		check(symlinkat(node->data, stage, slot) == 0, slot);
		set_times(stage, slot, &node->st);
		return;
	}
	fd = openat(stage, slot, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	check(fd >= 0, slot);
	check(write(fd, node->data, size) == (ssize_t)size, slot);
	check(fchmod(fd, node->st.st_mode & 07777) == 0, slot);
	check(futimens(fd, (const struct timespec[]){ node->st.st_atim, node->st.st_mtim }) == 0,
	      slot);
	close(fd);
}

static void *write_some(void *unused)
{
	size_t i;

	while ((i = __atomic_fetch_add(&taken, 1, __ATOMIC_RELAXED)) < n)
		if (!S_ISDIR(list[i].st.st_mode))
			write_one(i);
	return unused;
}

static void write_all(void)
{
	const long processors = sysconf(_SC_NPROCESSORS_ONLN);
	const int most = processors < THREADS_MAX ? (int)processors : THREADS_MAX;
	pthread_t threads[THREADS_MAX];

	for (int i = 0; i < most; i++)
		check(pthread_create(&threads[i], NULL, write_some, NULL) == 0, "a thread");
	for (int i = 0; i < most; i++)
		pthread_join(threads[i], NULL);
	check(syncfs(stage) == 0, "syncfs");
}

static void land_all(void)
{
	char slot[32];

	for (size_t i = 0; i < n; i++)
		if (S_ISDIR(list[i].st.st_mode))
			check(mkdirat(top, list[i].path, 0700) == 0, list[i].path);
	for (size_t i = 0; i < n; i++) {
		snprintf(slot, sizeof(slot), "n%zu", i);
		if (!S_ISDIR(list[i].st.st_mode))
			check(renameat(stage, slot, top, list[i].path) == 0, list[i].path);
	}
	for (size_t i = n; i-- > 0;)
		if (S_ISDIR(list[i].st.st_mode)) {
			check(fchmodat(top, list[i].path, list[i].st.st_mode & 07777, 0) == 0,
			      list[i].path);
			set_times(top, list[i].path, &list[i].st);
		}
	check(syncfs(top) == 0, "syncfs");
}

static int make_dir(const char *path)
{
	int fd;

	check(mkdir(path, 0700) == 0, path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	check(fd >= 0, path);
	return fd;
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

int main(int argc, char **argv)
{
	char beside[4096];
	double start;

	if (argc != 3) {
		fprintf(stderr, "usage: bench-land FROM TO\n");
		return 2;
	}
	from_len = strlen(argv[1]);
	check(nftw(argv[1], add, OPEN_MAX, FTW_PHYS) == 0, argv[1]);
	snprintf(beside, sizeof(beside), "%s.stage", argv[2]);
	start = now_ms();
	top = make_dir(argv[2]);
	stage = make_dir(beside);
	write_all();
	land_all();
	check(rmdir(beside) == 0, beside);
	printf("%.1f\n", now_ms() - start);
	return 0;
}
