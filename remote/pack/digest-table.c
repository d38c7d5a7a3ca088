#include "remote/pack/digest-table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/le.h"
#include "base/sys.h"

#define CAP_MIN 64

void digest_table_done(struct digest_table *t)
{
	free(t->slots);
	*t = (struct digest_table){ 0 };
}

static size_t place_of(const struct digest_table *t, uint32_t kind, const struct digest *d)
{
	uint64_t h = (le64_load(d->b) ^ t->seed) * 0x9e3779b97f4a7c15u;

	h ^= h >> 32;
	h = (h + le64_load(d->b + 8) + kind) * 0xd6e8feb86659fd93u;
	return (size_t)(h >> 20) & (t->cap - 1);
}

/* The slot that has the key, or the free one where it belongs. */
static struct digest_slot *slot_of(const struct digest_table *t, uint32_t kind,
				   const struct digest *d)
{
	size_t at = place_of(t, kind, d);

	for (;; at = (at + 1) & (t->cap - 1)) {
		struct digest_slot *slot = &t->slots[at];

		if (slot->kind == 0 || (slot->kind == kind && digest_equal(&slot->digest, d)))
			return slot;
	}
}

uint64_t *digest_table_find(const struct digest_table *t, uint32_t kind, const struct digest *d)
{
	struct digest_slot *slot;

	if (t->n == 0)
		return NULL;
	slot = slot_of(t, kind, d);
	return slot->kind ? &slot->value : NULL;
}

static int grow(struct digest_table *t)
{
	struct digest_table more = { .cap = t->cap ? 2 * t->cap : CAP_MIN, .seed = t->seed };
	size_t i;

	if (t->cap == 0 && sys_random(&more.seed, sizeof(more.seed)) < 0)
		return -EIO;
	more.slots = calloc(more.cap, sizeof(*more.slots));
	if (!more.slots)
		return -ENOMEM;
	for (i = 0; i < t->cap; i++)
		if (t->slots[i].kind)
			*slot_of(&more, t->slots[i].kind, &t->slots[i].digest) = t->slots[i];
	more.n = t->n;
	free(t->slots);
	*t = more;
	return 0;
}

int digest_table_add(struct digest_table *t, uint32_t kind, const struct digest *d, uint64_t value)
{
	struct digest_slot *slot;
	int r = t->cap == 0 || t->n >= t->cap / 4 * 3 ? grow(t) : 0;

	if (r < 0)
		return r;
	slot = slot_of(t, kind, d);
	if (slot->kind)
		return 1;
	*slot = (struct digest_slot){ .digest = *d, .kind = kind, .value = value };
	t->n++;
	return 0;
}
