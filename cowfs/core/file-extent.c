#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "cowfs/core/file-i.h"

static uint64_t extent_end(const struct extent *e)
{
	return e->first + e->n;
}

size_t extents_find(const struct file *f, uint64_t number)
{
	size_t lo = 0, hi = f->n;

	/* Most writes go to the last block, or behind it. */
	if (hi > 0 && f->list[hi - 1].first <= number)
		return extent_end(&f->list[hi - 1]) > number ? hi - 1 : hi;
	while (lo < hi) {
		const size_t mid = lo + (hi - lo) / 2;

		if (extent_end(&f->list[mid]) > number)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

struct extent *extents_at(const struct file *f, uint64_t number)
{
	const size_t i = extents_find(f, number);

	return i < f->n && f->list[i].first <= number ? &f->list[i] : NULL;
}

int extents_reserve(struct file *f, size_t more)
{
	return VEC_RESERVE(f->list, f->n, f->cap, more) ? 0 : -ENOMEM;
}

/* Move list[at..] by so many places. */
static void shift(struct file *f, size_t at, ptrdiff_t by)
{
	assert(f->n + (size_t)by <= f->cap);
	if (at < f->n)
		memmove(f->list + at + by, f->list + at, (f->n - at) * sizeof(*f->list));
	f->n += (size_t)by;
}

size_t extents_cut(struct file *f, uint64_t number)
{
	const size_t i = extents_find(f, number);
	struct extent *e = &f->list[i];

	if (i == f->n || e->first >= number)
		return i;
	assert(!e->block);
	shift(f, i + 1, 1);
	e[1] = (struct extent){ .first = number, .n = extent_end(e) - number };
	e->n = number - e->first;
	return i + 1;
}

void extents_shrink(struct file *f, size_t n)
{
	f->n = n;
	if (n > 0)
		return;
	free(f->list);
	f->list = NULL;
	f->cap = 0;
}

void extents_replace(struct file *f, size_t from, size_t to, size_t n, int64_t *grown)
{
	for (size_t i = from; i < to; i++)
		if (f->list[i].block) {
			*grown -= f->list[i].block->cap;
			block_unref(f->list[i].block);
		}
	shift(f, to, (ptrdiff_t)n - (ptrdiff_t)(to - from));
	extents_shrink(f, f->n);
}

/* Make list[i] and the one behind it one hole, if they are two that touch. */
static void join(struct file *f, size_t i)
{
	struct extent *e = &f->list[i];

	if (i + 1 >= f->n || e->block || e[1].block || extent_end(e) != e[1].first)
		return;
	e->n += e[1].n;
	shift(f, i + 2, -1);
}

void extents_fill(struct file *f, uint64_t first, uint64_t end, struct block *block)
{
	const size_t from = extents_cut(f, first), to = extents_cut(f, end);
	int64_t none = 0;

	extents_replace(f, from, to, (size_t)(end - first), &none);
	for (uint64_t k = first; k < end; k++)
		f->list[from + (size_t)(k - first)] =
		    (struct extent){ .first = k, .n = 1, .block = block_ref(block) };
}

void extents_punch(struct file *f, uint64_t first, uint64_t end, uint64_t to, int64_t *grown)
{
	const size_t from = extents_cut(f, first), behind = extents_cut(f, end);

	if (to > end)
		to = end;
	if (first >= to) {
		extents_replace(f, from, behind, 0, grown);
		return;
	}
	extents_replace(f, from, behind, 1, grown);
	f->list[from] = (struct extent){ .first = first, .n = to - first };
	join(f, from);
	if (from > 0)
		join(f, from - 1);
}

void extents_drop_from(struct file *f, uint64_t number, int64_t *grown)
{
	size_t i = extents_find(f, number);

	if (i < f->n && f->list[i].first < number) {
		f->list[i].n = number - f->list[i].first;
		i++;
	}
	extents_replace(f, i, f->n, 0, grown);
}
