#include "engine/transfer/there-i.h"

#include <errno.h>
#include <stdlib.h>

#define SMALL_MAX 128 /* packs that are far from full, before they are packed anew */
#define MANY_MAX  (MANIFEST_PACKS_MAX / 8 * 7) /* packs of which a manifest can list some more */
#define FILE_SIZE ((uint64_t)1 << 10)          /* packed, that a file may take beside its bytes */
#define KNOWN_MAX ((uint64_t)256 << 20)        /* bytes of indexes: 7 million objects */

/* --- which of them stay ------------------------------------------------------------------- */

static bool is_small(const struct manifest_pack *p)
{
	return p->pack.size < pack_target() / 2;
}

/*
 * Packs with more than twice the bytes of the snapshot hold mostly old content.  The snapshot's bytes are counted
 * unpacked, so more old content stays if it compresses well.  Up to SMALL_MAX packs do no harm whatever they hold.
 */
enum there_plan there_plan(const struct manifest *m, uint64_t files, uint64_t bytes)
{
	size_t small = 0;

	for (size_t i = 0; i < m->n; i++)
		small += is_small(&m->packs[i]);
	if (m->n <= SMALL_MAX)
		return THERE_ALL;
	if (m->n > MANY_MAX || manifest_packed(m) / 2 > bytes + files * FILE_SIZE)
		return THERE_NONE;
	return small <= SMALL_MAX ? THERE_ALL : THERE_LARGE;
}

/* --- what they hold ----------------------------------------------------------------------- */

void there_done(struct there *t)
{
	pack_set_done(&t->packs);
	free(t->listed);
	*t = (struct there){ 0 };
}

bool there_has(const struct there *t, enum object_kind kind, const struct digest *digest)
{
	return pack_set_has(&t->packs, kind, digest);
}

static int lacks(const struct target *t, const char *what, struct err *err)
{
	return err_set(err, -EBADMSG, "'%s' of '%s' lacks %s: push it with --whole", t->name,
		       t->url, what);
}

/* A name that moves on to a blob which somebody removed would be as incomplete as the old one. */
int there_check_blob(const struct target *t, struct depot *d, const struct manifest_blob *blob,
		     const char *what, struct err *err)
{
	uint64_t size = 0;
	int r = d->ops->has_blob(d, &blob->digest, &size, err);

	if (r < 0)
		return r;
	return r == 0 || size != blob->size ? lacks(t, what, err) : 0;
}

/* Packs are looked at over several connections. */
struct looking {
	struct there *there;
	const struct there_source *from;
	enum there_plan plan;
	pthread_mutex_t lock; /* guards `there` and what follows */
	uint64_t known[2];    /* bytes of indexes: of trees, of content */
};

/* The digest of what is in a sealed pack stands in its index alone. */
static int check_pair(const struct there_source *from, const struct manifest_pack *p,
		      const struct buf *index, struct err *err)
{
	struct digest of;
	uint64_t size;
	int r = pack_index_head(index->data, index->len, &of, &size, err);

	if (r < 0 || from->manifest->sealed)
		return r;
	return digest_equal(&of, &p->pack.digest) && size == p->pack.size
		   ? 0
		   : lacks(from->target, "the index of a pack", err);
}

static int read_index(const struct there_source *from, struct depot *d,
		      const struct manifest_pack *p, struct buf *out, struct err *err)
{
	int r = there_check_blob(from->target, d, &p->pack, "a pack", err);

	/* Our own copy of the index says nothing of theirs. */
	if (r == 0)
		r = there_check_blob(from->target, d, &p->index, "the index of a pack", err);
	if (r == 0)
		r = from->manifest->sealed
			? sealing_get(from->sealing, d, &p->index, out, err)
			: depot_get(d, &p->index.digest, (size_t)p->index.size, out, NULL, err);
	if (r == 0)
		r = check_pair(from, p, out, err);
	return r == -ENOENT ? lacks(from->target, "the index of a pack", err) : r;
}

/* The caller has the lock. */
static int enter_pack(struct looking *l, size_t i, const struct buf *index, bool content,
		      struct err *err)
{
	const uint64_t max = l->from->known_max > 0 ? l->from->known_max : KNOWN_MAX;
	uint64_t *known = &l->known[content];
	const bool fits = index->len <= max - *known;

	/* A pack of which nothing is known is of no use where directories are packed anew. */
	l->there->listed[i] = fits || l->plan == THERE_ALL;
	if (!fits)
		return 0;
	*known += index->len;
	return pack_set_add(&l->there->packs, index->data, index->len, -1, err);
}

static int look_at_pack(unsigned member, size_t i, void *ctx, struct err *err)
{
	struct looking *l = ctx;
	const struct manifest_pack *p = &l->from->manifest->packs[i];
	CLEANUP(buf_done) struct buf index = BUF_INIT;
	struct depot *d;
	bool content;
	int r;

	if (l->plan == THERE_LARGE && is_small(p))
		return 0;
	r = connections_get(l->from->lines, member, &d, err);
	if (r == 0)
		r = read_index(l->from, d, p, &index, err);
	if (r < 0)
		return r;
	content = pack_index_is_content(index.data, index.len);
	if (l->plan == THERE_LARGE && !content)
		return 0;
	LOCKED(&l->lock);
	r = enter_pack(l, i, &index, content, err);
	return r;
}

int there_load(struct there *t, const struct there_source *from, enum there_plan plan,
	       struct err *err)
{
	struct looking l = { .there = t, .from = from, .plan = plan };
	const size_t n = plan == THERE_NONE ? 0 : from->manifest->n;
	int r;

	there_done(t);
	t->listed = calloc(from->manifest->n + 1, sizeof(*t->listed));
	if (!t->listed)
		return err_nomem(err);
	pthread_mutex_init(&l.lock, NULL);
	r = crew_each(from->lines->n < n ? from->lines->n : (unsigned)n, n, look_at_pack, &l, err);
	pthread_mutex_destroy(&l.lock);
	return r;
}
