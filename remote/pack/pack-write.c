#include "remote/pack/pack.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/fdio.h"
#include "base/le.h"
#include "remote/pack/pack-i.h"

#define LEVEL 1 /* of zstd: a push waits for it, as tar | zstd -1 does */

struct pack_writer {
	int fd;
	ZSTD_CCtx *zstd;
	struct buf raw;     /* the frame that is being filled */
	struct buf packed;  /* room for a packed one */
	struct buf frames;  /* as the index has them */
	struct buf objects; /* likewise */
	uint32_t n_frames, n_objects;
	uint64_t size;
	struct sha256 sha;
};

int pack_writer_new(int fd, struct pack_writer **ret, struct err *err)
{
	struct pack_writer *w = calloc(1, sizeof(*w));

	if (w)
		w->zstd = ZSTD_createCCtx();
	if (!w || !w->zstd) {
		pack_writer_free(w);
		return err_nomem(err);
	}
	ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_compressionLevel, LEVEL);
	ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_contentSizeFlag, 1);
	w->fd = fd;
	sha256_begin(&w->sha);
	*ret = w;
	return 0;
}

void pack_writer_free(struct pack_writer *w)
{
	if (!w)
		return;
	ZSTD_freeCCtx(w->zstd);
	buf_done(&w->raw);
	buf_done(&w->packed);
	buf_done(&w->frames);
	buf_done(&w->objects);
	free(w);
}

static int flush(struct pack_writer *w, struct err *err)
{
	size_t rc;
	int r;

	if (w->raw.len == 0)
		return 0;
	buf_reset(&w->packed);
	if (!buf_extend(&w->packed, ZSTD_compressBound(w->raw.len)))
		return err_nomem(err);
	rc = ZSTD_compress2(w->zstd, w->packed.data, w->packed.len, w->raw.data, w->raw.len);
	if (ZSTD_isError(rc))
		return err_set(err, -EIO, "packing: %s", ZSTD_getErrorName(rc));
	sha256_add(&w->sha, w->packed.data, rc);
	r = fdio_write(w->fd, w->packed.data, rc);
	if (r < 0)
		return err_set(err, r, "writing a pack: %s", strerror(-r));
	if (buf_append_u32(&w->frames, (uint32_t)rc) < 0 ||
	    buf_append_u32(&w->frames, (uint32_t)w->raw.len) < 0)
		return err_nomem(err);
	w->n_frames++;
	w->size += rc;
	buf_reset(&w->raw);
	return 0;
}

int pack_writer_add(struct pack_writer *w, enum object_kind kind, const struct digest *digest,
		    const void *data, size_t len, struct err *err)
{
	assert(len > 0 && len <= OBJECT_SIZE_MAX);
	if (buf_append(&w->raw, data, len) < 0 ||
	    buf_append(&w->objects, digest->b, sizeof(digest->b)) < 0 ||
	    buf_append_u32(&w->objects, (uint32_t)kind << 24 | (uint32_t)len) < 0)
		return err_nomem(err);
	w->n_objects++;
	return w->raw.len >= PACK_FRAME ? flush(w, err) : 0;
}

bool pack_writer_is_full(const struct pack_writer *w)
{
	return w->size >= PACK_TARGET || w->n_objects >= PACK_OBJECTS;
}

int pack_writer_finish(struct pack_writer *w, struct digest *ret_digest, uint64_t *ret_size,
		       struct buf *ret_index, struct err *err)
{
	uint8_t head[PACK_INDEX_HEAD] = PACK_INDEX_MAGIC;
	struct digest digest;
	int r = flush(w, err);

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
