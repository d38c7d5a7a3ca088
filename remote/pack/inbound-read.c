/*
 * Bytes of a large file, straight from the packs: nothing is stored.  Each node and each chunk on the way
 * was compared with its SHA-256.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cowfs/store/recipe.h"
#include "remote/pack/digest-table.h"
#include "remote/pack/inbound.h"
#include "remote/pack/portable.h"

/* Where in a file, and room for the objects on the way there. */
struct place {
	struct pack_set *packs;
	struct digest top;
	uint64_t size;
	struct portable_recipe node;
	struct buf bytes;
};

static void place_free(struct place *p)
{
	if (p)
		buf_done(&p->bytes);
	free(p);
}
DEFINE_CLEANUP(struct place *, place_free)

static int get(struct place *p, enum object_kind kind, const struct digest *d, struct err *err)
{
	int r = pack_set_get(p->packs, kind, d, &p->bytes, err);

	return r == -ENOENT ? err_set(err, -EBADMSG, "no pack has a %s of a large file",
				      object_kind_name(kind))
			    : r;
}

/* The chunk that holds the byte at `off`; all zero: a hole. */
static int find_chunk(struct place *p, uint64_t off, struct digest *ret, struct err *err)
{
	static const struct digest hole;
	uint64_t in = off;
	int r;

	*ret = p->top;
	for (unsigned left = recipe_level(p->size) + 1; left > 0; left--) {
		const uint64_t span = recipe_slot_span(left - 1);

		r = get(p, OBJECT_RECIPE, ret, err);
		if (r == 0)
			r = portable_recipe_decode(p->bytes.data, p->bytes.len, &p->node, err);
		if (r < 0)
			return r;
		if (p->node.level != left - 1)
			return err_set(err, -EBADMSG,
				       "a large file in a pack has nodes of a wrong level");
		*ret = in / span < p->node.n ? p->node.slot[in / span] : hole;
		if (digest_is_zero(ret))
			return 0;
		in %= span;
	}
	return 0;
}

/* At most to the end of its block; how many bytes. */
static ssize_t read_block(struct place *p, uint64_t off, uint8_t *to, size_t len, struct err *err)
{
	const uint64_t start = off - off % CHUNK_SIZE_MAX, left = p->size - start;
	const size_t block = left < CHUNK_SIZE_MAX ? (size_t)left : CHUNK_SIZE_MAX;
	const size_t in = (size_t)(off - start), n = len < block - in ? len : block - in;
	struct digest chunk;
	int r = find_chunk(p, off, &chunk, err);

	if (r < 0)
		return r;
	if (digest_is_zero(&chunk)) {
		memset(to, 0, n);
		return (ssize_t)n;
	}
	r = get(p, OBJECT_CHUNK, &chunk, err);
	if (r < 0)
		return r;
	if (p->bytes.len != block)
		return err_set(err, -EBADMSG, "a chunk in a pack has a wrong length");
	memcpy(to, p->bytes.data + in, n);
	return (ssize_t)n;
}

ssize_t inbound_read(struct pack_set *packs, const struct digest *top, uint64_t size, uint64_t off,
		     void *data, size_t len, struct err *err)
{
	CLEANUP(place_free_p) struct place *p = calloc(1, sizeof(*p));
	bool lacking = false;
	size_t done = 0;

	if (!p)
		return err_nomem(err);
	p->packs = packs;
	p->top = *top;
	p->size = size;
	if (off >= size)
		return 0;
	if (len > size - off)
		len = (size_t)(size - off);
	while (done < len) {
		ssize_t n = read_block(p, off + done, (uint8_t *)data + done, len - done, err);

		/* All that is missing is asked for at once. */
		if (n == -ENODATA) {
			lacking = true;
			n = (ssize_t)(CHUNK_SIZE_MAX - (off + done) % CHUNK_SIZE_MAX);
		}
		if (n < 0)
			return n;
		done += (size_t)n;
	}
	return lacking ? -ENODATA : (ssize_t)len;
}

static bool is_here(struct pack_set *packs, enum object_kind kind, const struct digest *digest,
		    bool miss)
{
	const struct pack_object *o;
	bool here = false;
	size_t at;

	if (packs->lock)
		pthread_mutex_lock(packs->lock);
	o = pack_set_find(packs, kind, digest, &at);
	if (o) {
		struct pack *p = &packs->packs[at];

		here = p->fd >= 0 && (!p->here || p->here[o->frame]);
		if (!here && miss && p->missed) {
			p->wanted = true;
			p->missed[o->frame] = 1;
		}
	}
	if (packs->lock)
		pthread_mutex_unlock(packs->lock);
	return here;
}

struct looking {
	struct pack_set *packs;
	struct digest_table seen; /* nodes -> whether all of them is here */
	bool miss;
};

static int node_is_here(struct looking *l, const struct digest *d, unsigned level, struct err *err);

static int slots_are_here(struct looking *l, const struct portable_recipe *node, struct err *err)
{
	bool lacking = false;

	for (unsigned i = 0; i < node->n && (l->miss || !lacking); i++) {
		int r;

		if (digest_is_zero(&node->slot[i]))
			continue;
		r = node->level == 0 ? is_here(l->packs, OBJECT_CHUNK, &node->slot[i], l->miss)
				     : node_is_here(l, &node->slot[i], node->level - 1, err);
		if (r < 0)
			return r;
		lacking |= r == 0;
	}
	return !lacking;
}

/* A node and all below it; the level falls with each step. */
static int read_node_here(struct looking *l, const struct digest *d, unsigned level,
			  struct err *err)
{
	CLEANUP(place_free_p) struct place *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return err_nomem(err);
	if (!is_here(l->packs, OBJECT_RECIPE, d, l->miss))
		return 0;
	p->packs = l->packs;
	r = get(p, OBJECT_RECIPE, d, err);
	if (r == 0)
		r = portable_recipe_decode(p->bytes.data, p->bytes.len, &p->node, err);
	if (r < 0)
		return r;
	if (p->node.level != level)
		return err_set(err, -EBADMSG, "a large file in a pack has nodes of a wrong level");
	return slots_are_here(l, &p->node, err);
}

/* Each once: a file can name the same node in every slot of every level, so as to be looked at for ever. */
static int node_is_here(struct looking *l, const struct digest *d, unsigned level, struct err *err)
{
	const uint64_t *seen = digest_table_find(&l->seen, OBJECT_RECIPE, d);
	int r;

	if (seen)
		return (int)*seen;
	r = read_node_here(l, d, level, err);
	if (r >= 0 && digest_table_add(&l->seen, OBJECT_RECIPE, d, (uint64_t)r) < 0)
		return err_nomem(err);
	return r;
}

static void looking_done(struct looking *l)
{
	digest_table_done(&l->seen);
}

int inbound_is_here(struct pack_set *packs, enum object_kind kind, const struct digest *digest,
		    uint64_t size, bool miss, struct err *err)
{
	CLEANUP(looking_done) struct looking l = { .packs = packs, .miss = miss };

	return kind == OBJECT_CHUNK ? is_here(packs, kind, digest, miss)
				    : node_is_here(&l, digest, recipe_level(size), err);
}
