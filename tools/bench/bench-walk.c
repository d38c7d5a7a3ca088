/*
 * bench-walk DIR stat|lease|read - what it costs to walk over a tree, with nothing stored.
 *
 * One thread for each processor, as in a capture.  For each regular file: `stat` examines it by its name;
 * `lease` opens it, leases it, lists its attributes and examines it, and keeps it open while there is room;
 * `read` opens, reads (64 KiB at most), examines and closes it.  Prints milliseconds.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 16
#define HELD_MAX    32768 /* small files that cowfsd holds at most */
#define READ_MAX    ((size_t)64 << 10)

enum mode { MODE_STAT, MODE_LEASE, MODE_READ };

struct dir {
	struct dir *next;
	char path[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct dir *first; /* still to be listed */
static unsigned busy;
static int room = HELD_MAX;

static enum mode mode;

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "bench-walk: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void push(const char *path, const char *name)
{
	const size_t len = strlen(path) + strlen(name) + 2;
	struct dir *d = malloc(sizeof(*d) + len);

	check(d != NULL, "memory");
	snprintf(d->path, len, "%s%s%s", path, *name ? "/" : "", name);
	pthread_mutex_lock(&lock);
	d->next = first;
	first = d;
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&lock);
}

/* NULL: nobody will find any more. */
static struct dir *pop(void)
{
	struct dir *d;

	pthread_mutex_lock(&lock);
	while (!first && busy > 0)
		pthread_cond_wait(&changed, &lock);
	d = first;
	if (d) {
		first = d->next;
		busy++;
	} else {
		pthread_cond_broadcast(&changed);
	}
	pthread_mutex_unlock(&lock);
	return d;
}

static void finish(struct dir *d)
{
	free(d);
	pthread_mutex_lock(&lock);
	if (--busy == 0)
		pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void visit(int dir, const char *name)
{
	char data[READ_MAX];
	struct stat st;
	int fd;

	if (mode == MODE_STAT) {
		check(fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0, name);
		return;
	}
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	check(fd >= 0, name);
	if (mode == MODE_READ)
		check(pread(fd, data, sizeof(data), 0) >= 0, name);
	else
		check(fcntl(fd, F_SETLEASE, F_RDLCK) == 0, name);
	check(flistxattr(fd, NULL, 0) >= 0 || errno == ENOTSUP, name);
	check(fstat(fd, &st) == 0, name);
	if (mode == MODE_READ || __atomic_sub_fetch(&room, 1, __ATOMIC_RELAXED) < 0)
		close(fd);
}

static void list(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *d;

	check(dir != NULL, path);
	while ((d = readdir(dir)))
		if (d->d_type == DT_REG)
			visit(dirfd(dir), d->d_name);
		else if (d->d_type == DT_DIR && strcmp(d->d_name, ".") != 0 &&
			 strcmp(d->d_name, "..") != 0)
			push(path, d->d_name);
	closedir(dir);
}

static void *work(void *unused)
{
	struct dir *d;

	while ((d = pop())) {
		list(d->path);
		finish(d);
	}
	return unused;
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

int main(int argc, char **argv)
{
	static const char *const modes[] = { "stat", "lease", "read" };
	const struct rlimit files = { 1 << 17, 1 << 17 };
	const long processors = sysconf(_SC_NPROCESSORS_ONLN);
	const int n = processors < THREADS_MAX ? (int)processors : THREADS_MAX;
	pthread_t threads[THREADS_MAX];
	double start;

	while (argc == 3 && mode <= MODE_READ && strcmp(argv[2], modes[mode]) != 0)
		mode++;
	if (argc != 3 || mode > MODE_READ) {
		fprintf(stderr, "usage: bench-walk DIR stat|lease|read\n");
		return 2;
	}
	setrlimit(RLIMIT_NOFILE, &files); /* without it fewer are held */
	signal(SIGIO, SIG_IGN);
	room = dup2(0, HELD_MAX + 1024) < 0 ? 256
					    : HELD_MAX; /* the table has its size from the start */
	start = now_ms();
	push(argv[1], "");
	for (int i = 0; i < n; i++)
		check(pthread_create(&threads[i], NULL, work, NULL) == 0, "a thread");
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	printf("%.1f\n", now_ms() - start);
	return 0;
}
