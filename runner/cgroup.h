/*
 * cgroup.h - the cgroups of a run, which limit and count what it uses.
 *
 * The runner writes only to its own groups. With version 1 that is one below the caller's. With
 * version 2 a group that has processes must not pass controllers on, so the caller's stays as it
 * is: the run gets a scope from systemd, or, in a container whose root group is ours, a group
 * beside the leaf into which the container's processes were moved, as container inits do. A group's
 * name contains its maker, so the next run finds and removes groups of a maker that was killed.
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

enum cgroup_kind { CGROUP_NONE, CGROUP_V1, CGROUP_V2, CGROUP_SCOPE };

const char *cgroup_kind_name(enum cgroup_kind kind); /* "none", "v1", "v2", "scope" */

/*
 * Begin with groups for these limits: made at once, or by systemd, which is asked later.  *ret is
 * NULL where there is no way to have any, and `why` says why not.
 */
NODISCARD int cgroup_open(const struct cgroup_limits *limits, struct cgroup **ret, struct err *why);

/*
 * How a process gets into them: it is cloned into the descriptor, if there is one, and calls
 * cgroup_join() itself in any case.  Being moved by another waits for all processors to have
 * passed a quiet moment, which takes milliseconds: where systemd does it, that is asked for with
 * cgroup_ask() as soon as there is a process, and other work is done meanwhile.
 */
int cgroup_clone_fd(const struct cgroup *g); /* borrowed; -1: none */
NODISCARD int cgroup_join(const struct cgroup *g, struct err *err);
void cgroup_ask(struct cgroup *g, pid_t pid);
void cgroup_nudge(struct cgroup *g); /* go on with that, without waiting */

/*
 * Before the process is killed without cgroup_settle(): wait until systemd has answered.  A process that
 * is dying cannot be moved, and no error says so: its scope would be active and empty for good.
 */
void cgroup_await(struct cgroup *g);

/*
 * Wait until the process is in its groups.  The answer is which limits they hold, CGROUP_ bits,
 * as read back from them; for each that they do not, `why` says why not.
 */
NODISCARD unsigned int cgroup_settle(struct cgroup *g, struct err *why);

enum cgroup_kind cgroup_kind(const struct cgroup *g); /* NULL is CGROUP_NONE */

void cgroup_use(const struct cgroup *g, struct cgroup_use *ret);

/* Kill what is in it, and remove it.  NULL is fine. */
void cgroup_close(struct cgroup *g);

/*
 * What cgroup_open() would come to, found out by looking: nothing is written or asked for.  The
 * answer is the limits that could be held, CGROUP_ bits.
 */
NODISCARD unsigned int cgroup_look(const struct cgroup_limits *limits, enum cgroup_kind *ret,
				   struct err *why);
