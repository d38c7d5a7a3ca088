#include <assert.h>
#include <errno.h>

#include "cowfs/core/file-i.h"

/* Pieces that are found; lets their blocks go unless they are handed over. */
struct pieces {
	struct piece *list; /* borrowed */
	size_t n;
};

static void pieces_done(struct pieces *ps)
{
	while (ps->n > 0)
		block_unref(ps->list[--ps->n].block);
}

static bool is_zeros(const struct piece *p)
{
	return !p->block && object_id_is_zero(&p->chunk);
}

static void add_zeros(struct pieces *ps, size_t len)
{
	if (len == 0)
		return;
	if (ps->n > 0 && is_zeros(&ps->list[ps->n - 1]))
		ps->list[ps->n - 1].len += len;
	else
		ps->list[ps->n++] = (struct piece){ .len = len };
}

/* Promised bytes that follow one another are one piece. */
static void add_promised(struct pieces *ps, const struct object_id *promise, uint64_t off,
			 size_t len)
{
	struct piece *last = ps->n > 0 ? &ps->list[ps->n - 1] : NULL;

	if (last && last->promised && last->off + last->len == off)
		last->len += len;
	else
		ps->list[ps->n++] =
		    (struct piece){ .len = len, .chunk = *promise, .promised = true, .off = off };
}

/* [lo, hi) of a block as it is underneath. */
static int add_under(struct pieces *ps, const struct file *f, struct under *u, uint64_t number,
		     uint32_t lo, uint32_t hi)
{
	const uint32_t shows = file_shows(f, number), end = hi < shows ? hi : shows;
	struct object_id id;
	int r;

	if (lo >= end) {
		add_zeros(ps, hi > lo ? hi - lo : 0);
		return 0;
	}
	if (f->base.form == CONTENT_LAZY) {
		add_promised(ps, &f->base.id, block_start(number) + lo, end - lo);
		add_zeros(ps, hi - end);
		return 0;
	}
	r = under_find(u, number, &id);
	if (r < 0)
		return r;
	if (object_id_is_zero(&id)) {
		add_zeros(ps, hi - lo);
		return 0;
	}
	ps->list[ps->n++] = (struct piece){
		.len = end - lo, .at = lo, .chunk = id, .chunk_len = under_len(u, number)
	};
	add_zeros(ps, hi - end);
	return 0;
}

/* [lo, hi) of what lies around the range of a block. */
static int add_around(struct pieces *ps, const struct file *f, struct under *u,
		      const struct extent *e, uint32_t lo, uint32_t hi)
{
	if (!e->block->whole)
		return add_under(ps, f, u, e->first, lo, hi);
	add_zeros(ps, hi > lo ? hi - lo : 0);
	return 0;
}

/* [lo, hi) of a block that is in memory. */
static int add_block(struct pieces *ps, const struct file *f, struct under *u,
		     const struct extent *e, uint32_t lo, uint32_t hi)
{
	struct block *b = e->block;
	const uint32_t from = lo > b->lo ? lo : b->lo, to = hi < b->hi ? hi : b->hi;
	int r;

	if (from >= to)
		return add_around(ps, f, u, e, lo, hi);
	r = add_around(ps, f, u, e, lo, from);
	if (r < 0)
		return r;
	ps->list[ps->n++] = (struct piece){ .len = to - from, .at = from, .block = block_ref(b) };
	return add_around(ps, f, u, e, to, hi);
}

int file_map(const struct file *f, struct cache *c, uint64_t off, size_t len, struct piece *list,
	     size_t *ret_n, struct need *need)
{
	CLEANUP(under_done) struct under u = UNDER_INIT(f, c, need, NULL);
	CLEANUP(pieces_done) struct pieces ps = { .list = list };
	const uint64_t end = off < f->size && len > f->size - off ? f->size : off + len;
	size_t i;
	int r;

	*ret_n = 0;
	if (off >= f->size || len == 0)
		return 0;
	i = extents_find(f, off / FILE_BLOCK);
	for (uint64_t k = off / FILE_BLOCK; block_start(k) < end; k++) {
		const uint32_t lo = block_below(k, off), hi = block_below(k, end);
		const struct extent *e;

		while (i < f->n && f->list[i].first + f->list[i].n <= k)
			i++;
		e = i < f->n && f->list[i].first <= k ? &f->list[i] : NULL;
		r = 0;
		if (!e)
			r = add_under(&ps, f, &u, k, lo, hi);
		else if (e->block)
			r = add_block(&ps, f, &u, e, lo, hi);
		else
			add_zeros(&ps, hi - lo);
		if (r < 0)
			return r;
	}
	assert(ps.n <= FILE_PIECES(len));
	*ret_n = ps.n;
	ps.n = 0;
	return 0;
}

/* Is there a hole at `off`, and from where on may that be different? */
static int find_run(const struct file *f, struct under *u, uint64_t off, bool *ret_hole,
		    uint64_t *ret_end)
{
	const uint64_t number = off / FILE_BLOCK;
	const size_t i = extents_find(f, number);
	const uint64_t next = i < f->n ? f->list[i].first : blocks_of(f->size);
	uint64_t end;
	int r;

	if (i < f->n && next <= number) {
		*ret_hole = !f->list[i].block;
		*ret_end = block_start(f->list[i].first + f->list[i].n);
		return 0;
	}
	if (file_shows(f, number) == 0) {
		*ret_hole = true;
		*ret_end = block_start(next);
		return 0;
	}
	r = under_run(u, number, ret_hole, &end);
	if (r < 0)
		return r;
	*ret_end = block_start(least(least(end, next), blocks_of(f->kept)));
	return 0;
}

int file_seek(const struct file *f, struct cache *c, uint64_t off, bool hole, uint64_t *ret,
	      struct need *need)
{
	CLEANUP(under_done) struct under u = UNDER_INIT(f, c, need, NULL);
	uint64_t end;
	bool in_hole;
	int r;

	if (off >= f->size)
		return -ENXIO;
	while (off < f->size) {
		r = find_run(f, &u, off, &in_hole, &end);
		if (r < 0)
			return r;
		if (in_hole == hole) {
			*ret = off;
			return 0;
		}
		off = end;
	}
	if (!hole)
		return -ENXIO;
	*ret = f->size;
	return 0;
}
