#include "cowfs/fuse/pace.h"

#include <stddef.h>

#define COUNT_NS 20000000ull /* between two counts of the clones in use */

void paces_init(struct paces *all, unsigned cpus)
{
	*all = (struct paces){ .cpus = cpus };
	pthread_mutex_init(&all->lock, NULL);
}

void paces_done(struct paces *all)
{
	pthread_mutex_destroy(&all->lock);
}

void pace_join(struct paces *all, struct pace *p, const void *clone, _Atomic uint64_t *aside)
{
	*p = (struct pace){ .all = all, .clone = clone, .aside = aside };
	LOCKED(&all->lock);
	p->next = all->first;
	if (p->next != NULL)
		p->next->before = p;
	all->first = p;
}

void pace_leave(struct pace *p)
{
	struct paces *all = p->all;

	if (all == NULL)
		return;
	pthread_mutex_lock(&all->lock);
	*(p->before != NULL ? &p->before->next : &all->first) = p->next;
	if (p->next != NULL)
		p->next->before = p->before;
	pthread_mutex_unlock(&all->lock);
	p->all = NULL;
}

void pace_spend(struct pace *p, uint64_t ns)
{
	atomic_fetch_add_explicit(&p->spent, ns, memory_order_relaxed);
}

static bool is_used(const struct pace *p, uint64_t now)
{
	const uint64_t asked = atomic_load_explicit(&p->asked, memory_order_relaxed);

	return asked != 0 && (now < asked || now - asked < PACE_USED_NS);
}

/* Is it the first in the list of those that show its clone and are in use? */
static bool stands_for_clone(const struct pace *p, uint64_t now)
{
	for (const struct pace *o = p->all->first; o != p; o = o->next)
		if (o->clone == p->clone && is_used(o, now))
			return false;
	return true;
}

static unsigned count_used(struct paces *all, uint64_t now)
{
	unsigned n = 0;

	LOCKED(&all->lock);
	for (const struct pace *p = all->first; p != NULL; p = p->next)
		n += is_used(p, now) && stands_for_clone(p, now);
	return n;
}

static unsigned clones_in_use(struct paces *all, uint64_t now)
{
	uint64_t next = atomic_load_explicit(&all->next_ns, memory_order_relaxed);

	if (now >= next && atomic_compare_exchange_strong(&all->next_ns, &next, now + COUNT_NS))
		atomic_store(&all->used, count_used(all, now));
	return atomic_load_explicit(&all->used, memory_order_relaxed);
}

uint64_t pace_look(struct pace *p, uint64_t now, bool crowded)
{
	const uint64_t spent = atomic_load_explicit(&p->spent, memory_order_relaxed);
	const uint64_t own = spent - p->counted, since = now - p->looked;
	const uint64_t had = own + atomic_exchange_explicit(p->aside, 0, memory_order_relaxed);
	uint64_t clones, part, rest;

	p->counted = spent;
	p->looked = now;
	if (own >= PACE_HEAVY_NS)
		atomic_store_explicit(&p->asked, now, memory_order_relaxed);
	clones = crowded ? clones_in_use(p->all, now) : 0;
	if (clones < 2) {
		p->debt = 0;
		return 0;
	}
	part = since * p->all->cpus / (2 * clones);
	p->debt = p->debt + had > part ? p->debt + had - part : 0;
	if (p->debt > PACE_DEBT_NS)
		p->debt = PACE_DEBT_NS;
	if (p->debt <= PACE_BURST_NS)
		return 0;
	rest = p->debt * 2 * clones / p->all->cpus;
	return rest < PACE_REST_NS ? rest : PACE_REST_NS;
}
