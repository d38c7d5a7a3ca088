/*
 * test-cgroup-v2.c - where a run's groups come from on cgroup v2, and what is left alone.
 *
 * On a directory that stands in for the file system (cgroupfs.h), with a process that stands in
 * for systemd (manager.h).
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runner/cgroup-i.h"
#include "runner/cgroup.h"
#include "runner/scope.h"
#include "tests/lib/test.h"
#include "tests/sandbox/cgroupfs.h"
#include "tests/sandbox/manager.h"

#define RUN     4242 /* the process that is to be limited */
#define LOGIN   "/user.slice/session-1.scope"
#define ALL     (CGROUP_MEMORY | CGROUP_PIDS | CGROUP_CPU)
#define NOWHERE "/nonexistent"

static const struct cgroup_limits all = { .mem = (1 << 30) + 5, .pids = 64, .cpus_milli = 500 };

static void is_as_it_was(const char *group)
{
	CHECK_STR(cgroupfs_read(group, "cgroup.type"), "domain");
	CHECK_STR(cgroupfs_read(group, "cgroup.subtree_control"), "");
	CHECK_EQ(cgroupfs_count_below(group), 0);
}

static void begin_in(const char *group)
{
	setenv("XDG_RUNTIME_DIR", NOWHERE, 1);
	unsetenv("DBUS_SESSION_BUS_ADDRESS");
	cgroupfs_begin();
	cgroupfs_pass_on("/", "cpu memory pids");
	cgroupfs_make(group);
	cgroupfs_call_from("/", group);
}

/* Root in a service, a login, a scope; a user in `systemd-run --user`: the group may be written. */
TEST(a_group_with_processes_is_never_told_to_pass_controllers_on)
{
	static const char service[] = "/system.slice/ci.service";
	struct cgroup *g = NULL;
	struct err why = { 0 };

	begin_in(service);
	CHECK_OK(cgroup_open(&all, &g, &why), &why);
	CHECK(!g);
	CHECK_HAS(why.msg, "no systemd listens at '" NOWHERE "/systemd/private'");
	is_as_it_was(service);
}

TEST(to_look_is_to_write_nothing)
{
	struct err why = { 0 };
	enum cgroup_kind kind = CGROUP_V1;

	begin_in(LOGIN);
	CHECK_EQ(cgroup_look(&all, &kind, &why), 0);
	CHECK_EQ(kind, CGROUP_NONE);
	is_as_it_was(LOGIN);

	cgroupfs_make("/box");
	cgroupfs_put("/box", 1);
	cgroupfs_call_from("/box", "/box");
	CHECK_EQ(cgroup_look(&all, &kind, &why), ALL);
	CHECK_EQ(kind, CGROUP_V2);
	is_as_it_was("/box");
}

/* A process there may pass controllers on to children; whether it does is the host's affair. */
TEST(the_root_of_the_hierarchy_is_used_as_it_is)
{
	struct cgroup *g = NULL;
	struct err why = { 0 };

	begin_in("/other");
	cgroupfs_call_from("/", "/");
	cgroupfs_pass_on("/", "memory");
	CHECK_OK(cgroup_open(&all, &g, &why), &why);
	CHECK(g);
	CHECK_EQ(cgroup_kind(g), CGROUP_V2);
	CHECK_EQ(cgroup_settle(g, &why), CGROUP_MEMORY);
	CHECK_STR(cgroupfs_read("/", "cgroup.subtree_control"), "memory");
	cgroup_close(g);
	CHECK_EQ(cgroupfs_count_below("/"), 1);
	CHECK_STR(cgroupfs_read("/", "cgroup.subtree_control"), "memory");
}

/* --- a container whose root group is ours --------------------------------------------------- */

TEST(in_a_container_of_ours_its_processes_go_into_a_leaf)
{
	struct cgroup *g = NULL;
	struct err why = { 0 };

	begin_in("/box");
	cgroupfs_put("/box", 1);
	cgroupfs_put("/box", 77);
	cgroupfs_call_from("/box", "/box");
	for (int i = 0; i < 2; i++) { /* the second time from the leaf */
		CHECK_OK(cgroup_open(&all, &g, &why), &why);
		CHECK(g);
		CHECK_EQ(cgroup_kind(g), CGROUP_V2);
		CHECK_EQ(cgroup_settle(g, &why), ALL);
		CHECK(cgroup_clone_fd(g) >= 0);
		CHECK_EQ(cgroupfs_count_below("/box"), 2);
		cgroup_close(g);
		CHECK_EQ(cgroupfs_count_below("/box"), 1);
		CHECK_STR(cgroupfs_read("/box", "cgroup.type"), "domain");
		CHECK_STR(cgroupfs_read("/box", "cgroup.procs"), "");
		is_as_it_was("/box/snap-leaf");
	}
	CHECK_HAS(cgroupfs_read("/box/snap-leaf", "cgroup.procs"), "77");
}

TEST(a_root_group_without_process_1_is_somebody_else_s)
{
	struct cgroup *g = NULL;
	struct err why = { 0 };

	begin_in("/box");
	cgroupfs_call_from("/box", "/box");
	CHECK_OK(cgroup_open(&all, &g, &why), &why);
	CHECK(!g);
	CHECK_HAS(why.msg, "process 1 is not in the root cgroup here");
	is_as_it_was("/box");
}

TEST(a_root_group_with_processes_that_we_do_not_see_is_left_alone)
{
	struct cgroup *g = NULL;
	struct err why = { 0 };

	begin_in("/box");
	cgroupfs_call_from("/box", "/box");
	cgroupfs_write("/box", "cgroup.procs", "1\n0\n");
	CHECK_OK(cgroup_open(&all, &g, &why), &why);
	CHECK(!g);
	CHECK_HAS(why.msg, "other pid namespaces");
	CHECK_EQ(cgroupfs_count_below("/box"), 0);
}

TEST(nothing_is_started_in_a_group_that_is_no_domain)
{
	struct cgroup *g = NULL;
	struct err why = { 0 };

	begin_in("/box/leaf");
	cgroupfs_write("/box", "cgroup.type", "domain threaded\n");
	cgroupfs_call_from("/box", "/box/leaf");
	CHECK_OK(cgroup_open(&all, &g, &why), &why);
	CHECK(!g);
	CHECK_HAS(why.msg, "'domain invalid'");
	CHECK_EQ(cgroupfs_count_below("/box"), 1);
}

/* --- a scope -------------------------------------------------------------------------------- */

/* In a login, with a manager beside it; the run's init is a child of ours. */
static void begin_with(enum manager_way way, int bus_pid)
{
	begin_in(LOGIN);
	cgroupfs_make(MANAGER_GROUP "/init.scope");
	cgroupfs_put(LOGIN, RUN);
	manager_start(way, bus_pid);
}

static unsigned int ask(const struct cgroup_limits *limits, struct cgroup **g, struct err *why)
{
	CHECK_OK(cgroup_open(limits, g, why), why);
	CHECK(*g);
	CHECK_EQ(cgroup_kind(*g), CGROUP_SCOPE);
	CHECK_EQ(cgroup_clone_fd(*g), -1);
	cgroup_ask(*g, RUN);
	cgroup_nudge(*g);
	return cgroup_settle(*g, why);
}

static void holds_all(int bus_pid)
{
	struct cgroup *g = NULL;
	struct err why = { 0 };

	begin_with(MANAGER_OBEYS, bus_pid);
	CHECK_EQ(ask(&all, &g, &why), ALL);
	CHECK_EQ(why.code, 0);
	CHECK_EQ(cgroupfs_count_below(MANAGER_GROUP), 2);
	CHECK_STR(cgroupfs_read(LOGIN, "cgroup.type"), "domain");
	cgroupfs_put("/", RUN); /* it has ended, as far as its group is concerned */
	cgroup_close(g);
	CHECK_EQ(cgroupfs_count_below(MANAGER_GROUP), 2); /* the manager removes it, nobody else */
	is_as_it_was(LOGIN);
	manager_stop();
}

TEST(systemd_gives_a_scope_that_holds_every_limit)
{
	holds_all(0);
}

TEST(systemd_gives_it_through_the_bus_too)
{
	holds_all(getpid());
}

TEST(only_the_limits_that_are_wanted_are_asked_for)
{
	const struct cgroup_limits memory = { .mem = 1 << 20, .count_cpu = true };
	struct cgroup *g = NULL;
	struct err why = { 0 };

	begin_with(MANAGER_OBEYS, 0);
	CHECK_EQ(ask(&memory, &g, &why), CGROUP_MEMORY | CGROUP_CPUACCT);
	CHECK_EQ(why.code, 0);
	cgroupfs_put("/", RUN);
	cgroup_close(g);
	manager_stop();
}

/* However many processes it has: without that, the kernel shares processors between all threads. */
TEST(a_scope_has_a_part_of_the_processors_as_every_other)
{
	const struct cgroup_limits memory = { .mem = 1 << 20 };
	struct cgroup *g = NULL;
	struct err why = { 0 };
	char group[256];

	begin_with(MANAGER_OBEYS, 0);
	CHECK_EQ(ask(&memory, &g, &why), CGROUP_MEMORY);
	snprintf(group, sizeof(group), MANAGER_GROUP "/%s", g->name);
	CHECK_STR(cgroupfs_read(group, "cpu.weight"), "100");
	cgroupfs_put("/", RUN);
	cgroup_close(g);
	manager_stop();
}

TEST(a_limit_that_the_manager_has_no_controller_for_is_not_held)
{
	struct cgroup *g = NULL;
	enum cgroup_kind kind;
	struct err why = { 0 };

	begin_with(MANAGER_OBEYS, 0);
	cgroupfs_pass_on("/user.slice", "memory pids");
	cgroupfs_pass_on(MANAGER_GROUP, "memory pids");
	CHECK_EQ(ask(&all, &g, &why), CGROUP_MEMORY | CGROUP_PIDS);
	CHECK_HAS(why.msg, "has no 'cpu' controller");
	CHECK_HAS(why.msg, "Delegate=cpu");
	cgroupfs_put("/", RUN);
	cgroup_close(g);
	manager_stop();

	/* To look finds the same.  The process that listens is this one, which moves there. */
	cgroupfs_put(MANAGER_GROUP "/init.scope", getpid());
	manager_start(MANAGER_DEAF, 0);
	why = (struct err){ 0 };
	CHECK_EQ(cgroup_look(&all, &kind, &why), CGROUP_MEMORY | CGROUP_PIDS);
	CHECK_EQ(kind, CGROUP_SCOPE);
	CHECK_HAS(why.msg, "has no 'cpu' controller");
	manager_stop();
}

static void fails(enum manager_way way, const char *word)
{
	struct cgroup *g = NULL;
	struct err why = { 0 };

	begin_with(way, 0);
	CHECK_EQ(ask(&all, &g, &why), 0);
	CHECK_HAS(why.msg, word);
	cgroupfs_put("/", RUN);
	cgroup_close(g);
	/* A scope that was made, without its limits, is the manager's to remove. */
	CHECK_EQ(cgroupfs_count_below(MANAGER_GROUP), way == MANAGER_LAX ? 2 : 1);
	is_as_it_was(LOGIN);
	manager_stop();
}

TEST(a_manager_that_does_not_do_it_is_told_of_and_nothing_is_held)
{
	fails(MANAGER_REFUSES, "refuses the scope of the run: no scopes today");
	fails(MANAGER_FAILS, "could not start the scope of the run: 'failed'");
	fails(MANAGER_LIES, "it is in '" LOGIN "'");
	fails(MANAGER_LEAVES, "systemd has hung up");
	fails(MANAGER_LAX, "controller to give");
}

TEST(a_run_that_is_given_up_waits_until_systemd_has_moved_its_init)
{
	struct cgroup *g = NULL;
	struct err why = { 0 };

	begin_with(MANAGER_OBEYS, 0);
	CHECK_OK(cgroup_open(&all, &g, &why), &why);
	cgroup_await(g); /* nobody was asked for anything yet */
	CHECK(!manager_was_asked());
	cgroup_ask(g, RUN);
	cgroup_await(g);
	CHECK_EQ(cgroupfs_count_below(MANAGER_GROUP), 2);
	cgroupfs_put("/", RUN);
	cgroup_close(g);
	is_as_it_was(LOGIN);
	manager_stop();
}

/* A scope of this name, and the process in it, if any. */
static void leave_scope(char group[256], const char *name, pid_t pid)
{
	snprintf(group, 256, MANAGER_GROUP "/%s.scope", name);
	cgroupfs_make(group);
	if (pid > 0)
		cgroupfs_put(group, pid);
}

static pid_t dead_process(void)
{
	const pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0)
		_exit(0);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	return pid;
}

/* Its init died while systemd moved it: the scope is active, and nothing will ever end in it. */
TEST(an_empty_scope_of_a_caller_that_was_killed_is_ended_by_the_next_run)
{
	char orphan[256], busy[256], lives[256], elsewhere[256], own[CGROUP_NAME_MAX], name[128];
	struct cgroup *g = NULL;
	struct err why = { 0 };
	unsigned long long ns;

	begin_with(MANAGER_OBEYS, 0);
	cgroup_make_name(own);
	CHECK_EQ(sscanf(own, "snap-run-%llu-", &ns), 1);
	leave_scope(lives, own, 0);
	snprintf(name, sizeof(name), "snap-run-%llu-%d-1-0", ns, (int)dead_process());
	leave_scope(orphan, name, 0);
	snprintf(name, sizeof(name), "snap-run-%llu-%d-1-1", ns, (int)dead_process());
	leave_scope(busy, name, 77);
	snprintf(name, sizeof(name), "snap-run-%llu-%d-1-0", ns + 1, (int)dead_process());
	leave_scope(elsewhere, name, 0);

	CHECK_EQ(ask(&all, &g, &why), ALL);
	manager_wait();
	CHECK(!cgroupfs_has(orphan));
	CHECK(cgroupfs_has(busy));
	CHECK(cgroupfs_has(lives));
	CHECK(cgroupfs_has(elsewhere));
	cgroupfs_put("/", RUN);
	cgroup_close(g);
}

/* --- time ------------------------------------------------------------------------------------ */

static uint64_t told_now;

static uint64_t tell_time(void *ctx)
{
	(void)ctx;
	return told_now;
}

/* With nothing to wait for, the wait is over at once. */
static int skip_time(void *ctx, struct pollfd *fd, int ms)
{
	int n = poll(fd, 1, 50);

	(void)ctx;
	told_now += n == 0 ? (uint64_t)ms : 0;
	return n;
}

TEST(a_silent_manager_is_not_waited_for_longer_than_half_a_minute)
{
	static const enum manager_way ways[] = { MANAGER_SILENT, MANAGER_DEAF };
	const struct scope_clock clock = { tell_time, skip_time, NULL };

	for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
		const struct scope_request request = { "a.scope", "a test", RUN, 1 << 20, 8, 0 };
		struct scope *s = NULL;
		struct err why = { 0 };

		begin_with(ways[i], 0);
		told_now = 1000;
		CHECK_OK(scope_open(&clock, &s, &why), &why);
		CHECK_OK(scope_ask(s, &request, &why), &why);
		CHECK_EQ(scope_wait(s, &why), -ETIMEDOUT);
		CHECK_HAS(why.msg, "systemd has not answered for 30 s");
		CHECK_EQ(told_now, 1000 + SCOPE_WAIT_MS);
		scope_close(s);
		manager_stop();
	}
}

/* Wait for real, until there is nothing to wait for any more. */
static int skip_time_if(void *ctx, struct pollfd *fd, int ms)
{
	return *(const bool *)ctx ? skip_time(NULL, fd, ms) : poll(fd, 1, -1);
}

TEST(a_manager_that_stops_nothing_does_not_hold_a_run_up_for_longer_than_that)
{
	bool stands = false;
	const struct scope_clock clock = { tell_time, skip_time_if, &stands };
	const struct scope_request request = { "a.scope", "a test", RUN, 1 << 20, 8, 0 };
	struct scope *s = NULL;
	struct err why = { 0 };

	begin_with(MANAGER_KEEPS, 0);
	told_now = 1000;
	CHECK_OK(scope_open(&clock, &s, &why), &why);
	CHECK_OK(scope_ask(s, &request, &why), &why);
	CHECK_OK(scope_wait(s, &why), &why);
	stands = true;
	scope_stop(s, "b.scope");
	scope_stop(s, "c.scope");
	CHECK_EQ(told_now, 1000 + SCOPE_WAIT_MS);
	scope_close(s);
	manager_stop();
}

/* --- other pid namespaces -------------------------------------------------------------------- */

TEST(a_bus_that_knows_us_by_another_number_is_asked_for_nothing)
{
	struct cgroup *g = NULL;
	struct err why = { 0 };

	begin_with(MANAGER_OBEYS, getpid() + 1);
	CHECK_EQ(ask(&all, &g, &why), 0);
	CHECK_HAS(why.msg, "another pid namespace");
	CHECK(!manager_was_asked());
	cgroup_close(g);
	manager_stop();
}

/* As in a container that sees the socket of the host's manager: its process has no number here. */
TEST(a_manager_that_is_no_process_of_ours_is_asked_for_nothing)
{
	int status = -1;
	pid_t pid;

	begin_with(MANAGER_OBEYS, 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		struct scope *s = NULL;
		struct err why = { 0 };

		if (unshare(CLONE_NEWUSER | CLONE_NEWPID) < 0)
			_exit(77);
		pid = fork();
		if (pid == 0)
			_exit(scope_open(NULL, &s, &why) == -EXDEV ? 0 : 1);
		waitpid(pid, &status, 0);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 2);
	}
	waitpid(pid, &status, 0);
	CHECK(!manager_was_asked());
	manager_stop();
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		TEST_SKIP("no pid namespace can be made here");
	CHECK_EQ(status, 0);
}

TEST_MAIN("sandbox-cgroup-v2")
