/*
 * run-guess.h - which hosts a run without network was looking for, guessed from its output.
 *
 * Without a network we cannot see which names a run looks up, but we know what programs print when
 * that fails: "getaddrinfo EAI_AGAIN registry.npmjs.org", "Could not resolve host: ...".
 */
#pragma once

#include "engine/api/run.h"
#include "engine/run/scrub.h"

/* Add the hosts that its last output complains about to the refusals.  -ENOMEM. */
NODISCARD int run_guess_hosts(struct engine_run *run, const struct scrub *secrets,
			      const struct buf said[2]);
