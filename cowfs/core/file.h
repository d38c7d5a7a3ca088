/*
 * file.h - the bytes of a regular file that is being changed.
 *
 * Below lies a stored content, of which the first `kept` bytes still count. Over it lie extents
 * that differ: blocks in memory, or holes. A block in memory has one range of written bytes; the
 * bytes outside of it come from the stored content. So a write needs nothing from the store unless
 * it touches a second place of the same block.
 *
 * A frozen file (file_freeze) shares blocks with the live one; a write to a shared block copies it
 * first.
 *
 * No locks: the caller has one. Sizes never exceed INT64_MAX.
 */
#pragma once

#include "base/cleanup.h"
#include "cowfs/core/need.h"
#include "cowfs/store/content.h"

/* A piece of one block of CHUNK_SIZE_MAX bytes. */
struct block {
	unsigned refs;   /* atomic: frozen files are let go without the lock */
	bool whole;      /* nothing underneath shows: bytes outside the range are zero */
	uint32_t lo, hi; /* the range that was written; lo == hi: none */
	uint32_t cap;    /* bytes of `data` */
	uint8_t *data;   /* owned; by offset in the block; undefined outside the range */
};

struct extent {
	uint64_t first;      /* number of a block */
	uint64_t n;          /* blocks; 1 if `block` */
	struct block *block; /* a reference, or NULL: a hole */
};

struct file {
	struct content base;
	uint64_t kept; /* bytes of base that count, at most size */
	uint64_t size;
	uint64_t
	    low; /* the smallest size since the last freeze; 0: nothing of it counts any more */
	uint64_t data; /* bytes that are no hole: exact as long as nothing changed, then a guess */
	struct extent *list; /* rising, no overlaps */
	size_t n, cap;
};

#define FILE_BLOCK CHUNK_SIZE_MAX

/* A file over a stored content; CONTENT_HOLE of size 0 for a new one. */
void file_init(struct file *f, const struct content *base);
void file_done(struct file *f); /* lets its blocks go */

bool file_is_stored(const struct file *f);  /* all of it is `base` */
uint64_t file_memory(const struct file *f); /* bytes its blocks take */

/*
 * All of these return 0, -ENOMEM, -EAGAIN with `need`, or -EBADMSG if what is stored underneath
 * is damaged, unless they say more; on failure no byte has changed.  *ret_grown, where
 * there is one, is by how much file_memory() changed; it is set also on failure.
 */
NODISCARD int file_write(struct file *f, struct cache *c, uint64_t off, const void *data,
			 size_t len, int64_t *ret_grown, struct need *need); /* -EFBIG */
NODISCARD int file_truncate(struct file *f, uint64_t size, int64_t *ret_grown);

/* Make a range read as zeros: whole blocks become holes.  The size stays. */
NODISCARD int file_punch(struct file *f, struct cache *c, uint64_t off, uint64_t len,
			 int64_t *ret_grown, struct need *need);

/*
 * Holes in a range become blocks that are data and read as zeros; blocks beyond the size are passed
 * over.
 */
NODISCARD int file_allocate(struct file *f, struct cache *c, uint64_t off, uint64_t len,
			    struct need *need);

/* Where bytes of a file are. */
struct piece {
	size_t len;
	uint32_t at;            /* offset in the block or chunk */
	struct block *block;    /* a reference, or NULL */
	struct object_id chunk; /* if no block: zero means zeros */
	size_t chunk_len;       /* how long the chunk must be */
	bool promised; /* `chunk` is no chunk but a promise, and the bytes are these of it: */
	uint64_t off;
};

/* Pieces that a read of `len` bytes can have at most: three a block, and the end of `kept`. */
#define FILE_PIECES(len) (3 * ((len) / FILE_BLOCK + 2) + 1)

/*
 * The pieces of up to `len` bytes from `off`, cut at the end of the file.  Recipe nodes on
 * the way may be needed; chunks are only named.  The caller lets each block go with block_unref().
 */
NODISCARD int file_map(const struct file *f, struct cache *c, uint64_t off, size_t len,
		       struct piece *list, size_t *ret_n, struct need *need);

void block_unref(struct block *b); /* NULL is fine; safe without the lock */
DEFINE_CLEANUP(struct block *, block_unref)

/* As lseek(2) has it: -ENXIO at or beyond the end, and for data if there is none behind `off`. */
NODISCARD int file_seek(const struct file *f, struct cache *c, uint64_t off, bool hole,
			uint64_t *ret, struct need *need);

/*
 * `to`, initialised and empty, becomes a copy that shares every block, for
 * copying a whole file and for freezing one.
 */
NODISCARD int file_share(const struct file *f, struct file *to);

/* The same, and the live file begins to watch what changes from here on. */
NODISCARD int file_freeze(struct file *f, struct file *ret_frozen);

/* What is underneath was promised, and `c` is what was kept of that; all else stays. */
void file_stand_on(struct file *f, const struct content *c);

/*
 * Put a frozen file; without any lock, reading the store where need be.
 * The answer holds the same bytes.
 */
NODISCARD int file_store(const struct file *frozen, struct batch *b, struct cache *c,
			 struct content *ret, struct err *err);

/*
 * `stored` is what file_store() gave for `frozen`, and it is committed: the live file
 * stands on it and lets go of what it still shares with `frozen`.
 */
void file_settle(struct file *f, const struct file *frozen, const struct content *stored,
		 int64_t *ret_grown);
