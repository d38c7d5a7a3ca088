/*
 * content.h - the content of a regular file, from its first byte to its last.
 *
 * The same bytes and holes always give the same content, so two files are equal
 * exactly if their contents are.  Holes are kept in whole blocks of CHUNK_SIZE_MAX
 * bytes; a smaller one is stored as zeros.
 */
#pragma once

#include "cowfs/store/batch.h"
#include "cowfs/store/object.h"
#include "cowfs/store/recipe.h"
#include "cowfs/store/store.h"

enum content_form {
	CONTENT_HOLE = 0,   /* nothing stored: empty, or one hole */
	CONTENT_CHUNK = 1,  /* at most one block: `id` is its chunk */
	CONTENT_RECIPE = 2, /* more: `id` is the top node of its recipe */
	CONTENT_LAZY =
	    3, /* promised (settle.h): `id` names the promise, and nothing is here to read */
};

struct content {
	enum content_form form;
	struct object_id id; /* zero for CONTENT_HOLE */
	uint64_t size;
	uint64_t data; /* bytes in blocks that are no holes */
};

bool content_equal(const struct content *a, const struct content *b);

/*
 * A very large file that is almost all holes: read it from end to end only on request.
 */
#define CONTENT_SPARSE_SIZE  ((uint64_t)1 << 30)
#define CONTENT_SPARSE_RATIO 16
static inline bool content_is_sparse(const struct content *c)
{
	return c->size > CONTENT_SPARSE_SIZE && c->size / CONTENT_SPARSE_RATIO > c->data;
}

/* Do form, size and id go together?  They may come from a damaged tree. */
bool content_plausible(const struct content *c);

/* Takes a file's bytes in order, in pieces of any size, in constant memory. */
struct content_writer;

NODISCARD int content_writer_new(struct batch *b, struct content_writer **ret, struct err *err);
void content_writer_free(struct content_writer *w); /* NULL is fine */
DEFINE_CLEANUP(struct content_writer *, content_writer_free)

NODISCARD int content_writer_add(struct content_writer *w, const void *data, size_t len,
				 struct err *err);
NODISCARD int content_writer_skip(struct content_writer *w, uint64_t hole, struct err *err);

/*
 * Give the content of all that was added, or the failure that an earlier piece met.
 * Either way the writer is then as new and takes the next file.
 */
NODISCARD int content_writer_finish(struct content_writer *w, struct content *ret, struct err *err);

/* A whole file that is in memory already. */
NODISCARD int content_put(struct batch *b, const void *data, size_t len, struct content *ret,
			  struct err *err);

/* Reads ranges of one file; keeps the nodes it went through, so reading on is cheap. */
struct content_reader;

NODISCARD int content_reader_new(struct store *s, const struct content *c,
				 struct content_reader **ret, struct err *err);
void content_reader_free(struct content_reader *rd); /* NULL is fine */
DEFINE_CLEANUP(struct content_reader *, content_reader_free)

/* Up to `len` bytes from `off`, fewer only at the end; the number read, or a negative errno. */
NODISCARD ssize_t content_reader_read(struct content_reader *rd, uint64_t off, void *data,
				      size_t len, struct err *err);

/*
 * The next offset at or after `off` that lies in data (or in a hole; the end counts
 * as one).  -ENXIO at or beyond the end, as lseek(2) has it.
 */
NODISCARD int content_reader_seek_data(struct content_reader *rd, uint64_t off, uint64_t *ret,
				       struct err *err);
NODISCARD int content_reader_seek_hole(struct content_reader *rd, uint64_t off, uint64_t *ret,
				       struct err *err);
