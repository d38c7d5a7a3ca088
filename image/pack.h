/*
 * pack.h - a root of a store as an archive: pax tar, plain or packed.
 *
 * Names come in the order of a walk, each with its mode, owner, mtime to the nanosecond, attributes,
 * holes and, from its second name on, as a hard link.  Nothing else is written: no time of now, no
 * names of users.  So the same root always gives the same bytes with the same libarchive.
 */
#pragma once

#include "base/sha256.h"
#include "cowfs/store/root.h"
#include "image/libarchive.h"

enum pack_filter { PACK_PLAIN, PACK_GZIP, PACK_ZSTD };

typedef int (*pack_write_fn)(const void *data, size_t len, void *ctx, struct err *err);

struct pack_options {
	enum pack_filter filter;
	bool layer; /* of an OCI image: names that begin like a whiteout cannot be in it */
	/* What the image is a change of, and lies over; NULL: all of it is written. */
	const struct object_id *base;
	/* Now and then; a negative answer ends it.  NULL: nobody listens. */
	int (*report)(uint64_t entries, uint64_t bytes, void *ctx, struct err *err);
	pack_write_fn write; /* takes the archive */
	void *ctx;           /* of both */
};

struct packed {
	uint64_t entries;
	uint64_t bytes;              /* of files */
	uint64_t sockets;            /* left out: no archive has them */
	uint64_t whiteouts;          /* names of the base that are gone */
	uint8_t sha256[SHA256_SIZE]; /* of the archive before it was packed */
};

NODISCARD int pack_root(struct store *s, const struct object_id *root,
			const struct pack_options *options, struct packed *ret, struct err *err);
