/*
 * secret-name.h - how files and directories are called that usually hold secrets.
 */
#pragma once

#include <stdbool.h>

bool secret_name_is(const char *name);
bool secret_name_may_have_key(const char *name); /* it is one if a private key is in it */

/* A directory of packages or of a build, which is not looked through for names. */
bool secret_name_is_skipped(const char *name);
