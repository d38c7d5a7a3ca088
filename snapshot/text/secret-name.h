/*
 * secret-name.h - how files and directories are called that usually hold secrets.
 */
#pragma once

#include <stdbool.h>

bool secret_name_is(const char *name);
bool secret_name_may_have_key(const char *name); /* it is one if a private key is in it */

/* A directory of packages or of a build, which is not looked through for names. */
bool secret_name_is_skipped(const char *name);

/*
 * Does a path have a secret's name below such a directory, where no search finds it?  `with_key`: a
 * file that may have a key counts, too.
 */
bool secret_name_is_unsearched(const char *path, bool with_key);
