/*
 * send-fd.h - one message over a unix socket, with a descriptor or without.
 */
#pragma once

#include <stddef.h>

#include "base/err.h"

/* `fd` is borrowed; -1: none.  `flags` as for sendmsg(2), which never raises SIGPIPE here. */
NODISCARD int send_fd(int socket, const void *bytes, size_t len, int fd, int flags);
