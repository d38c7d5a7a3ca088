/*
 * A table of objects in shards, each with a lock of its own; an id is a hash already and picks
 * shard and bucket as it is.
 *
 * Objects that may be evicted are in a queue of their shard. A hit moves nothing: it sets a bit,
 * for which the object is spared once when its turn comes ("second chance", nearly least recently
 * used). An object that is referenced when its turn comes leaves the queue, and returns to it with
 * the release of its last reference; so no turn is wasted twice on an object that cannot go. Over
 * budget, shards take turns, one lock at a time.
 *
 * References and bits are one word. It goes from no reference to one only under the shard's lock,
 * so an object seen there without any can be freed.
 *
 * Bytes are compared with their id when they are read, and not checked further: readers of tree
 * nodes check each record as they decode it, so verifying whole nodes here would only make the
 * first look-up in a directory slower.
 */
#include "cowfs/store/cache.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "cowfs/store/store-i.h"

#define SHARDS      16
#define BUCKETS_MIN 64

enum pool { POOL_CHUNKS, POOL_META };
#define POOLS 2

/* The word of an object: three bits, and references in the bits above. */
#define QUEUED  1u
#define USED    2u
#define SOUND   4u
#define ONE_REF 8u

struct link {
	struct link *prev, *next;
};

struct object {
	struct cached pub; /* first: callers hold a pointer to it */
	struct cache *cache;
	atomic_uint word;    /* QUEUED changes under the shard's lock */
	struct object *next; /* in its bucket; guarded by the shard's lock, like `queue` */
	struct link queue;   /* while QUEUED */
	uint8_t bytes[];
};

struct shard {
	_Alignas(64) pthread_mutex_t lock; /* guards what follows; a leaf */
	struct object **buckets;           /* owned */
	size_t n_buckets;                  /* a power of two */
	size_t n;
	uint64_t found, loaded;
	struct link queue[POOLS]; /* from the newest, next, to the one whose turn comes, prev */
};

struct cache {
	struct store *store; /* borrowed */
	size_t limit[POOLS];
	atomic_uint turn; /* the shard that gives up something next */
	atomic_size_t held[POOLS];
	struct shard shards[SHARDS];
};

static enum pool pool_of(enum object_kind kind)
{
	return kind == OBJECT_CHUNK ? POOL_CHUNKS : POOL_META;
}

static size_t footprint(const struct object *o)
{
	return sizeof(*o) + o->pub.len;
}

static struct shard *shard_of(struct cache *c, const struct object_id *id)
{
	return &c->shards[id->b[0] % SHARDS];
}

static struct object **bucket_of(struct object **buckets, size_t n_buckets,
				 const struct object_id *id)
{
	uint64_t h;

	memcpy(&h, id->b + OBJECT_ID_SIZE - sizeof(h), sizeof(h));
	return &buckets[h & (n_buckets - 1)];
}

/* --- the queue; the shard's lock held ------------------------------------------------------ */

static struct object *object_of(struct link *l)
{
	return (struct object *)((char *)l - offsetof(struct object, queue));
}

static void queue_add(struct shard *sh, struct object *o)
{
	struct link *newest = &sh->queue[pool_of(o->pub.what.kind)];

	o->queue = (struct link){ .prev = newest, .next = newest->next };
	newest->next->prev = &o->queue;
	newest->next = &o->queue;
}

static void queue_remove(struct object *o)
{
	o->queue.prev->next = o->queue.next;
	o->queue.next->prev = o->queue.prev;
}

/* --- the table; the shard's lock held ------------------------------------------------------ */

static struct object *table_find(struct shard *sh, enum object_kind kind,
				 const struct object_id *id)
{
	struct object *o = *bucket_of(sh->buckets, sh->n_buckets, id);

	while (o && !(object_id_equal(&o->pub.what.id, id) && o->pub.what.kind == kind))
		o = o->next;
	return o;
}

/* Where there is no memory for more buckets, the old ones go on doing. */
static void table_grow(struct shard *sh)
{
	const size_t n_buckets = 2 * sh->n_buckets;
	struct object **buckets = calloc(n_buckets, sizeof(*buckets));

	if (!buckets)
		return;
	for (size_t i = 0; i < sh->n_buckets; i++)
		for (struct object *o = sh->buckets[i], *next; o; o = next) {
			struct object **at = bucket_of(buckets, n_buckets, &o->pub.what.id);

			next = o->next;
			o->next = *at;
			*at = o;
		}
	free(sh->buckets);
	sh->buckets = buckets;
	sh->n_buckets = n_buckets;
}

static void table_add(struct shard *sh, struct object *o)
{
	struct object **at;

	if (sh->n >= sh->n_buckets)
		table_grow(sh);
	at = bucket_of(sh->buckets, sh->n_buckets, &o->pub.what.id);
	o->next = *at;
	*at = o;
	sh->n++;
	atomic_fetch_add_explicit(&o->cache->held[pool_of(o->pub.what.kind)], footprint(o),
				  memory_order_relaxed);
}

static void table_remove(struct shard *sh, struct object *o)
{
	struct object **at = bucket_of(sh->buckets, sh->n_buckets, &o->pub.what.id);

	while (*at != o)
		at = &(*at)->next;
	*at = o->next;
	sh->n--;
	atomic_fetch_sub_explicit(&o->cache->held[pool_of(o->pub.what.kind)], footprint(o),
				  memory_order_relaxed);
}

/* --- giving up ----------------------------------------------------------------------------- */

/* Forget the next that nobody references; `spare` those used lately once.  False if there is none. */
static bool evict_one(struct shard *sh, enum pool pool, bool spare)
{
	struct link *queue = &sh->queue[pool];
	AUTO_FREE struct object *gone = NULL;

	LOCKED(&sh->lock);
	while (!gone && queue->prev != queue) {
		struct object *o = object_of(queue->prev);
		unsigned word =
		    atomic_fetch_and_explicit(&o->word, ~(QUEUED | USED), memory_order_acq_rel);

		queue_remove(o);
		if (word >= ONE_REF)
			continue;
		if (spare && (word & USED)) {
			atomic_fetch_or_explicit(&o->word, QUEUED, memory_order_relaxed);
			queue_add(sh, o);
			continue;
		}
		table_remove(sh, o);
		gone = o;
	}
	return gone != NULL;
}

static size_t held(const struct cache *c, enum pool pool)
{
	return atomic_load_explicit(&c->held[pool], memory_order_relaxed);
}

static void keep_limit(struct cache *c, enum pool pool)
{
	unsigned in_vain = 0;

	while (held(c, pool) > c->limit[pool] && in_vain < SHARDS) {
		unsigned i = atomic_fetch_add_explicit(&c->turn, 1, memory_order_relaxed);

		in_vain = evict_one(&c->shards[i % SHARDS], pool, true) ? 0 : in_vain + 1;
	}
}

void cache_drop(struct cache *c)
{
	for (int i = 0; i < SHARDS; i++)
		for (int pool = 0; pool < POOLS; pool++)
			while (evict_one(&c->shards[i], (enum pool)pool, false))
				;
}

/* --- its life ------------------------------------------------------------------------------ */

static int shard_init(struct shard *sh)
{
	pthread_mutex_init(&sh->lock, NULL);
	for (int pool = 0; pool < POOLS; pool++)
		sh->queue[pool] = (struct link){ &sh->queue[pool], &sh->queue[pool] };
	sh->buckets = calloc(BUCKETS_MIN, sizeof(*sh->buckets));
	sh->n_buckets = BUCKETS_MIN;
	return sh->buckets ? 0 : -ENOMEM;
}

int cache_new(struct store *s, const struct cache_limits *limits, struct cache **ret,
	      struct err *err)
{
	CLEANUP(cache_free_p) struct cache *c = NULL;
	int r = 0;

	c = aligned_alloc(_Alignof(struct cache), sizeof(*c));
	if (!c)
		return err_nomem(err);
	memset(c, 0, sizeof(*c));
	c->store = s;
	c->limit[POOL_CHUNKS] = limits->chunk_bytes;
	c->limit[POOL_META] = limits->meta_bytes;
	for (int i = 0; i < SHARDS; i++)
		if (shard_init(&c->shards[i]) < 0)
			r = err_nomem(err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(c);
	return 0;
}

void cache_free(struct cache *c)
{
	struct cache *shared = c;

	if (!c)
		return;
	atomic_compare_exchange_strong(&c->store->cache, &shared, NULL);
	cache_drop(c);
	for (int i = 0; i < SHARDS; i++) {
		assert(c->shards[i].n == 0);
		pthread_mutex_destroy(&c->shards[i].lock);
		free(c->shards[i].buckets);
	}
	free(c);
}

struct store *cache_store(const struct cache *c)
{
	return c->store;
}

struct cache_stats cache_stats(struct cache *c)
{
	struct cache_stats sum = {
		.chunk_bytes = held(c, POOL_CHUNKS),
		.meta_bytes = held(c, POOL_META),
	};

	for (int i = 0; i < SHARDS; i++) {
		struct shard *sh = &c->shards[i];

		pthread_mutex_lock(&sh->lock);
		sum.found += sh->found;
		sum.loaded += sh->loaded;
		pthread_mutex_unlock(&sh->lock);
	}
	return sum;
}

/* --- references ---------------------------------------------------------------------------- */

static struct object *object_behind(const struct cached *pub)
{
	return (struct object *)(uintptr_t)pub;
}

/* The shard's lock held. */
static void ref_object(struct object *o)
{
	atomic_fetch_add_explicit(&o->word, ONE_REF, memory_order_relaxed);
	if (!(atomic_load_explicit(&o->word, memory_order_relaxed) & USED))
		atomic_fetch_or_explicit(&o->word, USED, memory_order_relaxed);
}

bool cached_is_sound(const struct cached *pub)
{
	return atomic_load_explicit(&object_behind(pub)->word, memory_order_relaxed) & SOUND;
}

void cached_set_sound(const struct cached *pub)
{
	atomic_fetch_or_explicit(&object_behind(pub)->word, SOUND, memory_order_relaxed);
}

/* Give the last reference back of an object that is in no queue, unless it has another by now. */
static void unref_and_queue(struct object *o)
{
	struct shard *sh = shard_of(o->cache, &o->pub.what.id);

	LOCKED(&sh->lock);
	if (atomic_fetch_sub_explicit(&o->word, ONE_REF, memory_order_acq_rel) < 2 * ONE_REF) {
		atomic_fetch_or_explicit(&o->word, QUEUED, memory_order_relaxed);
		queue_add(sh, o);
	}
}

void cached_unref(const struct cached *pub)
{
	struct object *o = object_behind(pub);
	struct cache *c;
	enum pool pool;
	unsigned word;

	if (!pub)
		return;
	c = o->cache;
	pool = pool_of(o->pub.what.kind);
	word = atomic_load_explicit(&o->word, memory_order_relaxed);
	do {
		assert(word >= ONE_REF);
		if (word < 2 * ONE_REF && !(word & QUEUED)) {
			unref_and_queue(o);
			break;
		}
	} while (!atomic_compare_exchange_weak_explicit(
	    &o->word, &word, word - ONE_REF, memory_order_release, memory_order_relaxed));
	/* From here on the object may be gone. */
	if (word < 2 * ONE_REF)
		keep_limit(c, pool);
}

/* --- finding ------------------------------------------------------------------------------- */

const struct cached *cache_find(struct cache *c, enum object_kind kind, const struct object_id *id)
{
	struct shard *sh = shard_of(c, id);
	struct object *o;

	LOCKED(&sh->lock);
	o = table_find(sh, kind, id);
	if (o) {
		ref_object(o);
		sh->found++;
	}
	return o ? &o->pub : NULL;
}

bool cache_has(struct cache *c, enum object_kind kind, const struct object_id *id)
{
	struct shard *sh = shard_of(c, id);

	LOCKED(&sh->lock);
	return table_find(sh, kind, id) != NULL;
}

/* With one reference, and entered nowhere yet; NULL without memory. */
static struct object *object_new(struct cache *c, enum object_kind kind, const struct object_id *id,
				 const void *data, size_t len)
{
	struct object *o = malloc(sizeof(*o) + len);

	if (!o)
		return NULL;
	o->pub = (struct cached){
		.what = { .id = *id, .kind = kind },
		.data = o->bytes,
		.len = len,
	};
	o->cache = c;
	atomic_init(&o->word, ONE_REF);
	if (len > 0)
		memcpy(o->bytes, data, len);
	return o;
}

/* Enter it, unless another thread was faster: then that thread's is taken.  Takes `o`. */
static struct object *enter(struct cache *c, struct object *o, bool loaded)
{
	struct shard *sh = shard_of(c, &o->pub.what.id);
	struct object *there;

	pthread_mutex_lock(&sh->lock);
	sh->loaded += loaded;
	there = table_find(sh, o->pub.what.kind, &o->pub.what.id);
	if (there)
		ref_object(there);
	else
		table_add(sh, o);
	pthread_mutex_unlock(&sh->lock);
	if (!there)
		return o;
	free(o);
	return there;
}

int cache_load(struct cache *c, enum object_kind kind, const struct object_id *id,
	       const struct cached **ret, struct err *err)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	const struct cached *found = cache_find(c, kind, id);
	struct object *o;
	int r;

	if (found) {
		*ret = found;
		return 0;
	}
	r = store_require(c->store, kind, id, &bytes, err);
	if (r < 0)
		return r;
	o = object_new(c, kind, id, bytes.data, bytes.len);
	if (!o)
		return err_nomem(err);
	*ret = &enter(c, o, true)->pub;
	return 0;
}

void cache_add(struct cache *c, enum object_kind kind, const struct object_id *id, const void *data,
	       size_t len)
{
	struct object *o = object_new(c, kind, id, data, len);

	if (!o)
		return;
	o = enter(c, o, false);
	cached_set_sound(&o->pub);
	cached_unref(&o->pub);
}

/* --- for all who read the store ------------------------------------------------------------ */

void cache_share(struct cache *c)
{
	atomic_store(&c->store->cache, c);
}

void cache_offer(struct store *s, enum object_kind kind, const struct object_id *id,
		 const void *data, size_t len)
{
	struct cache *c = atomic_load(&s->cache);
	const enum pool pool = pool_of(kind);

	if (c && held(c, pool) + sizeof(struct object) + len <= c->limit[pool])
		cache_add(c, kind, id, data, len);
}

int cache_require(struct store *s, enum object_kind kind, const struct object_id *id,
		  struct buf *out, struct err *err)
{
	CLEANUP(cached_unref_p) const struct cached *o = NULL;
	struct cache *c = atomic_load(&s->cache);
	int r;

	if (!c)
		return store_require(s, kind, id, out, err);
	buf_reset(out);
	r = cache_load(c, kind, id, &o, err);
	if (r < 0)
		return r;
	return buf_append(out, o->data, o->len) < 0 ? err_nomem(err) : 0;
}
