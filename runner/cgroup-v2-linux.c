/*
 * cgroup-v2-linux.c - one hierarchy for all controllers.
 *
 * A group has only the controllers that its parent passes on (cgroup.subtree_control), and a parent
 * that has processes of its own must pass none on: with memory the kernel refuses that, with pids
 * and cpu it makes the group a threaded domain, below which nothing can be started for as long as
 * it lives. So only cgroup_v2_clear() writes that file, once the group is empty. The root of the
 * hierarchy is exempt, and is the host's: it is used as it is.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fdio.h"
#include "runner/cgroup-i.h"

#define PERIOD_US 100000
#define LIST_MAX  (1u << 20)
#define ROUNDS    50 /* of moving: while we do, others fork */

static int read_text(int group, const char *file, struct buf *out)
{
	int r = fdio_read_file(group, file, LIST_MAX, out, NULL);

	return r < 0 ? r : buf_str(out) ? 0 : -ENOMEM;
}

static unsigned int read_controllers(int group, const char *file)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;

	return read_text(group, file, &text) < 0 ? 0 : cgroup_controllers(buf_str(&text));
}

unsigned int cgroup_v2_has(int group)
{
	return read_controllers(group, "cgroup.controllers");
}

/* Processor time is counted in every group, with or without a controller. */
static unsigned int v2_offers(int parent, const char *controllers)
{
	return read_controllers(parent, "cgroup.subtree_control") | CGROUP_CPUACCT;
}

bool cgroup_v2_is_root(int group)
{
	return faccessat(group, "cgroup.type", F_OK, 0) < 0;
}

bool cgroup_v2_has_processes(int group)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;

	return read_text(group, "cgroup.procs", &text) < 0 || text.len > 0;
}

static int v2_check(int group, struct err *why)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	int r = read_text(group, "cgroup.type", &text);

	if (r < 0)
		return err_wrap(why, r, "reading the type of a cgroup");
	if (strcmp(buf_str(&text), "domain\n") != 0 && strcmp(buf_str(&text), "domain") != 0)
		return err_set(
		    why, -EOPNOTSUPP,
		    "nothing can be started in a cgroup of type '%.*s': the one above is "
		    "a threaded domain",
		    (int)strcspn(buf_str(&text), "\n"), buf_str(&text));
	return 0;
}

/* --- the root group of a container -------------------------------------------------------- */

int cgroup_v2_is_ours(int group, struct err *why)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	bool first = false;
	char *end;
	int r = v2_check(group, why);

	if (r < 0)
		return r;
	if (faccessat(group, "cgroup.procs", W_OK, AT_EACCESS) < 0 ||
	    faccessat(group, "cgroup.subtree_control", W_OK, AT_EACCESS) < 0 ||
	    faccessat(group, ".", W_OK, AT_EACCESS) < 0)
		return err_sys(why, "the root cgroup of this container cannot be written");
	r = read_text(group, "cgroup.procs", &text);
	if (r < 0)
		return err_wrap(why, r, "reading the processes of a cgroup");
	for (const char *at = buf_str(&text); *at; at = *end == '\n' ? end + 1 : end) {
		const long pid = strtol(at, &end, 10);

		if (end == at || pid == 0)
			return err_set(
			    why, -EXDEV,
			    "the root cgroup here has processes of other pid namespaces");
		first |= pid == 1;
	}
	return first ? 0 : err_set(why, -EXDEV, "process 1 is not in the root cgroup here");
}

/* One pass over those that are in it now. */
static int move_all(int from, int to, struct err *why)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	char *rest = NULL, *list;
	int r = read_text(from, "cgroup.procs", &text);

	if (r < 0)
		return err_wrap(why, r, "reading the processes of a cgroup");
	list = (char *)text.data;
	for (char *pid = strtok_r(list, "\n", &rest); pid; pid = strtok_r(NULL, "\n", &rest)) {
		r = cgroup_write(to, "cgroup.procs", pid, why);
		if (r < 0 && r != -ESRCH)
			return r;
	}
	return 0;
}

static int pass_on(int group, struct err *why)
{
	static const struct {
		unsigned int bit;
		const char *text;
	} all[] = { { CGROUP_MEMORY, "+memory" },
		    { CGROUP_PIDS, "+pids" },
		    { CGROUP_CPU, "+cpu" } };
	const unsigned int has = cgroup_v2_has(group), passes = v2_offers(group, "");
	int r = 0;

	/* Memory first: should a process have come back, that fails and leaves all as it was. */
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(all); i++) {
		if ((has & all[i].bit) && !(passes & all[i].bit))
			r = cgroup_v2_has_processes(group)
				? -EBUSY
				: cgroup_write(group, "cgroup.subtree_control", all[i].text, why);
	}
	return r;
}

int cgroup_v2_clear(int group, struct err *why)
{
	AUTO_CLOSE int leaf = -1;
	int r = -EBUSY;

	if (mkdirat(group, CGROUP_LEAF, 0755) < 0 && errno != EEXIST)
		return err_sys(why, "making a cgroup for the processes of this container");
	leaf = openat(group, CGROUP_LEAF, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (leaf < 0)
		return err_sys(why, "opening the cgroup for the processes of this container");
	for (int i = 0; r == -EBUSY && i < ROUNDS; i++) {
		r = move_all(group, leaf, why);
		if (r == 0)
			r = pass_on(group, why);
	}
	return r == -EBUSY ? err_set(why, r, "the root cgroup of this container does not get empty")
			   : r;
}

/* --- limits -------------------------------------------------------------------------------- */

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

/* UINT64_MAX for "max", and where there is no such file. */
static uint64_t limit_of(int group, const char *file)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	unsigned long long v;

	return read_text(group, file, &text) == 0 && sscanf(buf_str(&text), "%llu", &v) == 1
		   ? v
		   : UINT64_MAX;
}

/* Up to a page less: the kernel cuts to whole ones. */
static bool is_memory(int group, uint64_t mem)
{
	const uint64_t now = limit_of(group, "memory.max");

	return now <= mem && mem - now < (uint64_t)sysconf(_SC_PAGESIZE) &&
	       (faccessat(group, "memory.swap.max", F_OK, 0) < 0 ||
		limit_of(group, "memory.swap.max") == 0);
}

/* "QUOTA PERIOD", of whatever period; within a hundredth. */
static bool is_cpu(int group, uint64_t cpus_milli)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	unsigned long long quota, period;
	uint64_t now;

	if (read_text(group, "cpu.max", &text) < 0 ||
	    sscanf(buf_str(&text), "%llu %llu", &quota, &period) != 2 || period == 0)
		return false;
	now = quota * 1000 / period;
	return now <= cpus_milli + cpus_milli / 100 + 1 && now + now / 100 + 1 >= cpus_milli;
}

void cgroup_v2_lacks(const char *controller, struct err *why)
{
	if (geteuid() == 0)
		err_set(why, -ENOTSUP,
			"systemd has no '%s' controller to give; see cgroup_disable= of the "
			"kernel's command line",
			controller);
	else
		err_set(why, -ENOTSUP,
			"the user's systemd has no '%s' controller to give; as root, put "
			"'[Service] Delegate=cpu memory pids' into "
			"/etc/systemd/system/user@.service.d/",
			controller);
}

unsigned int cgroup_v2_holds(int group, const struct cgroup_limits *limits, unsigned int wanted,
			     struct err *why)
{
	const struct {
		unsigned int bit;
		bool holds;
		const char *name;
	} all[] = {
		{ CGROUP_MEMORY, is_memory(group, limits->mem), "memory" },
		{ CGROUP_PIDS, limit_of(group, "pids.max") == limits->pids, "pids" },
		{ CGROUP_CPU, is_cpu(group, limits->cpus_milli), "cpu" },
	};
	unsigned int held = wanted & CGROUP_CPUACCT;

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		if ((wanted & all[i].bit) && all[i].holds)
			held |= all[i].bit;
		else if (wanted & all[i].bit)
			cgroup_v2_lacks(all[i].name, why);
	}
	return held;
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

const struct cgroup_manager cgroup_v2 = { NULL, v2_offers, v2_check, v2_apply, v2_use, v2_kill };
