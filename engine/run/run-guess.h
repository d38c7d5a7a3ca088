/*
 * run-guess.h - what a run that failed without any network was after, as its own words tell.
 *
 * A run without network asks nobody for a name whom we could hear.  What it prints when that fails is
 * known, though: "getaddrinfo EAI_AGAIN registry.npmjs.org", "Could not resolve host: ...".
 */
#pragma once

#include "engine/api/run.h"
#include "engine/run/scrub.h"

/* Add the hosts that it complains of, in what it said last, to what was refused.  -ENOMEM. */
NODISCARD int run_guess_hosts(struct engine_run *run, const struct scrub *secrets,
			      const struct buf said[2]);
