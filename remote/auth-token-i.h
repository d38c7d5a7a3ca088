/*
 * auth-token-i.h - private to auth*.c: a token from the server that a challenge names.
 */
#pragma once

#include "remote/auth.h"
#include "remote/challenge.h"
#include "remote/credential.h"

/* "Bearer ..." for what the challenge asks; owned. */
NODISCARD int auth_token(const struct auth_place *p, struct http *http, const struct challenge *c,
			 const struct credential *mine, char **ret, struct err *err);

/* "Basic ..."; owned.  -ENOMEM. */
NODISCARD int auth_basic(const struct credential *c, char **ret);

/* The token in what a token server answered, as "Bearer ..."; -EPROTO if there is none that can be sent. */
NODISCARD int auth_token_read(const char *text, size_t len, char **ret);
