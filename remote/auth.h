/*
 * auth.h - the authorization that a registry wants, found out as docker does.
 *
 * No credentials are sent until the registry refuses a request. Its challenge names the method:
 * Basic, with the user's name and password, or Bearer, with a token that another server gives for
 * them, or without them where everybody may read. Credentials come from credential.h. The result is
 * kept in memory only, for all connections of this process to the same repository.
 *
 * A token server is asked over https, or over http only if the registry itself is.
 */
#pragma once

#include "base/attr.h"
#include "base/err.h"
#include "remote/http.h"

/* Which repository of which registry; all borrowed. */
struct auth_place {
	const char *base;       /* "https://example.org:5000": what it is sent to */
	const char *server;     /* "example.org:5000": what credentials are kept under */
	const char *repository; /* "team/snaps" */
};

/* What to send, owned by the caller; *ret is NULL if nothing is known yet.  -ENOMEM. */
NODISCARD int auth_current(const struct auth_place *p, char **ret);

/*
 * Find out what to send after a 401 to a request that carried `used` (NULL: nothing); auth_current() has
 * it then.  -EACCES with a sentence if there is nothing to offer or it was refused.
 */
NODISCARD int auth_meet(const struct auth_place *p, struct http *http,
			const struct http_answer *refusal, const char *used, struct err *err);
