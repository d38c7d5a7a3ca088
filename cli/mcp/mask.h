/*
 * mask.h - an agent's text, with anything that looks like a secret removed.
 *
 * A guess for records and listings, no wall: values after names such as `token` and `password`, and
 * words that begin like the keys of known services, become `***`.
 */
#pragma once

#include <stdbool.h>

/* An owned copy of the first few KiB; NULL: no memory. */
char *mask_text(const char *text);

/* Is it the name of something secret? */
bool mask_is_secret_name(const char *name);
