/*
 * ingest.h - a stream of parsed entries becomes a root in a store.
 *
 * Reads a stream (stream.h) to its end and puts everything into a batch; the caller commits.  All
 * bounds are checked here, however the stream came about: the process that wrote it is not trusted.
 */
#pragma once

#include "cowfs/store/batch.h"
#include "image/draft.h"
#include "image/stream.h"

struct ingest_limits {
	struct draft_limits tree;
	uint64_t bytes;   /* of all files, as they are read; holes count */
	uint64_t entries; /* that are read, with those that later ones replace */
};

extern const struct ingest_limits ingest_default;

/* The same for so many names, with what goes along with them. */
struct ingest_limits ingest_limits_for(struct ingest_limits limits, uint64_t names);

struct ingest_report {
	void (*fn)(uint64_t entries, uint64_t bytes, void *ctx); /* NULL: nobody listens */
	void *ctx;
};

struct ingested {
	struct object_id id;
	struct root root;
	uint64_t entries, bytes; /* that were read */
};

NODISCARD int ingest_stream(struct stream_reader *in, struct batch *b,
			    const struct ingest_limits *limits, const struct ingest_report *report,
			    struct ingested *ret, struct err *err);
