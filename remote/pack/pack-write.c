/*
 * A thread of the pack's own compresses, digests and writes one frame while the caller fills the
 * next. Frames are handed over in order, at most FRAMES_BEHIND wait, and the size of the frames
 * before those decides where a pack ends: so the same objects make the same packs, however fast the
 * thread was.
 *
 * The thread starts with the first full frame. A small pack has none and needs no thread.
 */
#include "remote/pack/pack.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/fdio.h"
#include "base/le.h"
#include "base/lock.h"
#include "base/spread.h"
#include "remote/pack/pack-i.h"

#define LEVEL 1 /* of zstd: a push waits for it, as tar | zstd -1 does */

#define FRAMES_BEHIND 2

_Static_assert(PACK_TARGET + (FRAMES_BEHIND + 1) * PACK_FRAME_MAX <= PACK_MAX,
	       "a pack may be too long before it is seen to be full");

struct pack_writer {
	int fd;
	struct buf raw;     /* the frame that is being filled */
	struct buf objects; /* as the index has them */
	uint32_t n_objects;
	uint64_t target;    /* a pack ends once it has so many bytes, */
	size_t frame;       /* and a frame */
	uint64_t size_seen; /* of the frames that count for pack_writer_is_full() */
	uint32_t n_seen;

	/* The thread's alone, or the caller's if there is none. */
	ZSTD_CCtx *zstd;
	struct buf packed; /* room for a packed frame */
	struct sha256 sha;

	struct spread thread;
	bool has_thread;
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t moved;
	struct buf waiting[FRAMES_BEHIND]; /* frame i at i % FRAMES_BEHIND */
	uint32_t n_given, n_frames;        /* handed over, written */
	struct buf frames;                 /* as the index has them */
	uint64_t size;
	bool over; /* nothing more will come */
	struct err failure;
};

uint64_t pack_target(void)
{
	const char *text = getenv("SNAPCOW_PACK_TARGET");
	const uint64_t n = text ? strtoull(text, NULL, 10) : 0;

	return n > 0 && n < PACK_TARGET ? n : PACK_TARGET;
}

int pack_writer_new(int fd, struct pack_writer **ret, struct err *err)
{
	struct pack_writer *w = calloc(1, sizeof(*w));

	if (!w)
		return err_nomem(err);
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->moved, NULL);
	w->zstd = ZSTD_createCCtx();
	if (!w->zstd) {
		pack_writer_free(w);
		return err_nomem(err);
	}
	ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_compressionLevel, LEVEL);
	ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_contentSizeFlag, 1);
	w->fd = fd;
	w->target = pack_target();
	w->frame = w->target / 8 < PACK_FRAME ? (size_t)w->target / 8 : PACK_FRAME;
	sha256_begin(&w->sha);
	*ret = w;
	return 0;
}

static void end_thread(struct pack_writer *w)
{
	if (!w->has_thread)
		return;
	pthread_mutex_lock(&w->lock);
	w->over = true;
	pthread_cond_broadcast(&w->moved);
	pthread_mutex_unlock(&w->lock);
	spread_join(&w->thread);
	w->has_thread = false;
}

void pack_writer_free(struct pack_writer *w)
{
	if (!w)
		return;
	end_thread(w);
	ZSTD_freeCCtx(w->zstd);
	buf_done(&w->raw);
	buf_done(&w->packed);
	buf_done(&w->frames);
	buf_done(&w->objects);
	for (unsigned i = 0; i < FRAMES_BEHIND; i++)
		buf_done(&w->waiting[i]);
	pthread_cond_destroy(&w->moved);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

/* --- one frame ---------------------------------------------------------------------------- */

static int write_frame(struct pack_writer *w, const struct buf *raw, uint32_t *ret, struct err *err)
{
	size_t rc;
	int r;

	buf_reset(&w->packed);
	if (!buf_extend(&w->packed, ZSTD_compressBound(raw->len)))
		return err_nomem(err);
	rc = ZSTD_compress2(w->zstd, w->packed.data, w->packed.len, raw->data, raw->len);
	if (ZSTD_isError(rc))
		return err_set(err, -EIO, "packing: %s", ZSTD_getErrorName(rc));
	sha256_add(&w->sha, w->packed.data, rc);
	r = fdio_write(w->fd, w->packed.data, rc);
	if (r < 0)
		return err_set(err, r, "writing a pack: %s", strerror(-r));
	*ret = (uint32_t)rc;
	return 0;
}

/* The caller has the lock, or there is no thread. */
static int enter_frame(struct pack_writer *w, uint32_t packed, size_t raw, struct err *err)
{
	if (buf_append_u32(&w->frames, packed) < 0 || buf_append_u32(&w->frames, (uint32_t)raw) < 0)
		return err_nomem(err);
	w->size += packed;
	w->n_frames++;
	return 0;
}

static void *run_thread(void *ctx)
{
	struct pack_writer *w = ctx;

	pthread_mutex_lock(&w->lock);
	for (;;) {
		struct buf *raw = &w->waiting[w->n_frames % FRAMES_BEHIND];
		struct err err = { 0 };
		uint32_t packed = 0;
		int r;

		while (w->n_given == w->n_frames && !w->over)
			pthread_cond_wait(&w->moved, &w->lock);
		if (w->n_given == w->n_frames || w->failure.code < 0)
			break;
		pthread_mutex_unlock(&w->lock);
		r = write_frame(w, raw, &packed, &err);
		pthread_mutex_lock(&w->lock);
		if (r == 0)
			r = enter_frame(w, packed, raw->len, &err);
		if (r < 0) {
			w->failure = err;
			w->failure.code = r;
		}
		pthread_cond_broadcast(&w->moved);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

static int failure_of(const struct pack_writer *w, struct err *err)
{
	return w->failure.code < 0 ? err_set(err, w->failure.code, "%s", w->failure.msg) : 0;
}

/* Hand the frame over; there is a thread. */
static int give_frame(struct pack_writer *w, struct err *err)
{
	int r;

	LOCKED(&w->lock);
	while (w->n_given - w->n_frames >= FRAMES_BEHIND && w->failure.code == 0)
		pthread_cond_wait(&w->moved, &w->lock);
	r = failure_of(w, err);
	if (r == 0) {
		buf_swap(&w->raw, &w->waiting[w->n_given % FRAMES_BEHIND]);
		w->n_given++;
		/* All but the last FRAMES_BEHIND are written by now. */
		for (; w->n_seen + FRAMES_BEHIND < w->n_given; w->n_seen++)
			w->size_seen += le32_load(w->frames.data + (size_t)w->n_seen * 8);
		pthread_cond_broadcast(&w->moved);
	}
	return r;
}

static int flush(struct pack_writer *w, bool more, struct err *err)
{
	uint32_t packed;
	int r;

	if (w->raw.len == 0)
		return 0;
	if (!w->has_thread && more)
		w->has_thread = spread_start(&w->thread, 1, run_thread, w) == 0;
	if (w->has_thread) {
		r = give_frame(w, err);
	} else {
		r = write_frame(w, &w->raw, &packed, err);
		if (r == 0)
			r = enter_frame(w, packed, w->raw.len, err);
		w->size_seen = w->size;
		w->n_given = w->n_seen = w->n_frames;
	}
	buf_reset(&w->raw);
	return r;
}

/* --- objects ------------------------------------------------------------------------------ */

int pack_writer_add(struct pack_writer *w, enum object_kind kind, const struct digest *digest,
		    const void *data, size_t len, struct err *err)
{
	assert(len > 0 && len <= OBJECT_SIZE_MAX);
	if (buf_append(&w->raw, data, len) < 0 ||
	    buf_append(&w->objects, digest->b, sizeof(digest->b)) < 0 ||
	    buf_append_u32(&w->objects, (uint32_t)kind << 24 | (uint32_t)len) < 0)
		return err_nomem(err);
	w->n_objects++;
	return w->raw.len >= w->frame ? flush(w, true, err) : 0;
}

bool pack_writer_is_full(const struct pack_writer *w)
{
	return w->size_seen >= w->target || w->n_objects >= PACK_OBJECTS;
}

int pack_writer_finish(struct pack_writer *w, struct digest *ret_digest, uint64_t *ret_size,
		       struct buf *ret_index, struct err *err)
{
	uint8_t head[PACK_INDEX_HEAD] = PACK_INDEX_MAGIC;
	struct digest digest;
	int r = flush(w, false, err);

	end_thread(w);
	if (r == 0)
		r = failure_of(w, err);
	if (r < 0)
		return r;
	sha256_end(&w->sha, digest.b);
	le32_store(head + 4, PACK_INDEX_VERSION);
	le32_store(head + 8, w->n_frames);
	le32_store(head + 12, w->n_objects);
	le64_store(head + 16, w->size);
	memcpy(head + 24, digest.b, sizeof(digest.b));
	buf_reset(ret_index);
	if (buf_append(ret_index, head, sizeof(head)) < 0 ||
	    buf_append(ret_index, w->frames.data, w->frames.len) < 0 ||
	    buf_append(ret_index, w->objects.data, w->objects.len) < 0)
		return err_nomem(err);
	*ret_digest = digest;
	*ret_size = w->size;
	return 0;
}
