/*
 * Open addressing with linear probing over a power of two of slots.
 *
 * A slot is empty (value NULL), a tombstone (value TOMBSTONE) or live.  A probe
 * ends at an empty slot, so one must always exist: live slots and tombstones
 * together fill at most three quarters.  Tombstones are dropped by the rehash
 * that makes room, and at once where the probe chain ends behind them.
 */
#include "base/map.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/le.h"
#include "base/sys.h"

#define MAP_SLOTS_MIN 16

struct map_slot {
	uint64_t hash; /* finished, see finish() */
	const void *key;
	void *value;
};

static char tombstone;
#define TOMBSTONE ((void *)&tombstone)

static bool slot_is_live(const struct map_slot *s)
{
	return s->value != NULL && s->value != TOMBSTONE;
}

/* Spread every bit of a weak hash over the low bits that choose the slot (MurmurHash3's fmix64). */
static uint64_t finish(uint64_t h)
{
	h ^= h >> 33;
	h *= 0xff51afd7ed558ccdULL;
	h ^= h >> 33;
	h *= 0xc4ceb9fe1a85ec53ULL;
	h ^= h >> 33;
	return h;
}

static uint64_t str_key[2];

static void str_key_draw(void)
{
	int r = sys_random(str_key, sizeof(str_key));

	assert(r == 0);
	(void)r;
}

static uint64_t rotl(uint64_t v, int n)
{
	return v << n | v >> (64 - n);
}

static void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotl(v[1], 13) ^ v[0];
	v[0] = rotl(v[0], 32);
	v[2] += v[3];
	v[3] = rotl(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotl(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotl(v[1], 17) ^ v[2];
	v[2] = rotl(v[2], 32);
}

/*
 * SipHash-1-3 under a key drawn once per process.  Names come from programs we do
 * not trust; with a known hash they could choose a million that share one slot.
 */
uint64_t map_hash_str(const void *key)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const unsigned char *p = key;
	const size_t len = strlen(key);
	unsigned char tail[8] = { 0 };
	uint64_t v[4], m;
	size_t left;

	pthread_once(&once, str_key_draw);
	v[0] = str_key[0] ^ 0x736f6d6570736575ULL;
	v[1] = str_key[1] ^ 0x646f72616e646f6dULL;
	v[2] = str_key[0] ^ 0x6c7967656e657261ULL;
	v[3] = str_key[1] ^ 0x7465646279746573ULL;
	for (left = len; left >= 8; left -= 8, p += 8) {
		m = le64_load(p);
		v[3] ^= m;
		sip_round(v);
		v[0] ^= m;
	}
	memcpy(tail, p, left);
	tail[7] = (unsigned char)len;
	m = le64_load(tail);
	v[3] ^= m;
	sip_round(v);
	v[0] ^= m;
	v[2] ^= 0xff;
	sip_round(v);
	sip_round(v);
	sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

bool map_equal_str(const void *a, const void *b)
{
	return strcmp(a, b) == 0;
}

uint64_t map_hash_u64(const void *key)
{
	return *(const uint64_t *)key;
}

bool map_equal_u64(const void *a, const void *b)
{
	return *(const uint64_t *)a == *(const uint64_t *)b;
}

void map_done(struct map *m)
{
	free(m->slots);
	*m = MAP_INIT(m->hash, m->equal);
}

static struct map_slot *find_slot(const struct map *m, uint64_t hash, const void *key)
{
	const size_t mask = m->n_slots - 1;
	struct map_slot *s;
	size_t i;

	if (m->n == 0)
		return NULL;
	for (i = hash & mask;; i = (i + 1) & mask) {
		s = &m->slots[i];
		if (!s->value)
			return NULL;
		if (slot_is_live(s) && s->hash == hash && m->equal(s->key, key))
			return s;
	}
}

/* Where a key that is not in the map goes: the first slot of its chain that is not live. */
static struct map_slot *find_room(struct map_slot *slots, size_t n_slots, uint64_t hash)
{
	size_t i = hash & (n_slots - 1);

	while (slot_is_live(&slots[i]))
		i = (i + 1) & (n_slots - 1);
	return &slots[i];
}

/* Move to a table at most half full with `n` entries; it grows, shrinks or only loses tombstones. */
static int rehash(struct map *m, size_t n)
{
	size_t n_slots = MAP_SLOTS_MIN, i;
	struct map_slot *slots;

	while (n_slots / 2 < n)
		if (__builtin_mul_overflow(n_slots, (size_t)2, &n_slots))
			return -ENOMEM;
	slots = calloc(n_slots, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (i = 0; i < m->n_slots; i++)
		if (slot_is_live(&m->slots[i]))
			*find_room(slots, n_slots, m->slots[i].hash) = m->slots[i];
	free(m->slots);
	m->slots = slots;
	m->n_slots = n_slots;
	m->n_used = m->n;
	return 0;
}

int map_reserve(struct map *m, size_t n)
{
	/* As full as it may be: what is known to come need not move. */
	return n <= m->n_slots / 4 * 3 - (m->n_used - m->n) ? 0 : rehash(m, n / 3 * 2 + 2);
}

void *map_get(const struct map *m, const void *key)
{
	/* Many maps are empty, and then no key need be hashed. */
	struct map_slot *s = m->n == 0 ? NULL : find_slot(m, finish(m->hash(key)), key);

	return s ? s->value : NULL;
}

int map_add(struct map *m, const void *key, void *value, void **ret_existing)
{
	const uint64_t hash = finish(m->hash(key));
	struct map_slot *s = find_slot(m, hash, key);
	int r;

	assert(value);
	if (s) {
		if (ret_existing)
			*ret_existing = s->value;
		return 1;
	}
	if (m->n_used + 1 > m->n_slots / 4 * 3) {
		r = rehash(m, m->n + 1);
		if (r < 0)
			return r;
	}
	s = find_room(m->slots, m->n_slots, hash);
	if (!s->value)
		m->n_used++;
	*s = (struct map_slot){ .hash = hash, .key = key, .value = value };
	m->n++;
	return 0;
}

void *map_remove(struct map *m, const void *key)
{
	struct map_slot *s = find_slot(m, finish(m->hash(key)), key);
	const size_t mask = m->n_slots - 1;
	void *value;
	size_t i;

	if (!s)
		return NULL;
	value = s->value;
	s->value = TOMBSTONE;
	s->key = NULL;
	m->n--;

	i = (size_t)(s - m->slots);
	if (!m->slots[(i + 1) & mask].value) {
		for (; m->slots[i].value == TOMBSTONE; i = (i - 1) & mask) {
			m->slots[i].value = NULL;
			m->n_used--;
		}
	}
	return value;
}

void *map_next(const struct map *m, size_t *pos)
{
	while (*pos < m->n_slots) {
		const struct map_slot *s = &m->slots[(*pos)++];

		if (slot_is_live(s))
			return s->value;
	}
	return NULL;
}
