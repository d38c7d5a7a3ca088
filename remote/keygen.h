/*
 * keygen.h - SSH signatures of short texts, made and checked by ssh-keygen -Y.
 *
 * Keys, agents, hardware keys and lists of allowed signers are those that people have for git. Each
 * kind of text has a namespace, so that a list can limit a key to one kind; and its first line
 * names the kind, so that no signature of one passes for another.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* As ssh-keygen -n and allowed_signers have them. */
#define KEYGEN_SNAPSHOT "snapcow"
#define KEYGEN_RESULT   "snapcow-result" /* of a ticket */
#define KEYGEN_AUDIT    "snapcow-audit"

#define KEYGEN_BEGIN "-----BEGIN SSH SIGNATURE-----"

/*
 * Sign a text of at most 16 KiB with a private key, or a public one whose private key the agent has.  *ret is
 * the signature, armoured; owned.  -ENOTSUP without ssh-keygen; -EACCES if it cannot sign, with its own words.
 */
NODISCARD int keygen_sign(const char *space, const struct buf *text, const char *key, char **ret,
			  struct err *err);

/* What is checked, and by whose word. */
struct keygen_claim {
	const char *space;     /* the namespace */
	const char *subject;   /* as sentences name it */
	const char *misfit;    /* a sentence: the signature is of another text */
	const char *signers;   /* a file of ssh-keygen's ALLOWED SIGNERS */
	const char *revoked;   /* a file of keys or a KRL; NULL: none */
	const char *signature; /* armoured; NULL: there is none */
};

/*
 * Check that one of the signers signed the text, and name the principal in *ret (owned).  -ECANCELED with a
 * sentence if it is not so, -ENOTSUP without ssh-keygen.
 */
NODISCARD int keygen_check(const struct keygen_claim *claim, const struct buf *text, char **ret,
			   struct err *err);
