/*
 * object.h - the identity of an object, and how its bytes are packed into a row.
 *
 * Everything immutable in a store is an object: a run of file bytes (chunk), a
 * list of chunks (recipe), a directory (tree), a set of extended attributes.  Its
 * id is XXH3-128 of its bytes under a secret that is random per store and differs
 * per kind, so nobody outside can prepare two contents with one id, and a chunk
 * that happens to look like a tree is not taken for one.  Ids never leave the store.
 *
 * Pure: no I/O, no SQLite.  On-disk: docs/reference/format.md, "Objects".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"

#define CHUNK_SIZE_MAX  ((size_t)64 << 10) /* bytes of file content in one chunk */
#define OBJECT_SIZE_MAX ((size_t)4 << 20)  /* bytes of any object before packing */

enum object_kind {
	OBJECT_CHUNK = 1,
	OBJECT_RECIPE = 2,
	OBJECT_TREE = 3,
	OBJECT_XATTRS = 4,
};
#define OBJECT_KINDS 4

#define OBJECT_ID_SIZE  16
#define OBJECT_HEX_SIZE (2 * OBJECT_ID_SIZE + 1)

struct object_id {
	uint8_t b[OBJECT_ID_SIZE]; /* all zero: no object */
};

/* Which object of a store: ids are unique only within a kind.  For use as a key of base/map.h. */
struct object_ref {
	struct object_id id;
	enum object_kind kind;
};

uint64_t object_ref_hash(const void *ref);
bool object_ref_equal(const void *a, const void *b);

#define OBJECT_SECRET_SIZE 192

/* What makes ids of one store its own. */
struct object_key {
	uint8_t secret[OBJECT_KINDS][OBJECT_SECRET_SIZE];
};

static inline bool object_id_equal(const struct object_id *a, const struct object_id *b)
{
	return memcmp(a->b, b->b, OBJECT_ID_SIZE) == 0;
}

static inline bool object_id_is_zero(const struct object_id *id)
{
	static const struct object_id zero;

	return object_id_equal(id, &zero);
}

char *object_id_hex(const struct object_id *id, char hex[OBJECT_HEX_SIZE]);
const char *object_kind_name(enum object_kind kind); /* "chunk", "recipe", ... */
size_t object_kind_max(enum object_kind kind);       /* bytes it may have before packing */

struct object_id object_id_of(const struct object_key *key, enum object_kind kind, const void *data,
			      size_t len);

/* 64 bits of a name under the store's secret: where trees are cut into nodes. */
uint64_t object_name_hash(const struct object_key *key, const void *name, size_t len);

/* Checksum of a stored row: everything it holds but the checksum itself. */
uint64_t object_row_sum(int64_t seq, enum object_kind kind, const struct object_id *id,
			const void *packed, size_t len);

/* Checksum of any bytes, against damage and not against people. */
uint64_t object_bytes_sum(const void *bytes, size_t len);

/* Compression contexts, dear to make and cheap to keep.  One per thread at a time. */
struct codec;

NODISCARD int codec_new(struct codec **ret, struct err *err);
void codec_free(struct codec *c);
DEFINE_CLEANUP(struct codec *, codec_free)

/*
 * Append the packed form of an object to `out`: a method byte, three bytes of
 * length, then zstd or, where that saves less than a sixteenth, the bytes as they are.
 */
NODISCARD int object_pack(struct codec *c, const void *data, size_t len, struct buf *out,
			  struct err *err);

/* The same without an attempt at zstd. */
NODISCARD int object_frame(const void *data, size_t len, struct buf *out, struct err *err);

/* The length an object has once unpacked; -EBADMSG if `packed` does not begin like one. */
NODISCARD ssize_t object_packed_size(const void *packed, size_t len);

/*
 * Replace the content of `out` with the object.  -EBADMSG, and `out` empty, unless
 * `packed` is exactly one packed object of at most `max` bytes.
 */
NODISCARD int object_unpack(struct codec *c, const void *packed, size_t len, size_t max,
			    struct buf *out, struct err *err);
