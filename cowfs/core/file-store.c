/*
 * Content that a frozen file shares with the live one never changes: a writer copies a shared
 * block, and puts the copy in its place. So a block that both have still holds the stored bytes,
 * and a hole that both have is one there too.
 *
 * Everything else in the live file's list differs from the stored content, or may. An incomplete
 * block there shows the content underneath, old or new: at those bytes, nothing was frozen that
 * differs from the old content. Ranges without an extent in the live file were frozen as they are,
 * up to `low`.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cowfs/core/file-i.h"
#include "cowfs/store/content-edit.h"

int file_share(const struct file *f, struct file *to)
{
	struct file copy = *f;

	assert(to->n == 0);
	copy.low = 0;
	copy.list = NULL;
	copy.n = copy.cap = 0;
	if (extents_reserve(&copy, f->n) < 0)
		return -ENOMEM;
	for (; copy.n < f->n; copy.n++) {
		copy.list[copy.n] = f->list[copy.n];
		if (copy.list[copy.n].block)
			block_ref(copy.list[copy.n].block);
	}
	free(to->list);
	*to = copy;
	return 0;
}

int file_freeze(struct file *f, struct file *ret_frozen)
{
	int r = file_share(f, ret_frozen);

	if (r < 0)
		return r;
	f->low = f->size;
	return 0;
}

/* --- storing ----------------------------------------------------------------------------- */

/* What content_edit() asks for. */
struct edit {
	const struct file *f; /* borrowed */
	struct batch *b;      /* borrowed */
	struct under under;
	struct content_change *list; /* owned */
	struct object_id *chunks;    /* owned; those of `list` that were put here, in their order */
	size_t n, n_chunks;
	uint8_t *bytes;                /* owned; one block, made when first needed */
	const struct object_id *zeros; /* one of `chunks`: a full block without a byte in it */
};

static void edit_done(struct edit *ed)
{
	under_done(&ed->under);
	free(ed->list);
	free(ed->chunks);
	free(ed->bytes);
}

/*
 * Put all `len` bytes of a block together that is not in memory as a whole.  1 if some of them are
 * of the content underneath.
 */
static int fill_bytes(struct edit *ed, const struct extent *e, uint32_t len, struct err *err)
{
	const struct block *b = e->block;
	const uint32_t shows = file_shows(ed->f, e->first);
	CLEANUP(cached_unref_p) const struct cached *under = NULL;
	int r;

	if (!ed->bytes) {
		ed->bytes = malloc(FILE_BLOCK);
		if (!ed->bytes)
			return err_nomem(err);
	}
	if (!block_hides(b, shows)) {
		r = under_load(&ed->under, e->first, &under);
		if (r < 0)
			return r;
	}
	memset(ed->bytes, 0, len);
	if (under)
		memcpy(ed->bytes, under->data, shows);
	if (b->lo < b->hi)
		memcpy(ed->bytes + b->lo, b->data + b->lo, b->hi - b->lo);
	return under != NULL;
}

static int edit_add(struct edit *ed, const struct extent *e, struct err *err)
{
	struct content_change *ch = &ed->list[ed->n++];
	const uint32_t len = block_below(e->first, ed->f->size);
	struct object_id *id = &ed->chunks[ed->n_chunks];
	bool empty, merged;
	int r;

	*ch = (struct content_change){ .first = e->first, .n = e->n };
	if (!e->block)
		return 0;
	if (e->block->lo == 0 && e->block->hi == len) {
		ch->data = e->block->data;
		return 0;
	}
	empty = len == FILE_BLOCK && e->block->whole && e->block->lo == e->block->hi;
	if (empty && ed->zeros) {
		ch->chunk = ed->zeros;
		return 0;
	}
	r = fill_bytes(ed, e, len, err);
	if (r < 0)
		return r;
	merged = r > 0;
	r = batch_put(ed->b, OBJECT_CHUNK, ed->bytes, len, id, err);
	if (r < 0)
		return r;
	/* A program that changes part of a block is likely to go on there, as an appending one does. */
	if (merged)
		cache_add(ed->under.cache, OBJECT_CHUNK, id, ed->bytes, len);
	ch->chunk = id;
	if (empty)
		ed->zeros = id;
	ed->n_chunks++;
	return 0;
}

int file_store(const struct file *frozen, struct batch *b, struct cache *c, struct content *ret,
	       struct err *err)
{
	CLEANUP(edit_done)
	struct edit ed = { .f = frozen, .b = b, .under = UNDER_INIT(frozen, c, NULL, err) };
	int r;

	if (file_is_stored(frozen)) {
		*ret = frozen->base;
		return 0;
	}
	if (frozen->base.form == CONTENT_LAZY)
		return err_set(err, -EBADMSG, "a file is to be stored of which bytes are promised");
	ed.list = calloc(frozen->n + 1, sizeof(*ed.list));
	ed.chunks = calloc(frozen->n + 1, sizeof(*ed.chunks));
	if (!ed.list || !ed.chunks)
		return err_nomem(err);
	for (size_t i = 0; i < frozen->n; i++) {
		r = edit_add(&ed, &frozen->list[i], err);
		if (r < 0)
			return r;
	}
	return content_edit(b, c, &frozen->base, frozen->kept, frozen->size, ed.list, ed.n, ret,
			    err);
}

/* --- settling ---------------------------------------------------------------------------- */

/* Is an extent of the live file in what was stored of the frozen one? */
static bool is_settled(const struct extent *e, const struct extent *was)
{
	if (e->block)
		return e->block == was->block;
	return !was->block && was->first <= e->first && e->first + e->n <= was->first + was->n;
}

void file_settle(struct file *f, const struct file *frozen, const struct content *stored,
		 int64_t *ret_grown)
{
	const struct extent *was = frozen->list, *end = was + frozen->n;
	size_t n = 0;

	*ret_grown = 0;
	if (f->low == 0)
		return;
	assert(stored->size == frozen->size && f->low <= stored->size);
	assert(content_equal(&f->base, &frozen->base));

	for (size_t i = 0; i < f->n; i++) {
		const struct extent e = f->list[i];

		while (was < end && was->first + was->n <= e.first)
			was++;
		if (was == end || !is_settled(&e, was)) {
			f->list[n++] = e;
			continue;
		}
		if (e.block)
			*ret_grown -= e.block->cap;
		block_unref(e.block);
	}
	extents_shrink(f, n);
	f->base = *stored;
	f->kept = f->low;
	f->low = 0;
	file_recount(f);
}
