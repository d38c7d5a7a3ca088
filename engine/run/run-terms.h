/*
 * run-terms.h - the terms on which a command runs: its profile, overridden or extended by its
 * options (docs/reference/profiles.md).
 */
#pragma once

#include "base/buf.h"
#include "engine/api/profile.h"
#include "engine/api/run.h"

struct run_terms {
	struct engine_profile profile;
	struct engine_run_limits limits; /* all of them set */
	bool
	    mem_by_name; /* the user asked for this limit, so it holds for the whole run together */
	const char *net; /* borrowed from the profile, the options or `allowed` */
	char *allowed;   /* owned; the rules of both and those of the clone (allow.h); or NULL */
	uint64_t ask_ms; /* that what is refused waits for an answer; 0: nobody is asked */
	uint64_t ttl_ms; /* of a clone that is made and kept; 0: no expiry */
	const char **argv; /* owned; the entrypoint's words and the command's, which are borrowed */
	struct buf filter; /* struct sock_filters; empty: our own list */
	bool strict_calls; /* our own list, with fewer calls */
};

void run_terms_done(struct run_terms *t);

/* `o` is borrowed for as long as the terms are.  Failures are those of engine_profile(). */
NODISCARD int run_terms_choose(struct run_terms *t, struct engine *e,
			       const struct engine_run_options *o, struct err *err);
