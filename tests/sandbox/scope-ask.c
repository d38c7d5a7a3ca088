/*
 * scope-ask.c - ask the systemd of this machine for scopes, as a run does; for test-scope.py.
 *
 *   scope-ask N
 *   scope-ask dead
 *
 * N times: a process that waits, a scope around it, and a line with the group that it is in then,
 * the group's type, and the microseconds that it took.  It also ends the empty scopes of
 * makers that are gone, as every run does.  `dead` leaves such a scope: its process has ended
 * before systemd moves it.  Status 1 and a sentence if it fails.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fdio.h"
#include "runner/cgroup-i.h"
#include "runner/cgroup-place.h"
#include "runner/scope.h"

#define TOP "/sys/fs/cgroup"

static long long now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (long long)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void sweep_beside(struct scope *s, const char *group)
{
	char path[4096];
	AUTO_CLOSE int fd = -1;

	snprintf(path, sizeof(path), TOP "%s/..", group);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		cgroup_sweep_scopes(fd, s);
}

static int report(struct scope *s, pid_t pid, long long took)
{
	CLEANUP(buf_done) struct buf groups = BUF_INIT, type = BUF_INIT;
	char path[4096], *group;

	if (cgroup_groups_of(pid, &groups) < 0 || !buf_str(&groups))
		return 1;
	group = strstr((char *)groups.data, "0::/");
	if (!group)
		return 1;
	group[strcspn(group, "\n")] = '\0';
	snprintf(path, sizeof(path), TOP "%s/cgroup.type", group + 3);
	if (fdio_read_file(AT_FDCWD, path, 64, &type, NULL) < 0 || !buf_str(&type))
		return 1;
	sweep_beside(s, group + 3);
	printf("%s %.*s %lld\n", group + 3, (int)strcspn(buf_str(&type), "\n"), buf_str(&type),
	       took);
	return 0;
}

static int ask(int i, struct err *err)
{
	struct scope *s = NULL;
	char name[64];
	pid_t pid = fork();
	long long begun = now_us();
	int r;

	if (pid == 0) {
		for (;;)
			pause();
	}
	snprintf(name, sizeof(name), "snap-run-test-%d-%d.scope", (int)getpid(), i);
	r = pid < 0 ? err_sys(err, "fork") : scope_open(NULL, &s, err);
	if (r == 0) {
		const struct scope_request request = {
			.name = name,
			.description = "a test",
			.pid = pid,
			.mem = 1 << 30,
			.pids = 64,
			.cpus_milli = 500,
			.weight = SCOPE_WEIGHT,
		};

		r = scope_ask(s, &request, err);
	}
	if (r == 0)
		r = scope_wait(s, err);
	if (r == 0 && report(s, pid, now_us() - begun) != 0)
		r = err_set(err, -EIO, "the group of the process cannot be found");
	scope_close(s);
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	return r;
}

/* As a run whose caller and init are killed at the worst moment. */
static int ask_for_dead(struct err *err)
{
	char name[CGROUP_NAME_MAX + sizeof(CGROUP_SUFFIX)];
	struct scope_request request = { .name = name, .description = "a test", .pid = fork() };
	struct scope *s = NULL;
	siginfo_t info;
	int r;

	if (request.pid == 0)
		_exit(0);
	if (request.pid < 0 || waitid(P_PID, (id_t)request.pid, &info, WEXITED | WNOWAIT) < 0)
		return err_sys(err, "a process that has ended");
	cgroup_make_name(name);
	strcat(name, CGROUP_SUFFIX);
	r = scope_open(NULL, &s, err);
	if (r == 0)
		r = scope_ask(s, &request, err);
	if (r == 0)
		r = scope_wait(s, err);
	scope_close(s);
	if (r == 0)
		puts(name);
	return r;
}

int main(int argc, char **argv)
{
	const int n = argc > 1 ? atoi(argv[1]) : 1;
	struct err err = { 0 };

	if (argc > 1 && strcmp(argv[1], "dead") == 0) {
		if (ask_for_dead(&err) == 0)
			return 0;
		fprintf(stderr, "error: %s\n", err.msg);
		return 1;
	}
	for (int i = 0; i < n; i++) {
		if (ask(i, &err) < 0) {
			fprintf(stderr, "error: %s\n", err.msg);
			return 1;
		}
	}
	return 0;
}
