/*
 * The steps of a change. It is cut into patches, one per block. Only the first and the last of them
 * can cover their block in part, so only those two can need the content underneath.
 *
 *   look   needed content is in the cache, or the result is -EAGAIN
 *   make   take all memory: after that nothing can fail
 *   enter  new blocks come into the list
 *   fill   and only now bytes change
 *
 * Before `enter` nobody can see a difference, except in the memory taken.
 */
#include "cowfs/core/file.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "cowfs/core/file-i.h"

/* Patches of a write as the kernel sends them. */
#define FEW 18

struct patch {
	uint64_t number;
	struct block *block;        /* where the bytes go */
	const struct cached *under; /* if `merge`: a reference, or NULL: zeros */
	uint32_t lo, hi;            /* what it covers of the block */
	uint32_t room;              /* bytes to take if the block is new, if more than it needs */
	bool merge;                 /* what is underneath comes first */
	bool fresh;                 /* not in the list yet, and owned */
	bool adds;                  /* there was no data */
};

void file_init(struct file *f, const struct content *base)
{
	*f = (struct file){
		.base = *base, .kept = base->size, .size = base->size, .data = base->data
	};
}

void file_done(struct file *f)
{
	VEC_FREE(it, f->list, f->n, block_unref(it->block));
	*f = (struct file){ 0 };
}

bool file_is_stored(const struct file *f)
{
	return f->n == 0 && f->kept == f->size && f->base.size == f->size;
}

uint64_t file_memory(const struct file *f)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < f->n; i++)
		if (f->list[i].block)
			sum += f->list[i].block->cap;
	return sum;
}

/* --- how much is no hole ----------------------------------------------------------------- */

/* Every block of base is known to be data. */
static bool base_is_dense(const struct file *f)
{
	return f->base.data == f->base.size;
}

void file_recount(struct file *f)
{
	const uint64_t shown = f->base.form == CONTENT_HOLE ? 0 : block_start(blocks_of(f->kept));
	uint64_t under = least(shown, f->size), data = 0;

	for (size_t i = 0; i < f->n; i++) {
		const struct extent *e = &f->list[i];
		const uint64_t from = block_start(e->first);
		const uint64_t to = least(block_start(e->first + e->n), f->size);

		if (from < shown)
			under -= least(to, shown) - from;
		if (e->block)
			data += to - from;
	}
	if (!base_is_dense(f) && under > f->base.data)
		under = f->base.data;
	f->data = data + under;
}

/* The size rises; if its last block is data, that becomes more. */
static void grow(struct file *f, uint64_t size)
{
	const uint64_t last = f->size / FILE_BLOCK;
	const struct extent *e;

	if (f->size % FILE_BLOCK > 0) {
		e = extents_at(f, last);
		if (e ? e->block != NULL : file_shows(f, last) > 0)
			f->data += least(size, block_start(last + 1)) - f->size;
	}
	f->size = size;
}

void file_stand_on(struct file *f, const struct content *c)
{
	assert(f->base.form == CONTENT_LAZY && c->size == f->base.size);
	f->base = *c;
	file_recount(f);
}

/* --- one block of a change --------------------------------------------------------------- */

/* The bytes between what is known of the block and the patch: do they come from underneath? */
static int find_gap(const struct file *f, struct under *u, struct patch *p)
{
	const struct extent *e = extents_at(f, p->number);
	const struct block *b = e ? e->block : NULL;
	uint32_t gap;

	if (!b || b->whole || b->lo == b->hi || (p->lo <= b->hi && p->hi >= b->lo))
		return 0;
	gap = p->lo > b->hi ? b->hi : p->hi;
	if (gap >= file_shows(f, p->number))
		return 0;
	p->merge = true;
	return under_load(u, p->number, &p->under);
}

static int reserve(struct block *b, uint32_t cap, int64_t *grown)
{
	const uint32_t before = b->cap;
	int r = block_reserve(b, cap);

	*grown += b->cap - before;
	return r;
}

/* A block of its own for a patch, which shows the same as what it will replace. */
static int make(const struct file *f, struct patch *p, int64_t *grown)
{
	const struct extent *e = extents_at(f, p->number);
	struct block *old = e ? e->block : NULL;
	const uint32_t shows = file_shows(f, p->number);
	uint32_t cap = p->merge && shows > p->hi ? shows : p->hi;

	if (old && !block_is_shared(old)) {
		p->block = old;
		return reserve(old, cap, grown);
	}
	if (p->room > cap)
		cap = p->room;
	if (old && old->hi > cap)
		cap = old->hi;
	p->block = block_new(cap);
	if (!p->block)
		return -ENOMEM;
	p->fresh = true;
	if (!old) {
		p->block->whole = e != NULL;
		p->adds = e || shows == 0 || !base_is_dense(f);
	} else if (p->lo <= old->lo && p->hi >= old->hi) {
		p->block->whole = old->whole;
	} else {
		block_copy(p->block, old, FILE_BLOCK);
	}
	return 0;
}

/* Patches of neighbouring blocks come into the list; takes room for n + 2. */
static void enter(struct file *f, struct patch *list, size_t n, int64_t *grown)
{
	const uint64_t first = list[0].number;
	size_t from, to, n_fresh = 0;

	for (size_t i = 0; i < n; i++)
		n_fresh += list[i].fresh;
	if (n_fresh == 0)
		return;
	from = extents_cut(f, first);
	to = extents_cut(f, first + n);
	for (size_t i = from; i < to; i++) {
		struct extent *e = &f->list[i];

		if (e->block && !list[e->first - first].fresh)
			e->block = NULL;
	}
	extents_replace(f, from, to, n, grown);
	for (size_t i = 0; i < n; i++) {
		struct patch *p = &list[i];

		f->list[from + i] =
		    (struct extent){ .first = p->number, .n = 1, .block = p->block };
		if (p->fresh)
			*grown += p->block->cap;
		if (p->adds)
			f->data += block_below(p->number, f->size);
		p->fresh = false;
	}
	f->data = least(f->data, f->size);
}

/* `data` NULL: zeros. */
static void fill(const struct file *f, struct patch *p, const void *data)
{
	const uint32_t shows = file_shows(f, p->number);

	if (p->merge)
		block_merge(p->block, p->under ? p->under->data : NULL, shows);
	block_put(p->block, p->lo, data, p->hi - p->lo);
	p->block->whole = block_hides(p->block, shows);
}

/* --- writing ----------------------------------------------------------------------------- */

struct change {
	struct patch *few;  /* FEW of them, borrowed and not initialised */
	struct patch *list; /* `few`, or owned */
	size_t n;
};

#define CHANGE_INIT(few_) ((struct change){ .few = (few_), .list = (few_) })

static void change_done(struct change *ch)
{
	for (size_t i = 0; i < ch->n; i++) {
		cached_unref(ch->list[i].under);
		if (ch->list[i].fresh)
			block_unref(ch->list[i].block);
	}
	if (ch->list != ch->few)
		free(ch->list);
}

/* Cut a range into patches. */
static int change_cut(struct change *ch, const struct file *f, uint64_t off, size_t len)
{
	const uint64_t first = off / FILE_BLOCK, end = blocks_of(off + len);

	if (end - first > FEW) {
		ch->list = malloc((end - first) * sizeof(*ch->list));
		if (!ch->list)
			return -ENOMEM;
	}
	for (uint64_t k = first; k < end; k++) {
		const uint32_t lo = block_below(k, off);
		/* A program that continues behind a full block will probably fill this one too. */
		const bool on = k > 0 && lo == 0 && block_start(k) == f->size;

		ch->list[ch->n++] = (struct patch){ .number = k,
						    .lo = lo,
						    .hi = block_below(k, off + len),
						    .room = on ? FILE_BLOCK : 0 };
	}
	return 0;
}

/* Is there all that the change needs?  Then take the memory for it. */
static int change_prepare(struct change *ch, struct file *f, struct cache *c, int64_t *grown,
			  struct need *need)
{
	CLEANUP(under_done) struct under u = UNDER_INIT(f, c, need, NULL);
	int r = find_gap(f, &u, &ch->list[0]);

	if (r == 0 && ch->n > 1)
		r = find_gap(f, &u, &ch->list[ch->n - 1]);
	if (r < 0)
		return r;
	r = extents_reserve(f, ch->n + 2);
	for (size_t i = 0; r == 0 && i < ch->n; i++)
		r = make(f, &ch->list[i], grown);
	return r;
}

int file_write(struct file *f, struct cache *c, uint64_t off, const void *data, size_t len,
	       int64_t *ret_grown, struct need *need)
{
	struct patch few[FEW];
	CLEANUP(change_done) struct change ch = CHANGE_INIT(few);
	const uint8_t *from = data;
	int r;

	*ret_grown = 0;
	if (len == 0)
		return 0;
	if (off > INT64_MAX || len > INT64_MAX - off)
		return -EFBIG;
	r = change_cut(&ch, f, off, len);
	if (r < 0)
		return r;
	r = change_prepare(&ch, f, c, ret_grown, need);
	if (r < 0)
		return r;

	if (off + len > f->size)
		grow(f, off + len);
	enter(f, ch.list, ch.n, ret_grown);
	for (size_t i = 0; i < ch.n; i++) {
		fill(f, &ch.list[i], from);
		from += ch.list[i].hi - ch.list[i].lo;
	}
	return 0;
}

/* --- taking away ------------------------------------------------------------------------- */

/* The block that the new end cuts forgets what lies behind it. */
static int cut_block(struct file *f, uint64_t size, int64_t *grown)
{
	const uint64_t number = size / FILE_BLOCK;
	const uint32_t end = block_below(number, size);
	struct extent *e = extents_at(f, number);
	struct block *fresh;

	if (end == 0 || !e || !e->block || e->block->hi <= end)
		return 0;
	if (!block_is_shared(e->block)) {
		block_clip(e->block, end);
		return 0;
	}
	fresh = block_new(end);
	if (!fresh)
		return -ENOMEM;
	block_copy(fresh, e->block, end);
	*grown += (int64_t)fresh->cap - e->block->cap;
	block_unref(e->block);
	e->block = fresh;
	return 0;
}

int file_truncate(struct file *f, uint64_t size, int64_t *ret_grown)
{
	static const struct content nothing = { .form = CONTENT_HOLE };
	int r;

	assert(size <= INT64_MAX);
	*ret_grown = 0;
	if (size >= f->size) {
		grow(f, size);
		return 0;
	}
	r = cut_block(f, size, ret_grown);
	if (r < 0)
		return r;
	extents_drop_from(f, blocks_of(size), ret_grown);
	f->size = size;
	f->kept = least(f->kept, size);
	f->low = least(f->low, size);
	if (size == 0)
		f->base = nothing;
	file_recount(f);
	return 0;
}

/* Does all of a block read as a hole?  1, 0, or -EAGAIN. */
static int is_hole(const struct file *f, struct under *u, uint64_t number)
{
	const struct extent *e = extents_at(f, number);
	struct object_id id;
	int r;

	if (e)
		return !e->block;
	if (file_shows(f, number) == 0)
		return 1;
	r = under_find(u, number, &id);
	return r < 0 ? r : object_id_is_zero(&id);
}

/* The blocks that [off, end) covers in part and that are no holes. */
static int find_edges(const struct file *f, struct under *u, uint64_t off, uint64_t end,
		      struct change *ch)
{
	const uint64_t edge[] = { off / FILE_BLOCK, (end - 1) / FILE_BLOCK };
	int r;

	for (size_t i = 0; i < 2; i++) {
		struct patch p = { .number = edge[i],
				   .lo = block_below(edge[i], off),
				   .hi = block_below(edge[i], end) };

		if ((i > 0 && edge[1] == edge[0]) ||
		    (p.lo == 0 && p.hi == block_below(edge[i], f->size)))
			continue;
		r = is_hole(f, u, edge[i]);
		if (r < 0)
			return r;
		if (r > 0)
			continue;
		r = find_gap(f, u, &p);
		ch->list[ch->n++] = p;
		if (r < 0)
			return r;
	}
	return 0;
}

int file_punch(struct file *f, struct cache *c, uint64_t off, uint64_t len, int64_t *ret_grown,
	       struct need *need)
{
	CLEANUP(under_done) struct under u = UNDER_INIT(f, c, need, NULL);
	struct patch few[FEW];
	CLEANUP(change_done) struct change ch = CHANGE_INIT(few);
	uint64_t end, first, behind, shown;
	int r;

	*ret_grown = 0;
	if (off >= f->size || len == 0)
		return 0;
	end = len < f->size - off ? off + len : f->size;
	r = find_edges(f, &u, off, end, &ch);
	if (r == 0)
		r = extents_reserve(f, 2 * 3 + 3);
	for (size_t i = 0; r == 0 && i < ch.n; i++)
		r = make(f, &ch.list[i], ret_grown);
	if (r < 0)
		return r;

	for (size_t i = 0; i < ch.n; i++) {
		enter(f, &ch.list[i], 1, ret_grown);
		fill(f, &ch.list[i], NULL);
	}
	first = blocks_of(off);
	behind = end == f->size ? blocks_of(end) : end / FILE_BLOCK;
	shown = f->base.form != CONTENT_HOLE && f->kept > f->low ? f->kept : f->low;
	if (first < behind)
		extents_punch(f, first, behind, blocks_of(shown), ret_grown);
	file_recount(f);
	return 0;
}
