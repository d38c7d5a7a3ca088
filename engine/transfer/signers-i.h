/*
 * signers-i.h - whose signature a fetch requires, from its options and from config.yaml.
 */
#pragma once

#include "engine/transfer/transfer-i.h"

struct signers {
	bool required;
	char *allowed, *revoked; /* owned; files; NULL: none */
	char *place;             /* owned; REPOSITORY:NAME that it must have been signed as */
};

void signers_done(struct signers *s);

/* Naming a file of signers asks for a signature.  -EINVAL if one is required and no file is named. */
NODISCARD int signers_find(struct engine *e, const struct target *t,
			   const struct engine_trust *trust, struct signers *ret, struct err *err);

/* 0 if it is signed as it must be, and by whom (owned; NULL: nobody was asked for).  -ECANCELED. */
NODISCARD int signers_check(const struct signers *s, const struct manifest *m, char **ret_who,
			    struct err *err);

/* 1 if config.yaml names a file of signers for this remote, else 0. */
NODISCARD int signers_demanded(struct engine *e, const struct target *t, struct err *err);

/* REPOSITORY:NAME of a target, or `as` if that is given (NULL: not); owned. */
NODISCARD int signers_place(const struct target *t, const char *as, char **ret, struct err *err);
