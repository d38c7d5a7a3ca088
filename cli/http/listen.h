/*
 * listen.h - a socket that a server on HTTP listens at.
 */
#pragma once

#include <stdbool.h>

#include "base/attr.h"
#include "base/err.h"

#define LISTEN_URL_MAX 80

/*
 * Listen at "PORT", "ADDRESS:PORT" or "[ADDRESS]:PORT"; the port 0 is any that is free.  Addresses
 * that other machines can reach are refused unless `remote`; `flag` is the option that allows them, or NULL.  Returns the descriptor; `url` is where
 * `path` can be reached.
 */
NODISCARD int listen_at(const char *where, bool remote, const char *flag, const char *path,
			char url[LISTEN_URL_MAX], struct err *err);
