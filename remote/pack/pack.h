/*
 * pack.h - many objects in one blob, with an index of their places.
 *
 * A pack is a row of zstd frames; each holds some objects one after the other. Its index is a blob
 * of its own: the frames with their lengths, then the objects in order with kind, length and
 * SHA-256. So a reader can list a pack without fetching it, and read one frame alone.
 *
 * Objects are compared with their SHA-256 when they are read. Everything else about packs and
 * indexes counts as a stranger's claim: lengths are bounded, and a frame is unpacked into as many
 * bytes as its index said and no more. Byte for byte: docs/design/remote.md.
 */
#pragma once

#include <pthread.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cowfs/store/object.h"
#include "remote/pack/digest-table.h"
#include "remote/pack/digest.h"

#define PACK_TARGET    ((uint64_t)48 << 20) /* a pack ends once it has so many bytes */
#define PACK_MAX       ((uint64_t)64 << 20)
#define PACK_FRAME     ((size_t)512 << 10) /* unpacked; a frame ends once it has so many */
#define PACK_FRAME_MAX (PACK_FRAME + OBJECT_SIZE_MAX)
#define PACK_OBJECTS   ((uint32_t)1 << 20)
#define PACK_INDEX_MAX ((size_t)48 << 20)

#define PACK_TYPE       "application/vnd.snapcow.pack.v1+zstd"
#define PACK_INDEX_TYPE "application/vnd.snapcow.index.v1"

/* PACK_TARGET.  For tests: fewer bytes, with SNAPCOW_PACK_TARGET, and smaller frames too. */
uint64_t pack_target(void);

/* --- writing ------------------------------------------------------------------------------ */

struct pack_writer;

/* The pack goes to `fd`, borrowed, from its present position on. */
NODISCARD int pack_writer_new(int fd, struct pack_writer **ret, struct err *err);
void pack_writer_free(struct pack_writer *w); /* NULL is fine */
DEFINE_CLEANUP(struct pack_writer *, pack_writer_free)

/* An object of 1 to OBJECT_SIZE_MAX bytes whose digest the caller computed. */
NODISCARD int pack_writer_add(struct pack_writer *w, enum object_kind kind,
			      const struct digest *digest, const void *data, size_t len,
			      struct err *err);
/* Is it time for the next pack? */
bool pack_writer_is_full(const struct pack_writer *w);

/* Write what is left, and give the pack's digest and size and its index.  The writer is used up. */
NODISCARD int pack_writer_finish(struct pack_writer *w, struct digest *ret_digest,
				 uint64_t *ret_size, struct buf *ret_index, struct err *err);

/* --- reading ------------------------------------------------------------------------------ */

struct pack_frame {
	uint64_t at; /* in the pack */
	uint32_t packed, raw;
	uint32_t first; /* object in it */
};

struct pack_object {
	uint32_t frame, at, len; /* in the unpacked frame */
};

struct pack {
	struct digest digest; /* of the blob */
	uint64_t size;
	int fd;      /* owned; -1: it was not brought */
	bool wanted; /* something in it was asked for, and it was not there */
	uint8_t
	    *here; /* owned; for each frame: is it in the file?  NULL: all are, if there is one */
	uint8_t *missed; /* owned; the same: was it asked for while it was not?  NULL as `here` */
	uint8_t
	    *wrong; /* owned; the same: were its bytes wrong, and it was dropped?  NULL as `here` */
	struct pack_frame *frames;
	struct pack_object *objects;
	uint32_t n_frames, n_objects;
};

/* Several packs as one. */
struct pack_set {
	struct pack *packs; /* owned */
	size_t n, cap;
	struct digest_table where; /* kind and digest -> pack << 32 | object */
	struct pack_cache *cache;  /* owned */
	bool unlisted;             /* there are more packs, whose indexes are not here */
	bool asked; /* something was asked for that no index lists, while there were such packs */
	pthread_mutex_t *lock; /* borrowed; pack_set_get() takes it.  NULL: one thread has it */
};

/* Begins as { 0 }. */
void pack_set_done(struct pack_set *s);

/*
 * Add a pack by its index.  `fd` becomes the set's, in any case; -1: the pack itself is not here.
 * -EBADMSG with a sentence if the index is none.  An object that several packs have is read from the
 * first of them that is here.
 */
NODISCARD int pack_set_add(struct pack_set *s, const void *index, size_t len, int fd,
			   struct err *err);

/*
 * A pack of which frames come one by one: none of them is in the file until `here` says so.  `fd`
 * becomes the set's, as above.
 */
NODISCARD int pack_set_add_partial(struct pack_set *s, const void *index, size_t len, int fd,
				   struct err *err);

/* Where an object lies, and in which pack of the set; NULL: no index lists it. */
const struct pack_object *pack_set_find(const struct pack_set *s, enum object_kind kind,
					const struct digest *digest, size_t *ret_pack);

bool pack_set_has(const struct pack_set *s, enum object_kind kind, const struct digest *digest);

/*
 * Replace `out` with an object, checked.  -ENOENT, without a sentence, if no index lists it;
 * -ENODATA, likewise, if the pack or the frame that has it is not here, and `wanted` and `missed`
 * are set, or if its index may not be, and `asked` is set; -EBADMSG if its bytes are wrong.  A
 * partial pack then drops the frame, sets `wrong` and answers -EILSEQ instead: the frame may be
 * brought again.
 */
NODISCARD int pack_set_get(struct pack_set *s, enum object_kind kind, const struct digest *digest,
			   struct buf *out, struct err *err);

/* Unpacks frames for one thread, beside the set. */
struct pack_opener;

NODISCARD int pack_opener_new(struct pack_opener **ret, struct err *err);
void pack_opener_free(struct pack_opener *o); /* NULL is fine */

/* Replace `out` with a frame of a pack that is here.  Nothing in it was compared with its digest yet. */
NODISCARD int pack_open_frame(struct pack_opener *o, const struct pack *p, uint32_t frame,
			      struct buf *out, struct err *err);

/* HEX.end: a file of a pack in a directory of the store, its index for one; `hex` is its digest. */
#define PACK_NAME_SIZE (SHA256_HEX_SIZE + 8)
const char *pack_file_name(const char *hex, const char *end, char name[PACK_NAME_SIZE]);

/* How many frames the pack has; 0: it is no index. */
uint32_t pack_index_frames(const void *index, size_t len);

/* Is a pack full of chunks alone, going by its index?  False also if that is none. */
bool pack_index_is_content(const void *index, size_t len);

/* The digest and the size of the pack that an index belongs to.  -EBADMSG. */
NODISCARD int pack_index_head(const void *index, size_t len, struct digest *ret_digest,
			      uint64_t *ret_size, struct err *err);
