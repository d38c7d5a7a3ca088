/*
 * run-secrets.h - files of a clone that usually hold secrets, for a run that nobody trusts.
 *
 * They are known by their names, in every directory but those of packages; a .pem counts if there is
 * a private key in it.
 */
#pragma once

#include "base/attr.h"
#include "base/err.h"
#include "base/strlist.h"

/*
 * Add their paths below the directory `dir`; of a directory with many of them only its own.  Directories
 * are looked through level by level; false in `ret_all` if there were too many of them, and those that lie
 * deepest were not.  -E2BIG: there are more than can be hidden.
 */
NODISCARD int run_secrets_find(int dir, struct strlist *ret, bool *ret_all, struct err *err);
