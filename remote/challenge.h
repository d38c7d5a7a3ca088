/*
 * challenge.h - the demand for credentials in a registry's WWW-Authenticate (RFC 9110, section 11).
 */
#pragma once

#include "base/attr.h"
#include "base/err.h"
#include "base/strlist.h"

enum challenge_kind { CHALLENGE_NONE, CHALLENGE_BASIC, CHALLENGE_BEARER };

struct challenge {
	enum challenge_kind kind;
	char *realm, *service, *scope, *error; /* owned, or NULL */
};

void challenge_done(struct challenge *c);

/*
 * The best of the headers that we can meet: Bearer before Basic; CHALLENGE_NONE if we know neither.  What
 * is no challenge is passed over.  -ENOMEM.
 */
NODISCARD int challenge_choose(const struct strlist *headers, struct challenge *ret);

/* One header; CHALLENGE_NONE if it holds no scheme that we know, or is none. */
NODISCARD int challenge_parse(const char *header, struct challenge *ret);
