#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/fdio.h"
#include "base/le.h"
#include "base/sha256-many.h"
#include "base/vec.h"
#include "remote/pack/pack-i.h"
#include "remote/pack/pack.h"

#define CACHE_FRAMES  24 /* unpacked ones that are kept, each of half a MiB as a rule */
#define CACHE_DIGESTS ((uint32_t)16 << 10) /* of one of them; a stranger's may have many more */

struct pack_opener {
	struct buf packed; /* room */
	ZSTD_DCtx *zstd;
};

struct cached {
	struct buf raw;
	struct buf digests; /* of its objects, one behind the other; empty: none was computed */
	size_t pack;
	uint32_t frame;
	uint64_t used; /* when, by `clock`; 0: never */
};

struct pack_cache {
	struct cached list[CACHE_FRAMES];
	struct pack_opener *opener;
	struct buf jobs; /* room */
	uint64_t clock;
};

static void cache_free(struct pack_cache *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < CACHE_FRAMES; i++) {
		buf_done(&c->list[i].raw);
		buf_done(&c->list[i].digests);
	}
	pack_opener_free(c->opener);
	buf_done(&c->jobs);
	free(c);
}

static void pack_done(struct pack *p)
{
	cleanup_close(&p->fd);
	free(p->frames);
	free(p->objects);
	free(p->here);
	free(p->missed);
	free(p->wrong);
}

void pack_set_done(struct pack_set *s)
{
	VEC_FREE(it, s->packs, s->n, pack_done(it));
	digest_table_done(&s->where);
	cache_free(s->cache);
	*s = (struct pack_set){ 0 };
}

/* --- indexes ------------------------------------------------------------------------------ */

static int bad_index(struct err *err, const char *why)
{
	return err_set(err, -EBADMSG, "the index of a pack is malformed: %s", why);
}

struct head {
	uint32_t n_frames, n_objects;
	uint64_t size;
	struct digest digest;
};

static int read_head(const uint8_t *at, size_t len, struct head *ret, struct err *err)
{
	if (len < PACK_INDEX_HEAD || memcmp(at, PACK_INDEX_MAGIC, 4) != 0)
		return bad_index(err, "it does not begin like one");
	if (le32_load(at + 4) != PACK_INDEX_VERSION)
		return err_set(err, -EPROTO, "the index of a pack is of a later version");
	ret->n_frames = le32_load(at + 8);
	ret->n_objects = le32_load(at + 12);
	ret->size = le64_load(at + 16);
	memcpy(ret->digest.b, at + 24, sizeof(ret->digest.b));
	if (ret->size > PACK_MAX || ret->n_objects > PACK_OBJECTS || ret->n_objects == 0 ||
	    ret->n_frames > ret->n_objects)
		return bad_index(err, "it is too large");
	if (len - PACK_INDEX_HEAD !=
	    (size_t)ret->n_frames * PACK_INDEX_FRAME + (size_t)ret->n_objects * PACK_INDEX_OBJECT)
		return bad_index(err, "its length does not fit what it lists");
	return 0;
}

int pack_index_head(const void *index, size_t len, struct digest *ret_digest, uint64_t *ret_size,
		    struct err *err)
{
	struct head h = { 0 };
	int r = read_head(index, len, &h, err);

	if (r < 0)
		return r;
	*ret_digest = h.digest;
	*ret_size = h.size;
	return 0;
}

const char *pack_file_name(const char *hex, const char *end, char name[PACK_NAME_SIZE])
{
	snprintf(name, PACK_NAME_SIZE, "%.64s.%s", hex, end);
	return name;
}

uint32_t pack_index_frames(const void *index, size_t len)
{
	struct err ignored = { 0 };
	struct head h = { 0 };

	return read_head(index, len, &h, &ignored) < 0 ? 0 : h.n_frames;
}

bool pack_index_is_content(const void *index, size_t len)
{
	struct err ignored = { 0 };
	struct head h = { 0 };
	const uint8_t *at;

	if (read_head(index, len, &h, &ignored) < 0)
		return false;
	at = (const uint8_t *)index + PACK_INDEX_HEAD + (size_t)h.n_frames * PACK_INDEX_FRAME;
	for (uint32_t i = 0; i < h.n_objects; i++, at += PACK_INDEX_OBJECT)
		if (le32_load(at + sizeof(struct digest)) >> 24 != OBJECT_CHUNK)
			return false;
	return true;
}

static int read_frames(struct pack *p, const uint8_t *at, struct err *err)
{
	uint64_t end = 0;

	for (uint32_t i = 0; i < p->n_frames; i++, at += PACK_INDEX_FRAME) {
		struct pack_frame *f = &p->frames[i];

		*f = (struct pack_frame){ .at = end,
					  .packed = le32_load(at),
					  .raw = le32_load(at + 4) };
		/* A longer one holds something else, which every thread that unpacks would read. */
		if (f->raw == 0 || f->raw > PACK_FRAME_MAX || f->packed == 0 ||
		    f->packed > ZSTD_compressBound(f->raw) || f->packed > p->size - end)
			return bad_index(err, "a frame has an impossible length");
		end += f->packed;
	}
	return end == p->size ? 0 : bad_index(err, "its frames do not fill the pack");
}

/* Objects fill the frames one behind the other, with nothing between them. */
static int read_objects(struct pack *p, const uint8_t *at, struct err *err)
{
	uint32_t frame = 0, in = 0;

	for (uint32_t i = 0; i < p->n_objects; i++, at += PACK_INDEX_OBJECT) {
		const uint32_t word = le32_load(at + sizeof(struct digest));
		const uint32_t kind = word >> 24, len = word & 0xffffff;

		if (kind == 0 || kind > OBJECT_KINDS || len == 0 ||
		    len > object_kind_max((enum object_kind)kind))
			return bad_index(err, "an object has an impossible kind or length");
		if (frame >= p->n_frames || len > p->frames[frame].raw - in)
			return bad_index(err, "an object lies across frames");
		if (in == 0)
			p->frames[frame].first = i;
		p->objects[i] = (struct pack_object){ frame, in, len };
		in += len;
		if (in == p->frames[frame].raw) {
			frame++;
			in = 0;
		}
	}
	return frame == p->n_frames ? 0 : bad_index(err, "its objects do not fill the frames");
}

static int read_index(struct pack *p, const uint8_t *index, size_t len, struct err *err)
{
	struct head h = { 0 };
	int r = read_head(index, len, &h, err);

	if (r < 0)
		return r;
	p->digest = h.digest;
	p->size = h.size;
	p->n_frames = h.n_frames;
	p->n_objects = h.n_objects;
	p->frames = calloc(h.n_frames, sizeof(*p->frames));
	p->objects = calloc(h.n_objects, sizeof(*p->objects));
	if (!p->frames || !p->objects)
		return err_nomem(err);
	r = read_frames(p, index + PACK_INDEX_HEAD, err);
	return r < 0 ? r
		     : read_objects(
			   p, index + PACK_INDEX_HEAD + (size_t)h.n_frames * PACK_INDEX_FRAME, err);
}

/* Enter all that the last pack of the set has. */
static int enter_objects(struct pack_set *s, const uint8_t *index, struct err *err)
{
	const struct pack *p = &s->packs[s->n - 1];
	const uint8_t *at = index + PACK_INDEX_HEAD + (size_t)p->n_frames * PACK_INDEX_FRAME;

	if (digest_table_reserve(&s->where, p->n_objects) < 0)
		return err_nomem(err);
	for (uint32_t i = 0; i < p->n_objects; i++, at += PACK_INDEX_OBJECT) {
		const uint32_t kind = le32_load(at + sizeof(struct digest)) >> 24;
		const uint64_t value = (uint64_t)(s->n - 1) << 32 | i;
		struct digest d;
		uint64_t *old;
		int r;

		memcpy(d.b, at, sizeof(d.b));
		r = digest_table_add(&s->where, kind, &d, value);
		if (r < 0)
			return err_nomem(err);
		old = r == 1 ? digest_table_find(&s->where, kind, &d) : NULL;
		if (old && s->packs[*old >> 32].fd < 0 && p->fd >= 0)
			*old = value;
	}
	return 0;
}

static int make_cache(struct pack_set *s, struct err *err)
{
	if (!s->cache)
		s->cache = calloc(1, sizeof(*s->cache));
	if (!s->cache)
		return err_nomem(err);
	return s->cache->opener ? 0 : pack_opener_new(&s->cache->opener, err);
}

int pack_set_add(struct pack_set *s, const void *index, size_t len, int fd, struct err *err)
{
	struct pack p = { .fd = fd };
	int r = make_cache(s, err);

	if (r == 0)
		r = read_index(&p, index, len, err);
	if (r == 0 && !VEC_ROOM(s->packs, s->n, s->cap))
		r = err_nomem(err);
	if (r < 0) {
		pack_done(&p);
		return r;
	}
	s->packs[s->n++] = p;
	return enter_objects(s, index, err);
}

int pack_set_add_partial(struct pack_set *s, const void *index, size_t len, int fd, struct err *err)
{
	int r = pack_set_add(s, index, len, fd, err);
	struct pack *p;

	if (r < 0)
		return r;
	p = &s->packs[s->n - 1];
	p->here = calloc(p->n_frames, 1);
	p->missed = calloc(p->n_frames, 1);
	p->wrong = calloc(p->n_frames, 1);
	return p->here && p->missed && p->wrong ? 0 : err_nomem(err);
}

const struct pack_object *pack_set_find(const struct pack_set *s, enum object_kind kind,
					const struct digest *digest, size_t *ret_pack)
{
	const uint64_t *where = digest_table_find(&s->where, kind, digest);

	if (!where)
		return NULL;
	*ret_pack = *where >> 32;
	return &s->packs[*where >> 32].objects[*where & UINT32_MAX];
}

bool pack_set_has(const struct pack_set *s, enum object_kind kind, const struct digest *digest)
{
	return digest_table_find(&s->where, kind, digest) != NULL;
}

/* --- objects ------------------------------------------------------------------------------ */

int pack_opener_new(struct pack_opener **ret, struct err *err)
{
	struct pack_opener *o = calloc(1, sizeof(*o));

	if (!o)
		return err_nomem(err);
	o->zstd = ZSTD_createDCtx();
	if (!o->zstd) {
		free(o);
		return err_nomem(err);
	}
	*ret = o;
	return 0;
}

void pack_opener_free(struct pack_opener *o)
{
	if (!o)
		return;
	buf_done(&o->packed);
	ZSTD_freeDCtx(o->zstd);
	free(o);
}

int pack_open_frame(struct pack_opener *o, const struct pack *p, uint32_t frame, struct buf *out,
		    struct err *err)
{
	const struct pack_frame *f = &p->frames[frame];
	ssize_t n;
	size_t rc;

	buf_reset(&o->packed);
	buf_reset(out);
	if (!buf_extend(&o->packed, f->packed) || !buf_extend(out, f->raw))
		return err_nomem(err);
	n = fdio_pread(p->fd, o->packed.data, f->packed, (off_t)f->at);
	if (n < 0)
		return err_set(err, (int)n, "reading a pack: %s", strerror((int)-n));
	if ((size_t)n < f->packed)
		return err_set(err, -EBADMSG, "a pack is shorter than its index says");
	rc = ZSTD_decompressDCtx(o->zstd, out->data, out->len, o->packed.data, o->packed.len);
	if (ZSTD_isError(rc) || rc != f->raw)
		return err_set(err, -EBADMSG,
			       "a pack is damaged: a frame does not unpack to %u bytes",
			       (unsigned)f->raw);
	return 0;
}

/* The digests of all objects of a frame, where that costs hardly more than that of one. */
static int digest_frame(struct pack_cache *c, const struct pack *p, struct cached *slot,
			struct err *err)
{
	const uint32_t first = p->frames[slot->frame].first;
	const uint32_t end =
	    slot->frame + 1 < p->n_frames ? p->frames[slot->frame + 1].first : p->n_objects;
	struct sha256_job *jobs;
	uint8_t *digests;

	buf_reset(&slot->digests);
	if (!sha256_many_is_wide() || end - first > CACHE_DIGESTS)
		return 0;
	buf_reset(&c->jobs);
	jobs = buf_extend(&c->jobs, (end - first) * sizeof(*jobs));
	digests = buf_extend(&slot->digests, (end - first) * sizeof(struct digest));
	if (!jobs || !digests)
		return err_nomem(err);
	for (uint32_t i = first; i < end; i++)
		jobs[i - first] = (struct sha256_job){
			.data = slot->raw.data + p->objects[i].at,
			.len = p->objects[i].len,
			.digest = digests + (i - first) * sizeof(struct digest),
		};
	sha256_many(jobs, end - first);
	return 0;
}

static struct cached *cache_slot(struct pack_cache *c, size_t pack, uint32_t frame)
{
	struct cached *oldest = &c->list[0];

	for (size_t i = 0; i < CACHE_FRAMES; i++) {
		struct cached *slot = &c->list[i];

		if (slot->used > 0 && slot->pack == pack && slot->frame == frame)
			return slot;
		if (slot->used < oldest->used)
			oldest = slot;
	}
	oldest->used = 0;
	oldest->pack = pack;
	oldest->frame = frame;
	return oldest;
}

static int load_frame(struct pack_set *s, size_t pack, uint32_t frame, const struct cached **ret,
		      struct err *err)
{
	struct cached *slot = cache_slot(s->cache, pack, frame);
	const struct pack *p = &s->packs[pack];
	int r;

	if (slot->used == 0) {
		r = pack_open_frame(s->cache->opener, p, frame, &slot->raw, err);
		if (r == 0)
			r = digest_frame(s->cache, p, slot, err);
		if (r < 0)
			return r;
	}
	slot->used = ++s->cache->clock;
	*ret = slot;
	return 0;
}

static struct digest digest_in(const struct cached *slot, const struct pack *p,
			       const struct pack_object *o)
{
	struct digest have;

	if (slot->digests.len == 0)
		return digest_of(slot->raw.data + o->at, o->len);
	memcpy(have.b,
	       slot->digests.data +
		   (size_t)(o - p->objects - p->frames[o->frame].first) * sizeof(have),
	       sizeof(have.b));
	return have;
}

/* What to answer for a frame whose bytes are wrong. */
static int wrong_frame(struct pack_set *s, size_t pack, uint32_t frame)
{
	struct pack *p = &s->packs[pack];

	if (!p->here)
		return -EBADMSG;
	cache_slot(s->cache, pack, frame)->used = 0;
	p->here[frame] = 0;
	p->wrong[frame] = 1;
	return -EILSEQ;
}

static int get(struct pack_set *s, enum object_kind kind, const struct digest *digest,
	       struct buf *out, struct err *err)
{
	const uint64_t *where = digest_table_find(&s->where, kind, digest);
	const struct pack_object *o;
	char text[DIGEST_TEXT_SIZE];
	const struct cached *frame = NULL;
	struct digest have;
	struct pack *p;
	int r;

	if (!where) {
		s->asked |= s->unlisted;
		return s->unlisted ? -ENODATA : -ENOENT;
	}
	p = &s->packs[*where >> 32];
	o = &p->objects[*where & UINT32_MAX];
	if (p->fd < 0 || (p->here && !p->here[o->frame])) {
		p->wanted = true;
		if (p->missed)
			p->missed[o->frame] = 1;
		return -ENODATA;
	}
	r = load_frame(s, *where >> 32, o->frame, &frame, err);
	if (r == -EBADMSG)
		r = wrong_frame(s, *where >> 32, o->frame);
	if (r < 0)
		return err_wrap(err, r, "pack %s", digest_text(&p->digest, text));
	have = digest_in(frame, p, o);
	if (!digest_equal(&have, digest))
		return err_set(err, wrong_frame(s, *where >> 32, o->frame),
			       "pack %s holds wrong bytes for a %s", digest_text(&p->digest, text),
			       object_kind_name(kind));
	buf_reset(out);
	return buf_append(out, frame->raw.data + o->at, o->len) < 0 ? err_nomem(err) : 0;
}

int pack_set_get(struct pack_set *s, enum object_kind kind, const struct digest *digest,
		 struct buf *out, struct err *err)
{
	int r;

	if (s->lock)
		pthread_mutex_lock(s->lock);
	r = get(s, kind, digest, out, err);
	if (s->lock)
		pthread_mutex_unlock(s->lock);
	return r;
}
