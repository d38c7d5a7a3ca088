/*
 * scrub.h - take secrets out of a stream, also where one is cut in two by its writes.
 *
 * What could be the beginning of a secret is held back until it is clear whether it is one.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

#define SCRUB_SHORTEST      4 /* bytes; of a shorter one half of all output would be taken out */
#define SCRUB_LINE_SHORTEST 8 /* of a line of a secret that has several */

struct scrub {
	struct buf *values; /* owned */
	size_t n;
};

void scrub_done(struct scrub *s);

/* And each of its lines.  -EINVAL with a sentence that does not tell it, if it is too short. */
NODISCARD int scrub_add(struct scrub *s, const char *name, const void *value, size_t len,
			struct err *err);

struct scrub_stream {
	const struct scrub *scrub;
	struct buf held;
};

void scrub_stream_done(struct scrub_stream *s);

/* Append to `out` what may be seen of the stream by now; -ENOMEM. */
NODISCARD int scrub_write(struct scrub_stream *s, const void *data, size_t len, struct buf *out);
NODISCARD int scrub_end(struct scrub_stream *s, struct buf *out);

/* A whole string; owned by the caller, NULL when out of memory. */
NODISCARD char *scrub_text(const struct scrub *s, const char *text);
