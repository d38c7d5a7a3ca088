/*
 * run-secrets.h - files of a clone that usually hold secrets, for a run that nobody trusts.
 *
 * They are known by their names (secret-name.h), in every directory but those of packages; a .pem counts if
 * there is a private key in it.  What a symlink of such a name leads to is one, too, and all that lies in a
 * directory of such a name.  All of it is one state of the clone, read from the store.  What was one in the
 * state that the clone began with or in one that was looked through before, or is one under one of its names, is
 * found by its number in every directory, whatever it is called there.
 */
#pragma once

#include "base/cleanup.h"
#include "base/err.h"
#include "cowfs/store/record.h"
#include "cowfs/store/store.h"

struct run_secret {
	char *path; /* owned; from the top; NULL if all are wanted by number */
	uint64_t ino;
};

struct run_secrets_found {
	struct run_secret *list;
	size_t n, cap;
};

void run_secrets_found_done(struct run_secrets_found *f);

struct run_secrets_in {
	struct store *store;
	const struct object_id
	    *before;     /* what the clone began with; NULL: nobody wrote in it yet */
	const char *top; /* where the run sees the clone: absolute symlinks below it stay there */
	int dir;         /* the clone's mount */
	size_t each;     /* a directory with more than these is hidden as a whole; SIZE_MAX: numbers
			      alone are wanted */
	size_t max;      /* so many can be hidden */
	uint64_t until_ms; /* of the monotonic clock: the search ends then, in whatever state */
};

/* Borrows what `in` points to.  Remembers where nothing was found. */
struct run_search;

NODISCARD int run_search_new(const struct run_secrets_in *in, struct run_search **ret,
			     struct err *err);
void run_search_free(struct run_search *s); /* NULL is fine */
DEFINE_CLEANUP(struct run_search *, run_search_free)

/* What has one of these numbers is a secret, too; of its directories those with any in them.  They are kept. */
NODISCARD int run_search_know(struct run_search *s, const struct hidden *h, struct err *err);

/*
 * All of them in the state `root`; of a directory with more than `each` of them only its own.  For a later
 * state of the same clone only what is not the same is looked through again.  All or nothing: -E2BIG
 * (there are more than `max`), -ETIMEDOUT, -ELOOP (nested too deep) and -ENAMETOOLONG with sentences that
 * say what to do.
 */
NODISCARD int run_search_look(struct run_search *s, const struct object_id *root,
			      struct run_secrets_found *ret, struct err *err);

/*
 * What searches in later states of the clone are to know; borrowed until `s` is used again: all that was found
 * and, up to a limit, what is in directories that were.  Of directories with more than `each` those whose secrets
 * are not all among the numbers.
 */
struct hidden run_search_kept(const struct run_search *s);

/* Until another time than the search began with. */
void run_search_until(struct run_search *s, uint64_t until_ms);
