/*
 * consent.h - a person's yes before an agent's call writes the project.
 *
 * A client that can ask shows the person what a dry run would change; one that cannot is given the
 * command line for the person to type.
 */
#pragma once

#include "cli/mcp/session.h"

enum consent {
	CONSENT_GIVEN,
	CONSENT_NEEDED,     /* and the client can ask for it */
	CONSENT_IMPOSSIBLE, /* it cannot */
	CONSENT_REFUSED,
};

/* What there is of it in the request, or in how the server was started. */
enum consent consent_of(const struct session *s, const struct pending_call *p);

/* Did the dry run find anything that would be changed? */
bool consent_worth_asking(const struct pending_call *p);

/* Ask the person, showing what the dry run found. */
NODISCARD int consent_ask(struct session *s, struct pending_call *p, struct err *err);

/* Is this answer to our question a yes? */
bool consent_in_response(const struct rpc_message *m);

/* Answer a call that nobody can be asked about: what a person would type. */
NODISCARD int consent_tell_command(struct session *s, const struct pending_call *p,
				   struct err *err);
