/*
 * stream.h - the content of an archive as plain records.
 *
 * The process that parses an archive is confined and writes these records to a pipe; cowfsd reads
 * them. So cowfsd decodes a format of seven records instead of tar, pax and three compressions. The
 * reader trusts nothing: each record is bounded, and a stream without STREAM_END is no stream.
 *
 * A record is a byte for its kind, its length in four bytes, little-endian, and its content. A text
 * is a length in four bytes and that many bytes.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

#define STREAM_RECORD_MAX ((size_t)2 << 20)
#define STREAM_DATA_MAX   ((size_t)256 << 10) /* bytes of a file in one record */
#define STREAM_XATTRS_MAX 256

enum stream_kind {
	STREAM_LAYER = 1, /* what follows lies over all before it */
	STREAM_ENTRY,     /* a name with its attributes */
	STREAM_LINK,      /* one more name of a file that came before */
	STREAM_DATA,      /* bytes of the file that the last STREAM_ENTRY was */
	STREAM_WHITEOUT,  /* a name of a lower layer goes */
	STREAM_OPAQUE,    /* all names in a directory that are of lower layers go */
	STREAM_END,       /* the archive was read to its end */
};

struct stream_span {
	const char *at; /* borrowed; not terminated */
	size_t len;
};

struct stream_xattr {
	struct stream_span name, value;
};

/* Of every kind the fields that it has; all else is zero.  Everything is borrowed. */
struct stream_record {
	enum stream_kind kind;
	struct stream_span path;   /* as the archive spells it */
	struct stream_span target; /* of a symlink, or the earlier name of a link */
	uint32_t mode, uid, gid;   /* of an entry, as st_mode */
	int64_t mtime_s;
	uint32_t mtime_ns;
	uint32_t major, minor; /* of a device */
	uint64_t size;         /* of a regular file */
	struct stream_xattr xattrs[STREAM_XATTRS_MAX];
	size_t n_xattrs;
	uint64_t off; /* of data */
	struct stream_span data;
};

/* --- writing ---------------------------------------------------------------------------- */

struct stream_writer {
	int fd; /* borrowed */
	struct buf out;
};

void stream_writer_done(struct stream_writer *w);

/* -E2BIG with a sentence if the record is larger than a reader takes. */
NODISCARD int stream_write(struct stream_writer *w, const struct stream_record *rec,
			   struct err *err);

/* --- reading ---------------------------------------------------------------------------- */

/* Decode one record.  -EBADMSG with a sentence unless it is exactly one. */
NODISCARD int stream_decode(enum stream_kind kind, const void *data, size_t len,
			    struct stream_record *ret, struct err *err);

struct stream_reader {
	int fd; /* borrowed */
	struct buf in;
	size_t at;
	/* Asked now and then while nothing comes; a negative answer ends the reading.  NULL: never. */
	int (*wanted)(void *ctx, struct err *err);
	void *ctx;
};

void stream_reader_done(struct stream_reader *r);

/* The next record, borrowed until the next call.  -EPIPE if the stream ends before STREAM_END. */
NODISCARD int stream_next(struct stream_reader *r, struct stream_record *ret, struct err *err);
