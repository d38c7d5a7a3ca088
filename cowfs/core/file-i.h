/*
 * file-i.h - private to files: one block, the list of extents, and the content below them.
 *
 * file.c changes a file, file-map.c finds its bytes, file-store.c stores it; this is what the three
 * share.
 *
 * Invariants: the list is sorted, no two extents overlap, and neighbouring holes are one. No extent
 * begins at or beyond the size, and no block has a range that goes beyond it. An explicit hole is
 * stored only where it covers bytes of base (file_shows) or frozen ones; elsewhere a hole is the
 * absence of an extent.
 */
#pragma once

#include "cowfs/core/file.h"

static inline uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t block_start(uint64_t number)
{
	return number * FILE_BLOCK;
}

/* How many blocks it takes to hold so many bytes. */
static inline uint64_t blocks_of(uint64_t size)
{
	return size / FILE_BLOCK + (size % FILE_BLOCK > 0);
}

/* How much of a block lies below an offset. */
static inline uint32_t block_below(uint64_t number, uint64_t off)
{
	const uint64_t start = block_start(number);

	if (off <= start)
		return 0;
	return off - start < FILE_BLOCK ? (uint32_t)(off - start) : (uint32_t)FILE_BLOCK;
}

/* How many bytes of a block come from the content underneath, unless an extent hides them. */
static inline uint32_t file_shows(const struct file *f, uint64_t number)
{
	return f->base.form == CONTENT_HOLE ? 0 : block_below(number, f->kept);
}

/* Count `data` again. */
void file_recount(struct file *f);

/* --- file-block.c: one block ------------------------------------------------------------- */

/* Nothing written, not whole, one reference; NULL when out of memory. */
struct block *block_new(uint32_t cap);
struct block *block_ref(struct block *b);

/* Somebody else has a reference: it must not change. */
bool block_is_shared(const struct block *b);

/* `shows` bytes of base would show underneath: none of them does. */
bool block_hides(const struct block *b, uint32_t shows);

/* What follows changes the block, so it must not be shared. */

NODISCARD int block_reserve(struct block *b, uint32_t cap);

/* Write to it; `data` NULL: zeros.  What lies between this and the range becomes zeros. */
void block_put(struct block *b, uint32_t at, const void *data, uint32_t len);

/* An empty one becomes a copy, up to `end`. */
void block_copy(struct block *b, const struct block *from, uint32_t end);

/* `under` (NULL: zeros) is what shows of the content underneath: take it in.  Then it is whole. */
void block_merge(struct block *b, const uint8_t *under, uint32_t len);

/* Forget what was written at and beyond `end`. */
void block_clip(struct block *b, uint32_t end);

/* --- file-pool.c: memory for full blocks ------------------------------------------------- */

/* FILE_BLOCK bytes, or NULL; from any thread. */
void *pool_take(void);
void pool_give(void *p);
size_t pool_trim(void); /* free what is kept for the next to come; how many bytes */

/* --- file-extent.c: the list ------------------------------------------------------------- */

/* The first that ends behind the block `number`; f->n if there is none. */
size_t extents_find(const struct file *f, uint64_t number);

/* The one that covers a block, or NULL. */
struct extent *extents_at(const struct file *f, uint64_t number);

/* Make room, so that the functions below cannot fail. */
NODISCARD int extents_reserve(struct file *f, size_t more);

/* The first extent at or behind `number`; a hole that reaches over it is cut in two: takes room for 1. */
size_t extents_cut(struct file *f, uint64_t number);

/* Take list[from..to) out, leaving room for `n` extents to be filled in there.  Blocks are let go. */
void extents_replace(struct file *f, size_t from, size_t to, size_t n, int64_t *grown);

/* Forget list[n..], whose blocks are gone. */
void extents_shrink(struct file *f, size_t n);

/* Blocks [first, end), of which none has a block, become extents with this one: room for as many and 2. */
void extents_fill(struct file *f, uint64_t first, uint64_t end, struct block *block);

/* Blocks [first, end) become no extent up to `to`, and one hole before it: room for 3. */
void extents_punch(struct file *f, uint64_t first, uint64_t end, uint64_t to, int64_t *grown);

/* No blocks from `number` on. */
void extents_drop_from(struct file *f, uint64_t number, int64_t *grown);

/* --- file-under.c: what lies underneath -------------------------------------------------- */

/* Looks into a stored content.  Holds the recipe node it went through last. */
struct under {
	const struct content *base; /* borrowed */
	struct cache *cache;        /* borrowed */
	struct need *need;          /* what is not in memory is -EAGAIN; NULL: it is loaded */
	struct err *err;
	const struct cached *node;
	struct recipe_view view; /* of node */
	uint64_t number;         /* of node in its level */
};

#define UNDER_INIT(f, cache_, need_, err_) \
	((struct under){ .base = &(f)->base, .cache = (cache_), .need = (need_), .err = (err_) })
void under_done(struct under *u);

/* The chunk of a block below the end of base; zero if it is a hole. */
NODISCARD int under_find(struct under *u, uint64_t number, struct object_id *ret);

/* The bytes of a block likewise, checked for their length: a reference, or NULL. */
NODISCARD int under_load(struct under *u, uint64_t number, const struct cached **ret);
size_t under_len(const struct under *u, uint64_t number); /* how long that chunk must be */

/* Is the block a hole, and from which block on may that be different? */
NODISCARD int under_run(struct under *u, uint64_t number, bool *ret_hole, uint64_t *ret_next);
