/*
 * cgroup.h - groups of our own that bound and count what a run uses.
 *
 * Only groups that we made, below the one that the caller is in, are ever written to; the
 * caller's own is only made a child in.  A group bears its maker in its name, so what a maker
 * that was killed left behind is found and removed by the next one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/err.h"

struct cgroup;

struct cgroup_limits {
	uint64_t mem; /* bytes; 0 is no limit, here and below */
	uint64_t pids;
	uint64_t cpus_milli; /* thousandths of a processor */
	bool count_cpu;      /* cgroup_use() must know processor time while the run lives */
};

struct cgroup_use {
	uint64_t mem_peak; /* bytes; 0 where nobody counts, here and below */
	uint64_t mem;
	uint64_t cpu_ms;
	uint64_t pids;
	uint64_t oom_kills;
	uint64_t forks_refused;
};

enum cgroup_holds { CGROUP_MEMORY = 1, CGROUP_PIDS = 2, CGROUP_CPU = 4, CGROUP_CPUACCT = 8 };

/*
 * Make groups for these limits.  The answer is which of them they hold: a set of CGROUP_
 * bits, 0 with *ret NULL where the caller may make none at all.  For each that they do not
 * hold, `why` says why not.
 */
NODISCARD int cgroup_open(const struct cgroup_limits *limits, struct cgroup **ret, struct err *why);

/*
 * How a process gets into them: it is cloned into the descriptor, if there is one, and calls
 * cgroup_join() itself in any case.  Being moved by another waits for all processors to have
 * passed a quiet moment, which takes milliseconds.
 */
int cgroup_clone_fd(const struct cgroup *g); /* borrowed; -1: none */
NODISCARD int cgroup_join(const struct cgroup *g, struct err *err);

void cgroup_use(const struct cgroup *g, struct cgroup_use *ret);

/* Kill what is in it, and remove it.  NULL is fine. */
void cgroup_close(struct cgroup *g);
