/*
 * test-cgroup.c - where groups are found and what is written to them.
 *
 * Version 2 is tried on directories that stand in for cgroupfs: on a machine where the
 * controllers are bound to version 1 there is no other way.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fdio.h"
#include "runner/cgroup-i.h"
#include "runner/cgroup-place.h"
#include "tests/lib/test.h"

/* A directory with such files in it, given as names and contents in turn. */
static int stand_in(const char *name, const char *const *files)
{
	const char *path = test_path(name);
	int dir;

	mkdir(path, 0755);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(dir >= 0);
	for (; *files; files += 2) {
		AUTO_CLOSE int fd = openat(dir, files[0], O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

		CHECK(fd >= 0 && fdio_write(fd, files[1], strlen(files[1])) == 0);
	}
	return dir;
}

static void holds(int dir, const char *file, const char *want)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct err err = { 0 };

	CHECK_OK(fdio_read_file(dir, file, 4096, &text, &err), &err);
	CHECK_STR(buf_str(&text), want);
}

static const char mountinfo[] =
    "25 1 0:22 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
    "26 25 0:23 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"
    "27 25 0:24 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "28 25 0:25 /box /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
    "29 25 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate\n"
    "30 25 0:27 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n";

static void located(const char *controllers, const char *group, const char *want)
{
	CLEANUP(buf_done) struct buf path = BUF_INIT;

	CHECK_EQ(cgroup_locate(mountinfo, controllers, group, &path, NULL), want ? 0 : -ENOENT);
	CHECK_STR(buf_str(&path), want ? want : "");
}

TEST(a_group_is_found_where_its_hierarchy_is_mounted)
{
	located("memory", "/a/b", "/sys/fs/cgroup/memory/a/b");
	located("cpu,cpuacct", "/", "/sys/fs/cgroup/cpu,cpuacct/");
	located("", "/user.slice", "/sys/fs/cgroup/unified/user.slice");
	located("blkio", "/a", NULL);
}

TEST(a_group_outside_of_what_is_mounted_cannot_be_seen)
{
	located("pids", "/box/inner", "/sys/fs/cgroup/pids/inner");
	located("pids", "/box", "/sys/fs/cgroup/pids");
	located("pids", "/other", NULL);
	located("pids", "/boxer", NULL);
}

TEST(controllers_are_read_whole)
{
	CHECK_EQ(cgroup_controllers("cpuset cpu io memory hugetlb pids rdma\n"),
		 CGROUP_CPU | CGROUP_MEMORY | CGROUP_PIDS);
	CHECK_EQ(cgroup_controllers("cpu,cpuacct"), CGROUP_CPU | CGROUP_CPUACCT);
	CHECK_EQ(cgroup_controllers("cpuset memoryx"), 0);
	CHECK_EQ(cgroup_controllers(""), 0);
}

TEST(version_2_offers_what_the_parent_passes_on)
{
	static const char *const files[] = { "cgroup.controllers", "cpu memory pids\n",
					     "cgroup.subtree_control", "cpu memory pids\n", NULL };
	AUTO_CLOSE int dir = stand_in("passes", files);

	CHECK_EQ(cgroup_v2.offers(dir, ""),
		 CGROUP_MEMORY | CGROUP_PIDS | CGROUP_CPU | CGROUP_CPUACCT);
	holds(dir, "cgroup.subtree_control", "cpu memory pids\n");
}

TEST(version_2_offers_no_more_than_that_and_asks_for_nothing)
{
	static const char *const files[] = { "cgroup.controllers", "memory pids\n",
					     "cgroup.subtree_control", "pids\n", NULL };
	AUTO_CLOSE int dir = stand_in("asks", files);

	CHECK_EQ(cgroup_v2.offers(dir, ""), CGROUP_PIDS | CGROUP_CPUACCT);
	holds(dir, "cgroup.subtree_control", "pids\n");
}

TEST(version_2_writes_every_limit)
{
	static const char *const files[] = { "memory.max", "",         "memory.swap.max",
					     "",           "pids.max", "",
					     "cpu.max",    "",         NULL };
	AUTO_CLOSE int dir = stand_in("limits", files);
	struct cgroup_dir d = { -1, dir, -1, CGROUP_MEMORY | CGROUP_PIDS | CGROUP_CPU };
	struct cgroup_limits limits = { .mem = 1048576, .pids = 64, .cpus_milli = 1500 };
	struct err err = { 0 };

	CHECK_OK(cgroup_v2.apply(&d, &limits, &err), &err);
	holds(dir, "memory.max", "1048576");
	holds(dir, "memory.swap.max", "0");
	holds(dir, "pids.max", "64");
	holds(dir, "cpu.max", "150000 100000");
}

TEST(version_2_without_a_file_for_a_limit_fails)
{
	static const char *const files[] = { "memory.max", "", NULL };
	AUTO_CLOSE int dir = stand_in("lacks", files);
	struct cgroup_dir d = { -1, dir, -1, CGROUP_MEMORY | CGROUP_PIDS };
	struct cgroup_limits limits = { .mem = 1048576, .pids = 64 };
	struct err err = { 0 };

	CHECK_EQ(cgroup_v2.apply(&d, &limits, &err), -ENOENT);
	CHECK_HAS(err.msg, "'pids.max' of a cgroup");
}

TEST(version_2_tells_what_was_used)
{
	static const char *const files[] = {
		"memory.current",
		"4096\n",
		"memory.peak",
		"8192\n",
		"memory.events",
		"low 0\nhigh 0\nmax 7\noom 2\noom_kill 1\noom_group_kill 0\n",
		"pids.current",
		"3\n",
		"pids.events",
		"max 5\n",
		"cpu.stat",
		"usage_usec 2500\nuser_usec 2000\n",
		NULL,
	};
	AUTO_CLOSE int dir = stand_in("use", files);
	struct cgroup_dir d = { -1, dir, -1, CGROUP_MEMORY };
	struct cgroup_use use = { 0 };

	cgroup_v2.use(&d, &use);
	CHECK_EQ(use.mem, 4096);
	CHECK_EQ(use.mem_peak, 8192);
	CHECK_EQ(use.oom_kills, 1);
	CHECK_EQ(use.pids, 3);
	CHECK_EQ(use.forks_refused, 5);
	CHECK_EQ(use.cpu_ms, 2);
}

TEST(no_limits_need_no_group)
{
	struct cgroup *g = NULL;
	struct cgroup_limits none = { 0 };

	CHECK_OK(cgroup_open(&none, &g, NULL), NULL);
	CHECK(!g);
}

TEST_MAIN("sandbox-cgroup")
