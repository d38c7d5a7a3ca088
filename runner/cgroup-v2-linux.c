/*
 * cgroup-v2-linux.c - one hierarchy for all controllers.
 *
 * A group has only the controllers that its parent passes on, and a parent that has processes
 * of its own passes none on (the root apart).  So a caller's group must be one that was
 * delegated to it and that it left, or must pass them on already: 'systemd-run --user --scope
 * -p Delegate=yes' gives such a one.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/fdio.h"
#include "runner/cgroup-i.h"

#define PERIOD_US 100000
#define LIST_MAX  4096

static unsigned int read_controllers(int parent, const char *file)
{
	char list[LIST_MAX];
	struct buf text = BUF_INIT;
	const char *s = NULL;

	if (fdio_read_file(parent, file, sizeof(list) - 1, &text, NULL) == 0)
		s = buf_str(&text);
	snprintf(list, sizeof(list), "%s", s ? s : "");
	buf_done(&text);
	return cgroup_controllers(list);
}

static int v2_offers(int parent, const char *controllers, struct err *why)
{
	unsigned int has = read_controllers(parent, "cgroup.controllers");
	unsigned int passes = read_controllers(parent, "cgroup.subtree_control");
	static const struct {
		unsigned int bit;
		const char *text;
	} all[] = { { CGROUP_MEMORY, "+memory" },
		    { CGROUP_PIDS, "+pids" },
		    { CGROUP_CPU, "+cpu" } };

	(void)controllers;
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		if (!(has & all[i].bit) || (passes & all[i].bit))
			continue;
		if (cgroup_write(parent, "cgroup.subtree_control", all[i].text, why) == 0)
			passes |= all[i].bit;
	}
	if (passes & CGROUP_CPU)
		passes |= CGROUP_CPUACCT;
	return (int)passes;
}

static int v2_apply(const struct cgroup_dir *dir, const struct cgroup_limits *limits,
		    struct err *err)
{
	char text[64];
	int r = 0;

	if ((dir->serves & CGROUP_MEMORY) && limits->mem > 0) {
		r = cgroup_write_u64(dir->fd, "memory.max", limits->mem, err);
		/* A kernel without swap has no such file, and needs none. */
		if (r == 0) {
			r = cgroup_write(dir->fd, "memory.swap.max", "0", err);
			r = r == -ENOENT ? 0 : r;
		}
	}
	if (r == 0 && (dir->serves & CGROUP_PIDS) && limits->pids > 0)
		r = cgroup_write_u64(dir->fd, "pids.max", limits->pids, err);
	if (r == 0 && (dir->serves & CGROUP_CPU) && limits->cpus_milli > 0) {
		snprintf(text, sizeof(text), "%llu %d",
			 (unsigned long long)limits->cpus_milli * PERIOD_US / 1000, PERIOD_US);
		r = cgroup_write(dir->fd, "cpu.max", text, err);
	}
	return r;
}

static void v2_use(const struct cgroup_dir *dir, struct cgroup_use *ret)
{
	ret->mem = cgroup_read(dir->fd, "memory.current");
	ret->mem_peak = cgroup_read(dir->fd, "memory.peak");
	ret->oom_kills = cgroup_read_key(dir->fd, "memory.events", "oom_kill");
	ret->pids = cgroup_read(dir->fd, "pids.current");
	ret->forks_refused = cgroup_read_key(dir->fd, "pids.events", "max");
	ret->cpu_ms = cgroup_read_key(dir->fd, "cpu.stat", "usage_usec") / 1000;
}

static void v2_kill(const struct cgroup_dir *dir)
{
	IGNORE_RESULT(cgroup_write(dir->fd, "cgroup.kill", "1", NULL),
		      "before 5.14 there is none; the pid namespace has ended them already");
}

const struct cgroup_manager cgroup_v2 = { NULL, v2_offers, v2_apply, v2_use, v2_kill };
