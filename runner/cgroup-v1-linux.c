/*
 * cgroup-v1-linux.c - a hierarchy for each controller, or for a few.
 */
#include <errno.h>
#include <unistd.h>

#include "runner/cgroup-i.h"

#define PERIOD_US 100000

static unsigned int v1_offers(int parent, const char *controllers)
{
	return cgroup_controllers(controllers);
}

static int v1_check(int group, struct err *why)
{
	return 0;
}

static int apply_memory(int fd, uint64_t mem, struct err *err)
{
	int r = cgroup_write_u64(fd, "memory.limit_in_bytes", mem, err);

	/* Swap is counted apart, or not at all; where it is, it is no way around the limit. */
	if (r == 0 && faccessat(fd, "memory.memsw.limit_in_bytes", F_OK, 0) == 0)
		r = cgroup_write_u64(fd, "memory.memsw.limit_in_bytes", mem, err);
	return r;
}

static int v1_apply(const struct cgroup_dir *dir, const struct cgroup_limits *limits,
		    struct err *err)
{
	int r = 0;

	if ((dir->serves & CGROUP_MEMORY) && limits->mem > 0)
		r = apply_memory(dir->fd, limits->mem, err);
	if (r == 0 && (dir->serves & CGROUP_PIDS) && limits->pids > 0)
		r = cgroup_write_u64(dir->fd, "pids.max", limits->pids, err);
	if (r == 0 && (dir->serves & CGROUP_CPU) && limits->cpus_milli > 0) {
		r = cgroup_write_u64(dir->fd, "cpu.cfs_period_us", PERIOD_US, err);
		if (r == 0)
			r = cgroup_write_u64(dir->fd, "cpu.cfs_quota_us",
					     limits->cpus_milli * PERIOD_US / 1000, err);
	}
	return r;
}

static void v1_use(const struct cgroup_dir *dir, struct cgroup_use *ret)
{
	if (dir->serves & CGROUP_MEMORY) {
		ret->mem = cgroup_read(dir->fd, "memory.usage_in_bytes");
		ret->mem_peak = cgroup_read(dir->fd, "memory.max_usage_in_bytes");
		ret->oom_kills = cgroup_read_key(dir->fd, "memory.oom_control", "oom_kill");
	}
	if (dir->serves & CGROUP_PIDS) {
		ret->pids = cgroup_read(dir->fd, "pids.current");
		ret->forks_refused = cgroup_read_key(dir->fd, "pids.events", "max");
	}
	if (dir->serves & CGROUP_CPUACCT)
		ret->cpu_ms = cgroup_read(dir->fd, "cpuacct.usage") / 1000000;
}

/* There is nothing to kill by group here; the end of the pid namespace has done it. */
static void v1_kill(const struct cgroup_dir *dir)
{
}

/* "tasks" moves one thread; a thread that moves only itself takes no lock of all groups. */
const struct cgroup_manager cgroup_v1 = { "tasks", v1_offers, v1_check, v1_apply, v1_use, v1_kill };
