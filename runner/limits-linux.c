/*
 * limits-linux.c - what one process of a run may use, by rlimit.
 *
 * Each hard limit is set with the soft one, so none can be raised again.  RLIMIT_NPROC is
 * counted for each user namespace since kernel 5.14, so here it counts the run alone.
 */
#include <sys/resource.h>

#include "runner/sandbox-i.h"

static int bound(int what, uint64_t most, const char *name, struct err *err)
{
	struct rlimit now;

	if (getrlimit((__rlimit_resource_t)what, &now) < 0)
		return err_sys(err, "reading the limit '%s'", name);
	if (now.rlim_max > most)
		now.rlim_max = most;
	now.rlim_cur = now.rlim_max;
	if (setrlimit((__rlimit_resource_t)what, &now) < 0)
		return err_sys(err, "setting the limit '%s' of the run", name);
	return 0;
}

/* 0 in a spec is no limit; the caller's own hard limit then stays. */
static uint64_t or_none(uint64_t limit)
{
	return limit > 0 ? limit : RLIM_INFINITY;
}

int limits_apply(const struct run *run, struct err *err)
{
	const struct sandbox_limits *l = &run->spec->limits;
	bool counted = run->walls & WALL_BIT(WALL_MEMORY);
	const struct {
		int what;
		uint64_t most;
		const char *name;
	} all[] = {
		{ RLIMIT_CORE, 0, "core" },
		{ RLIMIT_MSGQUEUE, 819200, "msgqueue" }, /* the kernel's default */
		{ RLIMIT_NICE, 0, "nice" },
		{ RLIMIT_RTPRIO, 0, "rtprio" },
		{ RLIMIT_FSIZE, or_none(l->fsize), "fsize" },
		{ RLIMIT_NOFILE, or_none(l->nofile), "nofile" },
		{ RLIMIT_NPROC, or_none(l->pids), "nproc" },
		{ RLIMIT_CPU, or_none((l->cpu_ms + 999) / 1000), "cpu" },
		{ RLIMIT_DATA, counted ? RLIM_INFINITY : or_none(l->mem), "data" },
	};

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		int r = bound(all[i].what, all[i].most, all[i].name, err);

		if (r < 0)
			return r;
	}
	return 0;
}
