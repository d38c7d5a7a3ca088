/*
 * Space for bytes that nobody has written yet.
 *
 * A block of an allocated range that was a hole becomes a whole block without bytes: it reads as
 * zeros and takes no memory, yet counts as data, in the layer and, as a chunk of zeros that all
 * such blocks share, in the store. One block stands for all of them: a writer copies it first, like
 * every shared block.
 */
#include <errno.h>

#include "cowfs/core/file-i.h"

/* A run of blocks that are all holes, or all not. */
struct run {
	bool hole;
	uint64_t end; /* a block before which nothing changes */
};

static int find_run(const struct file *f, struct under *u, uint64_t number, struct run *ret)
{
	const size_t i = extents_find(f, number);
	const struct extent *e = i < f->n ? &f->list[i] : NULL;
	int r = 0;

	if (e && e->first <= number) {
		*ret = (struct run){ .hole = !e->block, .end = e->first + e->n };
		return 0;
	}
	if (file_shows(f, number) == 0)
		*ret = (struct run){ .hole = true, .end = UINT64_MAX };
	else
		r = under_run(u, number, &ret->hole, &ret->end);
	/* What is kept of base may end before base does. */
	if (file_shows(f, number) > 0)
		ret->end = least(ret->end, blocks_of(f->kept));
	if (e)
		ret->end = least(ret->end, e->first);
	return r;
}

/* How many blocks of [first, end) are holes, and in how many runs; with `zeros`, fill them. */
static int walk(struct file *f, struct under *u, uint64_t first, uint64_t end, struct block *zeros,
		size_t *ret_room)
{
	struct run run;
	int r;

	*ret_room = 2;
	for (uint64_t at = first; at < end; at = run.end) {
		r = find_run(f, u, at, &run);
		if (r < 0)
			return r;
		run.end = least(run.end, end);
		if (!run.hole)
			continue;
		*ret_room += run.end - at + 2;
		if (zeros)
			extents_fill(f, at, run.end, zeros);
	}
	return 0;
}

int file_allocate(struct file *f, struct cache *c, uint64_t off, uint64_t len, struct need *need)
{
	CLEANUP(under_done) struct under u = UNDER_INIT(f, c, need, NULL);
	const uint64_t to = off + len < f->size ? off + len : f->size;
	const uint64_t first = off / FILE_BLOCK, end = blocks_of(to);
	CLEANUP(block_unref_p) struct block *zeros = NULL;
	size_t room;
	int r;

	if (off >= to)
		return 0;
	r = walk(f, &u, first, end, NULL, &room);
	if (r < 0 || room == 2)
		return r;
	zeros = block_new(0);
	if (!zeros || extents_reserve(f, room) < 0)
		return -ENOMEM;
	zeros->whole = true;
	/* Should it need something again that has left the cache, the caller comes back, and no byte has changed. */
	r = walk(f, &u, first, end, zeros, &room);
	file_recount(f);
	return r;
}
