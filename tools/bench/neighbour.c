/*
 * neighbour.c - a neighbour that takes what it can get: abuses of a file system, for a while.
 *
 *   neighbour DIR SECONDS KIND...
 *
 * One process for each KIND works below DIR/KIND until the time is over.  A refusal for lack of
 * room is what an abuser expects: it removes what it made and begins again.  At the end each prints
 * "KIND ROUNDS REFUSALS".  `tools/bench/run neighbour` and tests/live/test-neighbour.py run it in
 * one clone, beside honest work in another.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define BLOCK   (1 << 20)
#define REWRITE (30 << 20)
#define XATTR   60000
#define FILES   20000
#define DEEP    200
#define GIANT   ((off_t)1 << 40)
#define SPOTS   64
#define STORM   500
#define OPEN    3000
#define NAMES   5000
#define SYNCERS 200

static uint8_t block[BLOCK];
static double end_at;
static unsigned long rounds, refusals;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool is_over(void)
{
	return now() >= end_at;
}

/* True if it was done; anything but a lack of room ends the program. */
static bool done(int r, const char *what)
{
	if (r >= 0)
		return true;
	if (errno != ENOSPC && errno != EDQUOT && errno != EMFILE && errno != ENOENT) {
		perror(what);
		exit(1);
	}
	refusals++;
	return false;
}

/* So that no two blocks are the same to a store that shares them. */
static void stir(void)
{
	static uint64_t x = 88172645463325252u;

	x += (uint64_t)getpid();
	for (size_t i = 0; i < BLOCK; i += sizeof(x)) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		memcpy(block + i, &x, sizeof(x));
	}
}

static int open_new(const char *name)
{
	return open(name, O_CREAT | O_RDWR | O_CLOEXEC, 0644);
}

static void remove_numbered(const char *prefix, int count)
{
	char name[300];

	for (int i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "%s%d", prefix, i);
		if (unlink(name) < 0 && errno != ENOENT)
			return;
	}
}

/* --- bytes ------------------------------------------------------------------------------ */

static void rewrite(void)
{
	const int fd = open_new("rewritten");

	if (!done(fd, "rewritten"))
		return;
	for (off_t at = 0; at < REWRITE && !is_over(); at += BLOCK) {
		stir();
		if (!done((int)pwrite(fd, block, BLOCK, at), "pwrite"))
			break;
	}
	done(fsync(fd), "fsync");
	close(fd);
}

static void sparse(void)
{
	const int fd = open_new("giant");

	if (!done(fd, "giant"))
		return;
	done(ftruncate(fd, GIANT), "ftruncate");
	for (int i = 0; i < SPOTS && !is_over(); i++)
		if (!done((int)pwrite(fd, &i, sizeof(i), GIANT / SPOTS * i), "pwrite"))
			break;
	done(ftruncate(fd, GIANT / 3), "ftruncate");
	done(ftruncate(fd, 0), "ftruncate");
	close(fd);
}

static void *sync_one(void *arg)
{
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "synced%d", (int)(intptr_t)arg);
	fd = open_new(name);
	if (fd < 0)
		return NULL;
	for (int i = 0; i < 16 && !is_over(); i++) {
		if (pwrite(fd, &i, sizeof(i), 0) < 0 || fsync(fd) < 0)
			break;
	}
	close(fd);
	return NULL;
}

static void syncs(void)
{
	pthread_t threads[SYNCERS];
	int n = 0;

	while (n < SYNCERS && pthread_create(&threads[n], NULL, sync_one, (void *)(intptr_t)n) == 0)
		n++;
	while (n > 0)
		pthread_join(threads[--n], NULL);
}

/* --- names and what belongs to them ----------------------------------------------------- */

static void xattrs(void)
{
	char name[32];
	int n = 0;

	for (bool room = true; room && n < FILES && !is_over(); n++) {
		snprintf(name, sizeof(name), "x%d", n);
		close(open_new(name));
		stir();
		room = done(setxattr(name, "user.a", block, XATTR, 0), "setxattr");
	}
	remove_numbered("x", n);
}

static void empty(void)
{
	char name[32];
	int n = 0, fd = 0;

	for (; n < FILES && !is_over() && fd >= 0; n++) {
		snprintf(name, sizeof(name), "empty%d", n);
		fd = open_new(name);
		if (done(fd, name))
			close(fd);
	}
	remove_numbered("empty", n);
}

static void deep(void)
{
	char name[256];
	int n = 0, top = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	memset(name, 'd', 250);
	name[250] = '\0';
	for (; n < DEEP && !is_over(); n++)
		if (!done(mkdir(name, 0755), "mkdir") || chdir(name) < 0)
			break;
	while (n-- > 0)
		if (chdir("..") < 0 || rmdir(name) < 0)
			break;
	done(fchdir(top), "fchdir");
	close(top);
}

static void storm(void)
{
	char a[32], b[32];

	for (int i = 0; i < STORM && !is_over(); i++) {
		snprintf(a, sizeof(a), "a%d", i);
		snprintf(b, sizeof(b), "b%d", i % 10);
		close(open_new(a));
		if (rename(a, b) < 0)
			done(-1, "rename");
		if (i % 3 == 0)
			unlink(b);
	}
}

static void hold(void)
{
	static int fds[OPEN];
	char name[32];
	int n = 0;

	for (; n < OPEN && !is_over(); n++) {
		snprintf(name, sizeof(name), "open%d", n);
		fds[n] = open_new(name);
		if (!done(fds[n], name) || !done((int)write(fds[n], block, 4096), "write"))
			break;
		unlink(name);
	}
	while (n-- > 0)
		close(fds[n]);
}

static void list(void)
{
	char name[32];
	DIR *d;

	for (int i = 0; i < NAMES && !is_over(); i++) {
		snprintf(name, sizeof(name), "a-long-directory-%d", i);
		close(open_new(name));
	}
	for (int i = 0; i < 20 && !is_over(); i++) {
		d = opendir(".");
		while (d && readdir(d) && !is_over())
			continue;
		if (d)
			closedir(d);
		snprintf(name, sizeof(name), "a-long-directory-%d", i);
		rename(name, "moved");
		rename("moved", name);
	}
	remove_numbered("a-long-directory-", NAMES);
}

/* --- all of them ------------------------------------------------------------------------ */

static const struct kind {
	const char *name;
	void (*act)(void);
} kinds[] = {
	{ "rewrite", rewrite }, { "sparse", sparse }, { "syncs", syncs },
	{ "xattrs", xattrs },   { "empty", empty },   { "deep", deep },
	{ "storm", storm },     { "hold", hold },     { "list", list },
};

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static int abuse(const struct kind *k)
{
	if ((mkdir(k->name, 0755) < 0 && errno != EEXIST) || chdir(k->name) < 0) {
		perror(k->name);
		return 1;
	}
	stir();
	while (!is_over()) {
		k->act();
		rounds++;
	}
	printf("%s %lu %lu\n", k->name, rounds, refusals);
	fflush(stdout);
	return 0;
}

static const struct kind *find(const char *name)
{
	for (size_t i = 0; i < N_KINDS; i++)
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	fprintf(stderr, "error: there is no '%s'\n", name);
	exit(2);
}

int main(int argc, char *argv[])
{
	int status, worst = 0;

	if (argc < 4 || chdir(argv[1]) < 0) {
		fprintf(stderr, "usage: neighbour DIR SECONDS KIND...\n");
		return 2;
	}
	end_at = now() + atof(argv[2]);
	for (int i = 3; i < argc; i++) {
		const struct kind *k = find(argv[i]);

		if (fork() == 0)
			exit(abuse(k));
	}
	while (wait(&status) >= 0)
		if (status != 0)
			worst = 1;
	return worst;
}
