#include "cowfs/core/traffic.h"

#include "base/clock.h"
#include "cowfs/core/layers-i.h"

static void add(_Atomic uint64_t *to, uint64_t n)
{
	atomic_fetch_add_explicit(to, n, memory_order_relaxed);
}

static uint64_t get(const _Atomic uint64_t *from)
{
	return atomic_load_explicit(from, memory_order_relaxed);
}

void traffic_answered(struct layer *l)
{
	add(&l->traffic.requests, 1);
}

void traffic_read(struct layer *l, uint64_t bytes)
{
	add(&l->traffic.read, bytes);
}

void traffic_written(struct layer *l, uint64_t bytes)
{
	add(&l->traffic.written, bytes);
}

void traffic_waits(struct layer *l)
{
	add(&l->traffic.waiting, 1);
}

void traffic_waits_no_more(struct layer *l)
{
	atomic_fetch_sub_explicit(&l->traffic.waiting, 1, memory_order_relaxed);
}

void traffic_rested(struct layer *l)
{
	add(&l->traffic.rests, 1);
}

uint64_t traffic_work_now(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

void traffic_worked(struct layer *l, uint64_t begun)
{
	add(&l->traffic.work, traffic_work_now() - begun);
}

_Atomic uint64_t *traffic_work(struct layer *l)
{
	return &l->traffic.work;
}

int traffic_each(struct layers *ls, traffic_fn fn, void *ctx)
{
	int r = 0;

	/* A layer leaves the list, and a warm one gets its name, under this lock. */
	LOCKED(&ls->lock);
	for (const struct layer *l = ls->list; l && r >= 0; l = l->next) {
		const struct traffic t = {
			.requests = get(&l->traffic.requests),
			.read = get(&l->traffic.read),
			.written = get(&l->traffic.written),
			.waiting = get(&l->traffic.waiting),
			.rests = get(&l->traffic.rests),
		};

		if (!layer_is_warm(l))
			r = fn(layer_name(l), &t, ctx);
	}
	return r < 0 ? r : 0;
}
