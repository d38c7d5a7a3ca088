/*
 * mask.h - text that an agent wrote, without what looks like a secret.
 *
 * A guess for records and listings, no wall: values behind names such as `token` and `password`, and
 * words with the beginnings that known services give their keys, become `***`.
 */
#pragma once

#include <stdbool.h>

/* An owned copy of the first few KiB; NULL: no memory. */
char *mask_text(const char *text);

/* Is it the name of something secret? */
bool mask_is_secret_name(const char *name);
