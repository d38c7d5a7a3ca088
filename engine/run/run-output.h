/*
 * run-output.h - where the output of a run goes: scrubbed, to its log and on to the reader.
 */
#pragma once

#include "base/visible.h"
#include "engine/find/run-record.h"
#include "engine/run/scrub.h"
#include "runner/sandbox.h"

#define RUN_CAPTURE_MAX ((size_t)1 << 20) /* bytes of each stream that a result holds */

#define RUN_TAIL_MAX ((size_t)64 << 10) /* bytes of each stream's end that are kept for hints */

struct run_output {
	struct scrub_stream streams[2];
	struct run_record *record; /* borrowed */
	int fds[2];                /* where the output goes; -1: into `captured` */
	bool unlogged;             /* stdout is not logged */
	bool shows[2];             /* a person reads there: control characters are made visible */
	struct visible visible[2];
	struct buf *captured[2]; /* borrowed; NULL: nowhere */
	uint64_t
	    deadline_ms; /* of engine_clock_ms(); readers are not waited for beyond it; 0: none */
	bool truncated;
	int failed;              /* the error of passing it on, or 0 */
	struct buf clean, shown; /* reused for each write */
	struct buf tail[2];      /* the end of each stream; may be incomplete if memory is short */
};

void run_output_done(struct run_output *o);

/* A sandbox_output_fn; `ctx` is the struct. */
int run_output_take(void *ctx, enum sandbox_stream stream, const void *data, size_t len);

/* Pass on what was held back. */
NODISCARD int run_output_end(struct run_output *o);
