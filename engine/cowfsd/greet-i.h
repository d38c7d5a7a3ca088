/*
 * greet-i.h - how a connection to cowfsd begins: whom it serves, and which versions meet.
 */
#pragma once

#include <stdbool.h>

#include "engine/cowfsd/serve-i.h"
#include "engine/wire/control-i.h"

/*
 * Does cowfsd serve the process at the other end?  -EACCES: another user; -EPERM: it is in a
 * container or a sandbox.  `*ret_beside`: it is in another mount namespace.
 */
NODISCARD int greet_check_peer(int fd, const char *store, bool *ret_beside, struct err *err);

NODISCARD int greet_send_hello(struct server *s, int fd, struct err *err);

/* 1 if the client has our version, 0 if another; -ENODATA if it left without a word. */
NODISCARD int greet_read_client(struct control *c, struct err *err);
