/*
 * stop.h - the signal that ends a server: SIGTERM, SIGINT or SIGHUP, heard through a descriptor.
 */
#pragma once

#include "base/attr.h"
#include "base/err.h"

/*
 * From now on these signals make the descriptor, which is returned, readable.  A client that goes
 * away is no signal at all.  Once in a process.
 */
NODISCARD int stop_prepare(struct err *err);
