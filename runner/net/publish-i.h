/*
 * publish-i.h - the messages from the publisher outside to the door inside.
 *
 * One message of SOCK_SEQPACKET each, little-endian: u8 version (1), u8 what, u16 port, u32 id.  The
 * publisher asks with `what` DOOR_IPV4 or DOOR_IPV6.  The door answers with the same message, with
 * DOOR_FAILED in the place of `what` or with one descriptor: a TCP socket that is being connected.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

#define DOOR_VERSION 1
#define DOOR_SIZE    8

enum door_what { DOOR_FAILED = 0, DOOR_IPV4 = 4, DOOR_IPV6 = 6 };

struct door_word {
	enum door_what what;
	uint16_t port;
	uint32_t id;
};

/* `fd` goes with it, if it is none of -1.  Returns 0 or a negative errno. */
NODISCARD int door_send(int socket, const struct door_word *w, int fd, int flags);

/* 1 and a word, 0 at the end or for what is no word, or a negative errno.  The caller owns *ret_fd. */
NODISCARD int door_receive(int socket, struct door_word *ret, int *ret_fd, int flags);
