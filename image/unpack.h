/*
 * unpack.h - parse one archive into a stream of records.
 *
 * Reads tar in any of its forms, plain or packed with gzip, zstd or xz.  Runs in a process that is
 * confined (engine/verb/import.c): it reads untrusted bytes with a large library.
 */
#pragma once

#include "image/libarchive.h"
#include "image/stream.h"

struct unpack_options {
	bool whiteouts; /* a layer: ".wh.NAME" takes NAME away, ".wh..wh..opq" all that is below */
	uint64_t bytes; /* that the files may have; the reader of the stream counts again */
	const char
	    *plain; /* 64 hex digits: SHA-256 that the unpacked archive must have; NULL: any */
};

/* Gives the next bytes of the archive, borrowed until the next call; 0 at the end. */
typedef ssize_t (*unpack_read_fn)(void *ctx, const void **ret, struct err *err);

NODISCARD int unpack_archive(const struct libarchive *lib, unpack_read_fn read, void *ctx,
			     const struct unpack_options *options, struct stream_writer *out,
			     struct err *err);
