/*
 * scrub.h - remove secrets from a stream, even if one is split over two writes.
 *
 * Bytes that could begin a secret are held back until it is clear whether they do.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

#define SCRUB_SHORTEST      4 /* bytes; a shorter one would match half of all output */
#define SCRUB_LINE_SHORTEST 8 /* bytes of a line in a secret of several */

struct scrub_value {
	const unsigned char *data;
	size_t len;
	void *owned; /* the same, or NULL if somebody else owns it */
};

struct scrub {
	struct scrub_value *values; /* owned */
	size_t n;
};

void scrub_done(struct scrub *s);

/* Add a secret and each of its lines.  -EINVAL, without showing it, if it is too short. */
NODISCARD int scrub_add(struct scrub *s, const char *name, const void *value, size_t len,
			struct err *err);

/* The same of a single line that stays where it is, and is not copied. */
NODISCARD int scrub_lend(struct scrub *s, const char *name, const void *value, size_t len,
			 struct err *err);

struct scrub_stream {
	const struct scrub *scrub;
	struct buf held;
};

void scrub_stream_done(struct scrub_stream *s);

/* Append to `out` what is certainly no secret; -ENOMEM. */
NODISCARD int scrub_write(struct scrub_stream *s, const void *data, size_t len, struct buf *out);
NODISCARD int scrub_end(struct scrub_stream *s, struct buf *out);

/* A whole string; owned by the caller, NULL when out of memory. */
NODISCARD char *scrub_text(const struct scrub *s, const char *text);
