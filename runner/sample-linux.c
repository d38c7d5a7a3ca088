/*
 * The cgroup knows the run's memory, and in most cases its processor time and its processes. Only
 * /proc knows how much was written: a clone is a FUSE mount, and cowfsd writes the disk.
 */
#include "runner/sample.h"

#include "base/clock.h"
#include "base/sys.h"

#define SHARE 100 /* looking takes one part of so many, at most */

static uint64_t most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static struct sandbox_sample measure(const struct run *run, const struct sandbox_sample *last)
{
	struct cgroup_use use = { 0 };
	struct sys_tree tree = { 0 };

	if (run->cgroup)
		cgroup_use(run->cgroup, &use);
	/* A child reaped by one that may not be looked into has taken its numbers along. */
	if (sys_look_at_tree(run->init, &tree) < 0)
		tree = (struct sys_tree){ 0 };
	return (struct sandbox_sample){
		.cpu_ms = most(use.cpu_ms > 0 ? use.cpu_ms : tree.cpu_ms, last->cpu_ms),
		.mem = use.mem > 0 ? use.mem : tree.memory,
		.written = most(tree.written, last->written),
		.pids = tree.processes > 0 ? tree.processes - 1 : 0,
	};
}

void sampler_begin(struct sampler *s, const struct run *run, uint64_t begun_ms)
{
	*s = (struct sampler){ .next_ms = run->spec->sample ? begun_ms + SANDBOX_SAMPLE_MS : 0 };
}

void sampler_look(struct sampler *s, const struct run *run, uint64_t begun_ms, uint64_t now_ms)
{
	uint64_t before, took_ms;

	if (s->next_ms == 0 || now_ms < s->next_ms)
		return;
	before = clock_us();
	s->last = measure(run, &s->last);
	s->last.at_ms = now_ms - begun_ms;
	s->next_ms = now_ms + run->spec->sample(run->spec->sample_ctx, &s->last);
	/* Thousands of processes take long to look at, and are then looked at less often. */
	took_ms = (clock_us() - before) / 1000;
	s->next_ms = most(s->next_ms, now_ms + took_ms * SHARE);
}
