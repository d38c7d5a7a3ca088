/*
 * signature.h - SSH signatures (keygen.h) of manifests.
 *
 * The signed text is short and names the repository, the name in it, the snapshot and every pack.
 * So a signature fits one manifest under one name: it reveals a registry that moves the manifest
 * under another name, or changes anything in it. It cannot tell an older manifest of the same name
 * from the newest: see "Signatures" in docs/design/remote.md.
 *
 * It is in the manifest's annotations and travels with it, through skopeo too.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "remote/manifest.h"

/*
 * The repository's name in "REPOSITORY:NAME", without its host, so that a mirror's signatures fit: what
 * follows the host of a registry, the last part of any other address.  Owned; NULL: no memory.
 */
char *signature_repository(const char *url);

/* Is it REPOSITORY:NAME? */
bool signature_place_valid(const char *place);

/*
 * Sign the manifest as `place` with a private key, or a public one whose private key the agent has.
 * Sets its signature.  -ENOTSUP without ssh-keygen; -EACCES if it cannot sign, with its own words.
 */
NODISCARD int signature_make(struct manifest *m, const char *place, const char *key,
			     struct err *err);

/*
 * Check that one of the `signers` (a file of ssh-keygen's ALLOWED SIGNERS) signed the manifest as
 * `place`, and name the principal in *ret (owned).  `revoked` is a file of keys or a KRL; NULL: none.
 * -ECANCELED with a sentence if it is not so, -ENOTSUP without ssh-keygen.
 */
NODISCARD int signature_check(const struct manifest *m, const char *place, const char *signers,
			      const char *revoked, char **ret, struct err *err);
