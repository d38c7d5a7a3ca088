/*
 * ask.h - the messages between the bridge inside a run and the proxy outside.
 *
 * One message of SOCK_SEQPACKET each, integers little-endian:
 *
 *   ask     u8 version (1), u8 kind, u16 port, u32 id, then the host to the end, 1 to 255 bytes
 *   answer  u8 version (1), u8 status, u16 0, u32 id, then a sentence to the end, 0 to 511 bytes
 *
 * An answer ASK_OK to ASK_OPEN comes with one descriptor, a unix stream that is the connection.
 * Descriptors go in only: the proxy takes none from inside. Decoders accept only messages that an
 * encoder makes; everything else is -EBADMSG.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

#define ASK_VERSION      1
#define ASK_HOST_MAX     255
#define ASK_SENTENCE_MAX 511
#define ASK_MAX          (8 + ASK_HOST_MAX)
#define ANSWER_MAX       (8 + ASK_SENTENCE_MAX)

enum ask_kind {
	ASK_OPEN = 1, /* connect me to host and port */
	ASK_NAME = 2, /* is there such a host for me?  The port is 0 */
};

struct ask {
	enum ask_kind kind;
	uint16_t port;
	uint32_t id; /* of the bridge's choice */
	char host[ASK_HOST_MAX + 1];
	size_t host_len;
};

enum ask_status {
	ASK_OK = 0,
	ASK_REFUSED = 1,     /* by a rule */
	ASK_NOT_FOUND = 2,   /* the name leads nowhere */
	ASK_UNREACHABLE = 3, /* nobody answers there */
	ASK_FAILED = 4,      /* the proxy could not */
};

struct answer {
	enum ask_status status;
	uint32_t id;
	char sentence[ASK_SENTENCE_MAX + 1];
};

size_t ask_encode(const struct ask *a, unsigned char out[ASK_MAX]); /* the length */
NODISCARD int ask_decode(const void *data, size_t len, struct ask *ret);

size_t answer_encode(const struct answer *a, unsigned char out[ANSWER_MAX]);
NODISCARD int answer_decode(const void *data, size_t len, struct answer *ret);
