/*
 * bisect-i.h - shared by the files behind bisect.h.
 *
 *   line   which states lie between good and bad
 *   log    verdicts in a file, so that a search can continue
 */
#pragma once

#include "base/cleanup.h"
#include "engine/api/bisect.h"
#include "engine/find/engine-i.h"

struct bisecting {
	struct engine *engine;
	const struct engine_bisect_options *options;
	char from[ENGINE_ID_SIZE]; /* of commits: the snapshot that they are checked out in */
	int log_fd;                /* -1: none */
	unsigned lost;             /* runs that something of ours took along */
	struct engine_bisect result;
};

/* --- bisect-line.c ---------------------------------------------------------------------- */

/* Fill the list, from good to bad, both among them. */
NODISCARD int bisect_find_line(struct bisecting *b, struct err *err);

/* --- bisect-log.c ----------------------------------------------------------------------- */

/* Open the file, or make it, and take over its verdicts. */
NODISCARD int bisect_open_log(struct bisecting *b, struct err *err);

/* Survives power loss once it returns. */
NODISCARD int bisect_write_log(struct bisecting *b, const struct engine_bisect_state *s,
			       struct err *err);
