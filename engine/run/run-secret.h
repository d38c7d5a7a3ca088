/*
 * run-secret.h - secrets that a run uses and never sees: --secret-for.
 *
 *   http://HOST[:PORT][/PATH]=NAME          a variable of the caller, as "Authorization: Bearer ..."
 *   http://HOST[:PORT][/PATH]=@FILE         a file's content, in the same way
 *   http://HOST...=HEADER: TEXT {NAME}      a header of any form; {@FILE} too
 *
 * The same with https://, for hosts whose TLS is inspected (run-tls.h).
 *
 * The values are in memory that no process of the run inherits.  They are in no record and no
 * sentence, and scrubbed from what is printed.
 */
#pragma once

#include "engine/run/run-env.h"
#include "engine/run/run-net.h"
#include "runner/net/secret.h"

struct run_secret {
	char *memory; /* owned: the header, with the value in it */
	size_t size;
	char *rule; /* owned; what stands before the first "=" */
};

struct run_secrets {
	struct run_secret *list; /* owned */
	size_t n;
	struct net_secrets net; /* its list is owned and has as many; for the proxy */
};

void run_secrets_done(struct run_secrets *s);

/*
 * Read what the terms and options say and check it against the network and the environment of the
 * run, whose scrub gets the values, borrowed: release the environment first.  -EINVAL with a sentence.
 */
NODISCARD int run_secrets_read(struct run_secrets *s, const struct engine_run_options *o,
			       const struct engine_profile *profile, const struct run_net *net,
			       struct run_env *env, struct err *err);
