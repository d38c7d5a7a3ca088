/*
 * credential.h - the user's credentials, kept where docker keeps them.
 *
 * $DOCKER_CONFIG/config.json, by default ~/.docker/config.json: a program of `credHelpers` or
 * `credsStore`, else an entry of `auths`. The program is docker-credential-NAME from PATH, started
 * without a shell; the secret comes through a pipe and is in no argument and no error message.
 */
#pragma once

#include <stddef.h>

#include "base/attr.h"
#include "base/err.h"

struct credential {
	char *user, *secret; /* owned; NULL: none */
	char *refresh;       /* owned: a token that buys others (`identitytoken`) */
	char *bearer;        /* owned: a token that is used as it is (`registrytoken`) */
};

void credential_done(struct credential *c); /* wiped before it is freed */

/*
 * 1 and what there is for a server ("example.org:5000"), or 0: nothing.  A configuration that cannot be
 * read or is none, or a program that fails otherwise than by not knowing the server, is an error.
 */
NODISCARD int credential_find(const char *server, struct credential *ret, struct err *err);

/*
 * The answer of docker-credential-NAME for a server; 1, 0 or an error as above.  The caller wipes `ret`,
 * after an error too.
 */
NODISCARD int credential_ask_program(const char *name, const char *server, struct credential *ret,
				     struct err *err);

/* A configuration, for tests: its text and the server.  As credential_find(). */
NODISCARD int credential_read(const char *text, size_t len, const char *server,
			      struct credential *ret, struct err *err);
