/*
 * fetched.h - a snapshot that came from a remote, as `fetch` and `pull` print it.
 */
#pragma once

#include "base/json.h"
#include "cli/cmd.h"
#include "engine/api/remote.h"

/* Options of every command that fetches; T has a struct engine_trust `trust`. */
#define FETCHED_TRUST_OPTS(T)                                                        \
	OPT_STR(0, "identity", "FILE", T, identity, "your key, if it is encrypted"), \
	    OPT_FLAG(0, "require-signature", T, trust.required,                      \
		     "refuse what no allowed signer signed"),                        \
	    OPT_STR(0, "allowed-signers", "FILE", T, trust.signers,                  \
		    "list of the allowed signers (default: see config.yaml)"),       \
	    OPT_STR(0, "signed-as", "REPO:NAME", T, trust.as, "what a copy was signed for")

/* Options that every command has which fetches; the struct has `tag`, `rate`, `jobs`, `identity` and `trust`. */
#define FETCHED_OPTS(type)                                                                     \
	OPT_STR('t', "tag", "TAG", type, tag, "name for it here (default: REMOTE/NAME)"),      \
	    OPT_U64('j', "jobs", "N", type, jobs, "connections at once, 1 to 4 (default: 4)"), \
	    OPT_SIZE(0, "rate", "SIZE", type, rate, "bytes a second at most"),                 \
	    FETCHED_TRUST_OPTS(type)

/* What they ask for. */
#define FETCHED_OPTIONS(inv, args)                                                          \
	{                                                                                   \
		.from = (inv)->words[0], .tag = (args)->tag, .rate = (args)->rate,          \
		.jobs = (args)->jobs, .trust = (args)->trust, .identity = (args)->identity, \
		.watch = progress_watch((inv)->progress)                                    \
	}

void fetched_set(struct json j, const struct engine_fetched *f);

/*
 * For commands that go on with what came: fetch `from`, say so on stderr unless quiet.  `hold` is as in
 * struct engine_fetch_options.  The caller frees *ret.
 */
NODISCARD int fetched_bring(struct invocation *inv, const char *from, int *hold,
			    struct engine_fetched *ret, struct err *err);

/* "fetched  0c4f11d2 as origin/main  80,000 files, received 84 MiB, in 2.1 s" */
void fetched_print(const struct invocation *inv, const struct engine_fetched *f);

/* What to run next if there is no such remote or name. */
void fetched_hint(struct invocation *inv, const char *from, int r);
