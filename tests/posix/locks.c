/*
 * Locks: flock(2), fcntl(2) by process and by open file.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>

#include "tests/posix/posix.h"

static int set_lock(int fd, int cmd, short type, off_t off, off_t len)
{
	struct flock l = { .l_type = type, .l_whence = SEEK_SET, .l_start = off, .l_len = len };

	return fcntl(fd, cmd, &l);
}

/* The lock that stands in the way of one there; F_UNLCK if none does. */
static struct flock blocker(int fd, int cmd, short type, off_t off, off_t len)
{
	struct flock l = { .l_type = type, .l_whence = SEEK_SET, .l_start = off, .l_len = len };

	NEED(fcntl(fd, cmd, &l));
	return l;
}

static void flock_is_taken(void *arg)
{
	int fd = (int)NEED(open("f", O_RDWR | O_CLOEXEC));

	FAILS(flock(fd, LOCK_EX | LOCK_NB), EWOULDBLOCK);
	FAILS(flock(fd, LOCK_SH | LOCK_NB), EWOULDBLOCK);
}

static void flock_is_shared(void *arg)
{
	int fd = (int)NEED(open("f", O_RDONLY | O_CLOEXEC));

	FAILS(flock(fd, LOCK_EX | LOCK_NB), EWOULDBLOCK);
	OK(flock(fd, LOCK_SH | LOCK_NB));
}

static void flock_is_free(void *arg)
{
	int fd = (int)NEED(open("f", O_RDWR | O_CLOEXEC));

	OK(flock(fd, LOCK_EX | LOCK_NB));
}

CASE(locks, flock_keeps_others_out)
{
	int a = open_new("f"), b, c;

	b = (int)NEED(open("f", O_RDWR | O_CLOEXEC));
	OK(flock(a, LOCK_EX));
	FAILS(flock(b, LOCK_EX | LOCK_NB), EWOULDBLOCK);
	gather(start(flock_is_taken, NULL));
	OK(flock(a, LOCK_SH));
	gather(start(flock_is_shared, NULL));
	OK(flock(b, LOCK_SH | LOCK_NB));
	FAILS(flock(a, LOCK_EX | LOCK_NB), EWOULDBLOCK);
	close(b);
	OK(flock(a, LOCK_UN));
	gather(start(flock_is_free, NULL));
	OK(flock(a, LOCK_EX));
	c = (int)NEED(dup(a));
	close(a);
	gather(start(flock_is_taken, NULL)); /* the lock is the open file's, not the number's */
	close(c);
	gather(start(flock_is_free, NULL));
	NEED(mkdir("d", 0755));
	c = (int)NEED(open("d", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	OK(flock(c, LOCK_EX | LOCK_NB));
	close(c);
}

struct want {
	short type;
	off_t off, len;
	bool free;
};

static void posix_lock(void *arg)
{
	const struct want *w = arg;
	int fd = (int)NEED(open("f", O_RDWR | O_CLOEXEC));
	struct flock l;

	if (w->free) {
		OK(set_lock(fd, F_SETLK, w->type, w->off, w->len));
	} else {
		FAILS(set_lock(fd, F_SETLK, w->type, w->off, w->len), EAGAIN, EACCES);
		l = blocker(fd, F_GETLK, w->type, w->off, w->len);
		TRUE(l.l_type != F_UNLCK);
		IS(l.l_pid, getppid());
	}
}

static void others(short type, off_t off, off_t len, bool is_free)
{
	struct want w = { type, off, len, is_free };

	gather(start(posix_lock, &w));
}

CASE(locks, fcntl_locks_ranges)
{
	int fd = open_new("f");

	OK(set_lock(fd, F_SETLK, F_WRLCK, 100, 100));
	others(F_WRLCK, 100, 100, false);
	others(F_RDLCK, 150, 1, false);
	others(F_WRLCK, 0, 101, false);
	others(F_WRLCK, 0, 100, true);
	others(F_WRLCK, 200, 0, true);
	others(F_WRLCK, 0, 0, false);
	OK(set_lock(fd, F_SETLK, F_UNLCK, 140, 20)); /* two locks are left of it */
	others(F_WRLCK, 140, 20, true);
	others(F_WRLCK, 139, 1, false);
	others(F_WRLCK, 160, 1, false);
	OK(set_lock(fd, F_SETLK, F_RDLCK, 100, 100)); /* one again, to read */
	others(F_RDLCK, 100, 100, true);
	others(F_WRLCK, 150, 1, false);
	IS(blocker(fd, F_GETLK, F_WRLCK, 0, 0).l_type, F_UNLCK); /* one's own is not in the way */
	OK(set_lock(fd, F_SETLK, F_UNLCK, 0, 0));
	others(F_WRLCK, 0, 0, true);
	OK(set_lock(fd, F_SETLK, F_WRLCK, 0, 0));
	close((int)NEED(open("f", O_RDONLY | O_CLOEXEC))); /* closing any descriptor lets all go */
	others(F_WRLCK, 0, 0, true);
	close(fd);
}

CASE(locks, a_lock_needs_a_descriptor_that_may)
{
	int fd;

	make_file("f", "");
	fd = (int)NEED(open("f", O_RDONLY | O_CLOEXEC));
	FAILS(set_lock(fd, F_SETLK, F_WRLCK, 0, 0), EBADF);
	OK(set_lock(fd, F_SETLK, F_RDLCK, 0, 0));
	FAILS(set_lock(fd, F_SETLK, F_RDLCK, -1, 1), EINVAL);
	close(fd);
	fd = (int)NEED(open("f", O_WRONLY | O_CLOEXEC));
	FAILS(set_lock(fd, F_SETLK, F_RDLCK, 0, 0), EBADF);
	close(fd);
}

CASE(locks, open_files_lock_against_each_other)
{
	int a = open_new("f"), b, c;

	b = (int)NEED(open("f", O_RDWR | O_CLOEXEC));
	OK(set_lock(a, F_OFD_SETLK, F_WRLCK, 0, 10));
	FAILS(set_lock(b, F_OFD_SETLK, F_WRLCK, 5, 10), EAGAIN, EACCES);
	OK(set_lock(b, F_OFD_SETLK, F_WRLCK, 10, 10));
	IS(blocker(b, F_OFD_GETLK, F_RDLCK, 0, 5).l_type, F_WRLCK);
	IS(blocker(b, F_OFD_GETLK, F_RDLCK, 0, 5).l_pid, -1);
	c = (int)NEED(dup(a));
	close((int)NEED(open("f", O_RDONLY | O_CLOEXEC)));
	FAILS(set_lock(b, F_OFD_SETLK, F_WRLCK, 0, 5), EAGAIN, EACCES);
	close(a);
	FAILS(set_lock(b, F_OFD_SETLK, F_WRLCK, 0, 5), EAGAIN, EACCES);
	close(c);
	OK(set_lock(b, F_OFD_SETLK, F_WRLCK, 0, 5));
	others(F_RDLCK, 100, 1, true);
	close(b);
}

static void wait_for_lock(void *arg)
{
	int fd = (int)NEED(open("f", O_RDWR | O_CLOEXEC));

	NEED(set_lock(fd, F_SETLKW, F_WRLCK, 0, 1));
	IS(pread(fd, &(char){ 0 }, 1, 0), 1); /* the holder wrote before it let go */
}

static void hold_and_die(void *arg)
{
	int fd = (int)NEED(open("f", O_RDWR | O_CLOEXEC));

	NEED(set_lock(fd, F_SETLK, F_WRLCK, 0, 0));
	NEED(flock(fd, LOCK_EX));
	kill(getpid(), SIGKILL);
}

/* Wait until that process waits for a lock: the kernel lists it with an arrow. */
static void await_blocked(pid_t pid)
{
	char line[256], process[32];
	bool blocked = false;

	snprintf(process, sizeof(process), " %d ", (int)pid);
	while (!blocked) {
		FILE *locks = fopen("/proc/locks", "re");

		NEED(locks ? 0 : -1);
		while (fgets(line, sizeof(line), locks))
			blocked |= strstr(line, "-> ") && strstr(line, process);
		fclose(locks);
	}
}

CASE(locks, a_waiter_gets_it_when_the_holder_lets_go)
{
	int fd = open_new("f"), status;
	pid_t pid;

	OK(set_lock(fd, F_SETLK, F_WRLCK, 0, 1));
	pid = start(wait_for_lock, NULL);
	await_blocked(pid);
	OK(write(fd, "x", 1));
	OK(set_lock(fd, F_SETLK, F_UNLCK, 0, 1));
	gather(pid);
	pid = start(hold_and_die, NULL);
	NEED(waitpid(pid, &status, 0));
	OK(set_lock(fd, F_SETLK, F_WRLCK, 0, 0));
	OK(flock(fd, LOCK_EX | LOCK_NB));
	close(fd);
}

static void lock_crosswise(void *arg)
{
	int *pipes = arg, fd = (int)NEED(open("f", O_RDWR | O_CLOEXEC));

	NEED(set_lock(fd, F_SETLK, F_WRLCK, 1, 1));
	NEED(write(pipes[1], "", 1));
	NEED(set_lock(fd, F_SETLKW, F_WRLCK, 0, 1));
}

CASE(locks, a_deadlock_is_noticed)
{
	int fd = open_new("f"), pipes[2];
	pid_t pid;

	NEED(pipe2(pipes, O_CLOEXEC));
	NEED(set_lock(fd, F_SETLK, F_WRLCK, 0, 1));
	pid = start(lock_crosswise, pipes);
	NEED(read(pipes[0], &(char){ 0 }, 1));
	await_blocked(pid);
	FAILS(set_lock(fd, F_SETLKW, F_WRLCK, 1, 1), EDEADLK);
	NEED(set_lock(fd, F_SETLK, F_UNLCK, 0, 1));
	gather(pid);
	close(fd);
}

enum { ADDERS = 4, ADDITIONS = 300 };

static void add_under_lock(void *arg)
{
	int fd = (int)NEED(open("sum", O_RDWR | O_CLOEXEC)), i;
	uint64_t n;

	for (i = 0; i < ADDITIONS; i++) {
		NEED(set_lock(fd, F_SETLKW, F_WRLCK, 0, 8));
		IS(pread(fd, &n, 8, 0), 8);
		n++;
		IS(pwrite(fd, &n, 8, 0), 8);
		NEED(set_lock(fd, F_SETLK, F_UNLCK, 0, 8));
	}
}

CASE(locks, a_counter_under_a_lock_loses_nothing)
{
	uint64_t n = 0;
	pid_t pids[ADDERS];
	int i, fd = open_new("sum");

	IS(write(fd, &n, 8), 8);
	for (i = 0; i < ADDERS; i++)
		pids[i] = start(add_under_lock, NULL);
	for (i = 0; i < ADDERS; i++)
		gather(pids[i]);
	IS(pread(fd, &n, 8, 0), 8);
	IS(n, ADDERS * ADDITIONS);
	close(fd);
}
