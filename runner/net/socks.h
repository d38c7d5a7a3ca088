/*
 * socks.h - the two messages by which a client asks a SOCKS5 proxy for a connection (RFC 1928).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

#define SOCKS_VERSION    5
#define SOCKS_REPLY_SIZE 10

enum socks_reply {
	SOCKS_OK = 0,
	SOCKS_FAILED = 1,
	SOCKS_REFUSED = 2,
	SOCKS_HOST_UNREACHABLE = 4,
	SOCKS_CONNECTION_REFUSED = 5,
	SOCKS_NO_SUCH_COMMAND = 7,
	SOCKS_NO_SUCH_ADDRESS = 8,
};

/* The length of the greeting, 0 if it is not all there, -EBADMSG.  *ret_open: without a password. */
NODISCARD int socks_parse_greeting(const unsigned char *data, size_t len, bool *ret_open);

struct socks_request {
	enum socks_reply problem; /* SOCKS_OK: it is one that can be served */
	char host[256];           /* a name as it came, or an address as text */
	size_t host_len;
	uint16_t port;
};

NODISCARD int socks_parse_request(const unsigned char *data, size_t len, struct socks_request *ret);

void socks_write_reply(enum socks_reply code, unsigned char out[SOCKS_REPLY_SIZE]);
