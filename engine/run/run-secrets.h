/*
 * run-secrets.h - files of a clone that usually hold secrets, for a run that nobody trusts.
 *
 * They are known by their names, in every directory but those of packages; a .pem counts if there
 * is a private key in it. All of them come from one state of the clone, read from the store. A file
 * that was a secret in the state that the clone began with is found by its number, wherever a run
 * moved it since.
 */
#pragma once

#include "base/cleanup.h"
#include "base/err.h"
#include "cowfs/store/store.h"

struct run_secret {
	char *path; /* owned; from the top */
	uint64_t ino;
};

struct run_secrets_found {
	struct run_secret *list;
	size_t n, cap;
	bool
	    all; /* there were not too many directories; else those that lie deepest were left out */
};

void run_secrets_found_done(struct run_secrets_found *f);

struct run_secrets_in {
	struct store *store;
	const struct object_id *root;   /* of the clone */
	const struct object_id *before; /* that it began with; NULL: nobody wrote in it yet */
	int dir;     /* the clone's mount, whose directories stay where they are */
	size_t each; /* a directory with more than these is hidden as a whole */
	size_t max;  /* so many can be hidden */
};

/*
 * Of a directory with more than `each` of them only its own; of a file with several names all that lie in directories
 * that are looked through.  -E2BIG: there are more than `max`.
 */
NODISCARD int run_secrets_find(const struct run_secrets_in *in, struct run_secrets_found *ret,
			       struct err *err);
