/*
 * Memory for full blocks comes in slabs, for which the kernel may use large pages: taking it page
 * by page costs more than all later work on it (measured: 5 GB/s of new blocks from malloc(), 17
 * from here). The first slot of a slab is its head.
 *
 * A slab is a mapping of its own. In memory of malloc(), permission to use large pages would
 * outlive the slab, and the kernel would fill pages again that had been given back to it.
 */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "cowfs/core/file-i.h"

#define SLAB_SIZE ((size_t)2 << 20)
#define SLOTS     (SLAB_SIZE / FILE_BLOCK - 1)
#define SPARE_MAX 8 /* empty slabs that are kept until pool_trim() */

struct slot {
	struct slot *next;
};

struct slab {
	struct slab *next, **at; /* among those with free slots; guarded by `lock`, as all here */
	struct slot *given_back;
	size_t fresh; /* slots that were never taken: the last ones */
	size_t free;  /* those and the ones given back */
};

_Static_assert(sizeof(struct slab) <= FILE_BLOCK, "the head of a slab fits into a slot");

/* A leaf: nothing is taken while it is held. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct slab *with_free;
static size_t spare; /* slabs with free slots only */

static void slab_list(struct slab *s)
{
	s->next = with_free;
	s->at = &with_free;
	if (s->next)
		s->next->at = &s->next;
	with_free = s;
}

static void slab_unlist(struct slab *s)
{
	*s->at = s->next;
	if (s->next)
		s->next->at = s->at;
}

/* One that begins at a multiple of its size, out of one twice as large. */
static void *map_slab(void)
{
	uint8_t *all =
	    mmap(NULL, 2 * SLAB_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t before;

	if (all == MAP_FAILED)
		return NULL;
	before = -(uintptr_t)all & (SLAB_SIZE - 1);
	if (before > 0)
		munmap(all, before);
	munmap(all + before + SLAB_SIZE, SLAB_SIZE - before);
	return all + before;
}

static void slab_free(struct slab *s)
{
	munmap(s, SLAB_SIZE);
}

static struct slab *slab_new(void)
{
	struct slab *s = map_slab();

	if (!s)
		return NULL;
#ifdef MADV_HUGEPAGE
	IGNORE_RESULT(madvise(s, SLAB_SIZE, MADV_HUGEPAGE), "small pages do too");
#endif
	*s = (struct slab){ .fresh = SLOTS, .free = SLOTS };
	return s;
}

static void *slab_take(struct slab *s)
{
	struct slot *slot = s->given_back;

	if (slot)
		s->given_back = slot->next;
	else
		slot = (struct slot *)((uint8_t *)s + (1 + SLOTS - s->fresh--) * FILE_BLOCK);
	if (s->free == SLOTS)
		spare--;
	if (--s->free == 0)
		slab_unlist(s);
	return slot;
}

void *pool_take(void)
{
	struct slab *more = NULL;
	void *p = NULL;

	pthread_mutex_lock(&lock);
	if (with_free)
		p = slab_take(with_free);
	pthread_mutex_unlock(&lock);
	if (p)
		return p;

	more = slab_new();
	if (!more)
		return NULL;
	pthread_mutex_lock(&lock);
	slab_list(more);
	spare++;
	p = slab_take(more);
	pthread_mutex_unlock(&lock);
	return p;
}

size_t pool_trim(void)
{
	struct slab *gone = NULL, *s, *next;
	size_t n = 0;

	pthread_mutex_lock(&lock);
	for (s = with_free; s; s = next) {
		next = s->next;
		if (s->free < SLOTS)
			continue;
		slab_unlist(s);
		spare--;
		s->next = gone;
		gone = s;
	}
	pthread_mutex_unlock(&lock);
	for (s = gone; s; s = next, n++) {
		next = s->next;
		slab_free(s);
	}
	return n * SLAB_SIZE;
}

void pool_give(void *p)
{
	struct slab *s = (struct slab *)((uintptr_t)p & ~(uintptr_t)(SLAB_SIZE - 1));
	struct slot *slot = p;
	bool gone;

	pthread_mutex_lock(&lock);
	slot->next = s->given_back;
	s->given_back = slot;
	if (s->free++ == 0)
		slab_list(s);
	gone = s->free == SLOTS && spare == SPARE_MAX;
	if (gone)
		slab_unlist(s);
	else if (s->free == SLOTS)
		spare++;
	pthread_mutex_unlock(&lock);
	if (gone)
		slab_free(s);
}
