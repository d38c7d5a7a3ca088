/*
 * limits-linux.c - what one process of a run may use, by rlimit.
 *
 * The hard limits are set with the soft ones, so none can be raised again. RLIMIT_NPROC is counted
 * for each user namespace since kernel 5.14, so here it counts the run alone. Pending signals count
 * for the run and for its user outside.
 */
#include <sys/resource.h>

#include "runner/sandbox-i.h"

/* What a sanitizer maps for itself is more than any limit, and then it can map no more. */
#ifdef __SANITIZE_ADDRESS__
#define SHADOWED true
#else
#define SHADOWED false
#endif

static int bound(int what, uint64_t most, uint64_t slack, const char *name, struct err *err)
{
	struct rlimit now;

	if (getrlimit((__rlimit_resource_t)what, &now) < 0)
		return err_sys(err, "reading the limit '%s'", name);
	if (most != RLIM_INFINITY && now.rlim_max > most + slack)
		now.rlim_max = most + slack;
	now.rlim_cur = now.rlim_max < most ? now.rlim_max : most;
	if (setrlimit((__rlimit_resource_t)what, &now) < 0)
		return err_sys(err, "setting the limit '%s' of the run", name);
	return 0;
}

/* 0 in a spec is no limit; the caller's own hard limit then stays. */
static uint64_t or_none(uint64_t limit, uint64_t more)
{
	return limit > 0 ? limit + more : RLIM_INFINITY;
}

/* 0 would let a pipe of core_pattern start; at 1 the kernel starts none and writes nothing. */
int limits_bar_core(struct err *err)
{
	return bound(RLIMIT_CORE, 1, 0, "core", err);
}

int limits_apply(const struct run *run, bool ours, struct err *err)
{
	const struct sandbox_limits *l = &run->spec->limits;
	/* Where a group holds the same limit it is to be met first: it tells, and an rlimit not. */
	uint64_t more_pids = run->held & CGROUP_PIDS ? 16 : 0;
	uint64_t more_cpu = run->held & CGROUP_CPUACCT ? 1 : 0;
	const struct {
		int what;
		uint64_t most;
		uint64_t slack; /* from the soft to the hard one: SIGXCPU comes before SIGKILL */
		const char *name;
	} all[] = {
		{ RLIMIT_SIGPENDING, 4096, 0, "sigpending" }, /* POSIX timers are among these */
		{ RLIMIT_MSGQUEUE, 819200, 0, "msgqueue" },   /* the kernel's default */
		{ RLIMIT_NICE, 0, 0, "nice" },
		{ RLIMIT_RTPRIO, 0, 0, "rtprio" },
		{ RLIMIT_FSIZE, or_none(l->fsize, 0), 0, "fsize" },
		{ RLIMIT_NOFILE, or_none(l->nofile, 0), 0, "nofile" },
		{ RLIMIT_NPROC, or_none(l->pids, more_pids), 0, "nproc" },
		{ RLIMIT_CPU, or_none((l->cpu_ms + 999) / 1000, more_cpu), 1, "cpu" },
		{ RLIMIT_DATA,
		  or_none(run->held & CGROUP_MEMORY || (ours && SHADOWED) ? 0 : l->mem, 0), 0,
		  "data" },
	};

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		int r = bound(all[i].what, all[i].most, all[i].slack, all[i].name, err);

		if (r < 0)
			return r;
	}
	return 0;
}
