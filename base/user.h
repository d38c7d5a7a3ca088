/*
 * user.h - the names of this machine's users.
 */
#pragma once

#include <sys/types.h>

#include "base/attr.h"

/* Owned by the caller; a user without a name is known by number.  NULL when out of memory. */
NODISCARD char *user_name(uid_t uid);
