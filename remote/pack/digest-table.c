#include "remote/pack/digest-table.h"

#include <errno.h>
#include <stdlib.h>

#include "base/le.h"
#include "base/sys.h"
#include "base/vec.h"

void digest_table_done(struct digest_table *t)
{
	free(t->list);
	slots_done(&t->slots);
	*t = (struct digest_table){ 0 };
}

/*
 * Each word times a random number of its own: whichever two keys somebody chose, hardly any seed gives
 * them one hash.  What follows spreads keys that are steps of one width apart.
 */
static uint32_t hash_of(const struct digest_table *t, uint32_t kind, const struct digest *d)
{
	const size_t words = DIGEST_TABLE_WORDS - 1;
	uint64_t h = t->seed[words] * kind;

	for (size_t i = 0; i < words; i++)
		h += t->seed[i] * le32_load(d->b + i * sizeof(uint32_t));
	h ^= h >> 32;
	return (uint32_t)(h * 0xd6e8feb86659fd93u >> 32);
}

static struct digest_entry *find_entry(const struct digest_table *t, uint32_t hash, uint32_t kind,
				       const struct digest *d)
{
	size_t at = hash, i;

	while ((i = slots_next(&t->slots, hash, &at)) != SLOTS_NONE)
		if (t->list[i].kind == kind && digest_equal(&t->list[i].digest, d))
			return &t->list[i];
	return NULL;
}

uint64_t *digest_table_find(const struct digest_table *t, uint32_t kind, const struct digest *d)
{
	struct digest_entry *e = t->n > 0 ? find_entry(t, hash_of(t, kind, d), kind, d) : NULL;

	return e ? &e->value : NULL;
}

int digest_table_reserve(struct digest_table *t, size_t more)
{
	if (!t->seeded && sys_random(t->seed, sizeof(t->seed)) < 0)
		return -EIO;
	t->seeded = true;
	if (slots_reserve(&t->slots, t->n + more) < 0 || !VEC_RESERVE(t->list, t->n, t->cap, more))
		return -ENOMEM;
	return 0;
}

int digest_table_add(struct digest_table *t, uint32_t kind, const struct digest *d, uint64_t value)
{
	uint32_t hash;
	int r = t->n == 0 ? digest_table_reserve(t, 16) : 0;

	if (r < 0)
		return r;
	hash = hash_of(t, kind, d);
	if (find_entry(t, hash, kind, d))
		return 1;
	if (!VEC_ROOM(t->list, t->n, t->cap) || slots_add(&t->slots, hash, t->n) < 0)
		return -ENOMEM;
	t->list[t->n++] = (struct digest_entry){ .digest = *d, .kind = kind, .value = value };
	return 0;
}
